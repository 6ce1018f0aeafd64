/* loader.c - see loader.h. */
#include "loaded/loader.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/sys.h"

/* No walk of the list takes this long, but its thread may have to wait for a CPU. */
#define PATIENCE 100000000u /* ns */

#pragma weak _r_debug /* musl lacks it */

static int users; /* threads in the list on our behalf */
static int forking; /* threads in libc's fork */
/* this thread is one of those in fork */
static __thread bool in_fork __attribute__((tls_model("initial-exec")));
/* This thread is in the list: its callback may come here again, although a thread that forks waits
 * for it. */
static __thread bool in_list __attribute__((tls_model("initial-exec")));
/* CHILD: of a fork; the list's lock may be taken for ever */
static enum { ANY, CHILD, CHILD_ASKS } state;
static uint64_t list_before; /* list_now() before a change, in such a child */

/* glibc 2.35's, declared here because our build's headers may be older. */
struct find_object {
	unsigned long long flags;
	void *map_start, *map_end;
	struct link_map *link_map;
	void *eh_frame;
	unsigned long long reserved[7];
};
static int (*find_object)(void *, struct find_object *);
static uintptr_t page = 4096;

/* False: waited long enough. */
static bool wait_on(uint64_t since)
{
	sys_yield();
	return sys_clock_ns(CLOCK_MONOTONIC) - since < PATIENCE;
}

/* First counts, then looks; a thread that forks does it the other way round. */
static void enter(void)
{
	uint64_t since = 0;

	for (;;) {
		__atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST) || in_fork)
			return;
		__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
		since = since ? since : sys_clock_ns(CLOCK_MONOTONIC);
		if (!wait_on(since))
			break;
	}
	__atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
}

int loader_each_needed(loader_callback *callback, void *data)
{
	int result;

	if (in_list)
		return dl_iterate_phdr(callback, data);
	enter();
	in_list = true;
	result = dl_iterate_phdr(callback, data);
	in_list = false;
	__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
	return result;
}

bool loader_may_ask(void)
{
	return __atomic_load_n(&state, __ATOMIC_RELAXED) != CHILD;
}

int loader_each(loader_callback *callback, void *data)
{
	return loader_may_ask() ? loader_each_needed(callback, data) : 0;
}

int loader_each_at(const void *address, loader_callback *callback, void *data)
{
	struct dl_phdr_info info;

	if (loader_may_ask())
		return loader_each_needed(callback, data);
	return loader_find((uintptr_t)address, &info)
		   ? callback(&info, offsetof(struct dl_phdr_info, dlpi_adds), data)
		   : 0;
}

void loader_init(void *function)
{
	find_object = (int (*)(void *, struct find_object *))(uintptr_t)function;
	page = getauxval(AT_PAGESZ);
}

bool loader_finds(void)
{
	return find_object != NULL;
}

/* The loader adds a library to what _dl_find_object() searches after relocating it. */
bool loader_knows(uintptr_t address)
{
	struct find_object found;

	return find_object && !find_object((void *)address, &found);
}

bool loader_find(uintptr_t address, struct dl_phdr_info *out)
{
	struct find_object found;
	const ElfW(Ehdr) * elf;
	uintptr_t start;

	if (!find_object || find_object((void *)address, &found))
		return false;
	start = (uintptr_t)found.map_start & ~(page - 1);
	elf = (const ElfW(Ehdr) *)start;
	/* The header starts the first segment in every file that linkers make. */
	if ((uintptr_t)found.map_end - start < page || memcmp(elf->e_ident, ELFMAG, SELFMAG) ||
	    elf->e_phentsize != sizeof(ElfW(Phdr)) ||
	    elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > page)
		return false;
	memset(out, 0, sizeof(*out));
	out->dlpi_addr = found.link_map->l_addr;
	out->dlpi_name = found.link_map->l_name ? found.link_map->l_name : "";
	out->dlpi_phdr = (const ElfW(Phdr) *)(start + elf->e_phoff);
	out->dlpi_phnum = elf->e_phnum;
	return true;
}

/* --- has the list changed? --- */

/* Return a number that another list would not have; 0: unknown. The kernel reads the memory,
 * because another thread may unload a module meanwhile. */
static uint64_t list_now(void)
{
	enum { MOST = 65536 };
	const struct link_map *at = &_r_debug ? _r_debug.r_map : NULL;
	struct link_map m;
	struct iovec to = {&m, sizeof(m)}, from = {NULL, sizeof(m)};
	uint64_t sum = 1;
	long pid = sys_getpid();

	for (int n = 0; at && n < MOST; n++, at = m.l_next) {
		from.iov_base = (void *)(uintptr_t)at;
		if (sys_call(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1, 0) !=
		    sizeof(m))
			return 0;
		sum = (sum ^ (uintptr_t)at) * 0x9E3779B97F4A7C15u;
		sum = (sum ^ m.l_addr ^ (uintptr_t)m.l_ld << 1) * 0x9E3779B97F4A7C15u;
		sum ^= sum >> 29;
	}
	return at ? 0 : sum | 1;
}

void loader_changing(void)
{
	if (loader_may_ask())
		return;
	if (!__atomic_load_n(&list_before, __ATOMIC_RELAXED))
		__atomic_store_n(&list_before, list_now(), __ATOMIC_RELAXED);
	else
		loader_changed(); /* since the last time, which may have been a jump */
}

enum loader_change loader_changed(void)
{
	uint64_t before, now;

	if (loader_may_ask())
		return LOADER_CHANGED;
	before = __atomic_load_n(&list_before, __ATOMIC_RELAXED);
	now = list_now();
	if (!before || !now)
		return LOADER_UNKNOWN;
	if (before == now)
		return LOADER_AS_BEFORE;
	__atomic_store_n(&state, CHILD_ASKS, __ATOMIC_RELAXED);
	return LOADER_CHANGED;
}

/* --- forks --- */

void loader_before_fork(void)
{
	uint64_t since;

	in_fork = true; /* the program's own fork handlers may allocate */
	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&users, __ATOMIC_SEQ_CST))
		return;
	since = sys_clock_ns(CLOCK_MONOTONIC);
	while (__atomic_load_n(&users, __ATOMIC_SEQ_CST) && wait_on(since))
		;
}

void loader_after_fork(bool in_child)
{
	in_fork = false;
	if (in_child)
		loader_forked();
	else
		__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

void loader_forked(void)
{
	users = 0;
	forking = 0;
	list_before = 0;
	__atomic_store_n(&state, CHILD, __ATOMIC_RELAXED);
}
