/*
 * agree_lib.cc - a library that is loaded and unloaded. Built twice, with different code of the
 * same size at the same offset, so that a stale row or stack shows.
 */
#include <cstdint>

extern "C" uint64_t agree_lib_enter(int depth, void (*f)(void *), void *arg);

#ifndef VARIANT
#define VARIANT 1
#endif

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t inner(int depth, void (*f)(void *), void *arg)
{
	/* the frame's size depends on the variant, so that a wrong row fails at once */
	volatile uint64_t room[VARIANT * 8];
	for (auto &r : room)
		r = depth;
	if (depth > 0)
		return inner(depth - 1, f, arg) + room[VARIANT];
	f(arg);
	return room[VARIANT * 2];
}

uint64_t agree_lib_enter(int depth, void (*f)(void *), void *arg)
{
	uint64_t r = inner(depth, f, arg);
	sink = r;
	return r;
}

/* A constructor that captures during dlopen. */
extern "C" __attribute__((weak)) void agree_constructor(void);
__attribute__((constructor)) static void start()
{
	if (agree_constructor)
		agree_constructor();
}
