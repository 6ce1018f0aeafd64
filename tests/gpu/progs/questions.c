/*
 * questions.c QUESTION - what only a device can answer, a line of JSON each: entries, sizes,
 * capture, modules, pinned, pool, fabric. No expectation is written down here; suite.py shows the
 * answers.
 */
#define _GNU_SOURCE
#include <time.h>

#include "gpu.h"

static long long fell(size_t before)
{
	return (long long)before - (long long)available();
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Does the driver hand out what it exports? A recorder tells versions apart by that. */
static void entries(void)
{
	static const char *const names[][2] = {{"cuMemAlloc", "cuMemAlloc_v2"},
	    {"cuMemFree", "cuMemFree_v2"}, {"cuMemCreate", "cuMemCreate"}, {"cuMemMap", "cuMemMap"},
	    {"cuMemAllocAsync", "cuMemAllocAsync"}, {"cuMemHostAlloc", "cuMemHostAlloc"},
	    {"cuMemAllocManaged", "cuMemAllocManaged"}};
	enum { COUNT = sizeof(names) / sizeof(*names) };
	/* its last argument has a type that the headers of 11 do not know */
	CUresult (*get)(const char *, void **, int, cuuint64_t, void *) = (CUresult(*)(
	    const char *, void **, int, cuuint64_t, void *))driver("cuGetProcAddress_v2");
	unsigned same = 0;
	int version = 0;
	void *handed;

	MUST(cudaDriverGetVersion(&version));
	for (unsigned i = 0; i < COUNT; i++) {
		MUST(get(names[i][0], &handed, 12000, 0, NULL));
		same += handed == driver(names[i][1]);
	}
	printf("{\"driver\": %d, \"asked\": %u, \"handed out as exported\": %u}\n", version, COUNT,
	    same);
}

/* What one request of a size takes of the device, and the average of 64. */
static void sizes(void)
{
	static const size_t asked[] = {
	    1, 512, 64 * KIB, 512 * KIB, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 20 * MIB};
	void *blocks[64];
	long long one;
	size_t before;

	printf("{");
	for (unsigned i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		before = available();
		MUST(cudaMalloc(&blocks[0], asked[i]));
		one = fell(before);
		for (unsigned n = 1; n < 64; n++)
			MUST(cudaMalloc(&blocks[n], asked[i]));
		printf("%s\"%zu\": [%lld, %lld]", i ? ", " : "", asked[i], one, fell(before) / 64);
		for (unsigned n = 0; n < 64; n++)
			MUST(cudaFree(blocks[n]));
	}
	printf("}\n");
}

/* May one ask for the free memory during a capture, and is the capture lost by it? And its price.
 */
static void capture(void)
{
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	enum { ROUNDS = 200 };
	cudaGraph_t graph = NULL;
	cudaStream_t stream;
	size_t left, total;
	double began;
	int asked;

	MUST(cudaStreamCreate(&stream));
	printf("{");
	for (int mode = 0; mode < 3; mode++) {
		MUST(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
		asked = (int)cudaMemGetInfo(&left, &total);
		printf("\"%s\": [%d, %d], ", modes[mode], asked,
		    (int)cudaStreamEndCapture(stream, &graph));
		cudaGetLastError();
		if (graph)
			MUST(cudaGraphDestroy(graph));
		graph = NULL;
	}
	began = now();
	for (int i = 0; i < ROUNDS; i++)
		MUST(cudaMemGetInfo(&left, &total));
	printf("\"ns\": %.0f}\n", (now() - began) / ROUNDS);
}

/* A kernel that does nothing, for the driver to compile. */
static const char kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			     ".visible .entry nothing()\n{\n\tret;\n}\n";

/* What a module, its first launch, and a graph of a thousand launches take, in bytes of the device.
 */
static void modules(void)
{
	long long loaded, launched, instantiated;
	size_t before = available();
	CUgraphExec runnable;
	cudaStream_t stream;
	CUfunction nothing;
	CUmodule module;
	CUgraph graph;

	MUST(cudaStreamCreate(&stream));
	MUST(DRIVER(cuModuleLoadData)(&module, kernel));
	MUST(DRIVER(cuModuleGetFunction)(&nothing, module, "nothing"));
	loaded = fell(before);
	MUST(DRIVER(cuLaunchKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	launched = fell(before) - loaded;
	before = available();
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	for (int i = 0; i < 1000; i++)
		MUST(DRIVER(cuLaunchKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(DRIVER(cuGraphInstantiateWithFlags)(&runnable, graph, 0));
	MUST(cudaGraphLaunch(runnable, stream));
	instantiated = fell(before);
	printf("{\"loading\": %lld, \"first launch\": %lld, \"graph of 1000\": %lld}\n", loaded,
	    launched, instantiated);
}

/* A figure of a file: the number behind `key`, or the first one. */
static long long figure(const char *path, const char *key)
{
	char line[256];
	long long value = -1;
	FILE *f = fopen(path, "r");

	while (f && value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			value = atoll(line + strlen(key));
	if (f)
		fclose(f);
	return value;
}

/* To whom is page-locked memory charged? */
static void pinned(void)
{
	static const char *const where[][2] = {{"/sys/fs/cgroup/memory.current", ""},
	    {"/sys/fs/cgroup/memory/memory.usage_in_bytes", ""}, {"/proc/self/status", "VmRSS:"},
	    {"/proc/self/status", "RssAnon:"}, {"/proc/self/status", "RssFile:"},
	    {"/proc/self/status", "RssShmem:"}, {"/proc/self/status", "VmLck:"},
	    {"/proc/self/status", "VmPin:"}};
	enum { COUNT = sizeof(where) / sizeof(*where) };
	long long before[COUNT];
	void *p;

	MUST(cudaFree(NULL)); /* the context is there */
	for (int i = 0; i < COUNT; i++)
		before[i] = figure(where[i][0], where[i][1]);
	MUST(cudaMallocHost(&p, 512 * MIB));
	memset(p, 1, 512 * MIB);
	printf("{\"bytes\": %zu", 512 * MIB);
	for (int i = 0; i < COUNT; i++)
		printf(", \"%s\": %lld", *where[i][1] ? where[i][1] : where[i][0],
		    (figure(where[i][0], where[i][1]) - before[i]) * (*where[i][1] ? 1024 : 1));
	printf("}\n");
	MUST(cudaFreeHost(p));
}

/* In what steps a pool grows, by requests of 1 MiB, and when memory is back. */
static void pool(void)
{
	void *blocks[64];
	long long step, last = 0, freed;
	cudaMemPool_t default_pool;
	size_t before = available();

	MUST(cudaDeviceGetDefaultMemPool(&default_pool, 0));
	printf("{\"grows by\": [");
	for (int n = 0; n < 64; n++) {
		MUST(cudaMallocAsync(&blocks[n], MIB, NULL));
		step = fell(before) - last;
		if (step)
			printf("%s%lld", last ? ", " : "", step);
		last += step;
	}
	for (int n = 0; n < 64; n++)
		MUST(cudaFreeAsync(blocks[n], NULL));
	freed = fell(before);
	MUST(cudaMemPoolTrimTo(default_pool, 0));
	printf("], \"held\": %lld, \"held after the release\": %lld, \"after trimming\": %lld}\n",
	    last, freed, fell(before));
}

/* The result of asking for memory with a fabric handle, as PyTorch tries first. */
static void fabric(void)
{
	CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .requestedHandleTypes = (CUmemAllocationHandleType)8, /* CU_MEM_HANDLE_TYPE_FABRIC */
	    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemGenericAllocationHandle handle;
	int result;

	MUST(cudaFree(NULL));
	result = (int)DRIVER(cuMemCreate)(&handle, 2 * MIB, &what, 0);
	printf("{\"result\": %d}\n", result);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*answer)(void);
	} questions[] = {{"entries", entries}, {"sizes", sizes}, {"capture", capture},
	    {"modules", modules}, {"pinned", pinned}, {"pool", pool}, {"fabric", fabric}};

	for (unsigned i = 0; argc > 1 && i < sizeof(questions) / sizeof(*questions); i++)
		if (!strcmp(argv[1], questions[i].name)) {
			questions[i].answer();
			return 0;
		}
	return 2;
}
