#include "util/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_CHUNK 65536u

struct arena_chunk {
	struct arena_chunk *next;
	char data[];
};

void *arena_alloc(struct arena *arena, size_t bytes)
{
	struct arena_chunk *chunk;
	size_t room;
	void *p;

	if (bytes > PTRDIFF_MAX - ARENA_CHUNK)
		return NULL;
	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes > (size_t)(arena->end - arena->at)) {
		/* A large piece gets its own chunk and leaves the rest of the current chunk. */
		room = bytes > ARENA_CHUNK / 4 ? bytes : ARENA_CHUNK - sizeof(*chunk);
		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->bytes += sizeof(*chunk) + room;
		if (room == bytes && room > ARENA_CHUNK / 4)
			return chunk->data;
		arena->at = chunk->data;
		arena->end = chunk->data + room;
	}
	p = arena->at;
	arena->at += bytes;
	return p;
}

char *arena_copy(struct arena *arena, const void *text, size_t bytes)
{
	char *p = bytes < SIZE_MAX ? arena_alloc(arena, bytes + 1) : NULL;

	if (p && bytes)
		memcpy(p, text, bytes);
	return p;
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*arena = (struct arena){0};
}
