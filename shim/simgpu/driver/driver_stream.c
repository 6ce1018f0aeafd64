/*
 * driver_stream.c - the driver's entry points for streams, events, captures and graphs.
 */
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/driver/driver.h"

API(cuStreamCreateWithPriority, (gpu_stream * out, unsigned flags, int priority))
{
	struct stream *stream;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!out || flags > 1)
		return driver_end(SIM_INVALID_VALUE);
	rc = stream_new(flags, priority < -5 ? -5 : priority > 0 ? 0 : priority, &stream);
	if (!rc)
		*out = stream;
	return driver_end(rc);
}

API_RETURNS(cuStreamCreate, (gpu_stream * out, unsigned flags),
    self_cuStreamCreateWithPriority(out, flags, 0))

API(cuStreamDestroy_v2, (gpu_stream handle))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	return rc ? rc : driver_end(stream_destroy(stream));
}

#define STREAM_GET(symbol, type, field)                                                            \
	API_PTSZ(symbol, (gpu_stream handle, type * out))                                          \
	{                                                                                          \
		struct stream *stream;                                                             \
		int rc = driver_begin_stream(handle, &stream);                                     \
                                                                                                   \
		if (rc)                                                                            \
			return rc;                                                                 \
		if (out)                                                                           \
			*out = stream->field;                                                      \
		return driver_end(out ? SIM_OK : SIM_INVALID_VALUE);                               \
	}
STREAM_GET(cuStreamGetPriority, int, priority)
STREAM_GET(cuStreamGetFlags, unsigned, flags)
STREAM_GET(cuStreamGetId, unsigned long long, id)
STREAM_GET(cuStreamGetCtx, gpu_context, context)

/* A capture does not survive a query of its stream. */
static int refuse_capturing(struct stream *stream)
{
	if (!stream->capture)
		return SIM_OK;
	stream->capture->failed = SIM_CAPTURE_INVALIDATED;
	return SIM_CAPTURE_UNSUPPORTED;
}

API_PTSZ(cuStreamQuery, (gpu_stream handle))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	return rc ? rc : driver_end(refuse_capturing(stream));
}

API_PTSZ(cuStreamSynchronize, (gpu_stream handle))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	rc = refuse_capturing(stream);
	return rc ? driver_end(rc) : driver_end_synchronised(stream->head.device);
}

static int call(gpu_stream handle, void (*function)(void *), void *data)
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (stream->capture)
		return driver_end_captured(
		    stream, &(struct node){.type = NODE_HOST, .call = function, .data = data});
	model_unlock();
	host_call(function, data);
	return SIM_OK;
}

API_PTSZ_RETURNS(cuLaunchHostFunc, (gpu_stream stream, void (*function)(void *), void *data),
    function ? call(stream, function, data) : SIM_INVALID_VALUE)

struct callback {
	void (*call)(gpu_stream, gpu_result, void *);
	gpu_stream stream;
	void *data;
};

static void run_callback(void *data)
{
	struct callback *c = data;

	c->call(c->stream, SIM_OK, c->data);
	heap_free(c, sizeof(*c));
}

API_PTSZ(cuStreamAddCallback, (gpu_stream stream, void (*function)(gpu_stream, gpu_result, void *),
				  void *data, unsigned flags))
{
	struct callback *c = heap_new(sizeof(*c));

	if (!c || !function) {
		heap_free(c, sizeof(*c));
		return SIM_INVALID_VALUE;
	}
	*c = (struct callback){function, stream, data};
	return call(stream, run_callback, c);
}

API_PTSZ(cuStreamWaitEvent, (gpu_stream handle, gpu_object value, unsigned flags))
{
	struct event *event;
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	event = object_get(value, OBJECT_EVENT);
	return driver_end(event ? stream_wait(stream, event) : SIM_INVALID_HANDLE);
}

API(cuEventCreate, (gpu_object * out, unsigned flags))
{
	struct event *event;
	int rc = driver_begin();

	if (rc)
		return rc;
	rc = out ? event_new(flags, &event) : SIM_INVALID_VALUE;
	if (!rc)
		*out = event;
	return driver_end(rc);
}

API(cuEventDestroy_v2, (gpu_object value))
{
	int rc;
	struct event *event = driver_begin_object(value, OBJECT_EVENT, &rc);

	if (!event)
		return rc;
	event_destroy(event);
	return driver_end(SIM_OK);
}

API_PTSZ(cuEventRecord, (gpu_object value, gpu_stream handle))
{
	struct event *event;
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	event = object_get(value, OBJECT_EVENT);
	return driver_end(event ? event_record(event, stream) : SIM_INVALID_HANDLE);
}

API_PTSZ_RETURNS(cuEventRecordWithFlags, (gpu_object event, gpu_stream stream, unsigned flags),
    self_cuEventRecord(event, stream))

API(cuEventQuery, (gpu_object value))
{
	int rc;
	struct event *event = driver_begin_object(value, OBJECT_EVENT, &rc);

	if (!event)
		return rc;
	return driver_end(event->capture ? SIM_CAPTURE_UNSUPPORTED : capture_forbids());
}

API(cuEventSynchronize, (gpu_object value))
{
	int rc;
	struct event *event = driver_begin_object(value, OBJECT_EVENT, &rc);

	if (!event)
		return rc;
	return event->capture ? driver_end(SIM_CAPTURE_UNSUPPORTED)
			      : driver_end_synchronised(event->head.device);
}

API(cuEventElapsedTime, (float *ms, gpu_object from, gpu_object to))
{
	int rc;
	struct event *start = driver_begin_object(from, OBJECT_EVENT, &rc), *end;

	if (!start)
		return rc;
	end = object_get(to, OBJECT_EVENT);
	/* 2: created without timing */
	if (!ms || !end || !start->when || !end->when || (start->flags | end->flags) & 2)
		return driver_end(ms ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE);
	*ms = (float)((double)(int64_t)(end->when - start->when) / 1e6);
	return driver_end(SIM_OK);
}

API_RETURNS(cuEventElapsedTime_v2, (float *ms, gpu_object from, gpu_object to),
    self_cuEventElapsedTime(ms, from, to))

API(cuIpcGetEventHandle, (struct gpu_ipc_handle * out, gpu_object value))
{
	int rc;
	struct event *event = driver_begin_object(value, OBJECT_EVENT, &rc);

	if (!event)
		return rc;
	if (out)
		memset(out, 0x45, sizeof(*out));
	return driver_end(out ? SIM_OK : SIM_INVALID_VALUE);
}

/* An event of another process has always happened. */
API_RETURNS(cuIpcOpenEventHandle, (gpu_object * out, struct gpu_ipc_handle handle),
    handle.reserved[0] == 0x45 ? self_cuEventCreate(out, 2) : SIM_INVALID_VALUE)

API_PTSZ(cuStreamBeginCapture_v2, (gpu_stream handle, int mode))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	return rc ? rc : driver_end(capture_begin(stream, mode, NULL));
}

API_PTSZ(cuStreamBeginCaptureToGraph, (gpu_stream handle, gpu_graph value, const gpu_node *after,
					  const void *edges, size_t count, int mode))
{
	struct graph *graph = object_get(value, OBJECT_GRAPH);
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	return driver_end(graph ? capture_begin(stream, mode, graph) : SIM_INVALID_VALUE);
}

API_PTSZ(cuStreamEndCapture, (gpu_stream handle, gpu_graph *out))
{
	struct stream *stream;
	struct graph *graph;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	rc = out ? capture_end(stream, &graph) : SIM_INVALID_VALUE;
	if (out)
		*out = rc ? NULL : graph;
	return driver_end(rc);
}

static int status_of(const struct stream *stream)
{
	return !stream->capture ? 0 : stream->capture->failed ? 2 : 1;
}

API_PTSZ(cuStreamIsCapturing, (gpu_stream handle, int *status))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (status)
		*status = status_of(stream);
	return driver_end(status ? SIM_OK : SIM_INVALID_VALUE);
}

API_PTSZ(cuStreamGetCaptureInfo_v3, (gpu_stream handle, int *status, uint64_t *id, gpu_graph *graph,
					const gpu_node **after, const void **edges, size_t *count))
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (!status)
		return driver_end(SIM_INVALID_VALUE);
	*status = status_of(stream);
	if (stream->capture) {
		if (id)
			*id = stream->capture->id;
		if (graph)
			*graph = stream->capture->graph;
		if (after)
			*after = (const gpu_node *)stream->last;
		if (edges)
			*edges = NULL;
		if (count)
			*count = stream->last_count;
	}
	return driver_end(SIM_OK);
}

API_PTSZ_RETURNS(cuStreamGetCaptureInfo_v2,
    (gpu_stream handle, int *status, uint64_t *id, gpu_graph *graph, const gpu_node **after,
	size_t *count),
    self_cuStreamGetCaptureInfo_v3(handle, status, id, graph, after, NULL, count))
API_PTSZ_RETURNS(cuStreamGetCaptureInfo, (gpu_stream handle, int *status, uint64_t *id),
    self_cuStreamGetCaptureInfo_v3(handle, status, id, NULL, NULL, NULL, NULL))

API(cuThreadExchangeStreamCaptureMode, (int *mode))
{
	int before = thread_state.capture_mode;

	if (!mode || *mode < 0 || *mode > 2)
		return SIM_INVALID_VALUE;
	thread_state.capture_mode = *mode;
	*mode = before;
	return SIM_OK;
}

API(cuGraphCreate, (gpu_graph * out, unsigned flags))
{
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	*out = graph_new();
	return driver_end(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

API(cuGraphDestroy, (gpu_graph value))
{
	int rc;
	struct graph *graph = driver_begin_object(value, OBJECT_GRAPH, &rc);

	if (!graph)
		return rc;
	graph_destroy(graph);
	return driver_end(SIM_OK);
}

/* Adds a node to a graph. The model is locked on SIM_OK only. */
static int add_node(gpu_node *out, gpu_graph value, const gpu_node *after, size_t count,
    enum node_type type, struct node **made)
{
	int rc;
	struct graph *graph = driver_begin_object(value, OBJECT_GRAPH, &rc);

	if (!graph)
		return rc;
	if (count && !after)
		return driver_end(SIM_INVALID_VALUE);
	*made = graph_add(graph, type, (struct node *const *)after, count);
	if (!*made)
		return driver_end(SIM_OUT_OF_MEMORY);
	if (out)
		*out = *made;
	return SIM_OK;
}

API(cuGraphAddEmptyNode, (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count))
{
	struct node *node;
	int rc = add_node(out, graph, after, count, NODE_EMPTY, &node);

	return rc ? rc : driver_end(SIM_OK);
}

API(cuGraphAddMemAllocNode, (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count,
				struct gpu_node_alloc *params))
{
	struct node *node;
	int device, rc;

	if (!params)
		return SIM_INVALID_VALUE;
	rc = add_node(out, graph, after, count, NODE_ALLOC, &node);
	if (rc)
		return rc;
	device = device_of(params->pool.location.id);
	rc = device < 0 ? SIM_INVALID_DEVICE : graph_add_alloc(node, device, params->size);
	if (rc)
		node->type = NODE_EMPTY;
	else
		params->address = node->to;
	return driver_end(rc);
}

API(cuGraphAddMemFreeNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count, gpu_ptr address))
{
	struct node *node;
	int rc = add_node(out, graph, after, count, NODE_FREE, &node);

	if (rc)
		return rc;
	node->to = address;
	return driver_end(SIM_OK);
}

API(cuGraphAddNode_v2, (gpu_node * out, gpu_graph graph, const gpu_node *after, const void *edges,
			   size_t count, struct gpu_node_params *params))
{
	struct node *node;
	int rc;

	if (!params)
		return SIM_INVALID_VALUE;
	if (params->type == GPU_NODE_MEM_ALLOC)
		return self_cuGraphAddMemAllocNode(out, graph, after, count, &params->of.alloc);
	if (params->type == GPU_NODE_MEM_FREE)
		return self_cuGraphAddMemFreeNode(out, graph, after, count, params->of.free);
	rc = add_node(out, graph, after, count, NODE_EMPTY, &node);
	return rc ? rc : driver_end(SIM_OK);
}

API_RETURNS(cuGraphAddNode_v3,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, const void *edges, size_t count,
	struct gpu_node_params *params),
    self_cuGraphAddNode_v2(out, graph, after, edges, count, params))
API_RETURNS(cuGraphAddNode,
    (gpu_node * out, gpu_graph graph, const gpu_node *after, size_t count,
	struct gpu_node_params *params),
    self_cuGraphAddNode_v2(out, graph, after, NULL, count, params))

/* Writes at most *count of the nodes; *count becomes their number. */
static void list_nodes(struct node *const *from, size_t have, gpu_node *nodes, size_t *count)
{
	if (nodes)
		for (size_t i = 0; i < *count; i++)
			nodes[i] = i < have ? from[i] : NULL;
	if (!nodes || *count > have)
		*count = have;
}

API(cuGraphGetNodes, (gpu_graph value, gpu_node *nodes, size_t *count))
{
	size_t i = 0;
	int rc;
	struct graph *graph = driver_begin_object(value, OBJECT_GRAPH, &rc);

	if (!graph)
		return rc;
	if (!count)
		return driver_end(SIM_INVALID_VALUE);
	for (struct node *n = graph->nodes; nodes && n && i < *count; n = n->next)
		nodes[i++] = n;
	if (!nodes || *count > graph->count)
		*count = graph->count;
	return driver_end(SIM_OK);
}

API(cuGraphNodeGetType, (gpu_node value, int *type))
{
	struct node *node = object_get(value, OBJECT_NODE);

	if (!node || !type)
		return SIM_INVALID_VALUE;
	*type = node->type;
	return SIM_OK;
}

API(cuGraphNodeGetDependencies, (gpu_node value, gpu_node *nodes, size_t *count))
{
	int rc;
	struct node *node = driver_begin_object(value, OBJECT_NODE, &rc);

	if (!node)
		return rc;
	if (!count)
		return driver_end(SIM_INVALID_VALUE);
	list_nodes(node->after, node->after_count, nodes, count);
	return driver_end(SIM_OK);
}

API_RETURNS(cuGraphNodeGetDependencies_v2,
    (gpu_node node, gpu_node *nodes, void *edges, size_t *count),
    self_cuGraphNodeGetDependencies(node, nodes, count))

static int instantiate(gpu_object *out, gpu_graph value, unsigned long long flags)
{
	int rc;
	struct graph *graph = driver_begin_object(value, OBJECT_GRAPH, &rc);
	struct exec *exec;

	if (!graph)
		return rc;
	rc = out ? graph_instantiate(graph, flags & 1, &exec) : SIM_INVALID_VALUE;
	if (!rc)
		*out = exec;
	return driver_end(rc);
}

API_RETURNS(cuGraphInstantiateWithFlags,
    (gpu_object * out, gpu_graph graph, unsigned long long flags), instantiate(out, graph, flags))
API_RETURNS(cuGraphInstantiate,
    (gpu_object * out, gpu_graph graph, gpu_node *where, char *log, size_t bytes),
    instantiate(out, graph, 0))
API_RETURNS(cuGraphInstantiate_v2,
    (gpu_object * out, gpu_graph graph, gpu_node *where, char *log, size_t bytes),
    instantiate(out, graph, 0))
API_PTSZ_RETURNS(cuGraphInstantiateWithParams, (gpu_object * out, gpu_graph graph, void *params),
    instantiate(out, graph, params ? *(unsigned long long *)params : 0))

API(cuGraphExecDestroy, (gpu_object value))
{
	int rc;
	struct exec *exec = driver_begin_object(value, OBJECT_EXEC, &rc);

	if (!exec)
		return rc;
	exec_destroy(exec);
	return driver_end(SIM_OK);
}

API_PTSZ_RETURNS(cuGraphUpload, (gpu_object exec, gpu_stream stream),
    object_get(exec, OBJECT_EXEC) ? SIM_OK : SIM_INVALID_VALUE)

API_PTSZ(cuGraphLaunch, (gpu_object value, gpu_stream handle))
{
	struct exec *exec = object_get(value, OBJECT_EXEC);
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc || !exec)
		return rc ? rc : driver_end(SIM_INVALID_VALUE);
	if (stream->capture)
		return driver_end_captured(stream, &(struct node){.type = NODE_EMPTY});
	rc = driver_end(exec_launch(exec, stream));
	/* without the lock, as a host function may call anything but CUDA */
	for (struct node *n = exec->graph->nodes; n && !rc; n = n->next)
		if (n->type == NODE_HOST)
			host_call(n->call, n->data);
	return rc;
}

API_RETURNS(cuGraphDebugDotPrint, (gpu_graph graph, const char *path, unsigned flags),
    object_get(graph, OBJECT_GRAPH) ? SIM_NOT_SUPPORTED : SIM_INVALID_VALUE)

API(cuDeviceGraphMemTrim, (gpu_device ordinal))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	graph_trim(device);
	return driver_end(SIM_OK);
}

API(cuDeviceGetGraphMemAttribute, (gpu_device ordinal, int attribute, void *value))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (!value || attribute < 0 || attribute > 3)
		return driver_end(SIM_INVALID_VALUE);
	*(uint64_t *)value = graph_level(device, attribute);
	return driver_end(SIM_OK);
}

API(cuDeviceSetGraphMemAttribute, (gpu_device ordinal, int attribute, void *value))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (!value || (attribute != 1 && attribute != 3))
		return driver_end(SIM_INVALID_VALUE);
	graph_reset_high(device, attribute);
	return driver_end(SIM_OK);
}
