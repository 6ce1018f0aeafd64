/*
 * what_if_torch.c - changes to what PyTorch asked for on a device: each becomes a rewrite of the
 * requests, or other settings, and all are tried in one pass of the allocator's model.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/what_if.h"
#include "model/space.h"

/* One change, as the replay sees it. */
struct rewriter {
	const struct places *places;
	bool *without; /* by place */
	uint64_t cap; /* UINT64_MAX: none */
	uint64_t *first, *live; /* by place: its first block, and what it holds in the replay */
	struct caching_settings settings;
};

static uint64_t rewrite_size(void *arg, const struct torch_block *b)
{
	struct rewriter *r = arg;
	uint32_t place = places_of_stack(r->places, SITE_HEAP, b->stack);
	uint64_t most, size = b->size;

	if (place == PLACE_NONE)
		return size;
	if (r->without[place])
		return 0;
	if (r->cap == UINT64_MAX)
		return size;
	if (!r->first[place])
		r->first[place] = size;
	most = r->first[place] < UINT64_MAX - r->cap ? r->first[place] + r->cap : UINT64_MAX;
	if (r->live[place] >= most)
		return 0;
	if (size > most - r->live[place])
		size = most - r->live[place];
	r->live[place] += size;
	return size;
}

static void rewrite_released(void *arg, uint32_t stack, uint64_t size)
{
	struct rewriter *r = arg;
	uint32_t place = places_of_stack(r->places, SITE_HEAP, stack);

	if (place != PLACE_NONE)
		r->live[place] -= size < r->live[place] ? size : r->live[place];
}

static int rewriter_init(
    struct rewriter *r, const struct places *places, const struct caching_settings *settings)
{
	r->places = places;
	r->cap = UINT64_MAX;
	r->settings = *settings;
	r->without = calloc(places->count + 1u, sizeof(*r->without));
	r->first = calloc(places->count + 1u, sizeof(*r->first));
	r->live = calloc(places->count + 1u, sizeof(*r->live));
	return r->without && r->first && r->live ? 0 : -ENOMEM;
}

static void rewriter_fini(struct rewriter *r)
{
	free(r->without);
	free(r->first);
	free(r->live);
}

static void apply(struct rewriter *r, const struct what_if_change *c, struct torch_change *to)
{
	switch (c->kind) {
	case WHAT_IF_MEMORY:
		to->memory = c->value;
		break;
	case WHAT_IF_EXPANDABLE:
		r->settings.expandable = true;
		break;
	case WHAT_IF_MAX_SPLIT:
		r->settings.max_split = c->value;
		break;
	case WHAT_IF_WITHOUT_SITE:
		r->without[c->place] = true;
		break;
	case WHAT_IF_CAP_GROWTH:
		r->cap = c->value;
		break;
	case WHAT_IF_CONCURRENCY: /* what_if_host.c */
	case WHAT_IF_MAX_LEN:
	case WHAT_IF_TOGETHER:
		break;
	}
	to->settings = &r->settings;
	to->rewrite =
	    (struct torch_rewrite){.arg = r, .size = rewrite_size, .released = rewrite_released};
}

static int find_sites(
    const struct places *places, struct what_if_change *changes, size_t count, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		if (changes[i].kind == WHAT_IF_WITHOUT_SITE)
			rc = what_if_site(places, changes[i].site, &changes[i].place, err);
	return rc;
}

/* The record's own row, then one for each change. */
static int run(struct trace *t, const struct places *places, uint32_t device,
    struct what_if_change *changes, size_t count, struct what_if_answer *out, struct err *err)
{
	struct rewriter rewriters[WHAT_IF_CHANGES + 1] = {0};
	struct torch_change tries[WHAT_IF_CHANGES + 1] = {0};
	struct torch_outcome outcomes[WHAT_IF_CHANGES + 1];
	struct caching_settings settings;
	int rc = find_sites(places, changes, count, err);

	if (rc)
		return rc;
	torch_replay_settings(feed_of_trace(t), &settings);
	for (size_t i = 0; i < count && !rc; i++) {
		rc = rewriter_init(&rewriters[i], places, &settings);
		for (size_t k = 0; k < count && !rc; k++)
			if (k == i || changes[i].kind == WHAT_IF_TOGETHER)
				apply(&rewriters[i], &changes[k], &tries[i + 1]);
	}
	if (rc)
		err_set(err, rc, "no memory for the changes");
	else
		rc = torch_replay(
		    feed_of_trace(t), device, tries, count + 1, outcomes, &out->match, err);
	for (size_t i = 0; i <= count && !rc; i++)
		out->rows[out->count++] =
		    (struct what_if_row){.change = i ? changes[i - 1].words : NULL,
			.fits = outcomes[i].fits,
			.headroom = outcomes[i].headroom,
			.refused = outcomes[i].refused,
			.refusal = outcomes[i].refusal};
	for (size_t i = 0; i < count; i++)
		rewriter_fini(&rewriters[i]);
	return rc;
}

int what_if_torch(struct trace *t, const struct model *m, struct what_if_change *changes,
    size_t count, struct what_if_answer *out, struct err *err)
{
	const struct space *sp = spaces_find(m->spaces, out->space), *cuda;
	struct places *places = NULL;
	int rc;

	if (!sp || sp->kind != SPACE_TORCH)
		return err_set(err, -ENOENT,
		    "PyTorch has no blocks in '%.40s' of that trace: --space "
		    "is torch:N or host",
		    out->space);
	rc = places_new(sp->model, AT_PEAK, &places, err);
	if (!rc)
		rc = run(t, places, sp->device, changes, count, out, err);
	places_free(places);
	if (rc)
		return rc;
	out->failed = out->rows[0].refused;
	out->requested = out->failed ? out->rows[0].refusal.size : 0;
	cuda = spaces_of(m->spaces, SPACE_CUDA, sp->device);
	if (cuda)
		levels_get(&cuda->model->levels, TRACE_LEVEL_DEV_TOTAL, &out->limit);
	return 0;
}
