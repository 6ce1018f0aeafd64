/*
 * temporary.h - the bytes of temporary blocks, by space and stack. This is the one definition of
 * the word: a block is temporary if its thread releases it before it acquires another one in the
 * same space, as heaptrack and memray have it. What a block became by realloc() is the same block
 * still.
 *
 * Filled while a model reads the events. Memory grows with stacks and threads.
 */
#ifndef ANALYZER_MODEL_TEMPORARY_H
#define ANALYZER_MODEL_TEMPORARY_H

#include "model/space/space.h"
#include "util/map.h"
#include "util/vec.h"

struct temporary {
	uint64_t until_ns; /* later releases do not count; set by the caller */
	VEC(uint64_t) of[SPACES_MAX + 1]; /* by space, 0 the host, then by stack: bytes */
	bool found; /* the last event released a temporary block */
	struct map last; /* by thread and space: the newest block, or 0 after its release */
};

/* The options of a model that fills it. */
struct model_options temporary_options(struct temporary *t);
/* The same for a model whose witness of other spaces is the caller's own: note one of their blocks.
 */
int temporary_space_note(struct temporary *t, const struct space *sp, const struct event *e);
/* For a model with `sums`, which has no witness of the host: note one of its events, after it. 0 or
 * -ENOMEM. */
int temporary_note(struct temporary *t, const struct event *e);
static inline uint64_t temporary_bytes(const struct temporary *t, uint32_t space, uint32_t stack)
{
	return space <= SPACES_MAX && stack < t->of[space].count ? t->of[space].items[stack] : 0;
}
void temporary_fini(struct temporary *t);

#endif
