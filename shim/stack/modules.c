/*
 * modules.c - see modules.h. Must not allocate from the host, nor wait without bound for another
 * thread: a signal handler may have interrupted the one that holds the lock.
 */
#include "stack/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "base/varint.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"
#include "trace/definitions.h"

#define BLOCK_MODULES 256u
#define ARENA_BYTES (64u << 10)
#define SEGMENTS_MAX 32
#define MAPS_BUFFER (16u << 10)

/* Looked up at run time, as it is newer than the oldest C library that we load under. A test sets
 * another name to simulate such a system. */
#ifndef MODULES_FIND_OBJECT
#define MODULES_FIND_OBJECT "_dl_find_object"
#endif

/* A module as the loader describes it; valid while it is loaded. */
struct seen {
	uintptr_t bias;
	const char *name;
	const ElfW(Phdr) * phdr;
	size_t phnum;
};

static struct seen seen_from(const struct dl_phdr_info *info)
{
	return (struct seen){info->dlpi_addr, info->dlpi_name ? info->dlpi_name : "",
	    info->dlpi_phdr, info->dlpi_phnum};
}

struct arena {
	_Atomic size_t used;
	uint8_t bytes[];
};

_Atomic uint8_t module_live_[MODULES_MAX];
_Atomic uint64_t modules_generation_ = 1;
_Atomic uint32_t modules_unstable_;
uint32_t modules_self = UINT32_MAX; /* none yet */

static _Atomic(struct module *) blocks[MODULES_MAX / BLOCK_MODULES];
static _Atomic uint32_t last_id; /* ids 1 to this are in use */
static _Atomic uint64_t scan_number;
static _Atomic uint64_t unload_count; /* of the loader at the last scan, plus 1; 0: unknown */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Atomic(struct arena *) arena;
static _Atomic size_t own_bytes;

/* --- small helpers --- */

static bool lock_bounded(void)
{
	for (int i = 0; i < 5000; i++) {
		if (!atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
			return true;
		sys_yield();
	}
	return false;
}

static void unlock(bool held)
{
	if (held)
		atomic_flag_clear_explicit(&lock, memory_order_release);
}

static uint8_t *arena_alloc(size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	for (;;) {
		struct arena *a = atomic_load_explicit(&arena, memory_order_acquire);
		struct arena *fresh;

		if (a) {
			size_t at =
			    atomic_fetch_add_explicit(&a->used, bytes, memory_order_relaxed);

			if (at + bytes <= ARENA_BYTES - sizeof(*a))
				return a->bytes + at;
		}
		fresh = bytes > ARENA_BYTES / 2 ? NULL : sys_pages(ARENA_BYTES);
		if (!fresh)
			return NULL;
		if (atomic_compare_exchange_strong(&arena, &a, fresh))
			atomic_fetch_add(&own_bytes, ARENA_BYTES);
		else
			sys_pages_free(fresh, ARENA_BYTES);
	}
}

static struct module *module_slot(uint32_t id)
{
	struct module *block =
	    atomic_load_explicit(&blocks[id / BLOCK_MODULES], memory_order_acquire);

	return block ? &block[id % BLOCK_MODULES] : NULL;
}

/* Returns a new slot; NULL: ids or memory are exhausted. */
static struct module *module_new(void)
{
	uint32_t id = atomic_load(&last_id);
	struct module *m;
	_Atomic(struct module *) *at;

	do {
		if (id + 1 >= MODULES_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak(&last_id, &id, id + 1));
	id++;
	at = &blocks[id / BLOCK_MODULES];
	if (!atomic_load(at)) {
		struct module *fresh = sys_pages(BLOCK_MODULES * sizeof(*fresh)), *none = NULL;

		if (!fresh)
			return NULL;
		if (atomic_compare_exchange_strong(at, &none, fresh))
			atomic_fetch_add(&own_bytes, BLOCK_MODULES * sizeof(*fresh));
		else
			sys_pages_free(fresh, BLOCK_MODULES * sizeof(*fresh));
	}
	m = module_slot(id);
	m->id = id;
	return m;
}

const struct module *module_by_id(uint32_t id)
{
	return id && id <= atomic_load_explicit(&last_id, memory_order_acquire) ? module_slot(id)
										: NULL;
}

size_t modules_bytes(void)
{
	return atomic_load(&own_bytes);
}

/* --- describing a module --- */

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t word;

	for (; n >= sizeof(word); b += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, b, sizeof(word));
		h = (h ^ word) * 0x9E3779B97F4A7C15u;
		h ^= h >> 29;
	}
	for (; n; n--)
		h = (h ^ *b++) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* Points *out to the mapped build id and returns its length; 0: there is none. */
static size_t build_id(const struct seen *seen, const uint8_t **out)
{
	for (size_t i = 0; i < seen->phnum; i++) {
		const ElfW(Phdr) *ph = &seen->phdr[i];
		const uint8_t *p, *end;
		size_t align;

		if (ph->p_type != PT_NOTE)
			continue;
		p = (const uint8_t *)(seen->bias + ph->p_vaddr);
		end = p + ph->p_memsz;
		align = ph->p_align == 8 ? 8 : 4;
		while ((size_t)(end - p) >= sizeof(ElfW(Nhdr))) {
			ElfW(Nhdr) note;
			size_t name, desc;

			memcpy(&note, p, sizeof(note));
			name = (note.n_namesz + align - 1) & ~(align - 1);
			desc = (note.n_descsz + align - 1) & ~(align - 1);
			p += sizeof(note);
			if (name > (size_t)(end - p) || note.n_descsz > (size_t)(end - p) - name)
				break;
			if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			    !memcmp(p, "GNU", 4)) {
				*out = p + name;
				return note.n_descsz > 64 ? 64 : note.n_descsz;
			}
			if (desc > (size_t)(end - p) - name)
				break;
			p += name + desc;
		}
	}
	return 0;
}

static void seen_range(const struct seen *seen, uintptr_t *start, uintptr_t *end)
{
	*start = UINTPTR_MAX;
	*end = 0;
	for (size_t i = 0; i < seen->phnum; i++) {
		const ElfW(Phdr) *ph = &seen->phdr[i];
		uintptr_t lo, hi;

		if (ph->p_type != PT_LOAD)
			continue;
		lo = seen->bias + ph->p_vaddr;
		hi = lo + ph->p_memsz;
		if (lo < *start)
			*start = lo;
		if (hi > *end)
			*end = hi;
	}
}

/* Hashes what the loader says. Equal for the same file at the same address, and for a file without
 * build id that was replaced under its name: module_describe() tells these apart. */
static uint64_t seen_quick(const struct seen *seen)
{
	const uint8_t *id;
	size_t n = build_id(seen, &id);
	uint64_t h = hash_bytes(0xcbf29ce484222325u, &seen->bias, sizeof(seen->bias));

	h = hash_bytes(h, seen->name, strlen(seen->name));
	h = hash_bytes(h, seen->phdr, seen->phnum * sizeof(*seen->phdr));
	return n ? hash_bytes(h, id, n) : h;
}

/* Looks up the path of the mapping at an address. False: not found. */
static bool maps_path(uintptr_t address, char *path, char *buffer)
{
	long fd =
	    sys_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
	bool found;
	size_t have;

	if (fd < 0)
		return false;
	found = false;
	have = 0;
	for (;;) {
		long n = sys_call(
		    SYS_read, fd, (long)(buffer + have), (long)(MAPS_BUFFER - have), 0, 0, 0);
		char *line, *eol;

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		line = buffer;
		while ((eol = memchr(line, '\n', (size_t)(buffer + have - line)))) {
			uintptr_t edge[2] = {0, 0};
			char *p = line;
			char *slash;

			for (int k = 0; k < 2; k++, p++)
				for (; p < eol && *p != '-' && *p != ' '; p++)
					edge[k] = edge[k] << 4 |
						  (uintptr_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
			slash = memchr(line, '/', (size_t)(eol - line));
			if (address >= edge[0] && address < edge[1]) {
				if (slash && eol - slash < PATH_MAX) {
					memcpy(path, slash, (size_t)(eol - slash));
					path[eol - slash] = 0;
					found = true;
				}
				goto out;
			}
			line = eol + 1;
		}
		have -= (size_t)(line - buffer);
		if (have == MAPS_BUFFER)
			break; /* a line longer than any path */
		memmove(buffer, line, have);
	}
out:
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return found;
}

static void seen_path(const struct seen *seen, char *path, char *buffer)
{
	size_t length;

	if (seen->name[0] == '/' && strlen(seen->name) < PATH_MAX) {
		strcpy(path, seen->name);
		return;
	}
	if (!strncmp(seen->name, "linux-vdso", 10) || !strncmp(seen->name, "linux-gate", 10)) {
		strcpy(path, "[vdso]");
		return;
	}
	if (maps_path((uintptr_t)seen->phdr, path, buffer))
		return;
	if (!seen->name[0]) {
		long n = sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
		    PATH_MAX - 1, 0, 0);

		path[n > 0 ? n : 0] = 0;
		return;
	}
	length = strlen(seen->name);
	length = length < PATH_MAX ? length : PATH_MAX - 1;
	memcpy(path, seen->name, length);
	path[length] = 0;
}

/*
 * Writes the definition's body without the id to out (room for 3 * PATH_MAX); returns its length.
 * Device, inode, size and time are those of the path now; a build id says whether it is still the
 * mapped file.
 */
static size_t module_describe(const struct seen *seen, uint8_t *out, char *path, char *buffer)
{
	unsigned loads = 0;
	const uint8_t *id;
	struct stat st;
	size_t id_bytes;
	uint8_t *p;

	seen_path(seen, path, buffer);
	if (path[0] != '/' ||
	    sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&st, 0, 0, 0) < 0)
		memset(&st, 0, sizeof(st));

	id = NULL;
	id_bytes = build_id(seen, &id);
	p = varint_put_bytes(out, path, strlen(path));
	p = varint_put_bytes(p, id_bytes ? (const void *)id : "", id_bytes);
	p = varint_put(p, seen->bias);
	p = varint_put(p, st.st_dev);
	p = varint_put(p, st.st_ino);
	p = varint_put(p, (uint64_t)st.st_size);
	p = varint_put(p, (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
	for (size_t i = 0; i < seen->phnum; i++)
		loads += seen->phdr[i].p_type == PT_LOAD;
	loads = loads < SEGMENTS_MAX ? loads : SEGMENTS_MAX;
	p = varint_put(p, loads);
	for (size_t i = 0; i < seen->phnum && loads; i++) {
		const ElfW(Phdr) *ph = &seen->phdr[i];

		if (ph->p_type != PT_LOAD)
			continue;
		p = varint_put(p, ph->p_vaddr);
		p = varint_put(p, ph->p_memsz);
		p = varint_put(p, ph->p_offset);
		p = varint_put(p, (ph->p_flags & PF_X ? 1u : 0u) | (ph->p_flags & PF_W ? 2u : 0u));
		loads--;
	}
	return (size_t)(p - out);
}

/* --- loading and unloading --- */

/* The body behind the id, which is a varint at its start. */
static const uint8_t *body_rest(const struct module *m, size_t *bytes)
{
	const uint8_t *p = m->body;

	while (*p++ & 0x80)
		;
	*bytes = m->body_bytes - (size_t)(p - m->body);
	return p;
}

static void module_fill(struct module *m, const struct seen *seen, uint64_t quick)
{
	m->bias = seen->bias;
	m->quick = quick;
	seen_range(seen, &m->start, &m->end);
	if ((uintptr_t)module_fill >= m->start && (uintptr_t)module_fill < m->end)
		modules_self = m->id;
	for (size_t i = 0; i < seen->phnum; i++) {
		const ElfW(Phdr) *ph = &seen->phdr[i];

		if (ph->p_type == PT_GNU_EH_FRAME)
			m->eh_frame_hdr = (const uint8_t *)(seen->bias + ph->p_vaddr);
	}
	for (size_t i = 0; i < seen->phnum && m->eh_frame_hdr; i++) {
		const ElfW(Phdr) *ph = &seen->phdr[i];
		const uint8_t *lo = (const uint8_t *)(seen->bias + ph->p_vaddr);

		if (ph->p_type == PT_LOAD && m->eh_frame_hdr >= lo &&
		    m->eh_frame_hdr < lo + ph->p_memsz) {
			m->eh_lo = lo;
			m->eh_hi = lo + ph->p_memsz;
		}
	}
	if (!m->eh_lo)
		m->eh_frame_hdr = NULL;
}

/* Returns the live module for `seen`: one of the table, revived if need be, or a new one. */
static struct module *module_register(const struct seen *seen)
{
	uint64_t quick = seen_quick(seen);
	uint32_t count = atomic_load_explicit(&last_id, memory_order_acquire);
	bool was_here = false;
	uint8_t *text, *scratch;
	size_t scratch_bytes, bytes;
	char *path, *buffer;
	struct module *found;

	for (uint32_t id = 1; id <= count; id++) {
		struct module *m = module_slot(id);

		if (!m || m->quick != quick)
			continue;
		if (module_live(id))
			return m;
		was_here = true;
	}

	scratch_bytes = 4 * PATH_MAX + MAPS_BUFFER;
	scratch = sys_pages(scratch_bytes);
	if (!scratch)
		return NULL;
	text = scratch;
	path = (char *)scratch + 3 * PATH_MAX;
	buffer = path + PATH_MAX;
	bytes = module_describe(seen, text, path, buffer);

	found = NULL;
	for (uint32_t id = 1; was_here && id <= count && !found; id++) {
		struct module *m = module_slot(id);
		size_t old_bytes;
		const uint8_t *old;

		if (!m || m->quick != quick || module_live(id) || !m->body)
			continue;
		old = body_rest(m, &old_bytes);
		if (old_bytes == bytes && !memcmp(old, text, bytes))
			found = m;
	}
	if (!found) {
		uint8_t *body = arena_alloc(bytes + VARINT_BYTES_MAX);
		struct module *m = body ? module_new() : NULL;

		if (m) {
			uint8_t *p = varint_put(body, m->id);

			memcpy(p, text, bytes);
			m->body = body;
			m->body_bytes = (size_t)(p - body) + bytes;
			module_fill(m, seen, quick);
			found = m;
		}
	}
	sys_pages_free(scratch, scratch_bytes);
	if (found) {
		atomic_store_explicit(&module_live_[found->id], 1, memory_order_release);
		atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
	}
	return found;
}

static int scan_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct seen seen = seen_from(info);
	struct module *m = module_register(&seen);

	if (m)
		m->scan = *(uint64_t *)arg;
	return 0;
}

/* Compares the table with the loaded modules. Any thread, not inside a capture. */
static void scan_modules(void)
{
	bool held = lock_bounded();
	uint64_t number = atomic_fetch_add(&scan_number, 1) + 1;
	uint64_t added, gone;
	uint32_t count;

	/* before the scan, so that a later unload makes the next look-up verify */
	bool known = symbols_counts(&added, &gone);
	loader_each(scan_one, &number);
	count = atomic_load_explicit(&last_id, memory_order_acquire);
	for (uint32_t id = 1; id <= count; id++) {
		struct module *m = module_slot(id);

		if (!m || !module_live(id) || m->scan >= number)
			continue;
		atomic_store_explicit(&module_live_[id], 0, memory_order_release);
		atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
	}
	atomic_store(&unload_count, known ? gone + 1 : 0);
	unlock(held);
}

static void module_unloaded(uintptr_t bias)
{
	uint32_t count = atomic_load_explicit(&last_id, memory_order_acquire);

	for (uint32_t id = 1; id <= count; id++) {
		struct module *m = module_live(id) ? module_slot(id) : NULL;

		if (!m || m->bias != bias)
			continue;
		atomic_store_explicit(&module_live_[id], 0, memory_order_release);
		atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
	}
}

/* The table knows of all that the loader had unloaded when its count was `gone`. */
static void set_unload_count(uint64_t gone)
{
	atomic_store(&unload_count, gone + 1);
}

/* Registers a module under the lock, as part of the present scan. */
static struct module *module_add(const struct seen *seen)
{
	bool held = lock_bounded();
	struct module *m = module_register(seen);

	if (m && !m->scan)
		m->scan = atomic_load(&scan_number);
	unlock(held);
	return m;
}

bool modules_visit(const struct dl_phdr_info *info)
{
	struct seen seen = seen_from(info);

	if (!loader_finds())
		module_add(&seen);
	return true;
}

bool modules_doubtful_now(void)
{
	uint64_t added, gone, then = atomic_load(&unload_count);

	return !then || !symbols_counts(&added, &gone) || gone + 1 != then;
}

void modules_change_begin(void)
{
	atomic_fetch_add_explicit(&modules_unstable_, 1, memory_order_acq_rel);
	atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
}

void modules_change_abort(void)
{
	uint32_t n = atomic_load(&modules_unstable_);

	while (n && !atomic_compare_exchange_weak(&modules_unstable_, &n, n - 1))
		;
}

bool modules_change_commit(const struct visitor *visitors, size_t count)
{
	bool done = visit_modules(visitors, count);

	atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
	modules_change_abort();
	return done;
}

struct locate {
	uintptr_t pc;
	struct seen *out;
};

static int locate_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct locate *l = arg;
	struct seen seen = seen_from(info);
	uintptr_t start, end;

	seen_range(&seen, &start, &end);
	if (l->pc < start || l->pc >= end)
		return 0;
	*l->out = seen;
	return 1;
}

/*
 * Asks the loader: without a lock and signal-safe, or on older systems under a recursive lock that
 * is never held for long. False: no module, or the loader must not be asked now.
 */
static bool locate(uintptr_t pc, struct seen *out)
{
	struct locate l = {pc, out};
	struct dl_phdr_info info;

	if (loader_find(pc, &info))
		return locate_one(&info, 0, &l) == 1;
	return loader_each(locate_one, &l) == 1;
}

const struct module *module_find(uintptr_t pc)
{
	uint32_t count = atomic_load_explicit(&last_id, memory_order_acquire);
	struct seen seen;
	struct module *m;

	for (uint32_t id = 1; id <= count; id++) {
		if (!module_live(id))
			continue;
		m = module_slot(id);
		if (pc >= m->start && pc < m->end && (!modules_doubtful() || module_verify(id, pc)))
			return m;
	}
	if (!locate(pc, &seen))
		return NULL;
	return module_add(&seen);
}

bool module_verify(uint32_t id, uintptr_t pc)
{
	struct seen seen;
	const struct module *m = module_by_id(id);

	if (m && locate(pc, &seen) && seen_quick(&seen) == m->quick)
		return true;
	/* the next look-up must not find it again */
	if (m && atomic_exchange_explicit(&module_live_[id], 0, memory_order_acq_rel))
		atomic_fetch_add_explicit(&modules_generation_, 1, memory_order_acq_rel);
	return false;
}

bool module_define(uint32_t id)
{
	struct module *m = id ? module_slot(id) : NULL;
	uint32_t none;

	if (!m)
		return false;
	none = 0;
	if (atomic_load_explicit(&m->defined, memory_order_acquire) == 2)
		return true;
	if (atomic_compare_exchange_strong(&m->defined, &none, 1)) {
		bool ok = definitions_write(TRACE_DEF_MODULE, m->body, m->body_bytes);

		atomic_store_explicit(&m->defined, ok ? 2 : 0, memory_order_release);
		return ok;
	}
	/* Another thread writes it. If that takes long (it may be this thread, interrupted by a
	 * signal handler), write it again: a second equal definition does no harm. */
	for (int i = 0; i < 100; i++) {
		if (atomic_load_explicit(&m->defined, memory_order_acquire) == 2)
			return true;
		sys_yield();
	}
	return definitions_write(TRACE_DEF_MODULE, m->body, m->body_bytes);
}

void modules_fork_child(void)
{
	uint32_t count;

	atomic_flag_clear(&lock);
	atomic_store(&modules_unstable_, 0);
	count = atomic_load(&last_id);
	for (uint32_t id = 1; id <= count; id++) {
		struct module *m = module_slot(id);

		if (m)
			atomic_store(&m->defined, 0);
	}
}

int modules_init(void)
{
	static const struct visit_watcher watcher = {
	    module_unloaded, set_unload_count, scan_modules};

	loader_init(symbols_find(MODULES_FIND_OBJECT));
	visit_init(&watcher);
	scan_modules();
	return atomic_load(&last_id) ? 0 : -ENOMEM;
}
