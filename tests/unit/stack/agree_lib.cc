/*
 * agree_lib.cc - a library that comes and goes. Built twice, with different code of the same size
 * at the same place, so that a stale row or a stale stack would show.
 */
#include <cstdint>

extern "C" uint64_t agree_lib_enter(int depth, void (*f)(void *), void *arg);

#ifndef VARIANT
#define VARIANT 1
#endif

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t inner(int depth, void (*f)(void *), void *arg)
{
	/* The frame's size depends on the variant: a wrong row goes astray at once. */
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

/* A constructor calls, while dlopen is still under way. */
extern "C" __attribute__((weak)) void agree_constructor(void);
__attribute__((constructor)) static void start()
{
	if (agree_constructor)
		agree_constructor();
}
