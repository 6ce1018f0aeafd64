/*
 * heap.c - see heap.h. Free lists by powers of two, carved from chunks; larger pieces are mappings.
 * Chunks are never freed, as the tables of a process are small.
 */
#include "simgpu/device/heap.h"

#include <pthread.h>
#include <string.h>

#include "base/sys.h"

enum { SMALLEST = 5, LARGEST = 15, CHUNK = 256 * 1024 }; /* 32 bytes to 32 KiB */

struct piece {
	struct piece *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *lists[LARGEST + 1];
static char *chunk;
static size_t chunk_left;

static unsigned class_of(size_t bytes)
{
	unsigned class = SMALLEST;

	while (((size_t)1 << class) < bytes)
		class ++;
	return class;
}

void *heap_new(size_t bytes)
{
	unsigned class;
	size_t size;
	void *p = NULL;

	if (bytes > (size_t)1 << LARGEST)
		return sys_pages(bytes);
	class = class_of(bytes);
	size = (size_t)1 << class;
	pthread_mutex_lock(&lock);
	if (lists[class]) {
		p = lists[class];
		lists[class] = lists[class]->next;
	} else {
		if (chunk_left < size) {
			char *more = sys_pages(CHUNK);

			if (more) {
				chunk = more;
				chunk_left = CHUNK;
			}
		}
		if (chunk_left >= size) {
			p = chunk;
			chunk += size;
			chunk_left -= size;
		}
	}
	pthread_mutex_unlock(&lock);
	return p ? memset(p, 0, size) : NULL;
}

void heap_free(void *p, size_t bytes)
{
	struct piece *piece = p;
	unsigned class;

	if (!p)
		return;
	if (bytes > (size_t)1 << LARGEST) {
		sys_pages_free(p, bytes);
		return;
	}
	class = class_of(bytes);
	pthread_mutex_lock(&lock);
	piece->next = lists[class];
	lists[class] = piece;
	pthread_mutex_unlock(&lock);
}

void heap_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}
