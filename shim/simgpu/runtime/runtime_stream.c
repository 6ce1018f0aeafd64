/*
 * runtime_stream.c - the runtime's entry points for streams, events, captures and graphs: each
 * calls the driver's counterpart.
 */
#include "simgpu/runtime/runtime.h"

#define FORWARD(call)                                                                              \
	do {                                                                                       \
		int rc_ = runtime_enter();                                                         \
		return runtime_end(rc_ ? rc_ : (call));                                            \
	} while (0)

API(cudaStreamCreate, (gpu_stream * out))
{
	FORWARD(cuStreamCreate(out, 0));
}

API(cudaStreamCreateWithFlags, (gpu_stream * out, unsigned flags))
{
	FORWARD(cuStreamCreate(out, flags));
}

API(cudaStreamCreateWithPriority, (gpu_stream * out, unsigned flags, int priority))
{
	FORWARD(cuStreamCreateWithPriority(out, flags, priority));
}

API(cudaStreamDestroy, (gpu_stream stream))
{
	FORWARD(cuStreamDestroy_v2(stream));
}

API_PTSZ(cudaStreamGetPriority, (gpu_stream stream, int *priority))
{
	FORWARD(cuStreamGetPriority(stream, priority));
}

API_PTSZ(cudaStreamGetFlags, (gpu_stream stream, unsigned *flags))
{
	FORWARD(cuStreamGetFlags(stream, flags));
}

API_PTSZ(cudaStreamGetId, (gpu_stream stream, unsigned long long *id))
{
	FORWARD(cuStreamGetId(stream, id));
}

API(cudaStreamGetDevice, (gpu_stream stream, gpu_device *device))
{
	FORWARD(cuCtxGetDevice(device));
}

API_PTSZ(cudaStreamWaitEvent, (gpu_stream stream, gpu_object event, unsigned flags))
{
	FORWARD(cuStreamWaitEvent(stream, event, flags));
}

API_PTSZ(cudaStreamAddCallback,
    (gpu_stream stream, void (*call)(gpu_stream, gpu_result, void *), void *data, unsigned flags))
{
	FORWARD(cuStreamAddCallback(stream, call, data, flags));
}

API_PTSZ(cudaLaunchHostFunc, (gpu_stream stream, void (*call)(void *), void *data))
{
	FORWARD(cuLaunchHostFunc(stream, call, data));
}

API_PTSZ(cudaStreamQuery, (gpu_stream stream))
{
	FORWARD(cuStreamQuery(stream));
}

API_PTSZ(cudaStreamSynchronize, (gpu_stream stream))
{
	FORWARD(cuStreamSynchronize(stream));
}

API(cudaEventCreate, (gpu_object * out))
{
	FORWARD(cuEventCreate(out, 0));
}

API(cudaEventCreateWithFlags, (gpu_object * out, unsigned flags))
{
	FORWARD(cuEventCreate(out, flags));
}

API(cudaEventDestroy, (gpu_object event))
{
	FORWARD(cuEventDestroy_v2(event));
}

API_PTSZ(cudaEventRecord, (gpu_object event, gpu_stream stream))
{
	FORWARD(cuEventRecord(event, stream));
}

API_PTSZ(cudaEventRecordWithFlags, (gpu_object event, gpu_stream stream, unsigned flags))
{
	FORWARD(cuEventRecordWithFlags(event, stream, flags));
}

API(cudaEventQuery, (gpu_object event))
{
	FORWARD(cuEventQuery(event));
}

API(cudaEventSynchronize, (gpu_object event))
{
	FORWARD(cuEventSynchronize(event));
}

API(cudaEventElapsedTime, (float *ms, gpu_object start, gpu_object end))
{
	FORWARD(cuEventElapsedTime(ms, start, end));
}

API(cudaEventElapsedTime_v2, (float *ms, gpu_object start, gpu_object end))
{
	FORWARD(cuEventElapsedTime(ms, start, end));
}

API(cudaIpcGetEventHandle, (struct gpu_ipc_handle * out, gpu_object event))
{
	FORWARD(cuIpcGetEventHandle(out, event));
}

API(cudaIpcOpenEventHandle, (gpu_object * out, struct gpu_ipc_handle handle))
{
	FORWARD(cuIpcOpenEventHandle(out, handle));
}

API_PTSZ(cudaStreamBeginCapture, (gpu_stream stream, int mode))
{
	FORWARD(cuStreamBeginCapture_v2(stream, mode));
}

API_PTSZ(cudaStreamBeginCaptureToGraph, (gpu_stream stream, gpu_graph graph, const gpu_node *after,
					    const void *edges, size_t count, int mode))
{
	FORWARD(cuStreamBeginCaptureToGraph(stream, graph, after, edges, count, mode));
}

API_PTSZ(cudaStreamEndCapture, (gpu_stream stream, gpu_graph *out))
{
	FORWARD(cuStreamEndCapture(stream, out));
}

API_PTSZ(cudaStreamIsCapturing, (gpu_stream stream, int *status))
{
	FORWARD(cuStreamIsCapturing(stream, status));
}

/* 13 added the edges; before, the plain name returned status and id only. */
API_PTSZ(cudaStreamGetCaptureInfo, (gpu_stream stream, int *status, uint64_t *id, gpu_graph *graph,
				       const gpu_node **after, const void **edges, size_t *count))
{
	if (CALLER_MAJOR() < 13)
		FORWARD(cuStreamGetCaptureInfo(stream, status, id));
	FORWARD(cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count));
}

API_PTSZ(cudaStreamGetCaptureInfo_v2, (gpu_stream stream, int *status, uint64_t *id,
					  gpu_graph *graph, const gpu_node **after, size_t *count))
{
	FORWARD(cuStreamGetCaptureInfo_v2(stream, status, id, graph, after, count));
}

API_PTSZ(
    cudaStreamGetCaptureInfo_v3, (gpu_stream stream, int *status, uint64_t *id, gpu_graph *graph,
				     const gpu_node **after, const void **edges, size_t *count))
{
	FORWARD(cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count));
}

API(cudaThreadExchangeStreamCaptureMode, (int *mode))
{
	return runtime_end(cuThreadExchangeStreamCaptureMode(mode));
}

API(cudaGraphCreate, (gpu_graph * out, unsigned flags))
{
	FORWARD(cuGraphCreate(out, flags));
}

API(cudaGraphDestroy, (gpu_graph graph))
{
	FORWARD(cuGraphDestroy(graph));
}

API(cudaGraphGetNodes, (gpu_graph graph, gpu_node *nodes, size_t *count))
{
	FORWARD(cuGraphGetNodes(graph, nodes, count));
}

API(cudaGraphNodeGetType, (gpu_node node, int *type))
{
	FORWARD(cuGraphNodeGetType(node, type));
}

/* 13 has the edges before the count. */
API(cudaGraphNodeGetDependencies, (gpu_node node, gpu_node *nodes, void *edges, size_t *count))
{
	size_t *n = CALLER_MAJOR() < 13 ? edges : count;

	FORWARD(cuGraphNodeGetDependencies(node, nodes, n));
}

API(cudaGraphAddEmptyNode, (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count))
{
	FORWARD(cuGraphAddEmptyNode(out, graph, after, count));
}

API(cudaGraphAddMemAllocNode, (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count,
				  struct gpu_node_alloc *params))
{
	FORWARD(cuGraphAddMemAllocNode(out, graph, after, count, params));
}

API(cudaGraphAddMemFreeNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count, void *address))
{
	FORWARD(cuGraphAddMemFreeNode(out, graph, after, count, (gpu_ptr)address));
}

/* Before 12 it also returns the failed node and a text; both stay untouched. */
API(cudaGraphInstantiate,
    (gpu_object * out, gpu_graph graph, gpu_word flags_or_node, gpu_word log, gpu_word bytes))
{
	FORWARD(cuGraphInstantiateWithFlags(out, graph, CALLER_MAJOR() >= 12 ? flags_or_node : 0));
}

API(cudaGraphAddNode_v2, (gpu_node * out, gpu_graph graph, const gpu_node *after, const void *edges,
			     size_t count, struct gpu_node_params *params))
{
	FORWARD(cuGraphAddNode_v2(out, graph, after, edges, count, params));
}

/* Before 13: without edges. */
API(cudaGraphAddNode, (gpu_node * out, gpu_graph graph, const gpu_node *after,
			  gpu_word edges_or_count, gpu_word count_or_params, gpu_word params))
{
	if (CALLER_MAJOR() >= 13)
		FORWARD(cuGraphAddNode_v2(out, graph, after, (const void *)edges_or_count,
		    count_or_params, (struct gpu_node_params *)params));
	FORWARD(cuGraphAddNode(
	    out, graph, after, edges_or_count, (struct gpu_node_params *)count_or_params));
}

API(cudaGraphInstantiateWithFlags, (gpu_object * out, gpu_graph graph, unsigned long long flags))
{
	FORWARD(cuGraphInstantiateWithFlags(out, graph, flags));
}

API_PTSZ(cudaGraphInstantiateWithParams, (gpu_object * out, gpu_graph graph, void *params))
{
	FORWARD(cuGraphInstantiateWithParams(out, graph, params));
}

API_PTSZ(cudaGraphUpload, (gpu_object exec, gpu_stream stream))
{
	FORWARD(cuGraphUpload(exec, stream));
}

API_PTSZ(cudaGraphLaunch, (gpu_object exec, gpu_stream stream))
{
	FORWARD(cuGraphLaunch(exec, stream));
}

API(cudaGraphExecDestroy, (gpu_object exec))
{
	FORWARD(cuGraphExecDestroy(exec));
}

API(cudaGraphDebugDotPrint, (gpu_graph graph, const char *path, unsigned flags))
{
	FORWARD(cuGraphDebugDotPrint(graph, path, flags));
}

API(cudaDeviceGraphMemTrim, (gpu_device device))
{
	FORWARD(cuDeviceGraphMemTrim(device));
}

API(cudaDeviceGetGraphMemAttribute, (gpu_device device, int attribute, void *value))
{
	FORWARD(cuDeviceGetGraphMemAttribute(device, attribute, value));
}

API(cudaDeviceSetGraphMemAttribute, (gpu_device device, int attribute, void *value))
{
	FORWARD(cuDeviceSetGraphMemAttribute(device, attribute, value));
}
