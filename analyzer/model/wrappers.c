/* wrappers.c - see wrappers.h. */
#include "model/wrappers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

/* A wrapper of a wrapper of a wrapper. */
#define ROUNDS 3
/* Callers are served differently when mean sizes are this many times apart. (That one keeps what
 * the other releases says nothing: a loader whose result is kept once is still what loads.) */
#define TIMES_APART 8.0
/* A function serves others when that many call it, or when nearly everything is made there. */
#define CALLERS_MIN 3u
#define NEARLY_ALL 0.8

struct link {
	uint64_t callee, caller; /* hashes of function and file */
	size_t item;
	int outer; /* the caller's frame */
};

static uint64_t hash_frame(const struct symbol *s)
{
	uint64_t h = 1469598103934665603u;

	for (const char *p = s->function; p && *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	for (const char *p = s->file; p && *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	return h;
}

/* Of symbols, by their ids; 0: not yet known. */
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

/* The next frame outwards that is of the same kind of owner, and not the same function again. */
static int caller_of(const struct blame_context *context, hashes_t *hashes,
    const struct symbol *symbols, int frame, uint64_t self)
{
	while (frame > 0) {
		frame = blame_frame(context, symbols, (size_t)frame);
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

	for (size_t i = 0, j; i < count; i = j) {
		double bytes = 0, blocks = 0, mean;

		for (j = i; j < count && links[j].caller == links[i].caller; j++) {
			bytes += (double)list[links[j].item].total_bytes;
			blocks += (double)list[links[j].item].total_count;
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
	}
	if (callers < 2 || (callers < CALLERS_MIN && made < NEARLY_ALL * all))
		return false;
	return most > TIMES_APART * least;
}

static size_t make_links(const struct feed *feed, const struct blame_context *context,
    const struct wrapper_input *list, size_t count, hashes_t *hashes, struct link *links,
    double *all)
{
	struct stack_path path = {0};
	size_t n = 0;

	*all = 0;
	for (size_t i = 0; i < count; i++) {
		const struct symbol *symbols;
		struct link *l = &links[n];

		if (list[i].frame < 0)
			continue;
		if (feed_path(feed, list[i].stack, &path))
			trace_path_fini(&path);
		symbols = path.symbols;
		if ((size_t)list[i].frame >= path.count ||
		    blame_owner(context, &symbols[list[i].frame]) != OWNER_USER)
			continue;
		*all += (double)list[i].total_bytes;
		l->callee = hash_of(hashes, &symbols[list[i].frame]);
		l->item = i;
		l->outer = caller_of(context, hashes, symbols, list[i].frame, l->callee);
		l->caller = l->outer < 0 ? 0 : hash_of(hashes, &symbols[l->outer]);
		n++;
	}
	trace_path_fini(&path);
	return n;
}

int wrappers_step_out(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count)
{
	struct link *links = malloc((count + 1) * sizeof(*links));
	hashes_t hashes = {0};
	bool moved = true;

	if (!links)
		return -ENOMEM;
	for (int round = 0; round < ROUNDS && moved; round++) {
		double all;
		size_t n = make_links(feed, context, list, count, &hashes, links, &all);

		moved = false;
		qsort(links, n, sizeof(*links), by_callee);
		for (size_t i = 0, j; i < n; i = j) {
			for (j = i; j < n && links[j].callee == links[i].callee; j++)
				;
			if (!serves_differently(list, &links[i], j - i, all))
				continue;
			for (size_t k = i; k < j; k++) {
				if (links[k].outer < 0)
					continue;
				list[links[k].item].frame = links[k].outer;
				moved = true;
			}
		}
	}
	vec_free(&hashes);
	free(links);
	return 0;
}
