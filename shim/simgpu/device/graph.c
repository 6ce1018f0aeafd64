/*
 * graph.c - see stream.h: graphs, their allocation nodes, and the thread that calls host functions.
 *
 * A graph's allocation has its address from the start and its memory from the first launch on.
 * Later launches reuse the memory until graph memory is trimmed or the graph is destroyed.
 */
#include <pthread.h>
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/device/pool.h"
#include "simgpu/device/stream.h"

static struct {
	uint64_t used, used_high, reserved, reserved_high;
} levels[SIMGPU_DEVICES];

/* All allocation nodes, for trimming. */
static struct tracked {
	struct tracked *next;
	struct node *node;
} * allocations;

struct graph *graph_new(void)
{
	struct graph *graph = object_new(OBJECT_GRAPH, 0, sizeof(*graph));

	if (graph)
		graph->tail = &graph->nodes;
	return graph;
}

static void reserved_add(int device, uint64_t bytes)
{
	levels[device].reserved += bytes;
	if (levels[device].reserved > levels[device].reserved_high)
		levels[device].reserved_high = levels[device].reserved;
}

static void node_free_memory(struct node *node)
{
	if (!node->phys)
		return;
	levels[node->head.device].reserved -= node->phys->bytes;
	phys_free(node->phys);
	node->phys = NULL;
}

void graph_free_block(struct block *block)
{
	struct node *node = block->owner;

	levels[block->device].used -= node->phys->bytes;
	node->block = NULL;
	block_free(block);
}

static void node_destroy(struct node *node)
{
	if (node->type == NODE_ALLOC) {
		if (node->block)
			graph_free_block(node->block);
		node_free_memory(node);
		addresses_release(node->to, node->size);
		for (struct tracked **at = &allocations; *at; at = &(*at)->next)
			if ((*at)->node == node) {
				struct tracked *gone = *at;

				*at = gone->next;
				heap_free(gone, sizeof(*gone));
				break;
			}
	}
	heap_free(node->after, node->after_count * sizeof(*node->after));
	object_free(node, sizeof(*node));
}

/* The program and each instantiation hold a graph; head.device counts the holds. */
static void graph_hold(struct graph *graph)
{
	graph->head.device++;
}

static void graph_release(struct graph *graph)
{
	struct node *next;

	if (graph->head.device-- > 0)
		return;
	for (struct node *node = graph->nodes; node; node = next) {
		next = node->next;
		node_destroy(node);
	}
	object_free(graph, sizeof(*graph));
}

void graph_destroy(struct graph *graph)
{
	if (!graph)
		return;
	graph->head.kind = 0;
	graph_release(graph);
}

struct node *graph_add(
    struct graph *graph, enum node_type type, struct node *const *after, size_t count)
{
	struct node *node = object_new(OBJECT_NODE, 0, sizeof(*node));

	if (!node)
		return NULL;
	if (count) {
		node->after = heap_new(count * sizeof(*node->after));
		if (node->after) {
			memcpy(node->after, after, count * sizeof(*node->after));
			node->after_count = count;
		}
	}
	node->graph = graph;
	node->type = type;
	*graph->tail = node;
	graph->tail = &node->next;
	graph->count++;
	return node;
}

int graph_add_alloc(struct node *node, int device, uint64_t size)
{
	struct tracked *known = heap_new(sizeof(*known));

	node->head.device = device;
	node->size = size;
	node->to = known && size ? addresses_reserve(size, PAGE_BYTES, 0) : 0;
	if (!node->to) {
		heap_free(known, sizeof(*known));
		node->type = NODE_EMPTY;
		return size ? SIM_OUT_OF_MEMORY : SIM_INVALID_VALUE;
	}
	known->node = node;
	known->next = allocations;
	allocations = known;
	return SIM_OK;
}

int graph_instantiate(struct graph *graph, bool frees_at_launch, struct exec **out)
{
	struct exec *exec = object_new(OBJECT_EXEC, 0, sizeof(*exec));

	if (!exec)
		return SIM_OUT_OF_MEMORY;
	exec->graph = graph;
	exec->frees_at_launch = frees_at_launch;
	graph_hold(graph);
	*out = exec;
	return SIM_OK;
}

void exec_destroy(struct exec *exec)
{
	graph_release(exec->graph);
	object_free(exec, sizeof(*exec));
}

static int run_alloc(struct exec *exec, struct node *node)
{
	int device = node->head.device;

	if (node->block && !exec->frees_at_launch)
		return SIM_INVALID_VALUE;
	if (node->block)
		graph_free_block(node->block);
	if (!node->phys) {
		int rc = phys_new(device, node->size, &node->phys);

		if (rc) {
			pool_release_unused(device);
			rc = phys_new(device, node->size, &node->phys);
		}
		if (rc)
			return rc;
		reserved_add(device, node->phys->bytes);
	}
	node->block = block_new(BLOCK_GRAPH, device, node->to, node->size, node->phys, 0);
	if (!node->block)
		return SIM_OUT_OF_MEMORY;
	node->block->owner = node;
	levels[device].used += node->phys->bytes;
	if (levels[device].used > levels[device].used_high)
		levels[device].used_high = levels[device].used;
	return SIM_OK;
}

int exec_launch(struct exec *exec, struct stream *stream)
{
	struct block *block;
	int rc = SIM_OK;

	for (struct node *n = exec->graph->nodes; n && !rc; n = n->next) {
		switch (n->type) {
		case NODE_ALLOC:
			rc = run_alloc(exec, n);
			break;
		case NODE_FREE:
			block = memory_find(n->to);
			if (!block || block->span.start != n->to)
				rc = SIM_INVALID_VALUE;
			else if (block->kind == BLOCK_GRAPH)
				graph_free_block(block);
			else if (block->kind == BLOCK_POOL)
				pool_free(block);
			break;
		case NODE_MEMCPY:
			memory_copy(n->to, n->from, n->size);
			break;
		case NODE_MEMSET:
			memory_fill(n->to, (uint32_t)n->from, n->width, n->size);
			break;
		default:
			break;
		}
	}
	return rc;
}

void graph_trim(int device)
{
	for (struct tracked *k = allocations; k; k = k->next)
		if (k->node->head.device == device && !k->node->block)
			node_free_memory(k->node);
}

uint64_t graph_level(int device, int attribute)
{
	switch (attribute) {
	case 0:
		return levels[device].used;
	case 1:
		return levels[device].used_high;
	case 2:
		return levels[device].reserved;
	default:
		return levels[device].reserved_high;
	}
}

void graph_reset_high(int device, int attribute)
{
	if (attribute == 1)
		levels[device].used_high = levels[device].used;
	if (attribute == 3)
		levels[device].reserved_high = levels[device].reserved;
}

static struct host_item {
	struct host_item *next;
	void (*call)(void *);
	void *data;
} * first, **last = &first;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t host_more = PTHREAD_COND_INITIALIZER, host_done = PTHREAD_COND_INITIALIZER;
static pthread_t host_thread;
static size_t host_pending;
static bool host_running;

static void *host_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&host_lock);
	for (;;) {
		struct host_item *item = first;

		if (!item) {
			pthread_cond_wait(&host_more, &host_lock);
			continue;
		}
		first = item->next;
		if (!first)
			last = &first;
		pthread_mutex_unlock(&host_lock);
		item->call(item->data);
		heap_free(item, sizeof(*item));
		pthread_mutex_lock(&host_lock);
		if (!--host_pending)
			pthread_cond_broadcast(&host_done);
	}
	return NULL;
}

void host_call(void (*call)(void *), void *data)
{
	struct host_item *item = heap_new(sizeof(*item));

	pthread_mutex_lock(&host_lock);
	if (!host_running)
		host_running = !pthread_create(&host_thread, NULL, host_main, NULL);
	if (!item || !host_running) {
		pthread_mutex_unlock(&host_lock);
		heap_free(item, sizeof(*item));
		call(data);
		return;
	}
	item->call = call;
	item->data = data;
	*last = item;
	last = &item->next;
	host_pending++;
	pthread_cond_signal(&host_more);
	pthread_mutex_unlock(&host_lock);
}

void host_wait(void)
{
	pthread_mutex_lock(&host_lock);
	/* a host function that synchronises would wait for itself */
	if (host_running && !pthread_equal(pthread_self(), host_thread))
		while (host_pending)
			pthread_cond_wait(&host_done, &host_lock);
	pthread_mutex_unlock(&host_lock);
}
