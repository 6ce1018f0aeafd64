/* Memory with an address: the size of requests, refusals, contents after copies. Run on one device
 * of 256 MiB with a context of 16. */
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void order_of_things(void)
{
	gpu_ptr p;
	size_t n;

	SAME(cuMemAlloc_v2(&p, 1), 3);
	SAME(cuMemGetInfo_v2(&n, &n), 3);
	SAME(cuInit(0), 0);
	SAME(cuMemAlloc_v2(&p, 1), 201); /* no context */
	up();
}

static void sizes(void)
{
	gpu_ptr small[600], large, more;
	size_t before = level(), total;

	SAME(cuMemGetInfo_v2(NULL, &total), 0);
	SAME(total, 256 * MIB);
	SAME(before, 240 * MIB);
	SAME(cuMemGetInfo_v2(NULL, NULL), 0);

	/* 600 blocks of 1 KiB share one page, each aligned to 512 bytes or more */
	for (int i = 0; i < 600; i++) {
		SAME(cuMemAlloc_v2(&small[i], 1000), 0);
		SAME(small[i] % 512, 0);
		for (int k = 0; k < i; k++)
			if (small[k] < small[i] + 1000 && small[i] < small[k] + 1000)
				CHECK(!"they overlap");
	}
	SAME(before - level(), PAGE);
	for (int i = 0; i < 600; i++)
		SAME(cuMemFree_v2(small[i]), 0);
	SAME(level(), before);

	SAME(cuMemAlloc_v2(&large, MIB + 1), 0);
	SAME(before - level(), PAGE);
	SAME(cuMemFree_v2(large), 0);

	/* fills the device to the last page */
	SAME(cuMemAlloc_v2(&large, before), 0);
	SAME(level(), 0);
	more = 7;
	SAME(cuMemAlloc_v2(&more, 1), 2);
	SAME(more, 7);
	SAME(cuMemFree_v2(large + 512), 1);
	SAME(cuMemFree_v2(large), 0);
	SAME(cuMemFree_v2(large), 1);
	SAME(cuMemFree_v2(0), 0);
	SAME(level(), before);
	SAME(cuMemAlloc_v2(&more, before + 1), 2);
	SAME(cuMemAlloc_v2(&more, ~(size_t)0), 2);
	SAME(cuMemAlloc_v2(&more, 0), 1);
	SAME(cuMemAlloc_v2(NULL, 1), 1);
}

static void questions(void)
{
	gpu_ptr p, base = 0;
	size_t size = 0;
	int type = 0, managed = 9;
	void *host, *plain = malloc(64);
	unsigned long long ids[2];

	SAME(cuMemAlloc_v2(&p, 3 * MIB), 0);
	SAME(cuMemGetAddressRange_v2(&base, &size, p + 12345), 0);
	CHECK(base == p && size == 3 * MIB);
	SAME(cuMemGetAddressRange_v2(NULL, NULL, p), 0);
	SAME(cuPointerGetAttribute(&type, 2, p + 5), 0);
	SAME(type, 2);
	SAME(cuPointerGetAttribute(&managed, 8, p), 0);
	SAME(managed, 0);
	SAME(cuPointerGetAttribute(&host, 4, p), 1); /* the host cannot reach it */
	SAME(cuPointerGetAttribute(&type, 2, (gpu_ptr)plain), 1);
	SAME(cuPointerGetAttribute(&ids[0], 7, p), 0);
	SAME(cuMemFree_v2(p), 0);
	SAME(cuMemAlloc_v2(&p, 3 * MIB), 0);
	SAME(cuPointerGetAttribute(&ids[1], 7, p), 0);
	CHECK(ids[0] != ids[1]);
	SAME(cuMemFree_v2(p), 0);

	SAME(cuMemHostAlloc(&host, 100000, 0), 0);
	memset(host, 1, 100000);
	SAME(cuPointerGetAttribute(&type, 2, (gpu_ptr)host), 0);
	SAME(type, 1);
	SAME(cuMemFree_v2((gpu_ptr)host), 1);
	SAME(cuMemFreeHost(host), 0);
	SAME(cuMemFreeHost(host), 1);

	SAME(cuMemHostRegister_v2(plain, 64, 0), 0);
	SAME(cuMemHostRegister_v2(plain, 64, 0), 712);
	SAME(cuMemHostUnregister(plain), 0);
	SAME(cuMemHostUnregister(plain), 713);
	free(plain);

	SAME(cuMemAllocManaged(&p, 1 * MIB, 1), 0);
	memset((void *)p, 2, MIB);
	SAME(cuPointerGetAttribute(&managed, 8, p), 0);
	SAME(managed, 1);
	SAME(cuMemFree_v2(p), 0);
}

static void copies(void)
{
	enum { N = 300000 };
	unsigned char *from = malloc(N), *to = calloc(1, N);
	gpu_ptr a, b;

	for (int i = 0; i < N; i++)
		from[i] = (unsigned char)(i * 7 + i / 255);
	SAME(cuMemAlloc_v2(&a, N), 0);
	SAME(cuMemAlloc_v2(&b, 2 * N), 0);
	memset(to, 1, N);
	SAME(cuMemcpyDtoH_v2(to, a, N), 0);
	for (int i = 0; i < N; i++)
		if (to[i])
			CHECK(!"what was never written is zero");
	SAME(cuMemcpyHtoD_v2(a + 3, from, N - 3), 0);
	SAME(cuMemcpyDtoD_v2(b + 77777, a, N), 0);
	SAME(cuMemcpyDtoH_v2(to, b + 77777 + 3, N - 3), 0);
	CHECK(!memcmp(from, to, N - 3));
	SAME(cuMemsetD32_v2(b + 4, 0x01020304, 100), 0);
	SAME(cuMemcpy((gpu_ptr)to, b, 408), 0);
	CHECK(to[3] == 0 && to[4] == 4 && to[7] == 1 && to[403] == 1 && to[404] == 0);
	SAME(cuMemsetD8_v2(b, 0, 2 * N), 0);
	SAME(cuMemcpyDtoH_v2(to, b + 77777, 100), 0);
	CHECK(!to[0] && !to[99]);
	/* one byte too many */
	SAME(cuMemcpyHtoD_v2(a + N - 10, from, 11), 1);
	SAME(cuMemcpyHtoD_v2(a, from, 0), 0);
	SAME(cuMemFree_v2(a), 0);
	SAME(cuMemcpyHtoD_v2(a, from, 1), 1);
	/* a new block of whole pages does not show the old contents */
	SAME(cuMemAlloc_v2(&a, 4 * MIB), 0);
	SAME(cuMemcpyHtoD_v2(a, from, N), 0);
	SAME(cuMemFree_v2(a), 0);
	SAME(cuMemAlloc_v2(&a, 4 * MIB), 0);
	SAME(cuMemcpyDtoH_v2(to, a, N), 0);
	CHECK(!to[3] && !to[N - 1]);
	SAME(cuMemFree_v2(a), 0);
	SAME(cuMemFree_v2(b), 0);
	free(from);
	free(to);
}

static void arrays(void)
{
	struct gpu_array_desc flat = {.width = 1024, .height = 1024, .format = 0x20, .channels = 4};
	struct gpu_array3d_desc solid = {256, 256, 16, 0x01, 1, 0};
	gpu_array array;
	size_t before = level();

	SAME(cuArrayCreate_v2(&array, &flat), 0);
	SAME(before - level(), 16 * MIB);
	SAME(cuArrayDestroy(array), 0);
	SAME(cuArrayDestroy(array), 400);
	SAME(cuMipmappedArrayCreate(&array, &solid, 3), 0);
	/* 1 MiB, an eighth of it, a 64th */
	SAME(before - level(), PAGE);
	SAME(cuMipmappedArrayDestroy(array), 0);
	solid.depth = 1 << 20;
	SAME(cuArray3DCreate_v2(&array, &solid), 2);
	SAME(level(), before);
}

/* None of this uses the host's memory. */
static void host_heap(void)
{
	struct mallinfo2 before = mallinfo2(), after;
	gpu_ptr p[64];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 64; i++)
			if (cuMemAlloc_v2(&p[i], 4096u * (unsigned)(i + 1)))
				CHECK(!"it does not fit");
		for (int i = 0; i < 64; i++)
			cuMemFree_v2(p[i]);
	}
	after = mallinfo2();
	SAME(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd);
}

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *out);

/* After NVML calls alone a fork's child can use the device. */
static void asked_before_fork(void)
{
	unsigned count = 0;
	int status = -1;
	pid_t pid;

	SAME(nvmlInit_v2(), 0);
	SAME(nvmlDeviceGetCount_v2(&count), 0);
	SAME(count, 1);
	SAME(cuMemAlloc_v2(NULL, 1), 3);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		gpu_context context;
		gpu_ptr p;

		exit(cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		     cuCtxSetCurrent(context) || cuMemAlloc_v2(&p, 8 * MIB));
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	SAME(status, 0);
}

static void children(void)
{
	size_t before = level();
	int status;
	gpu_ptr p;
	pid_t pid;

	SAME(cuMemAlloc_v2(&p, 8 * MIB), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		unsigned count;
		size_t n;

		/* unusable in the child of a process that used it, and holds no memory there */

		if (cuMemAlloc_v2(&p, 1) != 3 || cuMemGetInfo_v2(&n, &n) != 3 || cuInit(0) != 3 ||
		    nvmlDeviceGetCount_v2(&count) || count != 1)
			_exit(1);
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	SAME(before - level(), 8 * MIB);
	SAME(cuMemFree_v2(p), 0);
}

static void reset(void)
{
	gpu_context context;
	unsigned flags;
	int active = 0;
	gpu_ptr p;

	SAME(cuMemAlloc_v2(&p, 8 * MIB), 0);
	SAME(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
	SAME(active, 1);
	SAME(cuDevicePrimaryCtxReset_v2(0), 0);
	SAME(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
	SAME(active, 0);
	SAME(cuMemAlloc_v2(&p, 1), 709);
	SAME(cuDevicePrimaryCtxRetain(&context, 0), 0);
	SAME(cuCtxSetCurrent(context), 0);
	SAME(level(), 240 * MIB);
}

int main(void)
{
	/* an emulator simulates /proc only for its own process: its child would take it for dead
	 */
	int forks = !getenv("WHYOOM_TEST_RUNNER");

	if (forks)
		asked_before_fork();
	order_of_things();
	sizes();
	questions();
	copies();
	arrays();
	host_heap();
	if (forks)
		children();
	reset();
	return done();
}
