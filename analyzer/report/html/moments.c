/*
 * moments.c - further moments of a space, whose maps a reader can step through: the peak, the end,
 * steps over the run, and steps that come ever closer to the failure. Each map is made when the
 * pass over the events is there, and kept as the few bytes that the page needs of it.
 */
#include "report/html/page_parts.h"

#include <string.h>

#include "model/space/space.h"
#include "util/num.h"

#define RUN_STEPS 5u /* between the first event and the page's moment */
/* Steps before the failure: as early as the finer curve begins, then a tenth of that, and so on. */
#define LATE_STEPS 3u
#define LATE_FACTOR 10u
/* A step is made where it costs little: its blocks are sorted, and its stacks named. The peak, the
 * end and the moment that was asked for are made as the page's own moment is. */
#define STEP_STACKS 5000u
#define STEP_BLOCKS 200000u
/* Pieces of all further maps together; no fewer for one than an overview needs. */
#define ALL_PIECES 36000u
#define LEAST_PIECES 400u

static void add(struct page *page, struct page_space *sp, enum page_moment_kind kind, uint64_t ns)
{
	uint32_t at = sp->moment_count;

	if (at == PAGE_MOMENTS || ns == page->moment_ns)
		return;
	for (uint32_t i = 0; i < at; i++)
		if (sp->moments[i].time_ns == ns) {
			if (kind != MOMENT_STEP)
				sp->moments[i].kind = kind;
			return;
		}
	for (; at > 0 && sp->moments[at - 1].time_ns > ns; at--)
		sp->moments[at] = sp->moments[at - 1];
	sp->moments[at] = (struct page_moment){.time_ns = ns, .kind = kind};
	sp->moment_count++;
}

void moments_choose(struct page *page, struct page_space *sp)
{
	const struct model *m = sp->space ? sp->space->model : page->r->model;
	bool failed = page->r->failure.kind != FAILURE_NONE;
	uint64_t until = failed ? page->moment_ns : page->end_ns;
	uint64_t first = m->run.events ? num_least(m->run.first_ns, until) : until;
	uint64_t late = num_less(until, sp->late.from_ns);

	sp->own_changes = UINT64_MAX;
	if (page->asked && !strcmp(page->asked->space, sp->name))
		add(page, sp, MOMENT_ASKED, page->asked->time_ns);
	add(page, sp, MOMENT_PEAK, m->peak.time_ns);
	add(page, sp, MOMENT_END, page->r->model->run.last_ns);
	for (uint32_t i = 1; i <= RUN_STEPS; i++) {
		uint64_t ns = first + (until - first) / (RUN_STEPS + 1) * i;

		/* The finer curve has steps of its own, unless it is the space's whole life. */
		if (!failed || ns < sp->late.from_ns || sp->late.from_ns <= first)
			add(page, sp, MOMENT_STEP, ns);
	}
	for (uint32_t i = 0; i < LATE_STEPS && failed; i++, late /= LATE_FACTOR)
		add(page, sp, MOMENT_STEP, until - late);
}

static void drop(struct page_moment *m)
{
	str_free(&m->map);
	m->map = (struct str){0};
}

void moments_own(struct page_space *sp)
{
	sp->own_changes = sp->changes;
	for (uint32_t i = 0; i < sp->moments_taken; i++)
		if (sp->moments[i].changes == sp->changes)
			drop(&sp->moments[i]);
}

/* A step is left out if nothing changed until the next moment. */
static void drop_equal(struct page_space *sp, uint32_t at)
{
	struct page_moment *m = sp->moments;

	if (at && m[at - 1].changes == m[at].changes && m[at - 1].kind == MOMENT_STEP)
		drop(&m[at - 1]);
}

static uint64_t pieces_of(const struct page *page)
{
	return num_most(LEAST_PIECES, ALL_PIECES / page->count / PAGE_MOMENTS);
}

static bool affordable(const struct page_space *sp, const struct model *m)
{
	const struct space *space = sp->space ? spaces_find(m->spaces, sp->name) : NULL;

	return sp->space ? space && space->model->blocks.count <= STEP_BLOCKS
			 : m->blocks.count <= STEP_BLOCKS;
}

static int take(struct page_space *sp, struct page_moment *at, const struct model *m)
{
	struct page *page = sp->page;
	bool step = at->kind == MOMENT_STEP, made;
	bool asked =
	    page->asked && sp == &page->spaces[page->first] && at->time_ns == page->asked->time_ns;
	struct space_map map = {0};
	int rc;

	at->changes = sp->changes;
	drop_equal(sp, (uint32_t)(at - sp->moments));
	if (at->changes == sp->own_changes && !asked)
		return 0;
	if (step && !affordable(sp, m))
		return 0;
	rc = page_make_map(sp, m, step ? STEP_STACKS : PAGE_MAP_STACKS, &map, &made);
	if (rc || !made)
		return rc;
	layout_write(page, &map, pieces_of(page) / 2, pieces_of(page), &at->map);
	if (asked)
		map_table(&map, &page->map_table);
	space_map_fini(&map);
	return at->map.failed ? -ENOMEM : 0;
}

int moments_take(struct page_space *sp, const struct model *m, uint64_t time_ns)
{
	int rc = 0;

	while (!rc && moments_due(sp, time_ns))
		rc = take(sp, &sp->moments[sp->moments_taken++], m);
	return rc;
}

void moments_write(struct page *page, const struct page_space *sp)
{
	for (uint32_t i = 0; i < sp->moment_count; i++) {
		const struct page_moment *m = &sp->moments[i];
		struct str body = {0};

		if (!m->map.length)
			continue;
		block_number(&body, m->kind);
		block_number(&body, m->time_ns);
		str_add(&body, str_text(&m->map), m->map.length);
		block_section(&page->block, SECTION_MOMENT, &body);
		str_free(&body);
	}
}

void moments_fini(struct page_space *sp)
{
	for (uint32_t i = 0; i < sp->moment_count; i++)
		str_free(&sp->moments[i].map);
	sp->moment_count = 0;
}
