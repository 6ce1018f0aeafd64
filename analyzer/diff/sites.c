/*
 * sites.c - the line of a side that each stack belongs to: the innermost one of the user's own
 * code, or the caller of a function that only allocates for its callers. Which functions do is
 * decided for both sides alike, or the same line would differ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff/side.h"
#include "model/callsite/wrappers.h"
#include "util/num.h"
#include "verdict/ledger/host_slack.h"

struct names side_names(struct side *s, const struct symbol *symbol)
{
	struct names *known;

	if (!symbol->id || vec_reach(&s->names, symbol->id + 1u))
		return names_of(symbol, s->program, &s->scratch);
	known = &s->names.items[symbol->id];
	if (!known->all)
		*known = names_of(symbol, s->program, &s->scratch);
	return *known;
}

struct search {
	struct side *side;
	int *frames; /* by item: the frame of the latest round; -1: none yet */
	uint64_t *functions; /* by item: the function of that frame */
	int rc;
};

static void note_wrapper(
    void *arg, size_t item, const struct stack_path *path, const blame_marks_t *marks, int frame)
{
	struct search *w = arg;
	uint64_t *count;

	(void)marks;
	if (frame < 0)
		return;
	if (w->frames[item] >= 0 && w->frames[item] != frame) {
		count = map_put(&w->side->wrappers, w->functions[item]);
		if (count)
			*count = 1;
		else
			w->rc = -ENOMEM;
	}
	w->frames[item] = frame;
	w->functions[item] = side_names(w->side, &path->symbols[frame]).all;
}

int side_wrappers(struct side *s)
{
	size_t count = 0, room = s->stacks.count + 1;
	struct wrapper_input *list = malloc(room * sizeof(*list));
	struct search w = {.side = s,
	    .frames = malloc(room * sizeof(*w.frames)),
	    .functions = calloc(room, sizeof(*w.functions))};
	int rc = list && w.frames && w.functions ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->stacks.count && !rc; i++) {
		const struct stack_sum *sum = &s->stacks.items[i];

		if (!sum->count)
			continue;
		w.frames[count] = -1;
		list[count++] = (struct wrapper_input){i, sum->bytes, sum->count, sum->largest, -1};
	}
	if (!rc)
		rc = wrappers_step_out(
		    &s->feed, &s->context, list, count, (struct wrapper_witness){&w, note_wrapper});
	if (!rc)
		rc = w.rc;
	if (!rc)
		rc = side_servers(s, list, count);
	free(list);
	free(w.frames);
	free(w.functions);
	return rc;
}

/* Return the caller of wrappers; the frame itself where its function is none. */
static int step_out(
    struct side *s, const struct stack_path *path, const blame_marks_t *marks, int frame)
{
	int at = frame;

	while (at >= 0) {
		uint64_t function = side_names(s, &path->symbols[at]).all;

		if (!map_find(&s->wrappers, function))
			return at;
		do
			at = blame_marked(&marks->items[at], path->symbols);
		while (at >= 0 && side_names(s, &path->symbols[at]).all == function);
		if (at < 0 || blame_owner(&s->context, &path->symbols[at]) != OWNER_USER)
			return frame;
		frame = at;
	}
	return frame;
}

/* State while all stacks are read. */
struct naming {
	struct side *side;
	struct stack_path path;
	blame_marks_t marks;
	struct map sites, chains;
	VEC(uint64_t) keys; /* by frame: hash of the names until there */
	const char *interpreter;
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* Return the hash of the stack's names; frames of the interpreter itself do not count. */
static int chain_key(struct naming *n, uint64_t *out)
{
	const struct stack_path *p = &n->path;
	size_t from = num_least(p->same, n->keys.count);
	uint64_t key;
	int rc = vec_reserve(&n->keys, p->count + 1);

	if (rc)
		return rc;
	key = from ? n->keys.items[from - 1] : 1;
	for (size_t i = from; i < p->count; i++) {
		const struct symbol *symbol = &p->symbols[i];

		if (!symbol->interpreter && !symbol->cut)
			key = mix(key, side_names(n->side, symbol).all);
		n->keys.items[i] = key;
	}
	n->keys.count = p->count;
	*out = key;
	return 0;
}

static void describe(struct naming *n, int frame, struct site *out)
{
	const struct stack_path *p = &n->path;
	const struct symbol *s;
	int outer;

	*out = (struct site){.function = "(unknown)", .names.all = 1};
	if (frame < 0)
		return;
	s = &p->symbols[frame];
	out->names = side_names(n->side, s);
	out->function = s->function;
	out->file = s->file;
	out->line = s->line;
	out->python = s->python;
	if ((size_t)frame + 1 < p->count)
		out->callee = side_names(n->side, &p->symbols[frame + 1]).all;
	outer = blame_marked(&n->marks.items[frame], p->symbols);
	out->caller = outer < 0 ? 0 : side_names(n->side, &p->symbols[outer]).all;
}

static int find_site(struct naming *n, const struct site *as, uint32_t *out)
{
	uint64_t key = mix(mix(as->names.all, as->line), as->arenas);
	uint64_t *index = map_put(&n->sites, key);

	if (!index)
		return -ENOMEM;
	if (!*index) {
		if (vec_push(&n->side->sites, *as))
			return -ENOMEM;
		*index = n->side->sites.count;
	}
	*out = (uint32_t)(*index - 1);
	return 0;
}

static int find_chain(struct naming *n, uint64_t key, const struct chain *as, uint32_t *out)
{
	uint64_t *index = map_put(&n->chains, mix(key, as->site + 1u));

	if (!index)
		return -ENOMEM;
	if (!*index) {
		if (vec_push(&n->side->chains, *as))
			return -ENOMEM;
		*index = n->side->chains.count;
	}
	*out = (uint32_t)(*index - 1);
	return 0;
}

static int name_stack(struct naming *n, uint32_t stack)
{
	struct side *s = n->side;
	struct stack_sum *sum = &s->stacks.items[stack];
	struct site as, *site;
	uint64_t key = 0;
	int frame = -1, rc = 0;

	if (stack) {
		rc = feed_path(&s->feed, stack, &n->path);
		if (!rc)
			rc = blame_follow(&s->context, &n->path, &n->marks);
		if (!rc)
			rc = chain_key(n, &key);
		if (rc)
			return rc;
		frame = blame_marked(&n->marks.items[n->path.count], n->path.symbols);
		frame = step_out(s, &n->path, &n->marks, frame);
	}
	describe(n, frame, &as);
	as.arenas = sum->mapped && arenas_by_interpreter(&s->feed, n->interpreter, stack);
	rc = find_site(n, &as, &sum->site);
	if (rc)
		return rc;
	site = &s->sites.items[sum->site];
	site->total_bytes += sum->bytes;
	site->total_count += sum->count;
	site->largest = num_most(site->largest, sum->largest);
	if (sum->bytes > site->stack_bytes) {
		site->stack_bytes = sum->bytes;
		site->stack = stack;
		site->frame = frame < 0 ? 0 : (uint32_t)frame;
		site->callee = as.callee;
		site->caller = as.caller;
	}
	return find_chain(n, key,
	    &(struct chain){key, sum->site, stack, frame < 0 ? 0 : (uint32_t)frame}, &sum->chain);
}

int side_sites(struct side *s)
{
	struct naming n = {.side = s, .interpreter = s->context.interpreter};
	int rc = 0;

	for (uint32_t i = 0; i < s->stacks.count && !rc; i++) {
		if (s->stacks.items[i].count)
			rc = name_stack(&n, i);
		else
			s->stacks.items[i].site = SITE_NONE;
	}
	trace_path_fini(&n.path);
	vec_free(&n.marks);
	vec_free(&n.keys);
	map_free(&n.sites);
	map_free(&n.chains);
	return rc;
}
