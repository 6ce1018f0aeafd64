/* point.c - where a replay failed and how long memory lasts, for host.c and device.c. */
#include "replay/replay.h"

#include <string.h>

#include "model/callsite/blame.h"
#include "util/num.h"

void replay_stack(struct replay_point *p, const struct feed *feed, uint32_t stack)
{
	struct blame_context context = {.malloc_owner = feed->info(feed->self, "malloc.owner"),
	    .interpreter = feed_interpreter(feed)};
	int frame;

	p->stack = stack;
	p->words.count = feed->symbols(feed->self, stack, &p->words.symbols);
	frame = blame_frame(&context, p->words.symbols, p->words.count);
	p->frame = frame >= 0 ? (size_t)frame : p->words.count ? p->words.count - 1 : 0;
}

uint64_t replay_lasts(const struct model *m, uint64_t time_ns, uint64_t more)
{
	uint64_t end = timeline_live(&m->timeline, time_ns),
		 middle = timeline_live(&m->timeline, time_ns / 2), grown = num_less(end, middle);

	if (!grown)
		return UINT64_MAX;
	return (uint64_t)((double)more / (double)grown * (double)(time_ns - time_ns / 2));
}

void replay_fini(struct replay_result *r)
{
	plan_facts_fini(&r->plan);
	arena_free(&r->arena);
}
