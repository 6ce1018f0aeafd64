/*
 * stream.c - see stream.h: streams, events, captures.
 */
#include "simgpu/device/stream.h"

#include <string.h>
#include <time.h>

#include "base/sys.h"
#include "simgpu/device/heap.h"

static struct stream *streams;
static struct stream defaults[SIMGPU_DEVICES];
static struct capture *captures;
static uint64_t stream_ids = 8, capture_ids;

static struct node **nodes_copy(struct node *const *from, size_t count)
{
	struct node **to = count ? heap_new(count * sizeof(*to)) : NULL;

	if (to)
		memcpy(to, from, count * sizeof(*to));
	return to;
}

static void last_set(
    struct node ***last, size_t *last_count, struct node *const *from, size_t count)
{
	struct node **copy = nodes_copy(from, count);

	heap_free(*last, *last_count * sizeof(**last));
	*last = copy;
	*last_count = copy ? count : 0;
}

static void last_merge(struct stream *stream, struct node *const *from, size_t count)
{
	size_t have = stream->last_count, n = have;
	struct node **all = heap_new((have + count + 1) * sizeof(*all));

	if (!all)
		return;
	if (have)
		memcpy(all, stream->last, have * sizeof(*all));
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < have && all[k] != from[i])
			k++;
		if (k == have)
			all[n++] = from[i];
	}
	last_set(&stream->last, &stream->last_count, all, n);
	heap_free(all, (have + count + 1) * sizeof(*all));
}

int stream_new(unsigned flags, int priority, struct stream **out)
{
	struct context *context;
	struct stream *stream;
	int rc = context_need(&context);

	if (rc)
		return rc;
	stream = object_new(OBJECT_STREAM, context->head.device, sizeof(*stream));
	if (!stream)
		return SIM_OUT_OF_MEMORY;
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = ++stream_ids;
	stream->next = streams;
	streams = stream;
	*out = stream;
	return SIM_OK;
}

int stream_destroy(struct stream *stream)
{
	if (stream >= defaults && stream < defaults + SIMGPU_DEVICES)
		return SIM_INVALID_HANDLE;
	if (stream->capture)
		stream->capture->failed = SIM_CAPTURE_INVALIDATED;
	for (struct stream **at = &streams; *at; at = &(*at)->next)
		if (*at == stream) {
			*at = stream->next;
			break;
		}
	heap_free(stream->last, stream->last_count * sizeof(*stream->last));
	object_free(stream, sizeof(*stream));
	return SIM_OK;
}

int stream_get(void *handle, struct stream **out)
{
	struct context *context;
	int rc = context_need(&context);

	if (rc)
		return rc;
	if ((uintptr_t)handle <= 2) {
		struct stream *stream = &defaults[context->head.device];

		stream->head.kind = OBJECT_STREAM;
		stream->head.device = context->head.device;
		stream->context = context;
		stream->id = 1;
		*out = stream;
		return SIM_OK;
	}
	*out = object_get(handle, OBJECT_STREAM);
	return *out ? SIM_OK : SIM_INVALID_HANDLE;
}

int event_new(unsigned flags, struct event **out)
{
	struct context *context;
	struct event *event;
	int rc = context_need(&context);

	if (rc)
		return rc;
	event = object_new(OBJECT_EVENT, context->head.device, sizeof(*event));
	if (!event)
		return SIM_OUT_OF_MEMORY;
	event->flags = flags;
	*out = event;
	return SIM_OK;
}

void event_destroy(struct event *event)
{
	heap_free(event->last, event->last_count * sizeof(*event->last));
	object_free(event, sizeof(*event));
}

int event_record(struct event *event, struct stream *stream)
{
	if (stream->capture) {
		event->capture = stream->capture;
		last_set(&event->last, &event->last_count, stream->last, stream->last_count);
		return SIM_OK;
	}
	event->capture = NULL;
	event->when = sys_clock_ns(CLOCK_MONOTONIC);
	return SIM_OK;
}

int stream_wait(struct stream *stream, struct event *event)
{
	bool under_way = false;

	for (struct capture *c = captures; c; c = c->next)
		under_way = under_way || c == event->capture;
	if (!under_way)
		return SIM_OK;
	if (stream->capture && stream->capture != event->capture)
		return SIM_CAPTURE_UNMATCHED;
	if (!stream->capture) {
		stream->capture = event->capture;
		stream->capture->joined++;
	}
	last_merge(stream, event->last, event->last_count);
	return SIM_OK;
}

int capture_forbids(void)
{
	int rc = SIM_OK;

	if (thread_state.capture_mode == 2)
		return SIM_OK;
	for (struct capture *c = captures; c; c = c->next) {
		bool mine = c->thread == sys_gettid();

		/* 0: global, forbids all threads; 1: its own thread; 2: none */
		if (c->mode == 2 || (!mine && (c->mode == 1 || thread_state.capture_mode == 1)))
			continue;
		c->failed = SIM_CAPTURE_INVALIDATED;
		rc = SIM_CAPTURE_UNSUPPORTED;
	}
	return rc;
}

int capture_begin(struct stream *stream, int mode, struct graph *graph)
{
	struct capture *capture;

	if (stream >= defaults && stream < defaults + SIMGPU_DEVICES)
		return SIM_CAPTURE_UNSUPPORTED;
	if (stream->capture || mode < 0 || mode > 2)
		return stream->capture ? SIM_ILLEGAL_STATE : SIM_INVALID_VALUE;
	capture = heap_new(sizeof(*capture));
	if (!capture)
		return SIM_OUT_OF_MEMORY;
	capture->graph = graph ? graph : graph_new();
	capture->id = ++capture_ids;
	capture->origin = stream;
	capture->mode = mode;
	capture->thread = sys_gettid();
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	last_set(&stream->last, &stream->last_count, NULL, 0);
	return SIM_OK;
}

int capture_end(struct stream *stream, struct graph **out)
{
	struct capture *capture = stream->capture;
	int rc;

	*out = NULL;
	if (!capture)
		return SIM_ILLEGAL_STATE;
	if (capture->origin != stream)
		return SIM_CAPTURE_UNMATCHED;
	if (capture->mode != 2 && capture->thread != sys_gettid())
		return SIM_CAPTURE_WRONG_THREAD;
	rc = capture->failed;
	/* a stream whose last node has no successor was never joined back */
	for (struct stream *s = streams; s; s = s->next) {
		if (s->capture != capture)
			continue;
		for (size_t i = 0; s != stream && !rc && i < s->last_count; i++) {
			bool followed = false;

			for (struct node *n = capture->graph->nodes; n; n = n->next)
				for (size_t k = 0; k < n->after_count; k++)
					followed = followed || n->after[k] == s->last[i];
			for (size_t k = 0; k < stream->last_count; k++)
				followed = followed || stream->last[k] == s->last[i];
			if (!followed)
				rc = SIM_CAPTURE_UNJOINED;
		}
	}
	for (struct stream *s = streams; s; s = s->next)
		if (s->capture == capture) {
			s->capture = NULL;
			last_set(&s->last, &s->last_count, NULL, 0);
		}
	for (struct capture **at = &captures; *at; at = &(*at)->next)
		if (*at == capture) {
			*at = capture->next;
			break;
		}
	if (rc)
		graph_destroy(capture->graph);
	else
		*out = capture->graph;
	heap_free(capture, sizeof(*capture));
	return rc;
}

struct node *capture_node(struct stream *stream, enum node_type type)
{
	struct node *node =
	    graph_add(stream->capture->graph, type, stream->last, stream->last_count);

	if (node)
		last_set(&stream->last, &stream->last_count, &node, 1);
	return node;
}
