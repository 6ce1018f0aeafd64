/* many.c - a library with as many relocations of each kind as a large one: calls of its own
 * functions through slots, pointers to them, and pointers to nameless targets. Like
 * slots_plugin.c, it also asks another allocator for memory. */
#include <stddef.h>

#define TEN(f, n) f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
#define HUNDRED(f, n)                                                                              \
	TEN(f, n##0)                                                                               \
	TEN(f, n##1)                                                                               \
	TEN(f, n##2)                                                                               \
	TEN(f, n##3) TEN(f, n##4) TEN(f, n##5) TEN(f, n##6) TEN(f, n##7) TEN(f, n##8) TEN(f, n##9)
#define THOUSAND(f, n)                                                                             \
	HUNDRED(f, n##0)                                                                           \
	HUNDRED(f, n##1)                                                                           \
	HUNDRED(f, n##2)                                                                           \
	HUNDRED(f, n##3)                                                                           \
	HUNDRED(f, n##4)                                                                           \
	HUNDRED(f, n##5) HUNDRED(f, n##6) HUNDRED(f, n##7) HUNDRED(f, n##8) HUNDRED(f, n##9)
#define ALL(f)                                                                                     \
	THOUSAND(f, 1)                                                                             \
	THOUSAND(f, 2)                                                                             \
	THOUSAND(f, 3)                                                                             \
	THOUSAND(f, 4) THOUSAND(f, 5) THOUSAND(f, 6) THOUSAND(f, 7) THOUSAND(f, 8) THOUSAND(f, 9)

#define DEFINE(n)                                                                                  \
	void many_allocations_##n(void);                                                           \
	void many_allocations_##n(void)                                                            \
	{                                                                                          \
	}
#define CALL(n) many_allocations_##n();
#define POINT(n) many_allocations_##n,
#define RELATIVE(n) &nameless,

ALL(DEFINE)

static int nameless;
void many_calls(void);
void many_calls(void)
{
	ALL(CALL)
}

void (*many_pointers[])(void) = {ALL(POINT)};
int *many_relative[] = {ALL(RELATIVE)};

void *mallocx(size_t size, int flags);
void dallocx(void *block, int flags);

void take(size_t size);
void take(size_t size)
{
	dallocx(mallocx(size, 0), 0);
}
