#include "verdict/request/stages.h"

#include <string.h>

void stages_init(struct stages *s, const struct feed *feed, struct framework_frames *known)
{
	memset(s, 0, sizeof(*s));
	s->feed = feed;
	s->known = known;
	for (int i = 0; i < ROLE_COUNT; i++)
		s->list[i].role = (enum role)i;
}

enum role stages_of(const struct stages *s, uint32_t stack)
{
	return s->known ? (enum role)framework_stack(s->known, s->feed, stack).stage : ROLE_NONE;
}

bool stages_in_request(const struct stages *s, uint32_t stack)
{
	return s->known && framework_stack(s->known, s->feed, stack).in_request;
}

void stages_acquired(struct stages *s, uint32_t stack, uint64_t size, uint64_t time_ns)
{
	struct stage *stage = &s->list[stages_of(s, stack)];

	stage->held += size;
	stage->total += size;
	if (stage->held > stage->peak) {
		stage->peak = stage->held;
		stage->peak_ns = time_ns;
	}
}

void stages_released(struct stages *s, uint32_t stack, uint64_t size)
{
	struct stage *stage = &s->list[stages_of(s, stack)];

	stage->held -= size < stage->held ? size : stage->held;
}

size_t stages_list(const struct stages *s, struct stage *out, size_t room)
{
	size_t n = 0;

	for (int i = 0; i < ROLE_COUNT; i++) {
		const struct stage *stage = &s->list[i];
		size_t at = n;

		if (!framework_is_stage(stage->role) || !stage->peak)
			continue;
		if (n == room && out[n - 1].peak >= stage->peak)
			continue;
		if (n < room)
			n++;
		else
			at--;
		for (; at && out[at - 1].peak < stage->peak; at--)
			out[at] = out[at - 1];
		out[at] = *stage;
	}
	return n;
}
