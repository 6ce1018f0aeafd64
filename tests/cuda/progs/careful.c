/*
 * careful.c - pitfalls of a tool between a program and the driver: `careful CASE [LIBRARY]`.
 * test_pitfalls.py checks the trace; the stand-in itself checks that it is not queried when it must
 * not be.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda_abi.h"

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	extern gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API
extern gpu_result cuCtxSetCurrent(gpu_context), cuCtxGetCurrent(gpu_context *);
extern gpu_result cuLaunchHostFunc(gpu_stream, void (*)(void *), void *);
extern int stand_violations(void), stand_asked(void), stand_early(void);
extern void (*stand_inside)(void);

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			_exit(3);                                                                  \
		}                                                                                  \
	} while (0)
#define HUGE_SIZE (1ull << 40)
#define STREAM ((gpu_stream)(uintptr_t)0x55)
#define NOWHERE(type) ((type)(uintptr_t)16) /* not NULL, and unmapped */

static void begin(void)
{
	gpu_context context;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
}

/* errno stays the caller's, whatever is queried meanwhile */
#define KEEP(want, call)                                                                           \
	do {                                                                                       \
		gpu_result result_;                                                                \
		usleep(before_sample);                                                             \
		errno = 4242;                                                                      \
		result_ = (call);                                                                  \
		CHECK(errno == 4242);                                                              \
		CHECK(result_ == (want));                                                          \
	} while (0)

static void errnos(void)
{
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_DEVICE, 0}};
	struct gpu_array_desc array = {64, 32, 0x20, 1};
	struct gpu_node_alloc node = {.size = 4096};
	static char host[4096] __attribute__((aligned(4096)));
	const useconds_t before_sample = 0;
	gpu_ptr p, va;
	gpu_handle handle;
	gpu_array made;
	gpu_module module;
	gpu_context context;
	gpu_graph graph = (gpu_graph)(uintptr_t)0x99;
	gpu_node added;

	KEEP(GPU_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&p, 1000));
	CHECK(!cuInit(0));
	KEEP(0, cuDevicePrimaryCtxRetain(&context, 0));
	CHECK(!cuCtxSetCurrent(context));
	KEEP(0, cuMemAlloc_v2(&p, 1000));
	KEEP(GPU_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, HUGE_SIZE));
	KEEP(GPU_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 1000));
	KEEP(0, cuMemHostRegister_v2(host, sizeof(host), 0));
	KEEP(0, cuMemHostUnregister(host));
	KEEP(0, cuArrayCreate_v2(&made, &array));
	KEEP(0, cuArrayDestroy(made));
	KEEP(GPU_ERROR_INVALID_VALUE, cuArrayDestroy(made));
	KEEP(0, cuMemAddressReserve(&va, 1 << 21, 0, 0, 0));
	KEEP(0, cuMemCreate(&handle, 1 << 21, &prop, 0));
	KEEP(0, cuMemMap(va, 1 << 21, 0, handle, 0));
	KEEP(GPU_ERROR_INVALID_VALUE, cuMemMap(va, 1 << 21, 0, 1, 0));
	KEEP(0, cuMemRelease(handle));
	KEEP(0, cuMemUnmap(va, 1 << 21));
	KEEP(GPU_ERROR_INVALID_VALUE, cuMemUnmap(0, 1));
	KEEP(0, cuMemAllocAsync(&p, 1000, STREAM));
	KEEP(0, cuMemFreeAsync(p, STREAM));
	KEEP(0, cuMemPoolTrimTo((gpu_pool)(uintptr_t)0x9001, 0));
	KEEP(0, cuModuleLoadData(&module, "image"));
	KEEP(0, cuGraphAddMemAllocNode(&added, graph, NULL, 0, &node));
	KEEP(0, cuGraphLaunch((gpu_object)graph, STREAM));
	KEEP(0, cuStreamBeginCapture_v2(STREAM, 0));
	KEEP(0, cuMemAllocAsync(&p, 1000, STREAM));
	KEEP(0, cuMemFreeAsync(p, STREAM));
	KEEP(0, cuStreamEndCapture(STREAM, &graph));
	KEEP(0, cuGraphDestroy(graph));
	KEEP(0, cuDevicePrimaryCtxRelease_v2(0));
	KEEP(0, cuDevicePrimaryCtxReset_v2(0));
}

/* Out-parameters are read after success only, in-parameters only if the driver can have read them;
 * and a success may fill in nothing. */
static void pointers(void)
{
	struct gpu_array_desc array = {64, 32, 0x20, 1};
	size_t pitch;
	gpu_ptr p;

	CHECK(cuMemCreate(NOWHERE(gpu_handle *), 4096, NOWHERE(struct gpu_alloc_prop *), 0) ==
	      GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuArrayCreate_v2(NOWHERE(gpu_array *), NOWHERE(struct gpu_array_desc *)) ==
	      GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuMipmappedArrayCreate(NOWHERE(gpu_array *), NOWHERE(struct gpu_array3d_desc *), 2) ==
	      GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, NOWHERE(struct gpu_node_alloc *)) ==
	      GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuMulticastCreate(NULL, NOWHERE(struct gpu_multicast_prop *)) ==
	      GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuImportExternalMemory(NULL, NOWHERE(struct gpu_external_desc *)) ==
	      GPU_ERROR_NOT_INITIALIZED);
	begin();
	CHECK(cuMemAlloc_v2(NOWHERE(gpu_ptr *), 1001) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemAllocPitch_v2(&p, NOWHERE(size_t *), 1000, 2, 4) == GPU_ERROR_INVALID_VALUE);
	CHECK(
	    cuMemAllocPitch_v2(NOWHERE(gpu_ptr *), &pitch, 1000, 3, 4) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemHostAlloc(NOWHERE(void **), 1004, 0) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuArrayCreate_v2(NOWHERE(gpu_array *), &array) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemRetainAllocationHandle(NOWHERE(gpu_handle *), NULL) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuCtxCreate_v2(NOWHERE(gpu_context *), 0, 0) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemGetInfo_v2(NOWHERE(size_t *), NULL) == GPU_ERROR_INVALID_VALUE);
	CHECK(!cuMemGetInfo_v2(NULL, NULL));
	CHECK(!cuMemAllocManaged(NULL, 1005, 1)); /* a block at an unknown address */
}

/* before cuInit the driver returns "not initialized" and is not queried */
static void early(void)
{
	gpu_module module;
	gpu_context context;
	gpu_ptr p;
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found;
	gpu_result (*lookup)(const char *, void **, int, uint64_t, int *);

	CHECK(handle);
	lookup = (gpu_result(*)(const char *, void **, int, uint64_t, int *))dlsym(
	    handle, "cuGetProcAddress_v2");
	CHECK(lookup && !lookup("cuMemAlloc", &found, 12000, 0, NULL));
	CHECK(cuMemAlloc_v2(&p, 1001) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuMemFree_v2(4096) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuMemAllocAsync(&p, 1002, NULL) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuModuleLoadData(&module, "image") == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuDevicePrimaryCtxRetain(&context, 0) == GPU_ERROR_NOT_INITIALIZED);
	CHECK(cuCtxCreate_v2(&context, 0, 0) == GPU_ERROR_NOT_INITIALIZED);
	printf("early %d\n", stand_early());
}

/* Captures that fail to begin, and ends that are refused: the driver's results decide whether a
 * capture is open, and during one nothing is queried. */
static void captures(void)
{
	gpu_stream other = (gpu_stream)(uintptr_t)0x66;
	gpu_graph graph;
	gpu_ptr p;

	begin();
	CHECK(cuStreamBeginCapture_v2(STREAM, -1) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE + 1) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(!cuStreamBeginCapture_v2(STREAM, 0));
	CHECK(cuStreamEndCapture(other, &graph) == GPU_ERROR_INVALID_VALUE);
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE + 2) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(cuStreamEndCapture(STREAM, NULL) == GPU_ERROR_CAPTURE_INVALIDATED);
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE + 3) == GPU_ERROR_OUT_OF_MEMORY);
}

/* A destructor that runs after the driver's own: late.c calls it. */
static void late_calls(void)
{
	gpu_module module = NULL;
	gpu_ptr p;

	CHECK(cuMemAlloc_v2(&p, 1001) == GPU_ERROR_DEINITIALIZED);
	CHECK(cuMemFree_v2(4096) == GPU_ERROR_DEINITIALIZED);
	CHECK(cuModuleUnload(module) == GPU_ERROR_DEINITIALIZED);
	CHECK(cuMemPoolTrimTo((gpu_pool)(uintptr_t)0x9001, 0) == GPU_ERROR_DEINITIALIZED);
	fprintf(stderr, "late calls done\n");
}

static void ending(void)
{
	void *late = dlopen("liblate.so", RTLD_NOW), **call;
	gpu_ptr p;

	if (!late)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(late);
	call = dlsym(late, "late_call");
	CHECK(call);
	begin();
	CHECK(!cuMemAlloc_v2(&p, 1000));
	*call = (void *)late_calls;
}

/* a child of a process that had a context */
static void forked(void)
{
	gpu_module module;
	gpu_ptr p;
	int status;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1001));
	if (!fork()) {
		cuModuleLoadData(&module, "image"); /* it has not noticed the fork yet */
		CHECK(malloc(2002));
		cuModuleLoadData(&module, "image");
		cuMemAlloc_v2(&p, HUGE_SIZE);
		cuMemAlloc_v2(&p, 2002);
		_exit(stand_violations());
	}
	CHECK(wait(&status) > 0 && status == 0);
}

/* the end of a vfork child is not the parent's */
static void vforked(void)
{
	gpu_ptr p;
	int status;
	pid_t child;

	begin();
	child = vfork();
	if (!child)
		_exit(7);
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE) == GPU_ERROR_OUT_OF_MEMORY);
}

/* a thread of the driver may not call the driver */
static void called_back(void *unused)
{
	gpu_ptr p;

	char *volatile own = malloc(3003);

	free(own);
	CHECK(cuMemAlloc_v2(&p, 1001) == GPU_ERROR_NOT_PERMITTED);
	CHECK(cuMemFree_v2(4096) == GPU_ERROR_NOT_PERMITTED);
	CHECK(cuMemAllocAsync(&p, 1002, STREAM) == GPU_ERROR_NOT_PERMITTED);
}

static void callback(void)
{
	gpu_ptr p;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1000) && !cuLaunchHostFunc(STREAM, called_back, NULL));
}

/* left by longjmp from within the driver, and from within a runtime */
static jmp_buf out;

static void leave(void)
{
	stand_inside = NULL;
	longjmp(out, 1);
}

static __attribute__((noinline)) void deep(int depth, bool runtime)
{
	volatile char room[256];
	void *p;
	gpu_ptr q;

	room[0] = 0;
	if (depth)
		deep(depth - 1, runtime);
	else if (runtime)
		cudaMalloc(&p, 1001);
	else
		cuMemAlloc_v2(&q, 1002);
	room[1] = room[0];
}

static void jumps(void)
{
	gpu_ptr p;

	begin();
	for (int runtime = 0; runtime < 2; runtime++) {
		stand_inside = leave;
		if (!setjmp(out)) {
			deep(8, runtime);
			CHECK(!"left");
		}
		CHECK(!cuMemAlloc_v2(&p, 2000 + runtime));
	}
}

/* an allocation of another thread while this one holds the loader's lock: library.c waits for it */
static void in_constructor(void)
{
	gpu_module module;
	gpu_ptr p;

	CHECK(!cuCtxSetCurrent((gpu_context)(uintptr_t)0xc0de));
	CHECK(!cuMemAlloc_v2(&p, 1001) && !cuModuleLoadData(&module, "image"));
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE) == GPU_ERROR_OUT_OF_MEMORY);
}

static void loader(void)
{
	void *late = dlopen("liblate.so", RTLD_NOW),
	     **call = late ? dlsym(late, "late_call") : NULL;

	CHECK(call);
	begin();
	*call = (void *)in_constructor;
	alarm(20);
	CHECK(dlopen("libwaits.so", RTLD_NOW));
	*call = NULL;
}

/* under a seccomp filter the driver is not queried, as that makes system calls */
static void filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &allow};
	gpu_ptr p;
	int asked;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1000));
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	asked = stand_asked();
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE) == GPU_ERROR_OUT_OF_MEMORY);
	usleep(150000);
	CHECK(!cuMemAlloc_v2(&p, 1001));
	CHECK(asked == stand_asked());
}

static void killed(void)
{
	gpu_ptr p;

	begin();
	CHECK(cuMemAlloc_v2(&p, HUGE_SIZE) == GPU_ERROR_OUT_OF_MEMORY);
	raise(SIGKILL);
}

static const char *argument;

/* More runtimes than a wrapper has copies, one after another, each at addresses of its own. */
static void unloading(void)
{
	for (int i = 0; i < 8; i++) {
		void *plugin = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
		int (*use)(void) = plugin ? (int (*)(void))dlsym(plugin, "use") : NULL;

		CHECK(use && use() == 13000 && !dlclose(plugin));
		CHECK(!dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD));
		for (int k = 0; k < 64; k++) /* keeps their addresses from being reused */
			CHECK(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			      MAP_FAILED);
	}
}

static void *look_up(void *handle)
{
	gpu_result (*lookup)(const char *, void **, int, uint64_t, int *) = (gpu_result(*)(
	    const char *, void **, int, uint64_t, int *))dlsym(handle, "cuGetProcAddress_v2");
	void *first, *now;

	CHECK(!lookup("cuMemAlloc", &first, 12000, 0, NULL));
	for (int i = 0; i < 500; i++) {
		CHECK(!lookup("cuMemFree", &now, 12000, 0, NULL));
		CHECK(!lookup("cuMemAlloc", &now, 12000, 0, NULL) && now == first);
		CHECK(dlsym(handle, "cuMemAlloc_v2") == first);
	}
	return first;
}

/* many times, by several threads at once */
static void lookups(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *found;
	pthread_t threads[4];
	gpu_ptr p;

	begin();
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, look_up, handle));
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_join(threads[i], &found));
		CHECK(!((gpu_result(*)(gpu_ptr *, size_t))found)(&p, 1000 + (size_t)i));
	}
}

/* Names that only begin like CUDA's, and CUDA's names in a library that is not CUDA. */
static void names(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD),
	     *decoy = dlopen("libdecoy.so", RTLD_NOW);
	int (*longer)(void), (*dnn)(void *), (*alloc)(void *);
	char *volatile much = malloc(1 << 20); /* a trace that is worth keeping */
	Dl_info info;

	CHECK(driver && decoy && much);
	longer = (int (*)(void))dlsym(driver, "cuMemAlloc_v20");
	dnn = (int (*)(void *))dlsym(decoy, "cudnnCreate");
	alloc = (int (*)(void *))dlsym(decoy, "cuMemAlloc_v2");
	CHECK(longer && longer() == 20);
	CHECK(dladdr(dlsym(driver, "cuGetExportTable"), &info));
	CHECK(strstr(info.dli_fname, "libcuda.so"));
	CHECK(dnn && dnn(decoy) == 1); /* it looks itself up and returns */
	CHECK(alloc && alloc(NULL) == 99);
}

/* the shim uses no heap: between the marks there are only the driver's own blocks */
static void heap(void)
{
	gpu_module module;
	char *volatile mark;
	gpu_ptr p;

	begin();
	mark = malloc(5005);
	for (int i = 0; i < 100; i++) {
		CHECK(!cuMemAlloc_v2(&p, 1000) && !cuMemFree_v2(p));
		CHECK(cuMemAlloc_v2(&p, HUGE_SIZE) == GPU_ERROR_OUT_OF_MEMORY);
		CHECK(!cuMemAllocAsync(&p, 1000, STREAM) && !cuMemFreeAsync(p, STREAM));
		CHECK(!cuModuleLoadData(&module, "image"));
	}
	mark = malloc(5005);
	free(mark);
}

/* no thread of ours */
static void threads(void)
{
	DIR *tasks;
	gpu_ptr p;
	int count = 0;

	begin();
	CHECK(!cuMemAlloc_v2(&p, 1000));
	usleep(150000);
	CHECK(!cuMemAlloc_v2(&p, 1000) && (tasks = opendir("/proc/self/task")));
	for (const struct dirent *e; (e = readdir(tasks));)
		count += e->d_name[0] != '.';
	CHECK(count == 1);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"errnos", errnos}, {"pointers", pointers}, {"early", early}, {"captures", captures},
    {"ending", ending}, {"forked", forked}, {"vforked", vforked}, {"callback", callback},
    {"jumps", jumps}, {"loader", loader}, {"filtered", filtered}, {"killed", killed},
    {"unloading", unloading}, {"lookups", lookups}, {"names", names}, {"heap", heap},
    {"threads", threads}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			argument = argv[2];
			cases[i].run();
			return stand_violations() ? 4 : 0;
		}
	return 2;
}
