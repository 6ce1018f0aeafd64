/* Streams, events, captures and graphs, by driver and runtime. 256 MiB, a context of 16. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void events(void)
{
	gpu_object a, b, c;
	gpu_stream stream;
	float ms = -1;

	SAME(cuStreamCreate(&stream, 1), 0);
	SAME(cuEventCreate(&a, 0), 0);
	SAME(cuEventCreate(&b, 0), 0);
	SAME(cuEventCreate(&c, 2), 0);
	SAME(cuEventElapsedTime(&ms, a, b), 400); /* not recorded */
	SAME(cuEventRecord(a, stream), 0);
	usleep(2000);
	SAME(cuEventRecord(b, stream), 0);
	SAME(cuEventSynchronize(b), 0);
	SAME(cuEventElapsedTime(&ms, a, b), 0);
	CHECK(ms >= 2 && ms < 2000);
	SAME(cuEventRecord(c, stream), 0);
	SAME(cuEventElapsedTime(&ms, a, c), 400); /* it keeps no time */
	SAME(cuEventDestroy_v2(a), 0);
	SAME(cuEventDestroy_v2(a), 400);
	SAME(cuEventDestroy_v2(b), 0);
	SAME(cuEventDestroy_v2(c), 0);
	SAME(cuStreamDestroy_v2(stream), 0);
	SAME(cuStreamQuery(stream), 400);
	SAME(cuStreamDestroy_v2(NULL), 400);
}

static int order[3], ordered;

static void note(void *data)
{
	usleep(1000);
	order[ordered++] = *(int *)data;
}

static void note_back(gpu_stream stream, gpu_result result, void *data)
{
	note(data);
}

static void host_functions(void)
{
	int one = 1, two = 2, three = 3;
	gpu_stream stream;

	SAME(cuStreamCreate(&stream, 1), 0);
	SAME(cuLaunchHostFunc(stream, note, &one), 0);
	SAME(cuStreamAddCallback(stream, note_back, &two, 0), 0);
	SAME(cuLaunchHostFunc(stream, note, &three), 0);
	SAME(cuStreamSynchronize(stream), 0);
	SAME(ordered, 3);
	CHECK(order[0] == 1 && order[1] == 2 && order[2] == 3);
	SAME(cuStreamDestroy_v2(stream), 0);
}

static void *ask(void *out)
{
	gpu_context context;
	gpu_ptr p;

	cuDevicePrimaryCtxRetain(&context, 0);
	cuCtxSetCurrent(context);
	*(int *)out = cuMemAlloc_v2(&p, 4 * MIB);
	if (!*(int *)out)
		cuMemFree_v2(p);
	cuDevicePrimaryCtxRelease_v2(0);
	return NULL;
}

static void captures(void)
{
	gpu_stream stream, side;
	gpu_object event;
	gpu_graph graph;
	gpu_ptr p;
	pthread_t thread;
	size_t n;
	int status = 9, mode = 2, answer = -1;

	SAME(cuStreamCreate(&stream, 1), 0);
	SAME(cuStreamCreate(&side, 1), 0);
	SAME(cuEventCreate(&event, 2), 0);
	SAME(cuStreamBeginCapture_v2(NULL, 0), 900);

	/* a capture that other streams join, and are joined back */
	SAME(cuStreamBeginCapture_v2(stream, 0), 0);
	SAME(cuStreamBeginCapture_v2(stream, 0), 401);
	SAME(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), 0);
	SAME(cuEventRecord(event, stream), 0);
	SAME(cuStreamWaitEvent(side, event, 0), 0);
	SAME(cuStreamIsCapturing(side, &status), 0);
	SAME(status, 1);
	SAME(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, side, NULL, NULL), 0);
	SAME(cuStreamEndCapture(side, &graph), 903);
	SAME(cuEventRecord(event, side), 0);
	SAME(cuStreamWaitEvent(stream, event, 0), 0);
	SAME(cuStreamEndCapture(stream, &graph), 0);
	n = 0;
	SAME(cuGraphGetNodes(graph, NULL, &n), 0);
	SAME(n, 2);
	SAME(cuGraphDestroy(graph), 0);
	SAME(cuGraphDestroy(graph), 1);

	/* a stream that is not joined back */
	SAME(cuStreamBeginCapture_v2(stream, 1), 0);
	SAME(cuEventRecord(event, stream), 0);
	SAME(cuStreamWaitEvent(side, event, 0), 0);
	SAME(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, side, NULL, NULL), 0);
	SAME(cuStreamEndCapture(stream, &graph), 904);
	SAME(cuStreamIsCapturing(side, &status), 0);
	SAME(status, 0);

	/* calls that a capture forbids, by thread */
	SAME(cuStreamBeginCapture_v2(stream, 1), 0);
	pthread_create(&thread, NULL, ask, &answer);
	pthread_join(thread, NULL);
	SAME(answer, 0);
	SAME(cuMemGetInfo_v2(&n, &n), 900);
	SAME(cuStreamIsCapturing(stream, &status), 0);
	SAME(status, 2);
	SAME(cuStreamEndCapture(stream, &graph), 901);
	CHECK(!graph);
	SAME(cuStreamBeginCapture_v2(stream, 0), 0);
	pthread_create(&thread, NULL, ask, &answer);
	pthread_join(thread, NULL);
	SAME(answer, 900);
	SAME(cuStreamEndCapture(stream, &graph), 901);
	SAME(cuStreamBeginCapture_v2(stream, 0), 0);
	SAME(cuThreadExchangeStreamCaptureMode(&mode), 0);
	SAME(cuMemAlloc_v2(&p, 4 * MIB), 0);
	SAME(cuThreadExchangeStreamCaptureMode(&mode), 0);
	SAME(mode, 2);
	SAME(cuStreamEndCapture(stream, &graph), 0);
	SAME(cuGraphDestroy(graph), 0);
	SAME(cuMemFree_v2(p), 0);
	SAME(cuEventDestroy_v2(event), 0);
	SAME(cuStreamDestroy_v2(side), 0);
	SAME(cuStreamDestroy_v2(stream), 0);
}

static void replays(void)
{
	gpu_stream stream;
	gpu_graph graph;
	gpu_object exec;
	gpu_ptr p;
	int value = 0;

	SAME(cuMemAlloc_v2(&p, 64), 0);
	SAME(cuStreamCreate(&stream, 1), 0);
	SAME(cuStreamBeginCapture_v2(stream, 0), 0);
	SAME(cuMemsetD32Async(p, 5, 1, stream), 0);
	SAME(cuMemcpyAsync(p + 8, p, 4, stream), 0);
	SAME(cuStreamEndCapture(stream, &graph), 0);
	SAME(cuMemcpyDtoH_v2(&value, p + 8, 4), 0);
	SAME(value, 0); /* so far only captured */
	SAME(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	SAME(cuGraphDestroy(graph), 0); /* the instance stays */
	SAME(cuGraphLaunch(exec, stream), 0);
	SAME(cuMemcpyDtoH_v2(&value, p + 8, 4), 0);
	SAME(value, 5);
	SAME(cuGraphExecDestroy(exec), 0);
	SAME(cuGraphLaunch(exec, stream), 1);
	SAME(cuStreamDestroy_v2(stream), 0);
	SAME(cuMemFree_v2(p), 0);
}

static uint64_t graph_bytes(int attribute)
{
	uint64_t value = 0;

	SAME(cuDeviceGetGraphMemAttribute(0, attribute, &value), 0);
	return value;
}

static void graph_memory(void)
{
	struct gpu_node_alloc params = {
	    .pool = {.type = 1, .location = {GPU_LOCATION_DEVICE, 0}}, .size = 100 * MIB};
	gpu_graph graph;
	gpu_node node, last;
	gpu_object exec;
	gpu_stream stream;
	gpu_ptr captured;
	size_t before = level();

	SAME(cuGraphCreate(&graph, 0), 0);
	SAME(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), 0);
	CHECK(params.address);
	SAME(level(), before); /* an address only */
	SAME(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	SAME(cuGraphLaunch(exec, NULL), 0);
	SAME(before - level(), 100 * MIB);
	SAME(graph_bytes(GPU_GRAPH_USED_CURRENT), 100 * MIB);
	SAME(cuMemcpyHtoD_v2(params.address, "abc", 4), 0);
	SAME(cuGraphLaunch(exec, NULL), 1); /* it has not been freed */
	SAME(cuMemFreeAsync(params.address, NULL), 0);
	SAME(graph_bytes(GPU_GRAPH_USED_CURRENT), 0);
	SAME(before - level(), 100 * MIB); /* kept for the next launch */
	SAME(cuGraphLaunch(exec, NULL), 0);
	SAME(cuDeviceGraphMemTrim(0), 0);
	SAME(before - level(), 100 * MIB); /* in use */
	SAME(cuMemFree_v2(params.address), 0);
	SAME(cuDeviceGraphMemTrim(0), 0);
	SAME(level(), before);
	SAME(graph_bytes(GPU_GRAPH_RESERVED_HIGH), 100 * MIB);
	SAME(cuGraphExecDestroy(exec), 0);
	SAME(cuGraphDestroy(graph), 0);

	/* captured, and freed within */
	SAME(cuStreamCreate(&stream, 1), 0);
	SAME(cuStreamBeginCapture_v2(stream, 0), 0);
	SAME(cuMemAllocAsync(&captured, 10 * MIB, stream), 0);
	SAME(cuMemFreeAsync(captured, stream), 0);
	SAME(cuStreamEndCapture(stream, &graph), 0);
	SAME(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	SAME(cuGraphLaunch(exec, stream), 0);
	SAME(cuGraphLaunch(exec, stream), 0);
	SAME(graph_bytes(GPU_GRAPH_USED_CURRENT), 0);
	SAME(before - level(), 10 * MIB);
	SAME(cuGraphExecDestroy(exec), 0);
	SAME(cuGraphDestroy(graph), 0);
	SAME(level(), before);

	/* no room at the launch */
	params.size = 300 * MIB;
	SAME(cuGraphCreate(&graph, 0), 0);
	SAME(cuGraphAddMemAllocNode(&last, graph, NULL, 0, &params), 0);
	SAME(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	SAME(cuGraphLaunch(exec, stream), 2);
	SAME(cuGraphExecDestroy(exec), 0);
	SAME(cuGraphDestroy(graph), 0);
	SAME(cuStreamDestroy_v2(stream), 0);
	SAME(level(), before);
}

int main(void)
{
	up();
	events();
	host_functions();
	captures();
	replays();
	graph_memory();
	return done();
}
