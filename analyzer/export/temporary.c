/* temporary.c - see temporary.h. */
#include "export/temporary.h"

#include <errno.h>

#include "util/num.h"

/* The space and its serial name a block. Serials have room: there are no 2^55 events. */
static uint64_t name_of(uint32_t space, const struct block *b)
{
	return (b->serial << 9 | space) + 1;
}

static int on_event(struct temporary *t, uint32_t space, const struct event *e)
{
	const struct block *b = e->block;
	uint32_t stack;
	uint64_t *last;

	if (!b || e->kind == EV_UNFREE)
		return 0;
	last = map_put(&t->last, e->thread);
	if (!last)
		return -ENOMEM;
	if (e->kind == EV_ALLOC) {
		*last = name_of(space, b);
		return 0;
	}
	if (*last != name_of(space, b) || (e->flags & EVENT_REALLOC))
		return 0;
	*last = 0;
	stack = stack_table_id(b->stack);
	if (e->time_ns > t->until_ns)
		return 0;
	if (vec_reach(&t->of[space], stack + 1u))
		return -ENOMEM;
	t->of[space].items[stack] = num_sum(t->of[space].items[stack], block_bytes(b));
	return 0;
}

static int on_block(void *arg, const struct event *e)
{
	return on_event(arg, 0, e);
}

static int on_space_block(void *arg, const struct space *sp, const struct event *e)
{
	return on_event(arg, sp->index + 1, e);
}

struct model_options temporary_options(struct temporary *t)
{
	map_seed();
	return (struct model_options){
	    .witness = {t, on_block}, .space_witness = {t, on_space_block}};
}

void temporary_fini(struct temporary *t)
{
	for (uint32_t i = 0; i <= SPACES_MAX; i++)
		vec_free(&t->of[i]);
	map_free(&t->last);
}
