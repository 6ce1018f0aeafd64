/*
 * earlier.c - the sums of spaces at moments before the one that is exported, from one pass over the
 * events: for formats that show how a heap became what it is.
 */
#include <errno.h>
#include <stdio.h>

#include "export/export.h"
#include "util/num.h"
#include "util/progress.h"

struct pass {
	struct export *x;
	struct model *m;
	const uint64_t *until_ns; /* by space */
	uint64_t end_ns; /* the latest of them */
	uint32_t given; /* moments */
};

static uint64_t moment_ns(const struct pass *p, uint32_t number)
{
	double share = (double)number / (p->x->to->moments + 1);

	return (uint64_t)((double)p->end_ns * share);
}

static const struct model *model_of(const struct pass *p, uint32_t space)
{
	const struct space *sp;

	if (space == EXPORT_HOST)
		return p->m;
	sp = p->m->spaces ? spaces_find(p->m->spaces, p->x->names[space]) : NULL;
	return sp ? sp->model : NULL;
}

/* Gives the spaces as they are; those whose own moment is still to come. */
static int give(struct pass *p, struct err *err)
{
	uint64_t now = moment_ns(p, ++p->given);
	char at[32];
	int rc = 0;

	snprintf(at, sizeof(at), "%.6gs", (double)now / 1e9);
	for (uint32_t i = 0; i < p->x->name_count && !rc; i++) {
		const struct model *m = model_of(p, i);
		struct export_space s = {.index = i,
		    .name = p->x->names[i],
		    .model = m,
		    .moment = AT_END,
		    .at = at,
		    .time_ns = now};

		if (m && m->total.count && now < p->until_ns[i])
			rc = export_space(p->x, &s, err);
	}
	return rc;
}

static int read_pass(struct pass *p, struct err *err)
{
	const struct feed *feed = &p->x->feed;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	feed_progress(feed, "exporting earlier moments");
	while (!rc && p->given < p->x->to->moments && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = 0;
		while (
		    !rc && p->given < p->x->to->moments && e.time_ns > moment_ns(p, p->given + 1))
			rc = give(p, err);
		if (!rc)
			rc = model_apply(p->m, &e, err);
		feed_passed(feed, p->m->run.events);
	}
	progress_end();
	return rc;
}

int export_moments(struct export *x, const uint64_t *until_ns, struct err *err)
{
	struct pass p = {.x = x, .until_ns = until_ns};
	int rc;

	for (uint32_t i = 0; i < x->name_count; i++)
		p.end_ns = num_most(p.end_ns, until_ns[i]);
	if (!x->to->moments || !p.end_ns)
		return 0;
	rc = model_new(x->feed, &p.m, err);
	if (!rc)
		rc = read_pass(&p, err);
	model_free(p.m);
	return rc < 0 ? rc : 0;
}
