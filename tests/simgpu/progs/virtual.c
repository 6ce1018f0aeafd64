/* Virtual memory management: memory is freed with the last handle or mapping. 256 MiB, 16. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static const struct gpu_alloc_prop prop = {
    .type = 1, .handle_types = 1, .location = {GPU_LOCATION_DEVICE, 0}};
static const struct gpu_access access_here = {{GPU_LOCATION_DEVICE, 0}, 3};

static void lifetimes(void)
{
	gpu_handle handle, again;
	gpu_ptr va, p;
	size_t before = level();
	int value = 0;

	SAME(cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0), 0);
	SAME(level(), before);
	SAME(cuMemCreate(&handle, 20 * MIB, &prop, 0), 0);
	SAME(before - level(), 20 * MIB);
	SAME(cuMemMap(va, 20 * MIB, 0, handle, 0), 0);
	SAME(cuMemMap(va + 2 * MIB, 2 * MIB, 0, handle, 0), 1); /* taken */
	SAME(cuMemSetAccess(va, 20 * MIB, &access_here, 1), 0);
	SAME(cuMemSetAccess(va, 22 * MIB, &access_here, 1), 1);
	SAME(cuMemRelease(handle), 0);
	SAME(before - level(), 20 * MIB); /* the mapping holds it */
	SAME(cuMemRelease(handle), 1);
	SAME(cuMemcpyHtoD_v2(va + 5, (int[]){77}, 4), 0);
	SAME(cuMemcpyDtoH_v2(&value, va + 5, 4), 0);
	SAME(value, 77);
	SAME(cuMemRetainAllocationHandle(&again, (void *)(va + MIB)), 0);
	SAME(cuMemUnmap(va, 20 * MIB), 0);
	SAME(before - level(), 20 * MIB); /* the handle holds it */
	SAME(cuMemcpyDtoH_v2(&value, va, 4), 1);
	/* the same memory at another address */
	SAME(cuMemMap(va + 40 * MIB, 20 * MIB, 0, again, 0), 0);
	value = 0;
	SAME(cuMemcpyDtoH_v2(&value, va + 40 * MIB + 5, 4), 0);
	SAME(value, 77);
	SAME(cuMemAddressFree(va, 64 * MIB), 1); /* something is mapped */
	SAME(cuMemRelease(again), 0);
	SAME(cuMemUnmap(va + 40 * MIB, 20 * MIB), 0);
	SAME(level(), before);
	SAME(cuMemUnmap(va + 40 * MIB, 20 * MIB), 1);
	SAME(cuMemAddressFree(va, 32 * MIB), 1);
	SAME(cuMemAddressFree(va, 64 * MIB), 0);
	SAME(cuMemAddressFree(va, 64 * MIB), 1);
	SAME(cuMemAlloc_v2(&p, 4 * MIB), 0);
	SAME(cuMemRetainAllocationHandle(&again, (void *)p), 1);
	SAME(cuMemFree_v2(p), 0);
}

/* As llama.cpp does: releases the handle at once, then removes many mappings by one call. */
static void many_at_once(void)
{
	gpu_handle handle;
	gpu_ptr va;
	size_t before = level();

	SAME(cuMemAddressReserve(&va, 1ull << 35, 0, 0, 0), 0); /* more than the memory */
	for (int i = 0; i < 10; i++) {
		SAME(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
		SAME(cuMemMap(va + (gpu_ptr)i * 4 * MIB, 4 * MIB, 0, handle, 0), 0);
		SAME(cuMemRelease(handle), 0);
		SAME(cuMemSetAccess(va + (gpu_ptr)i * 4 * MIB, 4 * MIB, &access_here, 1), 0);
	}
	SAME(before - level(), 40 * MIB);
	SAME(cuMemUnmap(va + 2 * MIB, 4 * MIB), 1); /* parts of two */
	SAME(before - level(), 40 * MIB);
	SAME(cuMemUnmap(va, 40 * MIB), 0);
	SAME(level(), before);
	SAME(cuMemAddressFree(va, 1ull << 35), 0);
}

static void refused(void)
{
	struct gpu_alloc_prop other = prop;
	gpu_handle handle = 5;
	gpu_ptr va;
	size_t n = 0, before = level();

	SAME(cuMemGetAllocationGranularity(&n, &prop, 0), 0);
	SAME(n, PAGE);
	SAME(cuMemCreate(&handle, MIB, &prop, 0), 1); /* not a multiple of it */
	SAME(cuMemCreate(&handle, before + PAGE, &prop, 0), 2);
	other.location.type = GPU_LOCATION_HOST_NUMA;
	SAME(cuMemCreate(&handle, PAGE, &other, 0), 801);
	other = prop;
	other.handle_types = 8; /* a fabric */
	SAME(cuMemCreate(&handle, PAGE, &other, 0), 801);
	other = prop;
	other.location.id = 3;
	SAME(cuMemCreate(&handle, PAGE, &other, 0), 101);
	SAME(handle, 5);
	SAME(cuMemAddressReserve(&va, MIB, 0, 0, 0), 1);
	SAME(cuMemMap(0x1000, PAGE, 0, 0, 0), 1);
	/* aligned, and at the requested address */
	SAME(cuMemAddressReserve(&va, PAGE, 1ull << 30, 0, 0), 0);
	SAME(va % (1ull << 30), 0);
	SAME(cuMemAddressFree(va, PAGE), 0);
	SAME(cuMemAddressReserve(&va, PAGE, 0, 0x2abc00000000ull, 0), 0);
	SAME(va, 0x2abc00000000ull);
	SAME(cuMemAddressFree(va, PAGE), 0);
	SAME(level(), before);
}

static void handed_over(void)
{
	struct gpu_alloc_prop read = {0};
	gpu_handle handle, import;
	size_t before = level();
	int fd = -1;

	SAME(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
	SAME(cuMemExportToShareableHandle(&fd, handle, 1, 0), 0);
	CHECK(fd > 2 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	SAME(cuMemImportFromShareableHandle(&import, (void *)(intptr_t)fd, 1), 0);
	SAME(before - level(), 4 * MIB); /* once */
	SAME(cuMemGetAllocationPropertiesFromHandle(&read, import), 0);
	SAME(read.location.type, GPU_LOCATION_DEVICE);
	close(fd);
	SAME(cuMemRelease(handle), 0);
	SAME(cuMemRelease(import), 0);
	SAME(level(), before);
	fd = open("/dev/null", O_RDONLY);
	SAME(cuMemImportFromShareableHandle(&import, (void *)(intptr_t)fd, 1), 1);
	close(fd);
}

int main(void)
{
	up();
	lifetimes();
	many_at_once();
	refused();
	handed_over();
	return done();
}
