/* known_frames.c - see known_frames.h. */
#include "verdict/known_frames.h"

#include <stdlib.h>

#define STACKS_LIMIT (1u << 28)
#define SYMBOLS_LIMIT (1u << 28)

struct known_symbol {
	struct knowledge_place place;
	bool seen;
};

struct known_frames *known_frames_new(const struct knowledge *knowledge)
{
	struct known_frames *frames = calloc(1, sizeof(*frames));

	map_seed();
	if (frames)
		frames->knowledge = knowledge;
	return frames;
}

void known_frames_free(struct known_frames *frames)
{
	if (!frames)
		return;
	trace_path_fini(&frames->path);
	vec_free(&frames->on_path);
	vec_free(&frames->stacks);
	vec_free(&frames->symbols);
	map_free(&frames->owners);
	free(frames);
}

/* Of Python's frames the module says nothing: they have none. */
static const char *module_of(const struct symbol *s)
{
	if (s->python)
		return NULL;
	return s->module ? s->module : "";
}

struct knowledge_place known_place(const struct knowledge *knowledge, const struct symbol *s)
{
	return knowledge_place(knowledge, s->function, s->file, module_of(s));
}

/* Many symbols are of few files. */
static const struct knowledge_framework *owner_of(
    struct known_frames *frames, const struct symbol *s)
{
	const char *module = module_of(s), *where = module ? module : s->file;
	uint64_t *kept = map_find(&frames->owners, (uintptr_t)where);
	const struct knowledge_framework *owner;

	if (kept)
		return (const struct knowledge_framework *)(uintptr_t)*kept;
	owner = knowledge_owner(frames->knowledge, s->file, module);
	kept = map_put(&frames->owners, (uintptr_t)where);
	if (kept)
		*kept = (uintptr_t)owner;
	return owner;
}

struct knowledge_place known_frame(struct known_frames *frames, const struct symbol *s)
{
	struct known_symbol *known;

	if (!s->id || s->id >= SYMBOLS_LIMIT || vec_reach(&frames->symbols, s->id + 1u))
		return known_place(frames->knowledge, s);
	known = &frames->symbols.items[s->id];
	if (!known->seen) {
		known->seen = true;
		if (!knowledge_match(
			frames->knowledge, s->function, s->file, module_of(s), &known->place))
			known->place = (struct knowledge_place){ROLE_NONE, owner_of(frames, s)};
	}
	return known->place;
}

struct knowledge_place known_looked_at(const struct known_frames *frames, size_t symbol)
{
	return frames->symbols.items[symbol].place;
}

bool known_is_stage(enum role role)
{
	return role != ROLE_NONE && role != ROLE_ALLOCATOR && role != ROLE_REQUEST_ENTRY &&
	       role != ROLE_FAN_OUT;
}

static struct known_stack look_at(
    struct known_frames *frames, const struct feed *feed, uint32_t stack)
{
	const struct stack_path *path = &frames->path;
	struct known_stack now = {.seen = true};

	if (feed_path(feed, stack, &frames->path) || vec_reserve(&frames->on_path, path->count)) {
		/* What `on_path` says of is not known any more. */
		trace_path_fini(&frames->path);
		return now;
	}
	if (path->same)
		now = frames->on_path.items[path->same - 1];
	for (size_t i = path->same; i < path->count; i++) {
		enum role role = known_frame(frames, &path->symbols[i]).role;

		now.in_request |= role == ROLE_REQUEST_ENTRY;
		if (role != ROLE_NONE && role != ROLE_ALLOCATOR)
			now.role = (uint8_t)role;
		if (known_is_stage(role))
			now.stage = (uint8_t)role;
		frames->on_path.items[i] = now;
	}
	return now;
}

static void look_at_all(struct known_frames *frames, const struct feed *feed)
{
	const uint32_t *order;
	size_t count = feed_stack_order(feed, &order);

	frames->looks = UINT32_MAX;
	for (size_t i = 0; i < count; i++)
		if (order[i] < STACKS_LIMIT && !vec_reach(&frames->stacks, order[i] + 1u) &&
		    !frames->stacks.items[order[i]].seen)
			frames->stacks.items[order[i]] = look_at(frames, feed, order[i]);
}

struct known_stack known_stack(struct known_frames *frames, const struct feed *feed, uint32_t stack)
{
	struct known_stack *known;

	if (!stack || stack >= STACKS_LIMIT || vec_reach(&frames->stacks, stack + 1u))
		return (struct known_stack){.seen = true};
	if (!frames->stacks.items[stack].seen && frames->looks < FEED_LOOKS &&
	    ++frames->looks == FEED_LOOKS)
		look_at_all(frames, feed);
	known = &frames->stacks.items[stack];
	if (!known->seen)
		*known = look_at(frames, feed, stack);
	return *known;
}
