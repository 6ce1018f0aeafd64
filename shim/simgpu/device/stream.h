/*
 * stream.h - streams, events, captures and graphs. Nothing takes time: work on a stream is done
 * when the call returns, except host functions, which a thread of our own calls in order. Pre: the
 * model's lock is held, unless a function says otherwise.
 */
#ifndef SIMGPU_STREAM_H
#define SIMGPU_STREAM_H

#include "simgpu/device/state.h"

struct node;

struct graph {
	struct object head;
	struct node *nodes, **tail; /* in the order of their addition */
	size_t count;
};

enum node_type { /* numbers of CUgraphNodeType */
	NODE_KERNEL = 0,
	NODE_MEMCPY = 1,
	NODE_MEMSET = 2,
	NODE_HOST = 3,
	NODE_EMPTY = 5,
	NODE_ALLOC = 10,
	NODE_FREE = 11,
};

struct node {
	struct object head;
	struct node *next;
	struct graph *graph;
	enum node_type type;
	struct node **after;
	size_t after_count;
	uint64_t to, from, size; /* MEMCPY; MEMSET: value in `from`; ALLOC, FREE: the address */
	unsigned width;
	void (*call)(void *); /* HOST */
	void *data;
	/* ALLOC: allocated at the first launch */
	struct phys *phys;
	struct block *block; /* NULL: not allocated now */
};

struct exec {
	struct object head;
	struct graph *graph; /* held */
	bool frees_at_launch;
};

struct capture {
	uint64_t id;
	struct graph *graph;
	struct stream *origin;
	int mode, thread, joined; /* streams that take part */
	int failed; /* result of its end */
	struct capture *next;
};

struct stream {
	struct object head;
	struct stream *next;
	struct context *context;
	uint64_t id;
	unsigned flags;
	int priority;
	struct capture *capture;
	struct node **last; /* while capturing: predecessors of the next node */
	size_t last_count;
};

struct event {
	struct object head;
	unsigned flags;
	uint64_t when; /* ns; 0: not recorded */
	struct capture *capture;
	struct node **last;
	size_t last_count;
};

int stream_new(unsigned flags, int priority, struct stream **out);
int stream_destroy(struct stream *stream);
/* Finds the stream of a handle; 0, 1 and 2 are the current context's default streams. */
int stream_get(void *handle, struct stream **out);

int event_new(unsigned flags, struct event **out);
void event_destroy(struct event *event);
int event_record(struct event *event, struct stream *stream);
int stream_wait(struct stream *stream, struct event *event);

/* Returns SIM_OK, or the result of a call that a running capture forbids; that capture becomes
 * invalid. */
int capture_forbids(void);
int capture_begin(struct stream *stream, int mode, struct graph *graph);
int capture_end(struct stream *stream, struct graph **out);
/* Adds a node on a capturing stream; NULL: no memory. */
struct node *capture_node(struct stream *stream, enum node_type type);

struct graph *graph_new(void);
void graph_destroy(struct graph *graph);
struct node *graph_add(
    struct graph *graph, enum node_type type, struct node *const *after, size_t count);
int graph_add_alloc(struct node *node, int device, uint64_t size);
int graph_instantiate(struct graph *graph, bool frees_at_launch, struct exec **out);
void exec_destroy(struct exec *exec);
int exec_launch(struct exec *exec, struct stream *stream);
/* Frees a graph's allocation outside the graph. */
void graph_free_block(struct block *block);
void graph_trim(int device);
uint64_t graph_level(int device, int attribute); /* numbers of CUgraphMem_attribute */
void graph_reset_high(int device, int attribute);

/* Queues a host function for our thread. Pre: the model's lock is not held. */
void host_call(void (*call)(void *), void *data);
/* Waits until all queued host functions have returned. Pre: the model's lock is not held. */
void host_wait(void);

#endif
