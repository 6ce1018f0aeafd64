/* agree_lazy.c - a function that the dynamic linker binds at its first call, by asking a
 * resolver, which calls back: the stack then goes through the linker's binding trampoline. */
extern void (*agree_lazy_hook)(void);
void (*agree_lazy_hook)(void);

int agree_lazy(int x);

static int add_one(int x)
{
	return x + 1;
}

typedef int (*function)(int);

static __attribute__((used)) function resolve(void)
{
	if (agree_lazy_hook)
		agree_lazy_hook();
	__asm__ volatile("" ::: "memory");
	return add_one;
}

int agree_lazy(int x) __attribute__((ifunc("resolve")));
