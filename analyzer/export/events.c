/*
 * events.c - the pass over the events: each as exporters see it, and the curves. The model of the
 * process runs along, since only it knows which block a release of a device frees.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/points.h"
#include "util/progress.h"

struct pass {
	struct export *x;
	struct model *m;
	struct err *err;
	const struct event *now; /* being applied */
	uint64_t number; /* of it */
	/* By space; of the host also its resident bytes, in `free`. */
	struct points *live, *free, *reserved;
};

static int give(struct pass *p, enum export_event_kind kind, uint32_t space, const struct block *b)
{
	struct export_event e = {kind, p->number, space, b, p->now};
	int rc = export_tell_stack(p->x, b ? b->stack : p->now->stack, p->err);

	return rc ? rc : p->x->to->event(p->x, &e, p->err);
}

static bool wanted(const struct pass *p)
{
	return p->x->to->event && (p->x->to->devices || p->number >= p->x->first);
}

static enum export_event_kind block_kind(const struct event *e)
{
	return e->kind == EV_ALLOC  ? EXPORT_ALLOC
	       : e->kind == EV_FREE ? EXPORT_FREE
				    : EXPORT_UNFREE;
}

static int on_block(void *arg, const struct event *e)
{
	struct pass *p = arg;

	return wanted(p) ? give(p, block_kind(e), EXPORT_HOST, e->block) : 0;
}

/* Spaces are created in the same order in each pass. */
static uint32_t index_of(const struct pass *p, const struct space *sp)
{
	return sp->index + 1 < p->x->name_count ? sp->index + 1 : EXPORT_HOST;
}

static int on_space_block(void *arg, const struct space *sp, const struct event *e)
{
	struct pass *p = arg;

	return wanted(p) ? give(p, block_kind(e), index_of(p, sp), e->block) : 0;
}

/* Gives events that are about no block. */
static int on_other(struct pass *p, const struct event *e)
{
	const char *name =
	    e->space && p->x->feed.space ? p->x->feed.space(p->x->feed.self, e->space) : NULL;
	uint32_t space = name ? export_space_index(p->x, name) : EXPORT_HOST;

	switch (e->kind) {
	case EV_ALLOC:
	case EV_FREE:
	case EV_UNFREE:
	case EV_SPACE_ALLOC:
	case EV_SPACE_FREE:
	case EV_SPACE_UNFREE:
	case EV_SPACE_CLEAR:
		return 0;
	case EV_MAP:
		return give(p, EXPORT_MAP, EXPORT_HOST, NULL);
	case EV_UNMAP:
		return give(p, EXPORT_UNMAP, EXPORT_HOST, NULL);
	case EV_UNUNMAP:
		return give(p, EXPORT_UNUNMAP, EXPORT_HOST, NULL);
	case EV_FAILED:
		return give(p, EXPORT_FAILED, space, NULL);
	case EV_MARK:
		return give(p, EXPORT_MARK, EXPORT_HOST, NULL);
	case EV_LEVEL:
	case EV_OUTSIDE:
		return give(p, EXPORT_LEVEL, space, NULL);
	default:
		return give(p, EXPORT_OTHER, space, NULL);
	}
}

static int add_level(struct points *c, const struct levels *l, uint32_t key, uint64_t time_ns)
{
	uint64_t value;

	return levels_get(l, key, &value) ? points_add(c, time_ns, value) : 0;
}

/* Each event changes few curves, and an unchanged value costs a comparison. */
static int add_points(struct pass *p, const struct event *e)
{
	const struct spaces *s = p->m->spaces;
	int rc = points_add(&p->live[0], e->time_ns, p->m->blocks.bytes + p->m->maps.bytes);

	if (!rc && e->kind == EV_LEVEL)
		rc = add_level(&p->free[0], &p->m->measured.levels, TRACE_LEVEL_RSS, e->time_ns);
	if (e->kind == EV_ALLOC || e->kind == EV_FREE)
		return rc;
	for (uint32_t i = 0; s && !rc && i < s->count && i + 1 < p->x->name_count; i++) {
		const struct model *m = s->list[i]->model;

		rc = points_add(&p->live[i + 1], e->time_ns, m->blocks.bytes + m->maps.bytes);
		if (!rc)
			rc = add_level(
			    &p->free[i + 1], &m->measured.levels, TRACE_LEVEL_DEV_FREE, e->time_ns);
		if (!rc)
			rc = add_level(&p->reserved[i + 1], &m->measured.levels,
			    TRACE_LEVEL_RESERVED, e->time_ns);
	}
	return rc;
}

/* The model does not count what was seen from outside either. */
static bool counts(const struct export *x, const struct event *e)
{
	bool block = e->kind == EV_ALLOC || e->kind == EV_FREE || e->kind == EV_UNFREE;

	return e->kind != EV_OUTSIDE && !(x->to->devices && block);
}

static bool is_last(const struct pass *p)
{
	return p->x->to->devices && p->number >= p->x->options.until.others;
}

static bool is_later(const struct export *x, const struct event *e)
{
	return x->to->devices && e->time_ns > x->options.until.time_ns;
}

static int rewind_feed(const struct export *x, struct err *err)
{
	return x->to->devices ? feed_rewind_spaces(&x->feed, err)
			      : x->feed.rewind(x->feed.self, err);
}

static int on_event(struct pass *p, const struct event *e)
{
	int rc;

	p->now = e;
	p->number += counts(p->x, e);
	rc = model_apply(p->m, e, p->err);
	if (!rc && wanted(p))
		rc = on_other(p, e);
	if (!rc && (p->x->to->needs & EXPORT_CURVES))
		rc = add_points(p, e);
	feed_passed(&p->x->feed, p->number);
	return rc;
}

static int read_events(struct pass *p)
{
	const struct feed *feed = &p->x->feed;
	struct event e;
	int rc = rewind_feed(p->x, p->err);

	feed_progress(feed, "exporting");
	while (!rc && !is_last(p) && (rc = feed->next(feed->self, &e, p->err)) == 1) {
		rc = 0;
		if (is_later(p->x, &e))
			break;
		rc = on_event(p, &e);
		if (!rc)
			rc = p->x->out->failed;
	}
	progress_end();
	return rc;
}

struct telling {
	struct pass *p;
	struct export_curve curve;
};

static int give_point(void *arg, uint64_t time_ns, uint64_t value)
{
	const struct telling *t = arg;

	return t->p->x->to->point(t->p->x, &t->curve, time_ns, value, t->p->err);
}

static int give_curves(struct pass *p)
{
	int rc = 0;

	for (uint32_t i = 0; p->x->to->point && !rc && i < p->x->name_count; i++) {
		struct telling live = {p, {CURVE_LIVE, i}};
		struct telling level = {p, {i ? CURVE_FREE : CURVE_RSS, i}};
		struct telling reserved = {p, {CURVE_RESERVED, i}};

		rc = points_each(&p->live[i], give_point, &live);
		if (!rc)
			rc = points_each(&p->free[i], give_point, &level);
		if (!rc)
			rc = points_each(&p->reserved[i], give_point, &reserved);
	}
	return rc;
}

/* Count the events until the moment, which only a pass over them can. */
static int count_until(const struct export *x, uint64_t *out, struct err *err)
{
	struct event e;
	int rc = rewind_feed(x, err);

	*out = 0;
	while (!rc && (rc = x->feed.next(x->feed.self, &e, err)) == 1) {
		rc = 0;
		if (is_later(x, &e))
			break;
		*out += counts(x, &e);
	}
	return rc;
}

/* Find the number of the first event that is wanted. */
static int find_first(struct export *x, struct err *err)
{
	const struct export_until *until = &x->options.until;
	uint64_t last = x->options.last_events, count = x->all->run.events;
	int rc = 0;

	x->first = x->options.events ? 1 : UINT64_MAX;
	if (!last || !x->options.events)
		return 0;
	if (x->to->devices && until->time_ns != UINT64_MAX)
		rc = count_until(x, &count, err);
	else if (x->to->devices)
		count = until->others < x->all->run.others ? until->others : x->all->run.others;
	if (count > last)
		x->first = count - last + 1;
	return rc;
}

int export_events(struct export *x, struct err *err)
{
	struct pass p = {.x = x, .err = err};
	int rc;

	if (!(x->to->needs & EXPORT_CURVES) &&
	    !(x->to->event && (x->options.events || x->to->devices)))
		return 0;
	rc = find_first(x, err);
	if (rc)
		return rc;
	p.live = calloc(3 * (size_t)x->name_count, sizeof(*p.live));
	p.free = p.live + x->name_count;
	p.reserved = p.free + x->name_count;
	rc = p.live ? model_new(x->feed, &p.m, err) : -ENOMEM;
	if (!rc) {
		p.m->options.witness = (struct witness){&p, on_block};
		p.m->options.space_witness = (struct space_witness){&p, on_space_block};
		rc = read_events(&p);
	}
	if (!rc)
		rc = give_curves(&p);
	for (uint32_t i = 0; p.live && i < 3 * x->name_count; i++)
		points_fini(&p.live[i]);
	free(p.live);
	model_free(p.m);
	return export_failed(x, rc, err);
}
