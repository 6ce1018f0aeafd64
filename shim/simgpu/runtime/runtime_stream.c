/*
 * runtime_stream.c - the runtime's entry points for streams, events, captures and graphs: each
 * calls the driver's counterpart.
 */
#include "simgpu/runtime/runtime.h"

FORWARD(cudaStreamCreate, (gpu_stream * out), cuStreamCreate(out, 0))
FORWARD(cudaStreamCreateWithFlags, (gpu_stream * out, unsigned flags), cuStreamCreate(out, flags))
FORWARD(cudaStreamCreateWithPriority, (gpu_stream * out, unsigned flags, int priority),
    cuStreamCreateWithPriority(out, flags, priority))
FORWARD(cudaStreamDestroy, (gpu_stream stream), cuStreamDestroy_v2(stream))
FORWARD_PTSZ(cudaStreamGetPriority, (gpu_stream stream, int *priority),
    cuStreamGetPriority(stream, priority))
FORWARD_PTSZ(
    cudaStreamGetFlags, (gpu_stream stream, unsigned *flags), cuStreamGetFlags(stream, flags))
FORWARD_PTSZ(
    cudaStreamGetId, (gpu_stream stream, unsigned long long *id), cuStreamGetId(stream, id))
FORWARD(cudaStreamGetDevice, (gpu_stream stream, gpu_device *device), cuCtxGetDevice(device))
FORWARD_PTSZ(cudaStreamWaitEvent, (gpu_stream stream, gpu_object event, unsigned flags),
    cuStreamWaitEvent(stream, event, flags))
FORWARD_PTSZ(cudaStreamAddCallback,
    (gpu_stream stream, void (*call)(gpu_stream, gpu_result, void *), void *data, unsigned flags),
    cuStreamAddCallback(stream, call, data, flags))
FORWARD_PTSZ(cudaLaunchHostFunc, (gpu_stream stream, void (*call)(void *), void *data),
    cuLaunchHostFunc(stream, call, data))
FORWARD_PTSZ(cudaStreamQuery, (gpu_stream stream), cuStreamQuery(stream))
FORWARD_PTSZ(cudaStreamSynchronize, (gpu_stream stream), cuStreamSynchronize(stream))
FORWARD(cudaEventCreate, (gpu_object * out), cuEventCreate(out, 0))
FORWARD(cudaEventCreateWithFlags, (gpu_object * out, unsigned flags), cuEventCreate(out, flags))
FORWARD(cudaEventDestroy, (gpu_object event), cuEventDestroy_v2(event))
FORWARD_PTSZ(cudaEventRecord, (gpu_object event, gpu_stream stream), cuEventRecord(event, stream))
FORWARD_PTSZ(cudaEventRecordWithFlags, (gpu_object event, gpu_stream stream, unsigned flags),
    cuEventRecordWithFlags(event, stream, flags))
FORWARD(cudaEventQuery, (gpu_object event), cuEventQuery(event))
FORWARD(cudaEventSynchronize, (gpu_object event), cuEventSynchronize(event))
FORWARD(cudaEventElapsedTime, (float *ms, gpu_object start, gpu_object end),
    cuEventElapsedTime(ms, start, end))
FORWARD(cudaEventElapsedTime_v2, (float *ms, gpu_object start, gpu_object end),
    cuEventElapsedTime(ms, start, end))
FORWARD(cudaIpcGetEventHandle, (struct gpu_ipc_handle * out, gpu_object event),
    cuIpcGetEventHandle(out, event))
FORWARD(cudaIpcOpenEventHandle, (gpu_object * out, struct gpu_ipc_handle handle),
    cuIpcOpenEventHandle(out, handle))
FORWARD_PTSZ(
    cudaStreamBeginCapture, (gpu_stream stream, int mode), cuStreamBeginCapture_v2(stream, mode))
FORWARD_PTSZ(cudaStreamBeginCaptureToGraph,
    (gpu_stream stream, gpu_graph graph, const gpu_node *after, const void *edges, size_t count,
	int mode),
    cuStreamBeginCaptureToGraph(stream, graph, after, edges, count, mode))
FORWARD_PTSZ(
    cudaStreamEndCapture, (gpu_stream stream, gpu_graph *out), cuStreamEndCapture(stream, out))
FORWARD_PTSZ(
    cudaStreamIsCapturing, (gpu_stream stream, int *status), cuStreamIsCapturing(stream, status))

/* 13 added the edges; before, the plain name returned status and id only. */
FORWARD_PTSZ(cudaStreamGetCaptureInfo,
    (gpu_stream stream, int *status, uint64_t *id, gpu_graph *graph, const gpu_node **after,
	const void **edges, size_t *count),
    CALLER_MAJOR() < 13 ? cuStreamGetCaptureInfo(stream, status, id)
			: cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count))
FORWARD_PTSZ(cudaStreamGetCaptureInfo_v2,
    (gpu_stream stream, int *status, uint64_t *id, gpu_graph *graph, const gpu_node **after,
	size_t *count),
    cuStreamGetCaptureInfo_v2(stream, status, id, graph, after, count))
FORWARD_PTSZ(cudaStreamGetCaptureInfo_v3,
    (gpu_stream stream, int *status, uint64_t *id, gpu_graph *graph, const gpu_node **after,
	const void **edges, size_t *count),
    cuStreamGetCaptureInfo_v3(stream, status, id, graph, after, edges, count))
API_RETURNS(cudaThreadExchangeStreamCaptureMode, (int *mode),
    runtime_end(cuThreadExchangeStreamCaptureMode(mode)))
FORWARD(cudaGraphCreate, (gpu_graph * out, unsigned flags), cuGraphCreate(out, flags))
FORWARD(cudaGraphDestroy, (gpu_graph graph), cuGraphDestroy(graph))
FORWARD(cudaGraphGetNodes, (gpu_graph graph, gpu_node *nodes, size_t *count),
    cuGraphGetNodes(graph, nodes, count))
FORWARD(cudaGraphNodeGetType, (gpu_node node, int *type), cuGraphNodeGetType(node, type))

/* 13 has the edges before the count. */
FORWARD(cudaGraphNodeGetDependencies, (gpu_node node, gpu_node *nodes, void *edges, size_t *count),
    cuGraphNodeGetDependencies(node, nodes, CALLER_MAJOR() < 13 ? edges : count))
FORWARD(cudaGraphAddEmptyNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count),
    cuGraphAddEmptyNode(out, graph, after, count))
FORWARD(cudaGraphAddMemAllocNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count,
	struct gpu_node_alloc *params),
    cuGraphAddMemAllocNode(out, graph, after, count, params))
FORWARD(cudaGraphAddMemFreeNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count, void *address),
    cuGraphAddMemFreeNode(out, graph, after, count, (gpu_ptr)address))

/* Before 12 it also returns the failed node and a text; both stay untouched. */
FORWARD(cudaGraphInstantiate,
    (gpu_object * out, gpu_graph graph, gpu_word flags_or_node, gpu_word log, gpu_word bytes),
    cuGraphInstantiateWithFlags(out, graph, CALLER_MAJOR() >= 12 ? flags_or_node : 0))
FORWARD(cudaGraphAddNode_v2,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, const void *edges, size_t count,
	struct gpu_node_params *params),
    cuGraphAddNode_v2(out, graph, after, edges, count, params))

/* Before 13: without edges. */
FORWARD(cudaGraphAddNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, gpu_word edges_or_count,
	gpu_word count_or_params, gpu_word params),
    CALLER_MAJOR() >= 13 ? cuGraphAddNode_v2(out, graph, after, (const void *)edges_or_count,
			       count_or_params, (struct gpu_node_params *)params)
			 : cuGraphAddNode(out, graph, after, edges_or_count,
			       (struct gpu_node_params *)count_or_params))
FORWARD(cudaGraphInstantiateWithFlags,
    (gpu_object * out, gpu_graph graph, unsigned long long flags),
    cuGraphInstantiateWithFlags(out, graph, flags))
FORWARD_PTSZ(cudaGraphInstantiateWithParams, (gpu_object * out, gpu_graph graph, void *params),
    cuGraphInstantiateWithParams(out, graph, params))
FORWARD_PTSZ(cudaGraphUpload, (gpu_object exec, gpu_stream stream), cuGraphUpload(exec, stream))
FORWARD_PTSZ(cudaGraphLaunch, (gpu_object exec, gpu_stream stream), cuGraphLaunch(exec, stream))
FORWARD(cudaGraphExecDestroy, (gpu_object exec), cuGraphExecDestroy(exec))
FORWARD(cudaGraphDebugDotPrint, (gpu_graph graph, const char *path, unsigned flags),
    cuGraphDebugDotPrint(graph, path, flags))
FORWARD(cudaDeviceGraphMemTrim, (gpu_device device), cuDeviceGraphMemTrim(device))
FORWARD(cudaDeviceGetGraphMemAttribute, (gpu_device device, int attribute, void *value),
    cuDeviceGetGraphMemAttribute(device, attribute, value))
FORWARD(cudaDeviceSetGraphMemAttribute, (gpu_device device, int attribute, void *value),
    cuDeviceSetGraphMemAttribute(device, attribute, value))
