/* device_replay.c - see device_replay.h. */
#include "verdict/device_replay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SPLIT_MIB 32u
#define MOST_SPLIT_MIB 512u

/* Blocks as large as the refused one are kept whole; what is smaller is still split. */
static uint64_t split_mib(uint64_t request)
{
	uint64_t mib = LEAST_SPLIT_MIB;

	while (mib < MOST_SPLIT_MIB && mib * 2 * CACHING_MIB <= request)
		mib *= 2;
	return mib;
}

static int add(struct device_report *d, struct arena *words, enum device_setting_kind kind,
    const char *change, const struct torch_outcome *o)
{
	struct device_setting *s = &d->settings[d->setting_count];

	s->kind = kind;
	s->change = arena_copy(words, change, strlen(change));
	s->fits = o->fits;
	s->headroom = o->headroom;
	if (!s->change)
		return -ENOMEM;
	d->setting_count++;
	return 0;
}

int device_replay(struct feed feed, struct device_report *d, struct arena *words, struct err *err)
{
	struct torch_change changes[DEVICE_SETTINGS] = {0};
	struct torch_outcome outcomes[DEVICE_SETTINGS];
	struct caching_settings as, expandable, split;
	char text[64];
	int rc;

	torch_replay_settings(feed, &as);
	/* A limit that came later than what it would have refused is not in the model. */
	if (!d->failed || strncmp(d->space, "torch", 5) != 0 || as.foreign_backend ||
	    (d->capped && d->peak_reserved > d->capped))
		return 0;
	expandable = split = as;
	expandable.expandable = true;
	split.max_split = split_mib(d->requested) * CACHING_MIB;
	changes[0].settings = &expandable;
	changes[1].settings = &split;
	rc = torch_replay(feed, d->number, changes, DEVICE_SETTINGS, outcomes, &d->match, err);
	if (rc || d->match.kind == TORCH_MATCH_NONE || d->match.kind == TORCH_MATCH_NOT)
		return rc;
	if (!as.expandable)
		rc = add(d, words, DEVICE_EXPANDABLE, "expandable_segments:True", &outcomes[0]);
	snprintf(text, sizeof(text), "max_split_size_mb:%u", (unsigned)split_mib(d->requested));
	/* What expandable segments hold is split whatever its size. */
	if (!rc && !as.expandable && as.max_split != split.max_split)
		rc = add(d, words, DEVICE_MAX_SPLIT, text, &outcomes[1]);
	return rc ? err_set(err, rc, "no memory for the what-ifs") : 0;
}
