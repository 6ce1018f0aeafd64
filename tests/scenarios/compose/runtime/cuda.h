/* cuda.h - a block is what cuMemAlloc() gives on device 0. */
#include "common.h"
#include <dlfcn.h>

typedef struct block {
	unsigned long long data;
	long size;
} block;

static int (*memory_alloc)(unsigned long long *, size_t);
static int (*memory_free)(unsigned long long);
static int (*set_current)(void *);
static void *context;

__attribute__((constructor)) static void cuda_start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned), (*retain)(void **, int);

	if (!driver)
		return;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&memory_alloc = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&memory_free = dlsym(driver, "cuMemFree_v2");
	if (init(0) || retain(&context, 0))
		out_of_memory();
}

/* Each thread has a current context of its own. */
__attribute__((unused)) static void cuda_thread(void)
{
	static __thread int set;

	if (!set && set_current(context))
		out_of_memory();
	set = 1;
}
#define NONE() ((block){0, 0})
#define SIZE(b) ((b).size)
#define DROP(b)                                                                                    \
	do {                                                                                       \
		block gone = (b);                                                                  \
		if (gone.data)                                                                     \
			memory_free(gone.data);                                                    \
	} while (0)
#define MAKE(n)                                                                                    \
	({                                                                                         \
		block made = {0, (n)};                                                             \
		cuda_thread();                                                                     \
		if (memory_alloc(&made.data, (size_t)made.size))                                   \
			out_of_memory();                                                           \
		made;                                                                              \
	})
#include "c_store.h"
