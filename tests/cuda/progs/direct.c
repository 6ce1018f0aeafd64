/*
 * direct.c - calls the driver through its own symbols: `direct CASE`. test_cuda.py checks the
 * trace.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda_abi.h"

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	extern gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API
extern gpu_result cuCtxSetCurrent(gpu_context), cuCtxGetCurrent(gpu_context *);
extern int stand_violations(void), stand_calls(void), stand_asked(void);

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static void begin(void)
{
	gpu_context context;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
}

static void plain(void)
{
	gpu_ptr a, b, keep;

	begin();
	errno = 4242;
	CHECK(!cuMemAlloc_v2(&a, 1001) && !cuMemAlloc_v2(&b, 2002) && !cuMemAlloc_v2(&keep, 3003));
	CHECK(!cuMemFree_v2(a) && !cuMemFree_v2(b) && errno == 4242);
	CHECK(cuMemFree_v2(12345) == GPU_ERROR_INVALID_VALUE);
}

extern gpu_result (*stand_inner)(gpu_ptr *, size_t);

/* a driver call that makes another one is one allocation */
static void nested(void)
{
	gpu_ptr p;

	begin();
	stand_inner = cuMemAlloc_v2;
	CHECK(!cuMemAlloc_v2(&p, 1001) && cuMemAlloc_v2(&p, 1ull << 40) == GPU_ERROR_OUT_OF_MEMORY);
	stand_inner = NULL;
	CHECK(!cuMemAlloc_v2(&p, 2002));
}

/* every class of memory, once */
static void classes(void)
{
	struct gpu_array_desc array = {64, 32, 0x20, 1};
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_DEVICE, 0}};
	struct gpu_ipc_handle ipc;
	static char host[8192] __attribute__((aligned(4096)));
	gpu_ptr p, va, managed, async, per_thread, foreign;
	size_t pitch;
	gpu_array made;
	gpu_handle handle;
	void *pinned;

	for (unsigned i = 0; i < sizeof(ipc.reserved); i++)
		ipc.reserved[i] = (uint8_t)(i + 1);
	begin();
	CHECK(!cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 4) && pitch == 1024);
	CHECK(!cuMemAllocManaged(&managed, 5005, 1));
	CHECK(!cuMemHostAlloc(&pinned, 6006, 0) && !cuMemFreeHost(pinned));
	CHECK(!cuMemAllocHost_v2(&pinned, 6007));
	CHECK(!cuMemHostRegister_v2(host, sizeof(host), 0) && !cuMemHostUnregister(host));
	CHECK(!cuArrayCreate_v2(&made, &array) && !cuArrayDestroy(made));
	CHECK(!cuMemAllocAsync(&async, 7007, (gpu_stream)(uintptr_t)0x77));
	CHECK(!cuMemAllocAsync_ptsz(&per_thread, 7008, NULL));
	CHECK(!cuMemFreeAsync(async, NULL) && !cuMemFreeAsync_ptsz(per_thread, NULL));
	CHECK(!cuMemPoolTrimTo((gpu_pool)(uintptr_t)0x9001, 0));
	CHECK(!cuMemAddressReserve(&va, 1 << 21, 0, 0, 0));
	CHECK(!cuMemCreate(&handle, 1 << 21, &prop, 0) && !cuMemMap(va, 1 << 21, 0, handle, 0));
	CHECK(!cuMemRelease(handle) && !cuMemUnmap(va, 1 << 21) && !cuMemAddressFree(va, 1 << 21));
	CHECK(cuMemUnmap(0, 1) == GPU_ERROR_INVALID_VALUE);
	CHECK(!cuIpcOpenMemHandle_v2(&foreign, ipc, 0) && !cuIpcCloseMemHandle(foreign));
	CHECK(!cuMemFree_v2(managed));
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
}

/* failing calls leave garbage, which must not be read */
static void failures(void)
{
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_HOST_NUMA, 0}};
	gpu_ptr p = 7, small;
	gpu_handle handle;
	size_t available, total;

	begin();
	CHECK(!cuMemAlloc_v2(&small, 1 << 20));
	CHECK(cuMemAlloc_v2(&p, 1ull << 40) == GPU_ERROR_OUT_OF_MEMORY && p == 0xdeadbeef);
	CHECK(cuMemAlloc_v2(NULL, 4096) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemHostAlloc(NULL, 4096, 0) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemCreate(&handle, 4096, &prop, 0) == GPU_ERROR_NOT_SUPPORTED);
	CHECK(cuMemCreate(&handle, 4096, NULL, 0) == GPU_ERROR_INVALID_VALUE);
	CHECK(!cuMemGetInfo_v2(NULL, &total) && !cuMemGetInfo_v2(&available, NULL));
	CHECK(!cuMemGetInfo_v2(NULL, NULL));
}

/* a failure, releases, and the same again: no out-of-memory */
static void retry(void)
{
	gpu_ptr big, p;

	begin();
	CHECK(!cuMemAlloc_v2(&big, 900 << 20));
	CHECK(cuMemAlloc_v2(&p, 500 << 20) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc_v2(&p, 500 << 20) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(!cuMemFree_v2(big) && !cuMemAlloc_v2(&p, 500 << 20) && !cuMemFree_v2(p));
	usleep(200000);
	CHECK(cuMemAlloc_v2(&p, 1ull << 40) == GPU_ERROR_OUT_OF_MEMORY);
}

/* before cuInit, without a context */
static void early(void)
{
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_DEVICE, 1}};
	gpu_context context;
	gpu_handle handle;
	gpu_ptr p;

	CHECK(cuMemAlloc_v2(&p, 1001) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuMemFree_v2(4096) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(!cuInit(0) && cuMemAlloc_v2(&p, 1002) == GPU_ERROR_INVALID_CONTEXT);
	/* needs no context, and the hook must not query one */
	CHECK(!cuMemCreate(&handle, 1 << 21, &prop, 0));
	CHECK(cuMemCreate(&handle, 1ull << 40, &prop, 0) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
}

/* while a stream captures, nothing may be queried */
static void capture(void)
{
	gpu_stream stream = (gpu_stream)(uintptr_t)0x55;
	gpu_graph graph;
	gpu_ptr p, q;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1001));
	CHECK(!cuStreamBeginCapture_v2(stream, 0));
	for (int i = 0; i < 5; i++) {
		usleep(60000); /* samples would be due */
		CHECK(!cuMemAlloc_v2(&p, 1002));
		CHECK(!cuMemAllocAsync(&q, 7007, stream));
		CHECK(cuMemAlloc_v2(&p, 1ull << 40) == GPU_ERROR_OUT_OF_MEMORY);
	}
	CHECK(!cuStreamEndCapture(stream, &graph));
	CHECK(cuMemAlloc_v2(&p, 1ull << 41) == GPU_ERROR_OUT_OF_MEMORY);
}

static void at_exit(void)
{
	gpu_ptr p;

	cuMemAlloc_v2(&p, 9009);
	cuMemAlloc_v2(&p, 1ull << 40);
}

static void exiting(void)
{
	begin();
	CHECK(!atexit(at_exit));
}

static void forked(void)
{
	gpu_ptr p;
	int status;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1001));
	if (!fork()) {
		/* the stand-in allows it; the first failure shows whose trace is written */
		CHECK(cuMemAlloc_v2(&p, 1ull << 40) == GPU_ERROR_OUT_OF_MEMORY);
		CHECK(!cuMemAlloc_v2(&p, 2002));
		_exit(stand_violations());
	}
	CHECK(wait(&status) > 0 && status == 0);
	CHECK(!cuMemAlloc_v2(&p, 3003));
}

static void *work(void *unused)
{
	gpu_ptr p[16];

	cuCtxSetCurrent((gpu_context)(uintptr_t)0xc0de);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 16; i++)
			CHECK(!cuMemAlloc_v2(&p[i], 512));
		for (int i = 0; i < 16; i++)
			CHECK(!cuMemFree_v2(p[i]));
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	begin();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void modules(void)
{
	gpu_module module;
	gpu_ptr p;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1001) && !cuModuleLoadData(&module, "image"));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"plain", plain}, {"nested", nested}, {"classes", classes}, {"failures", failures},
    {"retry", retry}, {"early", early}, {"capture", capture}, {"exiting", exiting},
    {"forked", forked}, {"threads", threads}, {"modules", modules}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			printf("violations %d\n", stand_violations());
			return stand_violations() ? 4 : 0;
		}
	return 2;
}
