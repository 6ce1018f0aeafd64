/*
 * space_late.c - releases that come after the acquisition that they made possible. A release is
 * written before the call, so another thread's acquisition of the memory is newer; but the clocks
 * of CPUs differ a little. The acquisition has already dropped the block in its way, so its late
 * release must not release the new block.
 */
#include "model/space/space_parts.h"

#define LATE_NS 100000u /* bound on the difference of two clocks */

void space_late_expect(struct spaces *s, uint64_t start, uint64_t end, enum space_late_kind kind)
{
	s->late[s->late_at++ % SPACE_LATE] = (struct space_late){.start = start,
	    .end = end,
	    .until_ns = s->now_ns + LATE_NS,
	    .thread = s->now_thread,
	    .kind = kind,
	    .valid = true};
	s->late_until_ns = s->now_ns + LATE_NS;
}

bool space_late_take(struct spaces *s, const struct event *e, enum space_late_kind kind)
{
	if (e->time_ns > s->late_until_ns)
		return false;
	for (uint32_t n = 1; n <= SPACE_LATE; n++) {
		struct space_late *late = &s->late[(s->late_at - n) % SPACE_LATE];

		if (!late->valid || late->kind != kind || e->time_ns > late->until_ns ||
		    late->thread == e->thread)
			continue;
		if (kind == LATE_MAPPING
			? late->start >= e->address && late->end - e->address <= e->size
			: late->start == e->address) {
			late->valid = false;
			return true;
		}
	}
	return false;
}
