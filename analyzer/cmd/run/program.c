/*
 * program.c - see program.h. Reads ELF headers that may be anything; every offset is
 * checked by pread().
 */
#include "cmd/run/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* 0, or the errno with which exec would refuse. */
static int can_run(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

static void search(const char *name, struct run_program *out)
{
	const char *path = getenv("PATH");

	out->error = ENOENT;
	if (strchr(name, '/')) {
		snprintf(out->path, sizeof(out->path), "%s", name);
		out->error = can_run(name);
		return;
	}
	if (!path)
		path = _PATH_DEFPATH;
	for (;;) {
		size_t n = strcspn(path, ":");
		int error;

		snprintf(
		    out->path, sizeof(out->path), "%.*s%s%s", (int)n, path, n ? "/" : "", name);
		error = can_run(out->path);
		if (!error) {
			out->error = 0;
			return;
		}
		if (error == EACCES)
			out->error = EACCES;
		if (!path[n])
			break;
		path += n + 1;
	}
	out->path[0] = '\0';
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t at)
{
	return at < (UINT64_C(1) << 62) && pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* Where in the file a virtual address lies; 0: nowhere. */
static uint64_t file_offset(const Elf64_Phdr *ph, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
		    address - ph[i].p_vaddr < ph[i].p_filesz)
			return address - ph[i].p_vaddr + ph[i].p_offset;
	return 0;
}

/* Its dynamic section: does it need any library, and where are the names of its symbols? */
struct dynamic {
	bool needs;
	uint64_t strings, bytes;
};

static struct dynamic read_dynamic(int fd, const Elf64_Phdr *ph, size_t n)
{
	struct dynamic out = {0};
	uint64_t at = 0, bytes = 0;
	Elf64_Dyn dyn;

	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_DYNAMIC) {
			at = ph[i].p_offset;
			bytes = ph[i].p_filesz < 65536 ? ph[i].p_filesz : 65536;
		}
	for (uint64_t end = at + bytes; at + sizeof(dyn) <= end; at += sizeof(dyn)) {
		if (!read_at(fd, &dyn, sizeof(dyn), at))
			break;
		if (dyn.d_tag == DT_NEEDED)
			out.needs = true;
		else if (dyn.d_tag == DT_STRTAB)
			out.strings = file_offset(ph, n, dyn.d_un.d_ptr);
		else if (dyn.d_tag == DT_STRSZ)
			out.bytes = dyn.d_un.d_val;
	}
	return out;
}

/* Does it name a sanitizer's runtime, as a library that it needs or by its entry? That it exports
 * where it has the runtime in itself (clang). */
static bool sanitized(int fd, const struct dynamic *dynamic)
{
	static const char *const names[] = {"__asan_init", "__hwasan_init", "__msan_init",
	    "__tsan_init", "libasan.so", "libhwasan.so", "libtsan.so", NULL};
	enum { OVERLAP = 16, MOST = 64 << 20 };
	static char block[65536];

	for (uint64_t at = 0; dynamic->strings && at < dynamic->bytes && at < MOST;
	     at += sizeof(block) - OVERLAP) {
		uint64_t left = dynamic->bytes - at;
		size_t bytes = left < sizeof(block) ? (size_t)left : sizeof(block);

		if (!read_at(fd, block, bytes, dynamic->strings + at))
			return false;
		for (const char *const *e = names; *e; e++) {
			const char *found = memmem(block, bytes, *e, strlen(*e));

			if (found && (found > block ? !found[-1] : !at))
				return true;
		}
	}
	return false;
}

static enum run_program_kind elf_kind(int fd, const Elf64_Ehdr *eh, char interpreter[256])
{
	Elf64_Phdr ph[64];
	size_t n = eh->e_phnum < 64 ? eh->e_phnum : 64;
	struct dynamic dynamic;
	bool loaded = false;

	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh->e_machine != MACHINE)
		return RUN_PROGRAM_OTHER;
	if (eh->e_phentsize != sizeof(*ph) || !read_at(fd, ph, n * sizeof(*ph), eh->e_phoff))
		return RUN_PROGRAM_SEEN; /* damaged: exec will say so */
	for (size_t i = 0; i < n; i++) {
		size_t bytes = ph[i].p_filesz < 256 ? ph[i].p_filesz : 255;

		if (ph[i].p_type == PT_INTERP) {
			loaded = true;
			memset(interpreter, 0, 256);
			if (!read_at(fd, interpreter, bytes, ph[i].p_offset))
				interpreter[0] = '\0';
		}
	}
	dynamic = read_dynamic(fd, ph, n);
	if (!loaded) /* the loader itself, run by hand, has none either, but it does preload */
		return eh->e_type == ET_DYN && dynamic.needs ? RUN_PROGRAM_SEEN
							     : RUN_PROGRAM_STATIC;
	if (strstr(interpreter, "/ld-musl-"))
		return RUN_PROGRAM_MUSL;
	return sanitized(fd, &dynamic) ? RUN_PROGRAM_ASAN : RUN_PROGRAM_SEEN;
}

/* Does the kernel give it another user, group or capabilities? Of the latter root has all. */
static bool changes_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
		   st.st_gid != getegid()) ||
	       (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* Follows "#!" lines, as the kernel does, to the file that is really run. */
static enum run_program_kind kind_of(struct run_program *out)
{
	snprintf(out->file, sizeof(out->file), "%s", out->path);
	for (int depth = 0; depth < 5; depth++) {
		union {
			Elf64_Ehdr elf;
			char text[PATH_MAX];
		} head = {0};
		enum run_program_kind kind = RUN_PROGRAM_SEEN;
		struct stat st;
		ssize_t n;
		char *p;
		int fd = open(out->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		if (fd < 0) { /* executable, but not readable */
			if (!stat(out->file, &st) && (st.st_mode & S_ISUID) &&
			    st.st_uid != geteuid())
				return RUN_PROGRAM_SETUID;
			return RUN_PROGRAM_SEEN;
		}
		n = pread(fd, &head, sizeof(head) - 1, 0);
		if (n >= (ssize_t)sizeof(head.elf) && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG)) {
			kind = elf_kind(fd, &head.elf, out->interpreter);
			if (kind == RUN_PROGRAM_SEEN && changes_rights(fd))
				kind = RUN_PROGRAM_SETUID;
			close(fd);
			return kind;
		}
		close(fd);
		if (n < 3 || memcmp(head.text, "#!", 2))
			return RUN_PROGRAM_SEEN;
		p = head.text + 2;
		p += strspn(p, " \t");
		p[strcspn(p, " \t\n")] = '\0';
		snprintf(out->file, sizeof(out->file), "%s", p);
	}
	return RUN_PROGRAM_SEEN;
}

void run_program_look(const char *name, struct run_program *out)
{
	*out = (struct run_program){.kind = RUN_PROGRAM_SEEN};
	search(name, out);
	if (!out->error)
		out->kind = kind_of(out);
}

bool run_program_preloadable(enum run_program_kind kind)
{
	return kind == RUN_PROGRAM_SEEN || kind == RUN_PROGRAM_STATIC || kind == RUN_PROGRAM_SETUID;
}

const char *run_program_warning(enum run_program_kind kind)
{
	switch (kind) {
	case RUN_PROGRAM_SEEN:
		return NULL;
	case RUN_PROGRAM_STATIC:
		return "is statically linked: only its levels are seen, from outside, and the "
		       "dynamic programs that it starts";
	case RUN_PROGRAM_MUSL:
		return "is linked with musl, for which there is no library: only its levels are "
		       "seen, from outside";
	case RUN_PROGRAM_SETUID:
		return "changes its user, group or capabilities when it starts, and such a program "
		       "loads nothing "
		       "that it is told to: only its levels are seen, from outside";
	case RUN_PROGRAM_ASAN:
		return "is built with a sanitizer, which replaces malloc itself and must come "
		       "first: only its levels are seen, from outside";
	case RUN_PROGRAM_OTHER:
		return "is for another kind of machine: only its levels are seen, from outside";
	}
	return NULL;
}
