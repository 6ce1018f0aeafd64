/*
 * landmarks.c - finds the code of the target that safe_point.c must know: see safe_point.h.
 */
#include <errno.h>
#include <string.h>

#include "attach/safe_point.h"

/* _int_malloc and its like have no exported names. They stand beside the exported functions of
 * malloc.c, within 16 KiB in every build of glibc that was looked at (2.28 to 2.41). */
#define ALLOCATOR_MARGIN 0x4000u
/* To read the body of `syscall`. */
#define SYSCALL_BODY_MAX 256u

static const char *const allocator[] = {"malloc", "free", "calloc", "realloc", "memalign",
    "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "malloc_trim", "malloc_usable_size",
    "mallinfo"};
/* They hold a lock of the loader or of exit handlers, or have a half-made copy of the process. */
static const char *const holders[] = {"dl_iterate_phdr", "fork", "_Fork", "vfork", "dlopen",
    "dlmopen", "dlclose", "dlsym", "dlvsym", "dladdr", "dlerror", "exit", "quick_exit", "abort",
    "__cxa_atexit", "__cxa_finalize", "on_exit", "pthread_create"};
static const char *const copies[] = {"strdup", "strndup", "getdelim", "__getdelim", "fopen",
    "fdopen", "opendir", "vasprintf", "wcsdup", "realpath"};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void add(struct region *regions, unsigned *count, unsigned most, uint64_t lo, uint64_t hi)
{
	if (*count < most && lo < hi)
		regions[(*count)++] = (struct region){lo, hi};
}

/* The code of the file whose first mapping is `first`. */
static struct region code_of(const struct target *t, const struct target_map *first)
{
	struct region r = {0, 0};

	for (const struct target_map *m = first; m < t->maps.items + t->maps.count; m++) {
		if (m->inode != first->inode || strcmp(m->path, first->path) != 0)
			continue;
		if (!m->executable)
			continue;
		r.lo = r.lo ? r.lo : m->lo;
		r.hi = m->hi;
	}
	return r;
}

static void find_libc(struct landmarks *out)
{
	struct region all = {UINT64_MAX, 0};
	struct exported_function s;

	for (size_t i = 0; i < COUNT(allocator); i++) {
		if (!exported_find(&out->libc, allocator[i], &s))
			continue;
		all.lo = s.address < all.lo ? s.address : all.lo;
		all.hi = s.address + s.bytes > all.hi ? s.address + s.bytes : all.hi;
	}
	add(out->busy, &out->busies, REGIONS_MAX, all.lo - ALLOCATOR_MARGIN,
	    all.hi + ALLOCATOR_MARGIN);
	for (size_t i = 0; i < COUNT(holders); i++)
		if (exported_find(&out->libc, holders[i], &s))
			add(out->busy, &out->busies, REGIONS_MAX, s.address, s.address + s.bytes);
	for (size_t i = 0; i < COUNT(copies); i++)
		if (exported_find(&out->libc, copies[i], &s))
			add(out->copies, &out->copy_count, COUNT(out->copies), s.address,
			    s.address + s.bytes);
}

static uint64_t address_of(const struct exported *symbols, const char *name)
{
	struct exported_function s;

	return exported_find(symbols, name, &s) ? s.address : 0;
}

static void add_entry(struct landmarks *out, const struct exported *symbols, const char *name)
{
	struct exported_function s;

	if (out->entry_count < MACHINE_WATCHES && exported_find(symbols, name, &s))
		out->entries[out->entry_count++] = s.address;
}

/* Looks for another allocator than libc's: its entries are watched first, as libc's may never be
 * called. libwhyoom.so is one, where it is in front. */
static void find_others(const struct target *t, struct landmarks *out)
{
	const struct target_map *program = target_program(t);

	for (size_t i = 0; i < t->maps.count; i++) {
		const struct target_map *map = &t->maps.items[i];
		struct exported symbols;
		struct exported_function s;
		struct region code;

		if (map->offset || !map->inode || target_is_file(map, "libc.so.6") ||
		    target_is_file(map, "libc-2.") || target_is_file(map, "ld-") ||
		    exported_open(t->pid, map->lo, &symbols) ||
		    !exported_find(&symbols, "malloc", &s))
			continue;
		if (map == program) {
			out->foreign = true;
		} else {
			code = code_of(t, map);
			add(out->busy, &out->busies, REGIONS_MAX, code.lo, code.hi);
		}
		add_entry(out, &symbols, "malloc");
		add_entry(out, &symbols, "free");
		add_entry(out, &symbols, "_Znwm");
	}
}

static bool find_syscall(const struct target *t, struct landmarks *out)
{
	uint8_t body[SYSCALL_BODY_MAX];
	struct exported_function s;

	if (!exported_find(&out->libc, "syscall", &s) || s.bytes < machine_syscall_bytes)
		return false;
	s.bytes = s.bytes < sizeof(body) ? s.bytes : sizeof(body);
	if (!target_peek(t->pid, s.address, body, s.bytes))
		return false;
	for (size_t i = 0; i + machine_syscall_bytes <= s.bytes; i++) {
		if (memcmp(body + i, machine_syscall_code, machine_syscall_bytes) != 0)
			continue;
		out->syscall_code = s.address + i;
		return true;
	}
	return false;
}

int landmarks_find(const struct target *target, struct landmarks *out, struct err *err)
{
	const struct target_map *libc = target_module(target, "libc.so.6");

	*out = (struct landmarks){0};
	libc = libc ? libc : target_module(target, "libc-2.");
	if (!libc || exported_open(target->pid, libc->lo, &out->libc))
		return err_set(err, -ENOTSUP, "process %d (%s): its C library cannot be read",
		    (int)target->pid, target->name);
	out->libc_code = code_of(target, libc);
	for (size_t i = 0; i < target->maps.count; i++) {
		const struct target_map *map = &target->maps.items[i];

		if (map->executable &&
		    (target_is_file(map, "ld-linux") || target_is_file(map, "ld-2.")))
			add(out->loader, &out->loaders, COUNT(out->loader), map->lo, map->hi);
	}
	find_libc(out);
	out->create = address_of(&out->libc, "pthread_create");
	out->detach = address_of(&out->libc, "pthread_detach");
	out->sleep = address_of(&out->libc, "usleep");
	find_others(target, out);
	add_entry(out, &out->libc, "malloc");
	add_entry(out, &out->libc, "free");
	add_entry(out, &out->libc, "calloc");
	add_entry(out, &out->libc, "realloc");
	if (!out->loaders || !out->entry_count || !find_syscall(target, out))
		return err_set(err, -ENOTSUP,
		    "process %d (%s): its C library has not the functions that attaching needs",
		    (int)target->pid, target->name);
	return 0;
}
