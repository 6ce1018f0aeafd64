/* read.h - a feed's model, read to its end. */
#ifndef TESTS_UNIT_MODEL_READ_H
#define TESTS_UNIT_MODEL_READ_H

#include "model/unit.h"

#include "model/model.h"

static inline struct model *read_all(struct feed feed)
{
	struct err err = {""};
	struct model *m;
	struct event e;

	assert_int_equal(model_new(feed, &m, &err), 0);
	assert_int_equal(feed.rewind(feed.self, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	model_check(m);
	return m;
}

/* Find a stack's statistics, also after the model is finished. NULL: none. */
static inline struct stack_stats *find_stack(
    const struct model *m, uint32_t stack, enum stack_stats_kind kind)
{
	for (size_t i = 0; i < m->stacks.count; i++) {
		struct stack_stats *s = stack_table_number(&m->stacks, i);

		if (s->stack == stack && s->kind == kind)
			return s;
	}
	return NULL;
}

#endif
