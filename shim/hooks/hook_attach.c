/*
 * hook_attach.c - see hook_attach.h. Only a slot that leads to the very function that a wrapper
 * forwards to is changed. One that leads to the executable's own PLT entry, which is a function's
 * address where the executable is not position-independent, stays: that entry goes through the
 * executable's slot.
 */
#include "hooks/hook_attach.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/shim_state.h"
#include "loaded/got.h"
#include "loaded/loader.h"
#include "loaded/symbols.h"
#include "loaded/visit.h"

/* All exports that take the place of a function: tests/lint/exports.txt without what is ours. */
static const char *const names[] = {
#define ATTACH_API(name) #name,
#include "hooks/attach_api.def"
#undef ATTACH_API
};
#define NAMES (sizeof(names) / sizeof(names[0]))
_Static_assert(NAMES <= GOT_HOOKS_MAX, "got.c has no room for all of them");

static struct got_hook hooks[NAMES];
static void *originals[NAMES];
static size_t hook_count; /* 0: not prepared */
static bool on;

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	uintptr_t low, high;

	loader_bounds(info, &low, &high);
	return address >= low && address < high;
}

/* The loader's own calls happen before anything is ready, and under its locks. */
static bool is_loader(const struct dl_phdr_info *info)
{
	return contains(info, getauxval(AT_BASE));
}

static void find_hooks(void)
{
	void *ours[NAMES] = {NULL};
	size_t count = 0;

	symbols_in((const void *)&shim, names, ours, NAMES);
	for (size_t i = 0; i < NAMES; i++) {
		originals[count] = symbols_find(names[i]);
		if (!ours[i] || !originals[count])
			continue;
		hooks[count] = (struct got_hook){.name = names[i],
		    .wrapper = ours[i],
		    .real = &originals[count],
		    .pointers = true};
		count++;
	}
	hook_count = count;
}

/* How many slots of malloc lead to the function that we know, and how many elsewhere. The C
 * library's own do not count: other tools leave them alone. */
struct census {
	size_t known, others;
};
static struct census census;

static bool is_malloc(const char *name)
{
	return !strcmp(name, "malloc");
}

/* Such an address of a function is the executable's own PLT entry. */
static bool in_executable(uintptr_t address)
{
	struct symbols_module module;
	uintptr_t headers = getauxval(AT_PHDR);

	return symbols_module_of((const void *)address, &module) && headers >= module.low &&
	       headers < module.high;
}

static void *count_slot(const struct got_slot *slot, bool *later)
{
	if (slot->unbound || slot->now == (uintptr_t)real.malloc || in_executable(slot->now))
		census.known++;
	else
		census.others++;
	return NULL;
}

static int count_module(struct dl_phdr_info *info, size_t size, void *data)
{
	static const struct got_walk walk = {.wanted = is_malloc, .wrapper = count_slot};

	if (!is_loader(info) && !contains(info, (uintptr_t)real.malloc))
		got_walk(info, &walk);
	return 0;
}

int hook_attach_prepare(void)
{
	find_hooks();
	if (!hook_count || hooks[0].real != &originals[0] || strcmp(hooks[0].name, "malloc") != 0)
		return -ENOSYS;
	census = (struct census){0};
	loader_each_needed(count_module, NULL);
	if (census.others > census.known)
		return -EBUSY;
	got_keep_changes();
	visit_again(VISIT_ALLOCATORS);
	visit_again(VISIT_MALLOC);
	visit_again(VISIT_DEEPBIND);
	visit_again(VISIT_CUDA);
	return 0;
}

static int point_module(struct dl_phdr_info *info, size_t size, void *data)
{
	const bool *libc_too = data;
	bool is_libc = contains(info, (uintptr_t)real.malloc);

	if (!is_loader(info) && is_libc == *libc_too)
		got_point(info, hooks, hook_count);
	return 0;
}

void hook_attach_begin(void)
{
	bool libc = false;

	loader_each_needed(point_module, &libc);
	libc = true;
	loader_each_needed(point_module, &libc);
	__atomic_store_n(&on, true, __ATOMIC_RELEASE);
	/* Once more a little later: the loader may have been binding a slot at that moment. */
	visit_again(VISIT_ATTACH);
}

void hook_attach_end(void)
{
	__atomic_store_n(&on, false, __ATOMIC_RELEASE);
	got_restore();
}

bool hook_attach_is_on(void)
{
	return __atomic_load_n(&on, __ATOMIC_ACQUIRE);
}

bool hook_attach_visit(const struct dl_phdr_info *info)
{
	return !hook_attach_is_on() || is_loader(info) || got_point(info, hooks, hook_count);
}
