/*
 * arena.h - allocates small pieces of memory that are freed all at once.
 */
#ifndef ANALYZER_UTIL_ARENA_H
#define ANALYZER_UTIL_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	char *at, *end;
	size_t bytes; /* allocated from the system */
};

/* Return zeroed memory, aligned to 8; NULL: no memory. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* Copy the bytes, which may hold NULs, and add a NUL. NULL: no memory. */
char *arena_copy(struct arena *arena, const void *text, size_t bytes);
void arena_free(struct arena *arena);

#endif
