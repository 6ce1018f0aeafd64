/* loader.c - see loader.h. */
#include "loader.h"

#include <stdbool.h>
#include <time.h>

#include "sys.h"

/* No list takes as long, but whoever is there may have to wait for a CPU. */
#define PATIENCE 100000000u /* ns */

static int users; /* threads that are at the list for us */
static int forking; /* threads that are in libc's fork */
static __thread bool mine __attribute__((tls_model("initial-exec"))); /* of these */
static bool child;

/* False: patience is over. */
static bool wait_on(uint64_t since)
{
	sys_yield();
	return sys_clock_ns(CLOCK_MONOTONIC) - since < PATIENCE;
}

/* Counted first, then looked: the one who forks does both the other way round. */
static void enter(void)
{
	uint64_t since = 0;

	for (;;) {
		__atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST) || mine)
			return;
		__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
		since = since ? since : sys_clock_ns(CLOCK_MONOTONIC);
		if (!wait_on(since))
			break;
	}
	__atomic_fetch_add(&users, 1, __ATOMIC_SEQ_CST);
}

int loader_each(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	int result;

	enter();
	result = dl_iterate_phdr(callback, data);
	__atomic_fetch_sub(&users, 1, __ATOMIC_SEQ_CST);
	return result;
}

int loader_each_unasked(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
	return __atomic_load_n(&child, __ATOMIC_RELAXED) ? 0 : loader_each(callback, data);
}

void loader_before_fork(void)
{
	uint64_t since;

	mine = true; /* the program's own handlers of fork may allocate */
	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&users, __ATOMIC_SEQ_CST))
		return;
	since = sys_clock_ns(CLOCK_MONOTONIC);
	while (__atomic_load_n(&users, __ATOMIC_SEQ_CST) && wait_on(since))
		;
}

void loader_after_fork(bool in_child)
{
	mine = false;
	if (in_child)
		loader_forked();
	else
		__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

void loader_forked(void)
{
	users = 0;
	forking = 0;
	__atomic_store_n(&child, true, __ATOMIC_RELAXED);
}
