/* stages.c - see stages.h. */
#include "verdict/stages.h"

#include <stdlib.h>
#include <string.h>

#include "util/vec.h"
#include "verdict/known.h"

/* A stack's byte: that it was looked at, whether it is in a request, and its role. */
#define SEEN 0x80u
#define IN_REQUEST 0x40u
#define ROLE_BITS 0x3fu
_Static_assert(ROLE_COUNT <= ROLE_BITS, "a role fits");
#define STACKS_LIMIT (1u << 28)

void stages_init(struct stages *s, const struct feed *feed, const struct knowledge *knowledge)
{
	memset(s, 0, sizeof(*s));
	s->feed = feed;
	s->frames = knowledge ? known_frames_new(knowledge) : NULL;
	for (int i = 0; i < ROLE_COUNT; i++)
		s->list[i].role = (enum role)i;
}

void stages_fini(struct stages *s)
{
	free(s->of_stack);
	known_frames_free(s->frames);
	trace_path_fini(&s->path);
	free(s->seen);
	memset(s, 0, sizeof(*s));
}

/* Work that is handed on is of the stage that it is handed to. */
static bool is_stage(enum role role)
{
	return role != ROLE_NONE && role != ROLE_ALLOCATOR && role != ROLE_REQUEST_ENTRY &&
	       role != ROLE_FAN_OUT;
}

static uint8_t look_at(struct stages *s, uint32_t stack)
{
	const struct stack_path *path = &s->path;

	if (feed_path(s->feed, stack, &s->path) ||
	    (path->count > s->seen_room &&
		vec_grow((void **)&s->seen, &s->seen_room, path->count, sizeof(*s->seen)))) {
		/* What `seen` says of is not known any more. */
		trace_path_fini(&s->path);
		return SEEN;
	}
	for (size_t i = path->same; i < path->count; i++) {
		enum role role = known_frame(s->frames, &path->symbols[i]).role;

		s->seen[i] = i ? s->seen[i - 1] : SEEN;
		if (role == ROLE_REQUEST_ENTRY)
			s->seen[i] |= IN_REQUEST;
		else if (is_stage(role))
			s->seen[i] = (uint8_t)((s->seen[i] & ~ROLE_BITS) | role);
	}
	return path->count ? s->seen[path->count - 1] : SEEN;
}

static uint8_t byte_of(struct stages *s, uint32_t stack)
{
	if (!s->frames || !stack || stack >= STACKS_LIMIT)
		return 0;
	if (stack >= s->limit) {
		uint32_t limit = s->limit ? s->limit : 1024;
		uint8_t *grown;

		while (limit <= stack)
			limit *= 2;
		grown = realloc(s->of_stack, limit);
		if (!grown)
			return 0;
		memset(grown + s->limit, 0, limit - s->limit);
		s->of_stack = grown;
		s->limit = limit;
	}
	if (!s->of_stack[stack])
		s->of_stack[stack] = look_at(s, stack);
	return s->of_stack[stack];
}

enum role stages_of(struct stages *s, uint32_t stack)
{
	return (enum role)(byte_of(s, stack) & ROLE_BITS);
}

bool stages_in_request(struct stages *s, uint32_t stack)
{
	return byte_of(s, stack) & IN_REQUEST;
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

		if (!is_stage(stage->role) || !stage->peak)
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
