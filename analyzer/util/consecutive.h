/*
 * consecutive.h - a compact, read-only list of numbers, most of which are one more than the number
 * before them: it stores only the others.
 */
#ifndef ANALYZER_UTIL_CONSECUTIVE_H
#define ANALYZER_UTIL_CONSECUTIVE_H

#include <stddef.h>
#include <stdint.h>

struct consecutive {
	struct consecutive_piece {
		uint32_t from; /* index of its first number; a sentinel follows the last piece */
		uint32_t number; /* the first number */
	} * pieces;
	uint32_t *first; /* the piece of every CONSECUTIVE_STRIDE-th index */
};
#define CONSECUTIVE_STRIDE 1024u

/* 1: made; 0: it would save too little, or there is no memory, and nothing needs to be freed. */
int consecutive_init(struct consecutive *c, const uint32_t *numbers, uint32_t count);
void consecutive_fini(struct consecutive *c);

/* The number at index `i`, which must be less than the count. */
static inline uint32_t consecutive_at(const struct consecutive *c, uint32_t i)
{
	const struct consecutive_piece *p = &c->pieces[c->first[i / CONSECUTIVE_STRIDE]];

	while (p[1].from <= i)
		p++;
	return p->number + (i - p->from);
}

#endif
