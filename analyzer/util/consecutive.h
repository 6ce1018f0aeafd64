/*
 * consecutive.h - a list of numbers most of which are one more than the one before, in as little
 * memory as the others take. Made once, and then only read.
 */
#ifndef ANALYZER_UTIL_CONSECUTIVE_H
#define ANALYZER_UTIL_CONSECUTIVE_H

#include <stddef.h>
#include <stdint.h>

struct consecutive {
	struct consecutive_piece {
		uint32_t from; /* index of its first number; behind the last piece there is none */
		uint32_t number; /* the first */
	} * pieces;
	uint32_t *first; /* the piece of every CONSECUTIVE_STRIDE-th number */
};
#define CONSECUTIVE_STRIDE 1024u

/* 1; 0 where it would save next to nothing, or there is no memory: then there is nothing to be
 * freed. */
int consecutive_make(struct consecutive *c, const uint32_t *numbers, uint32_t count);
void consecutive_fini(struct consecutive *c);

/* `i` is less than the count that it was made of. */
static inline uint32_t consecutive_at(const struct consecutive *c, uint32_t i)
{
	const struct consecutive_piece *p = &c->pieces[c->first[i / CONSECUTIVE_STRIDE]];

	while (p[1].from <= i)
		p++;
	return p->number + (i - p->from);
}

#endif
