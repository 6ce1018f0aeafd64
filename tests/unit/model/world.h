/* world.h - a script, the model that has read all of it, and its call sites at the end: for the
 * tests of histories. */
#ifndef TESTS_UNIT_MODEL_WORLD_H
#define TESTS_UNIT_MODEL_WORLD_H

#include "model/unit.h"

#include "model/callsite/callsite.h"
#include "model/script.h"

struct world {
	struct script *s; /* the test's to make */
	uint64_t padding; /* of its allocator */
	struct model *m;
	struct callsites *p;
};

static inline void look(struct world *w)
{
	struct feed feed = script_feed(w->s);
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &w->m, &err), 0);
	w->m->options.padding = w->padding;
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(w->m, &e, &err), 0);
	model_finish(w->m);
	model_check(w->m);
	assert_int_equal(callsites_new(w->m, AT_END, &w->p, &err), 0);
}

static inline const struct callsite *at(const struct world *w, uint32_t stack)
{
	return &w->p->list[callsites_of_stack(w->p, STACK_STATS_HEAP, stack)];
}

static inline void end(struct world *w)
{
	callsites_free(w->p);
	model_free(w->m);
	script_free(w->s);
}

#endif
