/* device.c - a server on a device: weights, a pool of blocks, buffers of each step. It finds the
 * driver by name, like programs that are not linked with it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int (*init)(unsigned), (*retain)(void **, int), (*current)(void *),
    (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
#define MIB (1ul << 20)
static uint64_t kept[1000];
static int kept_count;

static uint64_t get(size_t n)
{
	uint64_t p = 0;

	if (alloc(&p, n))
		exit(3);
	return p;
}

static void load(void)
{
	for (int i = 0; i < 12; i++)
		get(16 * MIB); /*@weights*/
}

static void fill_pool(void)
{
	for (int i = 0; i < 32; i++)
		get(4 * MIB); /*@pool*/
}

static void step(int n)
{
	uint64_t scores = get(24 * MIB); /*@scores*/
	uint64_t logits = get((size_t)(2 + rand() % 6) * MIB); /*@logits*/

	(void)n;
	/*@step*/
	release(logits);
	release(scores);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;

	if (!driver)
		return 4;
	init = (int (*)(unsigned))dlsym(driver, "cuInit");
	retain = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
	current = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
	alloc = (int (*)(uint64_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
	release = (int (*)(uint64_t))dlsym(driver, "cuMemFree_v2");
	srand((unsigned)time(NULL));
	if (init(0) || retain(&context, 0) || current(context))
		return 5;
	load();
	fill_pool();
	for (int i = 0; i < 60; i++)
		step(i);
	return kept_count == 999;
}
