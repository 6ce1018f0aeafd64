/*
 * program.c - see program.h. Trusts nothing that it reads: pread() checks every offset, and a file
 * that contradicts itself is a plain program, which exec will judge.
 */
#include "exec/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "loaded/symbols.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* --- the files examined last --- */

struct seen {
	uint64_t dev, ino;
	int64_t mtime, mtime_ns, ctime, ctime_ns;
};

/* A thread that finds `turn` even makes it odd and writes the entry; a reader that sees it change
 * reads the file instead. An entry left odd by a thread that a fork lost is never used again. */
static struct examined {
	uint32_t turn;
	uint8_t kind;
	bool capable; /* has file capabilities */
	struct seen file;
	char text[64];
} examined_files[64];

static struct seen seen_of(const struct stat *st)
{
	return (struct seen){st->st_dev, st->st_ino, st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
	    st->st_ctim.tv_sec, st->st_ctim.tv_nsec};
}

static struct examined *entry_of(const struct seen *file)
{
	uint64_t hash = (file->ino ^ file->dev << 32) * 0x9E3779B97F4A7C15u;

	return &examined_files[hash >> 58];
}

static bool recall(const struct seen *file, struct program *out, bool *capable)
{
	struct examined *p = entry_of(file);
	uint32_t turn = __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);

	if (!turn || (turn & 1) || memcmp(&p->file, file, sizeof(*file)) != 0)
		return false;
	out->kind = p->kind;
	*capable = p->capable;
	memcpy(out->text, p->text, sizeof(out->text));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&p->turn, __ATOMIC_RELAXED) == turn;
}

static void remember(const struct seen *file, const struct program *program, bool capable)
{
	struct examined *p = entry_of(file);
	uint32_t turn = __atomic_load_n(&p->turn, __ATOMIC_RELAXED);

	if ((turn & 1) || !__atomic_compare_exchange_n(
			      &p->turn, &turn, turn + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	p->file = *file;
	p->kind = (uint8_t)program->kind;
	p->capable = capable;
	memcpy(p->text, program->text, sizeof(p->text));
	__atomic_store_n(&p->turn, turn + 2, __ATOMIC_RELEASE);
}

/* --- ELF --- */

enum { SEGMENTS = 32, ENTRIES = 128 };

/* Parts of a file. On pages of our own: the thread that calls exec may have a small stack. */
struct work {
	_Alignas(8) uint8_t head[1024];
	Elf64_Phdr segments[SEGMENTS];
	Elf64_Dyn dynamic[ENTRIES];
	char path[256], script[256];
	uint32_t chain[64];
};

struct elf {
	int fd;
	struct work *work;
	unsigned count; /* of segments */
};

static long read_at(int fd, void *to, size_t bytes, uint64_t at)
{
	return at >> 62 ? -1 : sys_call(SYS_pread64, fd, (long)to, (long)bytes, (long)at, 0, 0);
}

static bool read_whole(int fd, void *to, size_t bytes, uint64_t at)
{
	return read_at(fd, to, bytes, at) == (long)bytes;
}

/* Read text that ends somewhere in the file, cut to `size`. */
static bool read_text(int fd, char *to, size_t size, uint64_t at)
{
	long n = read_at(fd, to, size - 1, at);

	to[n > 0 ? n : 0] = 0;
	return n > 0;
}

static uint64_t file_offset(const struct elf *elf, uint64_t address)
{
	for (unsigned i = 0; i < elf->count; i++) {
		const Elf64_Phdr *p = &elf->work->segments[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz)
			return address - p->p_vaddr + p->p_offset;
	}
	return 0;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool program_is_runtime(const char *name, unsigned length)
{
	static const char *const names[] = {"libasan.so", "libhwasan.so", "liblsan.so",
	    "libtsan.so", "libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.lsan",
	    "libclang_rt.msan", "libclang_rt.tsan"};

	for (unsigned i = length; i-- > 0;)
		if (name[i] == '/') {
			name += i + 1;
			length -= i + 1;
			break;
		}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (length >= strlen(names[i]) && !strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Does the program itself export that name? Looks only at the hash table, in which names hardly
 * collide. */
static bool exports(const struct elf *elf, uint64_t table, const char *name)
{
	struct {
		uint32_t buckets, first, words, shift;
	} head;
	uint32_t h = symbols_hash(name), bucket, *chain = elf->work->chain;
	uint64_t word, at;
	int fd = elf->fd;

	if (!read_whole(fd, &head, sizeof(head), table) || !head.buckets || !head.words)
		return false;
	at = table + sizeof(head);
	if (!read_whole(fd, &word, sizeof(word), at + (uint64_t)(h / 64 % head.words) * 8) ||
	    !(word >> (h % 64) & word >> (h >> (head.shift & 31)) % 64 & 1))
		return false;
	at += (uint64_t)head.words * 8;
	if (!read_whole(fd, &bucket, sizeof(bucket), at + (uint64_t)(h % head.buckets) * 4) ||
	    bucket < head.first)
		return false;
	at += (uint64_t)head.buckets * 4 + (uint64_t)(bucket - head.first) * 4;
	for (long n = read_at(fd, chain, sizeof(elf->work->chain), at) / 4, i = 0; i < n; i++) {
		if ((chain[i] | 1) == (h | 1))
			return true;
		if (chain[i] & 1)
			break;
	}
	return false;
}

/* Can LD_PRELOAD hold the name, and does the loader then look for it as for the program's? */
static bool is_name(const char *text)
{
	for (; *text; text++)
		if (strchr("/:; $", *text))
			return false;
	return true;
}

/* Find a sanitizer's runtime: a library that the program needs, or part of the program (clang, gcc
 * -static-libasan). */
static enum program_kind sanitizer(const struct elf *elf, const Elf64_Phdr *dynamic, char text[64])
{
	static const char *const inits[] = {"__asan_init", "__hwasan_init", "__lsan_init",
	    "__msan_init", "__tsan_init",
	    "mcheck_pedantic" /* gcc's, which exports no __asan_init */};
	enum { MOST = sizeof(elf->work->dynamic) };
	Elf64_Dyn *entries = elf->work->dynamic;
	size_t bytes = dynamic->p_filesz < MOST ? dynamic->p_filesz : MOST;
	long n = read_at(elf->fd, entries, bytes, dynamic->p_offset);
	uint64_t strings = 0, hash = 0;

	n = n > 0 ? n / (long)sizeof(entries[0]) : 0;
	for (long i = 0; i < n; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			strings = file_offset(elf, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_GNU_HASH)
			hash = file_offset(elf, entries[i].d_un.d_ptr);
	}
	for (long i = 0; i < n && strings && entries[i].d_tag != DT_NULL; i++)
		if (entries[i].d_tag == DT_NEEDED &&
		    read_text(elf->fd, text, 64, strings + entries[i].d_un.d_val) &&
		    program_is_runtime(text, (unsigned)strlen(text)))
			return strlen(text) < 63 && is_name(text) ? PROGRAM_SANITIZER_LIBRARY
								  : PROGRAM_SANITIZER_UNNAMED;
	text[0] = 0;
	for (size_t i = 0; hash && i < sizeof(inits) / sizeof(inits[0]); i++)
		if (exports(elf, hash, inits[i]))
			return PROGRAM_SANITIZED;
	return PROGRAM_PLAIN;
}

/* The file's first `have` bytes are in work->head. */
static enum program_kind elf_kind(
    int fd, struct work *work, size_t have, const char *path, char text[64])
{
	const Elf64_Ehdr *eh = (const void *)work->head;
	Elf64_Phdr *far = work->segments;
	const Elf64_Phdr *dynamic = NULL, *interpreter = NULL;
	struct elf elf = {fd, work, eh->e_phnum < SEGMENTS ? eh->e_phnum : SEGMENTS};
	size_t bytes = elf.count * sizeof(far[0]);
	char *loader = work->path;
	const char *name;

	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh->e_machine != MACHINE)
		return PROGRAM_MACHINE;
	if (eh->e_phentsize != sizeof(far[0]))
		return PROGRAM_PLAIN;
	if (eh->e_phoff <= have && bytes <= have - eh->e_phoff)
		memcpy(far, work->head + eh->e_phoff, bytes);
	else if (!read_whole(fd, far, bytes, eh->e_phoff))
		return PROGRAM_PLAIN;
	for (unsigned i = 0; i < elf.count; i++) {
		if (far[i].p_type == PT_INTERP)
			interpreter = &far[i];
		else if (far[i].p_type == PT_DYNAMIC)
			dynamic = &far[i];
	}
	if (!interpreter) {
		/* a loader that is executed directly */
		name = base_name(path);
		return begins(name, "ld-musl")				   ? PROGRAM_MUSL
		       : begins(name, "ld-linux") || begins(name, "ld.so") ? PROGRAM_PLAIN
									   : PROGRAM_STATIC;
	}
	if (!read_text(fd, loader,
		interpreter->p_filesz < sizeof(work->path) ? interpreter->p_filesz + 1
							   : sizeof(work->path),
		interpreter->p_offset))
		return PROGRAM_PLAIN;
	name = base_name(loader);
	if (begins(name, "ld-musl"))
		return PROGRAM_MUSL;
	if (!begins(name, "ld-linux") && !begins(name, "ld.so") && !begins(name, "ld-2.") &&
	    !begins(name, "ld64.so"))
		return PROGRAM_LOADER;
	return dynamic ? sanitizer(&elf, dynamic, text) : PROGRAM_PLAIN;
}

/* Find the interpreter in a script's first line, as the kernel does. */
static bool interpreter(const char *line, size_t have, char *out, size_t room)
{
	size_t at = 2, n = 0;

	while (at < have && (line[at] == ' ' || line[at] == '\t'))
		at++;
	while (at + n < have && line[at + n] && !strchr(" \t\n", line[at + n]))
		n++;
	if (!n || n >= room)
		return false;
	memcpy(out, line + at, n);
	out[n] = 0;
	return true;
}

static int open_file(int directory, const char *path, int flags)
{
	enum { HOW = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };
	char link[SYS_FD_LINK_BYTES];

	if (path[0] || !(flags & AT_EMPTY_PATH))
		return (int)sys_call(SYS_openat, directory, (long)path,
		    HOW | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0), 0, 0, 0);
	sys_fd_link(directory, link);
	return sys_open(link, HOW, 0);
}

static bool stat_file(int directory, const char *path, int flags, struct stat *st)
{
	return sys_call(SYS_newfstatat, directory, (long)path, (long)st,
		   flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW), 0, 0) == 0 &&
	       S_ISREG(st->st_mode);
}

/* Examine the file itself, and remember the result with the file's identity and times. */
static void read_program(
    int fd, struct work *work, const char *path, struct program *out, bool *capable)
{
	const uint8_t *head = work->head;
	struct seen file, after;
	struct stat st;
	long n;

	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0)
		return;
	file = seen_of(&st);
	*capable = sys_call(SYS_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0;
	n = read_at(fd, work->head, sizeof(work->head), 0);
	if (n >= (long)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG))
		out->kind = elf_kind(fd, work, (size_t)n, path, out->text);
	else if (n > 2 && head[0] == '#' && head[1] == '!') {
		/* The kernel looks at this many bytes. */
		if (!interpreter(
			(char *)head, n < 255 ? (size_t)n : 255, out->path, sizeof(out->path)))
			return;
		out->kind = PROGRAM_SCRIPT;
		if (strlen(out->path) >= sizeof(out->text))
			return;
		memcpy(out->text, out->path, strlen(out->path) + 1);
	} else {
		return;
	}
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0)
		return;
	after = seen_of(&st);
	/* a file that was just written may change again without a new time */
	if (!memcmp(&file, &after, sizeof(file)) &&
	    file.ctime + 2 < (int64_t)(sys_clock_ns(CLOCK_REALTIME) / 1000000000u))
		remember(&file, out, *capable);
}

static bool changes_rights(const struct stat *st, bool capable)
{
	uint32_t user = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);

	return (capable && user) || ((st->st_mode & S_ISUID) && st->st_uid != user) ||
	       ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		   st->st_gid != (uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0));
}

static void look(struct work *work, int directory, const char *path, int flags, struct program *out)
{
	bool capable;
	struct stat st;
	struct seen file;
	int fd;

	/* The kernel follows as many. */
	for (int depth = 0; depth < 5; depth++) {
		out->kind = PROGRAM_PLAIN;
		out->secure = capable = false;
		out->text[0] = 0;
		if (!stat_file(directory, path, flags, &st))
			return;
		file = seen_of(&st);
		if (!recall(&file, out, &capable)) {
			out->kind = PROGRAM_PLAIN;
			out->text[0] = 0;
			fd = open_file(directory, path, flags);
			if (fd >= 0) {
				read_program(fd, work, path, out, &capable);
				sys_close(fd);
			}
		} else if (out->kind == PROGRAM_SCRIPT) {
			memcpy(out->path, out->text, sizeof(out->text));
		}
		if (out->kind != PROGRAM_SCRIPT) {
			out->secure = changes_rights(&st, capable);
			return;
		}
		memcpy(work->script, out->path, sizeof(work->script));
		path = work->script;
		directory = AT_FDCWD;
		flags = 0;
	}
	out->kind = PROGRAM_PLAIN;
}

void program_examine(int directory, const char *path, int flags, struct program *out)
{
	struct work *work = sys_pages(sizeof(*work));

	*out = (struct program){.kind = PROGRAM_PLAIN};
	strncat(out->path, path, sizeof(out->path) - 1);
	if (!work)
		return;
	look(work, directory, path, flags, out);
	sys_pages_free(work, sizeof(*work));
}

bool program_search(const char *name, const char *search_path, char *out, unsigned size)
{
	size_t length = strlen(name);
	struct stat st;

	out[0] = 0;
	if (strchr(name, '/')) {
		strncat(out, name, size - 1);
		return length < size;
	}
	if (!search_path)
		search_path = "/bin:/usr/bin"; /* confstr(_CS_PATH) */
	for (const char *end; length; search_path = end + 1) {
		size_t n;

		for (end = search_path; *end && *end != ':';)
			end++;
		n = (size_t)(end - search_path);
		if (n + length + 2 <= size) {
			memcpy(out, search_path, n);
			out[n] = '/';
			memcpy(out + n + !!n, name, length + 1);
			if (stat_file(AT_FDCWD, out, 0, &st) &&
			    sys_call(SYS_faccessat, AT_FDCWD, (long)out, X_OK, 0, 0, 0) == 0)
				return true;
		}
		if (!*end)
			break;
	}
	return false;
}
