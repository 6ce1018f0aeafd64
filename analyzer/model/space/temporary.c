/* temporary.c - see temporary.h. */
#include "model/space/temporary.h"

#include <errno.h>

#include "util/num.h"

static int on_event(struct temporary *t, uint32_t space, const struct event *e)
{
	const struct block *b = e->block;
	uint32_t stack;
	uint64_t *last;

	t->found = false;
	if (!b || e->kind == EV_UNFREE)
		return 0;
	last = map_put(&t->last, (uint64_t)e->thread << 9 | space);
	if (!last)
		return -ENOMEM;
	if (e->kind == EV_ALLOC) {
		*last = b->serial + 1;
		return 0;
	}
	if (*last != b->serial + 1 || (e->flags & EVENT_REALLOC))
		return 0;
	*last = 0;
	t->found = true;
	stack = stack_table_id(b->stack);
	if (e->time_ns > t->until_ns)
		return 0;
	if (vec_reach(&t->of[space], stack + 1u))
		return -ENOMEM;
	t->of[space].items[stack] = num_sum(t->of[space].items[stack], block_bytes(b));
	return 0;
}

int temporary_note(struct temporary *t, const struct event *e)
{
	t->found = false;
	return e->kind == EV_ALLOC || e->kind == EV_FREE ? on_event(t, 0, e) : 0;
}

static int on_block(void *arg, const struct event *e)
{
	return on_event(arg, 0, e);
}

int temporary_space_note(struct temporary *t, const struct space *sp, const struct event *e)
{
	return on_event(t, sp->index + 1, e);
}

static int on_space_block(void *arg, const struct space *sp, const struct event *e)
{
	return temporary_space_note(arg, sp, e);
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
