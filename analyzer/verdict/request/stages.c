#include "verdict/request/stages.h"

#include <string.h>

#include "model/request/request.h"
#include "util/num.h"

void stages_init(struct stages *s, const struct feed *feed, struct framework_frames *known)
{
	memset(s, 0, sizeof(*s));
	s->feed = feed;
	s->known = known;
	for (int i = 0; i < ROLE_COUNT; i++)
		s->list[i].role = (enum role)i;
}

/* Return a stack's stage; ROLE_NONE: unknown, or no memory. */
static enum role stage_of(const struct stages *s, uint32_t stack)
{
	return s->known ? (enum role)framework_stack(s->known, s->feed, stack).stage : ROLE_NONE;
}

bool stages_in_request(const struct stages *s, uint32_t stack)
{
	return s->known && framework_stack(s->known, s->feed, stack).in_request;
}

static bool in_request(void *arg, uint32_t stack)
{
	return stages_in_request(arg, stack);
}

struct requests *stages_requests(struct stages *s)
{
	return requests_new(s->known ? in_request : NULL, s);
}

void stages_acquired(struct stages *s, uint32_t stack, uint64_t size, uint64_t time_ns)
{
	struct stage *stage = &s->list[stage_of(s, stack)];

	stage->held += size;
	stage->total += size;
	if (stage->held > stage->peak) {
		stage->peak = stage->held;
		stage->peak_ns = time_ns;
	}
}

void stages_released(struct stages *s, uint32_t stack, uint64_t size)
{
	struct stage *stage = &s->list[stage_of(s, stack)];

	stage->held = num_less(stage->held, size);
}

size_t stages_list(const struct stages *s, struct stage out[ROLE_COUNT])
{
	size_t n = 0;

	for (int i = 0; i < ROLE_COUNT; i++) {
		const struct stage *stage = &s->list[i];
		size_t at = n;

		if (!framework_is_stage(stage->role) || !stage->peak)
			continue;
		for (; at && out[at - 1].peak < stage->peak; at--)
			out[at] = out[at - 1];
		out[at] = *stage;
		n++;
	}
	return n;
}
