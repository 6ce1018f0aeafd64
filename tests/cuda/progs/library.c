/*
 * library.c - small libraries for careful.c: LATE has a destructor that calls the program back,
 * WAITS a constructor that waits for an allocation of another thread, and DECOY functions with
 * names of CUDA, or similar ones.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#if defined(LATE)
void (*late_call)(void);

static __attribute__((destructor)) void late(void)
{
	if (late_call)
		late_call();
}
#elif defined(WAITS)
extern void (*late_call)(void);

static void *call(void *unused)
{
	late_call();
	return NULL;
}

static __attribute__((constructor)) void waits(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, NULL) || pthread_join(thread, NULL))
		abort();
}
#elif defined(DECOY)
int cudnnCreate(void *self), cuMemAlloc_v2(void *);

/* A wrapper returned in place of this would find itself endlessly. */
int cudnnCreate(void *self)
{
	static int depth;
	int (*me)(void *) = (int (*)(void *))dlsym(self, "cudnnCreate");

	return depth++ ? 1 : me == cudnnCreate ? me(self) : 0;
}

int cuMemAlloc_v2(void *unused)
{
	return 99;
}
#endif
