/* device_requests.c - device_requests WHICH: asks a device's driver for memory in one of several
 * ways, until it is refused. It finds the driver by name, like programs that are not linked with
 * it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct properties {
	int type, handles, location_type, location_id;
	void *unused;
	unsigned char flags[16];
};
struct access {
	int type, id, flags;
};
static int (*init)(unsigned), (*retain)(void **, int), (*current)(void *),
    (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
static int (*create)(uint64_t *, size_t, const struct properties *, uint64_t), (*drop)(uint64_t);
static int (*reserve)(uint64_t *, size_t, size_t, uint64_t, uint64_t),
    (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t);
static int (*unmap)(uint64_t, size_t), (*alloc_async)(uint64_t *, size_t, void *),
    (*free_async)(uint64_t, void *), (*sync_all)(void);
static int (*info)(size_t *, size_t *);
#define KIB (1ul << 10)
#define MIB (1ul << 20)

static unsigned chance = 7;
static unsigned any(unsigned below)
{
	chance = chance * 1103515245u + 12345;
	return (chance >> 8) % below;
}

static int keep(size_t n)
{
	uint64_t p;
	return alloc(&p, n);
}

static int page(uint64_t at)
{
	struct properties p = {.type = 1, .location_type = 1};
	uint64_t h;

	if (create(&h, 20 * MIB, &p, 0))
		return 1;
	if (map(at, 20 * MIB, 0, h, 0) || drop(h))
		exit(3);
	return 0;
}

static int traffic(void)
{
	static uint64_t held[400];
	for (;;) {
		unsigned i = any(400);
		size_t n = any(3) ? 4 * KIB + any(900) * KIB : MIB + any(20) * MIB + any(4096);
		size_t f, t;
		if (held[i])
			release(held[i]);
		held[i] = 0;
		if (!any(50))
			info(&f, &t);
		if (alloc(&held[i], n))
			return 1;
	}
}

static int pool(void)
{
	uint64_t held[64] = {0};
	for (unsigned step = 0;; step++) {
		unsigned i = any(64);
		if (held[i])
			free_async(held[i], NULL);
		held[i] = 0;
		if (alloc_async(&held[i], (1 + any(step / 4 + 4)) * MIB, NULL))
			return 1;
		if (step % 16 == 0)
			sync_all();
	}
}

int main(int argc, char **argv)
{
	void *l = dlopen("libcuda.so.1", RTLD_NOW), *context;
	uint64_t at;
	size_t f, t;

#define FIND(name, symbol) *(void **)&name = dlsym(l, symbol)
	FIND(init, "cuInit");
	FIND(retain, "cuDevicePrimaryCtxRetain");
	FIND(current, "cuCtxSetCurrent");
	FIND(alloc, "cuMemAlloc_v2");
	FIND(release, "cuMemFree_v2");
	FIND(create, "cuMemCreate");
	FIND(drop, "cuMemRelease");
	FIND(reserve, "cuMemAddressReserve");
	FIND(map, "cuMemMap");
	FIND(unmap, "cuMemUnmap");
	FIND(alloc_async, "cuMemAllocAsync");
	FIND(free_async, "cuMemFreeAsync");
	FIND(sync_all, "cuCtxSynchronize");
	FIND(info, "cuMemGetInfo_v2");
	if (argc < 2 || init(0) || retain(&context, 0) || current(context))
		return 3;
	info(&f, &t);
	if (!strcmp(argv[1], "leak"))
		while (!keep(30 * MIB + 5))
			;
	else if (!strcmp(argv[1], "small"))
		while (!keep(100 * KIB))
			;
	else if (!strcmp(argv[1], "traffic"))
		traffic();
	else if (!strcmp(argv[1], "pool"))
		pool();
	else if (!strcmp(argv[1], "pages")) {
		if (reserve(&at, 4096 * MIB, 0, 0, 0))
			return 3;
		for (unsigned i = 0; !page(at + i * 20 * MIB); i++)
			if (i % 4 == 3 && unmap(at + (i - 1) * 20 * MIB, 20 * MIB))
				return 3;
	} else if (!strcmp(argv[1], "hold")) {
		keep(400 * MIB);
		puts("holds");
		fflush(stdout);
		getchar();
		return 0;
	}
	fputs("out of memory\n", stderr);
	return 1;
}
