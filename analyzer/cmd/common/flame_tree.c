/* flame_tree.c - see flame_tree.h. */
#include "cmd/common/flame_tree.h"

#include <errno.h>
#include <string.h>

#include "export/sums.h"
#include "report/frames.h"

struct building {
	struct flame_tree *out;
	struct feed feed;
	struct stack_path path;
	VEC(bool) internal;
	struct map by_id, by_text; /* of symbols: 1 + index of a frame */
	struct blame_context context;
	struct blame_memory memory;
	struct knowledge *known;
	enum export_measure measure;
	const struct temporary *temporary;
	uint32_t space; /* of the temporary blocks */
	bool native;
};

static bool same_frame(const struct symbol *a, const struct symbol *b)
{
	return symbol_same_line(a, b) && a->cut == b->cut &&
	       (a->file || str_same(a->module, b->module));
}

/* The number of a frame: those that look the same are one, as symbols with other addresses or other
 * columns of a line do. */
static uint64_t *find_frame(struct building *b, const struct symbol *s)
{
	const struct flame_frame *frames = b->out->frames.items;
	uint64_t key = str_hash(str_hash(STR_HASH, s->function), s->file) ^ s->line, *slot;

	while ((slot = map_put(&b->by_text, key | 1)) && *slot &&
	       !same_frame(&frames[*slot - 1].symbol, s))
		key += 2;
	return slot;
}

static int frame_number(struct building *b, const struct symbol *s, uint32_t *out)
{
	uint64_t *known = s->id ? map_put(&b->by_id, s->id) : NULL, *slot;

	if (s->id && !known)
		return -ENOMEM;
	if (!known || !*known) {
		slot = find_frame(b, s);
		if (!slot)
			return -ENOMEM;
		if (!*slot) {
			struct flame_frame new = {*s, frame_role(&b->context, b->known, s)};

			if (vec_push(&b->out->frames, new))
				return -ENOMEM;
			*slot = b->out->frames.count;
		}
		known = known ? known : slot;
		*known = *slot;
	}
	*out = (uint32_t)*known;
	return 0;
}

/* True for the five frames of Python's import system between a module and what it imports. */
static bool imports(const struct symbol *s)
{
	static const char frozen[] = "<frozen importlib.";

	return s->python && s->file && strncmp(s->file, frozen, sizeof(frozen) - 1) == 0;
}

/* Finds the frames that are left out of the path, unless all are shown. */
static int find_internal(struct building *b)
{
	struct stack_view v = {b->path.symbols, b->path.count};

	if (vec_reach(&b->internal, v.count))
		return -ENOMEM;
	if (v.count)
		memset(b->internal.items, 0, v.count * sizeof(*b->internal.items));
	if (v.count && !b->native)
		frames_find_internal(&v, b->internal.items);
	for (size_t i = 0; i < v.count && !b->native; i++)
		b->internal.items[i] |= imports(&v.symbols[i]);
	return 0;
}

static int add_stack(void *arg, uint32_t stack, const struct export_sum *sum)
{
	struct building *b = arg;
	uint64_t value = sum->value[b->measure];
	uint32_t at = 0, frame;
	int rc = 0;

	if (b->measure == MEASURE_TEMPORARY)
		value = temporary_bytes(b->temporary, b->space, stack);
	if (!value)
		return 0;
	if (stack) {
		rc = feed_path(&b->feed, stack, &b->path);
		if (!rc)
			rc = find_internal(b);
	}
	for (size_t i = 0; stack && !rc && i < b->path.count; i++) {
		if (b->internal.items[i])
			continue;
		rc = frame_number(b, &b->path.symbols[i], &frame);
		if (!rc)
			rc = frame_tree_child(&b->out->tree, at, frame, &at);
	}
	b->out->tree.nodes.items[at].sums[0] += value;
	b->out->view.stacks++;
	return rc;
}

static int build(struct building *b, const struct space_at *s)
{
	int rc = frame_tree_init(&b->out->tree, 1);

	b->context =
	    (struct blame_context){.malloc_owner = b->feed.info(b->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&b->feed),
		.memory = &b->memory};
	b->known = knowledge_open();
	if (!rc && !b->known)
		rc = -ENOMEM;
	if (!rc)
		rc = sums_each(s->model, s->moment, add_stack, b);
	if (!rc)
		frame_tree_sum(&b->out->tree);
	knowledge_free(b->known);
	vec_free(&b->memory.traits);
	vec_free(&b->internal);
	map_free(&b->by_id);
	map_free(&b->by_text);
	trace_path_fini(&b->path);
	return rc;
}

int flame_tree_make(struct flame_tree *out, const struct trace_set *set, struct trace *t,
    const struct space_at *s, const char *space, enum export_measure measure,
    const struct temporary *temporary, bool native, struct err *err)
{
	struct building b = {.out = out,
	    .feed = feed_of_trace(t),
	    .measure = measure,
	    .temporary = temporary,
	    .space = s->view.space ? s->view.space->index + 1 : 0,
	    .native = native};
	int rc;

	*out = (struct flame_tree){.view = {.space = space ? space : "host",
				       .measure = export_measure_name(measure),
				       .unit = export_measure_unit(measure),
				       .meaning = export_measure_meaning(measure),
				       .at = s->at,
				       .time_ns = s->time_ns}};
	rc = build(&b, s);
	out->view.tree = &out->tree;
	out->view.frames = out->frames.items;
	trace_set_damage(set, t, &out->view.damage);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the tree of stacks") : rc;
}

void flame_tree_fini(struct flame_tree *f)
{
	frame_tree_fini(&f->tree);
	vec_free(&f->frames);
}
