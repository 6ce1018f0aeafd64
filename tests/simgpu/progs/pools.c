/* Stream-ordered memory: pools reserve, keep and release. 256 MiB, a context of 16. */
#include "check.h"

static uint64_t get(gpu_pool pool, int attribute)
{
	uint64_t value = 0;

	SAME(cuMemPoolGetAttribute(pool, attribute, &value), 0);
	return value;
}

static void growth(gpu_pool pool)
{
	gpu_ptr a, b, c;
	size_t before = level();

	SAME(cuMemAllocAsync(&a, 1000, NULL), 0);
	SAME(before - level(), 32 * MIB);
	SAME(get(pool, GPU_POOL_RESERVED_CURRENT), 32 * MIB);
	SAME(get(pool, GPU_POOL_USED_CURRENT), 1024);
	SAME(cuMemAllocAsync(&b, 20 * MIB, NULL), 0);
	SAME(before - level(), 32 * MIB);
	SAME(cuMemAllocAsync(&c, 40 * MIB, NULL), 0);
	SAME(before - level(), 72 * MIB);
	SAME(cuMemFreeAsync(c, NULL), 0);
	SAME(cuMemFreeAsync(c, NULL), 1);
	SAME(before - level(), 72 * MIB); /* not before the next synchronisation */
	SAME(get(pool, GPU_POOL_USED_CURRENT), 20 * MIB + 1024);
	SAME(cuStreamSynchronize(NULL), 0);
	SAME(before - level(), 32 * MIB);
	SAME(cuMemFree_v2(a), 0); /* the synchronous call works as well */
	SAME(cuMemFreeAsync(b, NULL), 0);
	SAME(cuCtxSynchronize(), 0);
	SAME(level(), before);
	SAME(get(pool, GPU_POOL_RESERVED_HIGH), 72 * MIB);
	SAME(cuMemPoolSetAttribute(pool, GPU_POOL_RESERVED_HIGH, &(uint64_t){0}), 0);
	SAME(get(pool, GPU_POOL_RESERVED_HIGH), 0);
}

static void kept(gpu_pool pool)
{
	uint64_t all = UINT64_MAX;
	gpu_ptr a, b;
	size_t before = level();

	SAME(cuMemPoolSetAttribute(pool, GPU_POOL_RELEASE_THRESHOLD, &all), 0);
	SAME(cuMemAllocAsync(&a, 100 * MIB, NULL), 0);
	SAME(cuMemFreeAsync(a, NULL), 0);
	SAME(cuCtxSynchronize(), 0);
	SAME(before - level(), 100 * MIB);
	/* the same memory again */
	SAME(cuMemAllocAsync(&b, 60 * MIB, NULL), 0);
	SAME(b, a);
	SAME(before - level(), 100 * MIB);
	SAME(cuMemPoolTrimTo(pool, 0), 0);
	SAME(before - level(), 100 * MIB); /* in use */
	SAME(cuMemFreeAsync(b, NULL), 0);
	SAME(cuMemPoolTrimTo(pool, 200 * MIB), 0);
	SAME(before - level(), 100 * MIB);
	SAME(cuMemPoolTrimTo(pool, 0), 0);
	SAME(level(), before);
	/* unused memory of pools is released before an allocation fails */
	SAME(cuMemAllocAsync(&a, 200 * MIB, NULL), 0);
	SAME(cuMemFreeAsync(a, NULL), 0);
	SAME(cuMemAlloc_v2(&b, 220 * MIB), 0);
	SAME(get(pool, GPU_POOL_RESERVED_CURRENT), 0);
	SAME(cuMemAllocAsync(&a, 30 * MIB, NULL), 2);
	SAME(cuMemAllocAsync(&a, 10 * MIB, NULL), 0); /* a small step where a large one fails */
	SAME(cuMemFree_v2(b), 0);
	SAME(cuMemFreeAsync(a, NULL), 0);
	SAME(cuMemPoolSetAttribute(pool, GPU_POOL_RELEASE_THRESHOLD, &(uint64_t){0}), 0);
	SAME(cuCtxSynchronize(), 0);
	SAME(level(), before);
}

/* Holes within a pool: a request gets the lowest that fits, and neighbours merge. */
static void holes(void)
{
	gpu_ptr p[8], big;
	size_t before = level();

	for (int i = 0; i < 8; i++)
		SAME(cuMemAllocAsync(&p[i], 4 * MIB, NULL), 0);
	SAME(before - level(), 32 * MIB);
	SAME(cuMemFreeAsync(p[1], NULL), 0);
	SAME(cuMemFreeAsync(p[4], NULL), 0);
	SAME(cuMemFreeAsync(p[6], NULL), 0);
	SAME(cuMemFreeAsync(p[5], NULL), 0);
	SAME(cuMemAllocAsync(&big, 12 * MIB, NULL), 0);
	SAME(big, p[4]);
	SAME(cuMemAllocAsync(&p[1], 4 * MIB, NULL), 0);
	SAME(before - level(), 32 * MIB);
	SAME(cuMemFreeAsync(big, NULL), 0);
	SAME(cuMemFreeAsync(p[0], NULL), 0);
	SAME(cuMemFreeAsync(p[1], NULL), 0);
	SAME(cuMemFreeAsync(p[2], NULL), 0);
	SAME(cuMemFreeAsync(p[3], NULL), 0);
	SAME(cuMemFreeAsync(p[7], NULL), 0);
	SAME(cuCtxSynchronize(), 0);
	SAME(level(), before);
}

static void own(void)
{
	struct gpu_pool_props props = {
	    .type = 1, .location = {GPU_LOCATION_DEVICE, 0}, .max_size = 64 * MIB};
	gpu_pool pool, current, standard;
	gpu_ptr a, b;
	size_t before = level();

	SAME(cuMemPoolCreate(&pool, &props), 0);
	SAME(cuMemAllocFromPoolAsync(&a, 60 * MIB, pool, NULL), 0);
	SAME(cuMemAllocFromPoolAsync(&b, 10 * MIB, pool, NULL), 2); /* over the pool's maximum */
	SAME(cuDeviceGetDefaultMemPool(&standard, 0), 0);
	SAME(cuMemPoolDestroy(standard), 1);
	SAME(cuDeviceSetMemPool(0, pool), 0);
	SAME(cuDeviceGetMemPool(&current, 0), 0);
	CHECK(current == pool && current != standard);
	SAME(cuMemPoolDestroy(pool), 0);
	SAME(cuDeviceGetMemPool(&current, 0), 0);
	CHECK(current == standard);
	SAME(cuMemPoolTrimTo(pool, 0), 1);
	SAME(before - level(), 60 * MIB); /* until it is freed */
	SAME(cuMemFreeAsync(a, NULL), 0);
	SAME(level(), before);
	props.location.type = GPU_LOCATION_HOST;
	SAME(cuMemPoolCreate(&pool, &props), 801);
}

int main(void)
{
	gpu_pool pool;

	up();
	SAME(cuDeviceGetDefaultMemPool(&pool, 0), 0);
	growth(pool);
	kept(pool);
	holes();
	own();
	return done();
}
