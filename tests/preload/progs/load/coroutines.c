/* coroutines.c - three contexts on stacks of their own, like greenlets and fibers, switch at
 * every depth of their recursions. Each allocates blocks of its own size under its own function;
 * the trace must name that function, and no other's. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define ROUNDS 2000
static ucontext_t main_context, context[3];

static void next(int me)
{
	swapcontext(&context[me], &context[(me + 1) % 3]);
}

#define COROUTINE(name, me)                                                                        \
	__attribute__((noinline)) void name(int depth);                                            \
	__attribute__((noinline)) void name(int depth)                                             \
	{                                                                                          \
		void *volatile p = malloc(6001 + me);                                              \
		if (depth > 0)                                                                     \
			name(depth - 1);                                                           \
		else                                                                               \
			next(me);                                                                  \
		free(p);                                                                           \
		if (depth == 2)                                                                    \
			next(me);                                                                  \
		p = malloc(6001 + me);                                                             \
		free(p);                                                                           \
	}                                                                                          \
	static void name##_main(void)                                                              \
	{                                                                                          \
		for (int i = 0; i < ROUNDS; i++)                                                   \
			name(i % 7 + me);                                                          \
		swapcontext(&context[me], &main_context);                                          \
	}
COROUTINE(co_red, 0)
COROUTINE(co_green, 1)
COROUTINE(co_blue, 2)

int main(void)
{
	void (*const start[3])(void) = {co_red_main, co_green_main, co_blue_main};

	for (int i = 0; i < 3; i++) {
		getcontext(&context[i]);
		context[i].uc_stack.ss_size = 65536;
		context[i].uc_stack.ss_sp = malloc(65536);
		context[i].uc_link = &main_context;
		makecontext(&context[i], start[i], 0);
	}
	swapcontext(&main_context, &context[0]);
	puts("done");
	return 0;
}
