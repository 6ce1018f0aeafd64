#include "model/callsite/wrappers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "util/text/str.h"
#include "util/tuned.h"
#include "util/vec.h"

TUNED(double, TIMES_APART, 8.0, "one caller's own blocks differ by a factor of two or three");
TUNED(double, TIMES_OWN, 2.0,
    "callers whose blocks are always of one size differ by less when they ask alike");
TUNED(double, OWN_ROUND, 1.0625, "an allocator rounds up by 1/16 within one size");
TUNED(unsigned, CALLERS_MIN, 3u, "two callers are a function that is used twice");
TUNED(double, NEARLY_ALL, 0.8,
    "a function of two callers serves the program when it makes nearly everything");

/* A wrapper may wrap a wrapper of a wrapper. */
#define ROUNDS 3

struct link {
	uint64_t callee, caller; /* hashes of function and file */
	size_t item;
	int outer; /* the caller's frame */
};

static uint64_t hash_frame(const struct symbol *s)
{
	return str_hash(str_hash(STR_HASH, s->function), s->file);
}

/* By symbol id; 0: unknown. */
typedef VEC(uint64_t) hashes_t;

static uint64_t hash_of(hashes_t *hashes, const struct symbol *s)
{
	uint64_t *hash;

	if (!s->id || vec_reach(hashes, s->id + 1u))
		return hash_frame(s);
	hash = &hashes->items[s->id];
	if (!*hash)
		*hash = hash_frame(s);
	return *hash;
}

static int by_callee(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* Return the next outer frame with the same kind of owner and another function. */
static int caller_of(const struct blame_context *context, hashes_t *hashes,
    const struct symbol *symbols, const blame_marks_t *marks, int frame, uint64_t self)
{
	while (frame > 0) {
		frame = blame_marked(&marks->items[frame], symbols);
		if (frame < 0 || blame_owner(context, &symbols[frame]) != OWNER_USER)
			return -1;
		if (hash_of(hashes, &symbols[frame]) != self)
			return frame;
	}
	return -1;
}

static bool serves_differently(
    const struct wrapper_input *list, const struct link *links, size_t count, double all)
{
	double least = 0, most = 0, made = 0;
	size_t callers = 0;
	bool own = true;

	for (size_t i = 0, j; i < count; i = j) {
		double bytes = 0, blocks = 0, largest = 0, mean;

		for (j = i; j < count && links[j].caller == links[i].caller; j++) {
			bytes += (double)list[links[j].item].total_bytes;
			blocks += (double)list[links[j].item].total_count;
			largest = fmax(largest, (double)list[links[j].item].largest);
		}
		if (blocks <= 0)
			continue;
		callers++;
		made += bytes;
		mean = bytes / blocks;
		if (callers == 1 || mean < least)
			least = mean;
		if (mean > most)
			most = mean;
		own &= blocks > 1 && largest <= OWN_ROUND * mean;
	}
	if (callers < 2 || (callers < CALLERS_MIN && made < NEARLY_ALL * all))
		return false;
	return most > (own ? TIMES_OWN : TIMES_APART) * least;
}

/* State of all rounds. */
struct walk {
	const struct feed *feed;
	const struct blame_context *context;
	struct wrapper_input *list;
	size_t count;
	struct wrapper_witness witness;
	struct link *links; /* one for each item */
	hashes_t hashes;
	/* of the current round */
	size_t link_count;
	double all; /* bytes of all items with links */
};

static void add_link(
    struct walk *w, size_t item, const struct symbol *symbols, const blame_marks_t *marks)
{
	struct link *l = &w->links[w->link_count];
	int frame = w->list[item].frame;

	if (frame < 0 || blame_owner(w->context, &symbols[frame]) != OWNER_USER)
		return;
	w->all += (double)w->list[item].total_bytes;
	l->callee = hash_of(&w->hashes, &symbols[frame]);
	l->item = item;
	l->outer = caller_of(w->context, &w->hashes, symbols, marks, frame, l->callee);
	l->caller = l->outer < 0 ? 0 : hash_of(&w->hashes, &symbols[l->outer]);
	w->link_count++;
}

/* The first round also finds the frame to blame. */
static int look_at_all(struct walk *w, int round)
{
	struct stack_path path = {0};
	blame_marks_t marks = {0};
	int rc = 0;

	w->link_count = 0;
	w->all = 0;
	for (size_t i = 0; i < w->count && !rc; i++) {
		struct wrapper_input *in = &w->list[i];

		if (!round)
			in->frame = -1;
		if (!in->stack || (round && in->frame < 0))
			continue;
		rc = feed_path(w->feed, in->stack, &path);
		if (!rc)
			rc = blame_follow(w->context, &path, &marks);
		if (rc)
			break;
		if (!round)
			in->frame = blame_marked(&marks.items[path.count], path.symbols);
		if (w->witness.look)
			w->witness.look(w->witness.arg, i, &path, &marks, in->frame);
		add_link(w, i, path.symbols, &marks);
	}
	trace_path_fini(&path);
	vec_free(&marks);
	return rc;
}

static bool step_out(struct walk *w)
{
	struct link *links = w->links;
	bool moved = false;

	qsort(links, w->link_count, sizeof(*links), by_callee);
	for (size_t i = 0, j; i < w->link_count; i = j) {
		for (j = i; j < w->link_count && links[j].callee == links[i].callee; j++)
			;
		if (!serves_differently(w->list, &links[i], j - i, w->all))
			continue;
		for (size_t k = i; k < j; k++) {
			if (links[k].outer < 0)
				continue;
			w->list[links[k].item].frame = links[k].outer;
			moved = true;
		}
	}
	return moved;
}

int wrappers_step_out(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count, struct wrapper_witness witness)
{
	struct walk w = {
	    .feed = feed, .context = context, .list = list, .count = count, .witness = witness};
	int rc = -ENOMEM;

	w.links = malloc((count + 1) * sizeof(*w.links));
	/* The last round only calls the callback. */
	for (int round = 0; w.links; round++) {
		rc = look_at_all(&w, round);
		if (rc || round == ROUNDS || !step_out(&w))
			break;
	}
	vec_free(&w.hashes);
	free(w.links);
	return rc;
}
