/*
 * what_if_torch.c - changes to what PyTorch asked for on a device: each becomes a rewrite of the
 * requests, or other settings, and all are tried in one pass of the allocator's model.
 */
#include <errno.h>
#include <string.h>

#include "cmd/what_if.h"
#include "model/space.h"
#include "verdict/device_rewrite.h"

static void apply(struct device_rewrite *w, const struct what_if_change *c, struct torch_change *to)
{
	switch (c->kind) {
	case WHAT_IF_MEMORY:
		to->memory = c->value;
		break;
	case WHAT_IF_EXPANDABLE:
		w->settings.expandable = true;
		break;
	case WHAT_IF_MAX_SPLIT:
		w->settings.max_split = c->value;
		break;
	case WHAT_IF_WITHOUT_SITE:
		device_rewrite_rule(w, c->place, RULE_KEEP_BYTES, 0);
		break;
	case WHAT_IF_CAP_GROWTH:
		for (uint32_t i = 0; i < w->places->count; i++)
			device_rewrite_cap(w, i, c->value);
		break;
	case WHAT_IF_CONCURRENCY: /* what_if_host.c */
	case WHAT_IF_MAX_LEN:
	case WHAT_IF_TOGETHER:
		break;
	}
	device_rewrite_change(w, to);
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
	struct device_rewrite rewrites[WHAT_IF_CHANGES] = {0};
	struct torch_change tries[WHAT_IF_CHANGES + 1] = {0};
	struct torch_outcome outcomes[WHAT_IF_CHANGES + 1];
	struct caching_settings settings;
	int rc = find_sites(places, changes, count, err);

	if (rc)
		return rc;
	torch_replay_settings(feed_of_trace(t), &settings);
	for (size_t i = 0; i < count && !rc; i++) {
		rc = device_rewrite_init(&rewrites[i], places, &settings);
		for (size_t k = 0; k < count && !rc; k++)
			if (k == i || changes[i].kind == WHAT_IF_TOGETHER)
				apply(&rewrites[i], &changes[k], &tries[i + 1]);
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
		device_rewrite_fini(&rewrites[i]);
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
