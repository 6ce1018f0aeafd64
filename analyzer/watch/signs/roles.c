#include "watch/signs/roles.h"

#include <string.h>

#include "verdict/forecast/growth.h"

static enum role role_of(struct framework_frames *frames, const struct model *m, uint32_t stack)
{
	return frames && stack ? (enum role)framework_stack(frames, &m->feed, stack).role
			       : ROLE_NONE;
}

void roles_sum(struct framework_frames *frames, const struct model *m, uint64_t bytes[ROLE_COUNT])
{
	memset(bytes, 0, ROLE_COUNT * sizeof(*bytes));
	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		uint64_t live, count;

		if (!model_counts(m, s->kind))
			continue;
		model_stack_stats(m, s, AT_END, &live, &count);
		if (live)
			bytes[role_of(frames, m, s->stack)] += live;
	}
}

uint64_t roles_retained(struct framework_frames *frames, const struct model *m,
    const struct callsites *all, uint64_t now_ns)
{
	double bytes = 0;

	for (uint32_t i = 0; i < all->count; i++) {
		const struct callsite *c = &all->list[i];

		if (growth_is_of(c))
			bytes += growth_kept(c, now_ns);
		else if (role_is_store(role_of(frames, m, c->stack)))
			bytes += (double)c->facts.live_bytes;
	}
	return bytes > 0 ? (uint64_t)bytes : 0;
}
