#include "verdict/framework/framework_frames.h"

#include <stdlib.h>

#define LOOKS 256u /* single lookups before all stacks are looked up at once */
#define STACKS_LIMIT (1u << 28)
#define SYMBOLS_LIMIT (1u << 28)

struct framework_symbol {
	uint16_t framework; /* 1 + index in `frameworks`; 0: none */
	uint8_t role;
	bool seen;
};

struct framework_frames *framework_frames_new(const struct knowledge *knowledge)
{
	struct framework_frames *frames = calloc(1, sizeof(*frames));

	map_seed();
	if (frames)
		frames->knowledge = knowledge;
	return frames;
}

void framework_frames_free(struct framework_frames *frames)
{
	if (!frames)
		return;
	trace_path_fini(&frames->path);
	vec_free(&frames->on_path);
	vec_free(&frames->stacks);
	vec_free(&frames->symbols);
	vec_free(&frames->frameworks);
	map_free(&frames->owners);
	free(frames);
}

static const char *module_of(const struct symbol *s)
{
	if (s->python)
		return NULL;
	return s->module ? s->module : "";
}

struct knowledge_place framework_lookup(const struct knowledge *knowledge, const struct symbol *s)
{
	return knowledge_place(knowledge, s->function, s->file, module_of(s));
}

/* Cached by file or module: many symbols share few of them. */
static const struct knowledge_framework *owner_of(
    struct framework_frames *frames, const struct symbol *s)
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

/* Return 1 + the framework's number; 0: none, or no memory. There are few. */
static uint16_t number_of(
    struct framework_frames *frames, const struct knowledge_framework *framework)
{
	size_t i = 0;

	if (!framework)
		return 0;
	while (i < frames->frameworks.count && frames->frameworks.items[i] != framework)
		i++;
	if (i == UINT16_MAX ||
	    (i == frames->frameworks.count && vec_push(&frames->frameworks, framework)))
		return 0;
	return (uint16_t)(i + 1);
}

static struct knowledge_place look_up(struct framework_frames *frames, const struct symbol *s)
{
	struct knowledge_place callsite;

	if (!knowledge_match(frames->knowledge, s->function, s->file, module_of(s), &callsite))
		callsite = (struct knowledge_place){ROLE_NONE, owner_of(frames, s)};
	return callsite;
}

struct knowledge_place framework_frame(struct framework_frames *frames, const struct symbol *s)
{
	struct framework_symbol *known;

	if (!s->id || s->id >= SYMBOLS_LIMIT || vec_reach(&frames->symbols, s->id + 1u))
		return look_up(frames, s);
	known = &frames->symbols.items[s->id];
	if (!known->seen) {
		struct knowledge_place callsite = look_up(frames, s);

		*known = (struct framework_symbol){
		    number_of(frames, callsite.framework), (uint8_t)callsite.role, true};
	}
	return framework_looked_at(frames, s->id);
}

struct knowledge_place framework_looked_at(const struct framework_frames *frames, size_t symbol)
{
	const struct framework_symbol *known = &frames->symbols.items[symbol];

	return (struct knowledge_place){(enum role)known->role,
	    known->framework ? frames->frameworks.items[known->framework - 1] : NULL};
}

bool framework_is_stage(enum role role)
{
	return role != ROLE_NONE && role != ROLE_ALLOCATOR && role != ROLE_REQUEST_ENTRY &&
	       role != ROLE_FAN_OUT;
}

/* Coding of a struct framework_stack as one number, a mark. */
#define MARK_ROLES 64u
#define MARK_IN_REQUEST (MARK_ROLES * MARK_ROLES)
_Static_assert(ROLE_COUNT <= MARK_ROLES, "roles fit into a mark");

/* Add a frame to the outer frames' result. */
static struct framework_stack say(struct framework_stack outer, enum role role)
{
	if (role == ROLE_REQUEST_ENTRY)
		outer.in_request = true;
	if (role != ROLE_NONE && role != ROLE_ALLOCATOR)
		outer.role = role & (MARK_ROLES - 1);
	if (framework_is_stage(role))
		outer.stage = role & (MARK_ROLES - 1);
	return outer;
}

static struct framework_stack look_at(
    struct framework_frames *frames, const struct feed *feed, uint32_t stack)
{
	const struct stack_path *path = &frames->path;
	struct framework_stack now = {.seen = true};

	if (feed_path(feed, stack, &frames->path) || vec_reserve(&frames->on_path, path->count)) {
		/* The path that `on_path` describes is lost. */
		trace_path_fini(&frames->path);
		return now;
	}
	if (path->same)
		now = frames->on_path.items[path->same - 1];
	for (size_t i = path->same; i < path->count; i++) {
		now = say(now, framework_frame(frames, &path->symbols[i]).role);
		frames->on_path.items[i] = now;
	}
	return now;
}

static uint16_t to_mark(struct framework_stack k)
{
	return (uint16_t)(k.role + k.stage * MARK_ROLES + (k.in_request ? MARK_IN_REQUEST : 0));
}

static struct framework_stack of_mark(uint16_t mark)
{
	return (struct framework_stack){.role = mark % MARK_ROLES,
	    .stage = mark / MARK_ROLES % MARK_ROLES,
	    .in_request = (mark & MARK_IN_REQUEST) != 0,
	    .seen = true};
}

static uint16_t mark_of(void *arg, const struct symbol *symbols, size_t count)
{
	struct framework_stack now = {0};

	for (size_t i = 0; i < count; i++)
		now = say(now, framework_frame(arg, &symbols[i]).role);
	return to_mark(now);
}

static uint16_t join(uint16_t outer, uint16_t inner)
{
	struct framework_stack a = of_mark(outer), b = of_mark(inner);

	if (!inner)
		return outer;
	b.role = b.role != ROLE_NONE ? b.role : a.role;
	b.stage = b.stage != ROLE_NONE ? b.stage : a.stage;
	if (a.in_request)
		b.in_request = true;
	return to_mark(b);
}

static void look_at_all(struct framework_frames *frames, const struct feed *feed)
{
	uint32_t count = feed->fold_stacks ? feed->stack_limit(feed->self) : 0;
	uint16_t *marks = count ? malloc(count * sizeof(*marks)) : NULL;

	frames->looks = UINT32_MAX;
	count = count < STACKS_LIMIT ? count : STACKS_LIMIT;
	if (marks && !vec_reach(&frames->stacks, count) &&
	    !feed->fold_stacks(feed->self, &(struct trace_fold){frames, mark_of, join}, marks))
		for (uint32_t i = 1; i < count; i++)
			frames->stacks.items[i] = of_mark(marks[i]);
	free(marks);
}

void framework_look_ahead(struct framework_frames *frames, const struct feed *feed)
{
	if (feed->fold_stacks && feed->stack_limit(feed->self) > FEED_LOOKS)
		look_at_all(frames, feed);
}

static __attribute__((noinline)) struct framework_stack first_look(
    struct framework_frames *frames, const struct feed *feed, uint32_t stack)
{
	struct framework_stack *known;

	if (!stack || stack >= STACKS_LIMIT || vec_reach(&frames->stacks, stack + 1u))
		return (struct framework_stack){.seen = true};
	if (frames->looks < LOOKS && ++frames->looks == LOOKS)
		look_at_all(frames, feed);
	known = &frames->stacks.items[stack];
	if (!known->seen)
		*known = look_at(frames, feed, stack);
	return *known;
}

struct framework_stack framework_stack(
    struct framework_frames *frames, const struct feed *feed, uint32_t stack)
{
	/* The fast path: each event asks. */
	if (stack < frames->stacks.count && frames->stacks.items[stack].seen)
		return frames->stacks.items[stack];
	return first_look(frames, feed, stack);
}
