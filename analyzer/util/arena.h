/*
 * arena.h - memory that lives as long as its owner: small pieces, freed all at once.
 */
#ifndef ANALYZER_UTIL_ARENA_H
#define ANALYZER_UTIL_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *at, *end;
	size_t bytes; /* taken from the system */
};

/* Zeroed, aligned to 8; NULL when there is no memory. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* A copy with a NUL after it; `text` may hold NULs. */
char *arena_copy(struct arena *arena, const void *text, size_t bytes);
void arena_free(struct arena *arena);

#endif
