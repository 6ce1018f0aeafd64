/*
 * readable.c - see readable.h. Must not fault, nor read /proc, which may be absent and is slow.
 */
#include "stack/readable.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/sys.h"

#define PAGE 4096u /* the smallest of both architectures */
#define EXTEND_PAGES 64u

_Atomic uint64_t readable_epoch = 1;

bool readable_page(uintptr_t address)
{
	/*
	 * The kernel copies the new mask from the address before it checks `how`, which is invalid:
	 * it returns EFAULT or EINVAL and changes nothing. Every seccomp filter that lets a C
	 * library run allows this call.
	 */
	uintptr_t page = address & ~(uintptr_t)(PAGE - 1);
	return page && sys_call(SYS_rt_sigprocmask, ~0L, (long)page, 0, 8, 0, 0) != -EFAULT;
}

void readable_forget(void)
{
	atomic_fetch_add_explicit(&readable_epoch, 1, memory_order_relaxed);
}

static void select_range(struct readable *r, unsigned i)
{
	r->lo = r->ranges[i].lo;
	r->span = r->ranges[i].hi - r->ranges[i].lo;
}

/* Finds, extends or begins the range of an address. */
bool readable_slow(struct readable *r, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(PAGE - 1);
	unsigned i;

	for (i = 0; i < READABLE_RANGES; i++) {
		if (page >= r->ranges[i].lo && page < r->ranges[i].hi) {
			select_range(r, i);
			return true;
		}
	}
	for (i = 0; i < READABLE_RANGES; i++) {
		uintptr_t lo = r->ranges[i].lo, hi = r->ranges[i].hi;

		if (!hi)
			continue;
		if (page >= hi && page - hi < EXTEND_PAGES * PAGE) {
			while (hi <= page && readable_page(hi))
				hi += PAGE;
			r->ranges[i].hi = hi;
			select_range(r, i);
			if (hi > page)
				return true;
		}
		if (page < lo && lo - page <= EXTEND_PAGES * PAGE) {
			while (lo > page && readable_page(lo - PAGE))
				lo -= PAGE;
			r->ranges[i].lo = lo;
			select_range(r, i);
			if (lo <= page)
				return true;
		}
	}
	if (!readable_page(page))
		return false;
	i = r->next++ % READABLE_RANGES;
	r->ranges[i].lo = page;
	r->ranges[i].hi = page + PAGE;
	select_range(r, i);
	return true;
}

void readable_restart(struct readable *r, uintptr_t sp)
{
	uint64_t now = atomic_load_explicit(&readable_epoch, memory_order_relaxed);

	/* another stack, or the memory map has changed */
	if (r->epoch != now || !(sp < r->lo && r->lo - sp <= EXTEND_PAGES * PAGE)) {
		for (unsigned i = 0; i < READABLE_RANGES; i++)
			r->ranges[i].lo = r->ranges[i].hi = 0;
		r->epoch = now;
		r->next = 0;
	}
	readable_slow(r, sp);
}
