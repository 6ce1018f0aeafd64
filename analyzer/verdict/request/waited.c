#include "verdict/request/waited.h"

#include <errno.h>
#include <string.h>

#include "model/request/waiting.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/judge/decide.h"

/* Join the waiting stack and the other thread's, as if the one had called the other. */
static int join_stacks(
    struct verdict_result *r, const struct feed *feed, const struct waiting *waiting)
{
	static const struct symbol between = {
	    .function = "(in a thread that worked for it)", .known = true};
	struct stack_view *stack = &r->verdict.blame.stack;
	const struct symbol *outer;
	size_t count = feed->symbols(feed->self, waiting->stack, &outer);
	struct symbol *all = arena_alloc(&r->arena, (count + 1 + stack->count) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	memcpy(all, outer, count * sizeof(*all));
	all[count] = between;
	memcpy(all + count + 1, stack->symbols, stack->count * sizeof(*all));
	*stack = (struct stack_view){all, count + 1 + stack->count};
	return 0;
}

int waited_read(
    struct verdict_result *r, struct feed feed, const struct failure *refused, struct err *err)
{
	struct verdict *v = &r->verdict;
	uint32_t callsite = r->ranking.count ? r->ranking.list[0].finding.blame : CALLSITE_NONE;
	struct waiting waiting;
	int rc;

	if (!v->blame.function || callsite == CALLSITE_NONE ||
	    !waiting_possible(&feed, r->callsites, callsite))
		return 0;
	/* A frame with a known role is more specific than the waiting line. */
	if (r->frameworks.frames && v->blame.stack.count &&
	    framework_frame(r->frameworks.frames, &v->blame.stack.symbols[v->blame.frame]).role !=
		ROLE_NONE)
		return 0;
	rc = waiting_read(feed, r->callsites, callsite, refused, &waiting, err);
	if (rc || !waiting.stack)
		return rc;
	if (join_stacks(r, &feed, &waiting))
		return err_set(err, -ENOMEM, "no memory for the verdict");
	decide_blame(r, waiting.frame);
	decide_fact(v, FACT_LIBRARY_THREADS, waiting.share);
	return 0;
}
