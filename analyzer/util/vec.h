/*
 * vec.h - growing arrays: `VEC(struct x) list = {0};`. Callers read the fields directly. Items move
 * when it grows. On -ENOMEM the vector is unchanged.
 */
#ifndef ANALYZER_UTIL_VEC_H
#define ANALYZER_UTIL_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}

/* Make room for `need` items of `size` bytes. 0 or -ENOMEM. */
int vec_grow(void **items, size_t *capacity, size_t need, size_t size);

#define vec_reserve(v, need)                                                                       \
	((size_t)(need) <= (v)->capacity                                                           \
		? 0                                                                                \
		: vec_grow((void **)&(v)->items, &(v)->capacity, (need), sizeof(*(v)->items)))

/* Appends an item, which is evaluated after the vector has grown. 0 or -ENOMEM. */
#define vec_push(v, ...)                                                                           \
	(vec_reserve((v), (v)->count + 1) ? -ENOMEM : ((v)->items[(v)->count++] = (__VA_ARGS__), 0))

/* Extend it to at least `need` items; new ones are zeroed. 0 or -ENOMEM. */
int vec_extend(void **items, size_t *count, size_t *capacity, size_t need, size_t size);

#define vec_reach(v, need)                                                                         \
	((size_t)(need) <= (v)->count ? 0                                                          \
				      : vec_extend((void **)&(v)->items, &(v)->count,              \
					    &(v)->capacity, (need), sizeof(*(v)->items)))

#define vec_free(v)                                                                                \
	do {                                                                                       \
		free((v)->items);                                                                  \
		(v)->items = NULL;                                                                 \
		(v)->count = (v)->capacity = 0;                                                    \
	} while (0)

#endif
