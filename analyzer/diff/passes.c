/*
 * passes.c - the two passes over a side's events. The first sums up each stack and finds each
 * space's moment; the second follows each line until then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff/phases.h"
#include "model/space/space_map.h"
#include "util/num.h"
#include "util/progress.h"
#include "verdict/request/stages.h"

struct pass;
/* The observer of one space. */
struct listener {
	struct pass *pass;
	struct side_space *space;
	struct model *model;
};

struct pass {
	struct side *side;
	struct model *model; /* of the process */
	struct listener list[SPACES_MAX + 1]; /* as in side->spaces */
	bool second;
	uint32_t thread; /* of the event that is applied */
	uint64_t time_ns;
	uint32_t attached; /* of the model's spaces */
	bool reached; /* a space has just reached its moment */
	struct stages stages;
	struct requests *requests;
	int rc; /* of an observer */
};

static void sum_up(struct pass *p, struct side_space *space, uint32_t stack,
    enum stack_stats_kind kind, struct alike blocks)
{
	struct stack_sum *sum;

	if (vec_reach(&p->side->stacks, stack + 1u)) {
		p->rc = -ENOMEM;
		return;
	}
	sum = &p->side->stacks.items[stack];
	sum->bytes += blocks.bytes;
	sum->count += blocks.count;
	sum->largest = num_most(sum->largest, blocks.size);
	sum->mapped |= kind != STACK_STATS_HEAP;
	space->acquired++;
	space->live += blocks.bytes;
	if (space->live > space->peak) {
		space->peak = space->live;
		space->peak_at = space->acquired;
	}
}

/* The part of the run's work that is being done. */
static uint32_t part_of(const struct side_space *space)
{
	return space->acquired
		   ? (uint32_t)((double)space->count / (double)space->acquired * SERIES_PARTS)
		   : 0;
}

static void reach_moment(struct pass *p, struct side_space *space)
{
	space->done = true;
	space->time_ns = p->time_ns;
	space->count_then = space->count;
	p->reached = true;
	for (size_t i = 0; i < p->side->sites.count; i++)
		series_mark(&space->series[i]);
	series_mark(&space->sum);
}

/* The chains' live bytes are those of the peak. */
static void reach_peak(const struct pass *p, struct side_space *space)
{
	for (size_t i = 0; i < p->side->chains.count; i++)
		space->sums[i].peak = space->sums[i].live;
}

/* What the pictures show of it; before the moment. */
static void count_acquired(
    const struct pass *p, struct side_space *space, uint32_t chain, uint64_t bytes)
{
	struct chain_sums *sums = &space->sums[chain];

	sums->live += bytes;
	sums->acquired += bytes;
	if (space->count + 1 == space->peak_at)
		reach_peak(p, space);
}

static void follow(struct pass *p, struct side_space *space, uint32_t stack, struct alike blocks)
{
	const struct stack_sum *sum = &p->side->stacks.items[stack];
	uint32_t part;
	int rc;

	/* A damaged trace may read differently a second time; it stays within bounds. */
	if (stack >= p->side->stacks.count || sum->site == SITE_NONE)
		return;
	part = part_of(space);
	rc = series_acquire(&space->series[sum->site], &p->side->arena, part, p->thread, blocks);
	if (!rc)
		rc = series_acquire(&space->sum, &p->side->arena, part, p->thread, blocks);
	if (rc)
		p->rc = rc;
	curve_points_change(space->curve, p->side, p->time_ns, space->sum.now.live);
	if (!space->done)
		space->chain_bytes[sum->chain] += blocks.bytes;
	if (!space->done && space->sums)
		count_acquired(p, space, sum->chain, blocks.bytes);
	if (++space->count == space->until && p->side->by_peak)
		reach_moment(p, space);
}

static void acquired(
    void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks, uint64_t time_ns)
{
	struct listener *l = arg;

	(void)time_ns;
	if (!model_counts(l->model, kind))
		return;
	if (l->pass->second)
		follow(l->pass, l->space, stack, blocks);
	else
		sum_up(l->pass, l->space, stack, kind, blocks);
}

static void released(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
    uint64_t birth_ns, uint64_t time_ns)
{
	struct listener *l = arg;
	struct side_space *space = l->space;
	const struct side *side = l->pass->side;
	const struct stack_sum *sum;
	uint32_t part;

	(void)birth_ns;
	(void)time_ns;
	if (!model_counts(l->model, kind))
		return;
	if (!l->pass->second) {
		space->live = num_less(space->live, blocks.bytes);
		return;
	}
	if (stack >= side->stacks.count)
		return;
	sum = &side->stacks.items[stack];
	if (sum->site == SITE_NONE)
		return;
	part = part_of(space);
	series_release(&space->series[sum->site], part, blocks);
	series_release(&space->sum, part, blocks);
	curve_points_change(space->curve, side, l->pass->time_ns, space->sum.now.live);
	if (!space->done && space->sums)
		space->sums[sum->chain].live = num_less(space->sums[sum->chain].live, blocks.bytes);
	if (side->by == DIFF_LIVE && !space->done)
		space->chain_bytes[sum->chain] =
		    num_less(space->chain_bytes[sum->chain], blocks.bytes);
}

static int space_add(struct side *s, const char *name, enum space_kind kind)
{
	struct side_space *space = calloc(1, sizeof(*space));

	if (!space)
		return -ENOMEM;
	snprintf(space->name, sizeof(space->name), "%s", name);
	space->kind = kind;
	s->spaces[s->space_count++] = space;
	return 0;
}

static void listen(struct pass *p, size_t index, struct model *model)
{
	struct listener *l = &p->list[index];

	*l = (struct listener){p, p->side->spaces[index], model};
	l->space->watched = true;
	model->options.observer = (struct observer){l, acquired, released};
}

/* Listen to spaces that the last event created, and count the blocks that it made. */
static int listen_to_spaces(struct pass *p)
{
	const struct spaces *all = p->model->spaces;

	for (; all && p->attached < all->count; p->attached++) {
		struct space *sp = all->list[p->attached];
		size_t index = 0;

		while (index < p->side->space_count &&
		       strcmp(p->side->spaces[index]->name, sp->name) != 0)
			index++;
		if (index == p->side->space_count) {
			int rc = p->second ? 0 : space_add(p->side, sp->name, sp->kind);

			if (rc || p->second)
				return rc;
		}
		listen(p, index, sp->model);
		for (uint32_t i = 0; i < all->used; i++) {
			const struct space_block *b = spaces_block(all, i);

			if (b->used && b->space == sp->index)
				acquired(&p->list[index], b->block.stack, STACK_STATS_HEAP,
				    ALIKE_ONE(b->block.size), p->time_ns);
		}
	}
	return 0;
}

static void layout_of(const struct space_map *map, struct diff_layout *out)
{
	out->known = true;
	out->segments = map->segments.count;
	out->segment_bytes = map->bytes;
	out->holes = map->holes;
	out->hole_bytes = map->hole_bytes;
	out->largest_hole = map->largest_hole;
}

static void free_inside(const struct model *m, uint64_t time_ns, struct diff_layout *out)
{
	const struct allocator_reading *malloc = allocator_stats_at(&m->measured.malloc, time_ns);
	const struct allocator_reading *arenas = allocator_stats_at(&m->measured.arenas, time_ns);

	out->malloc_known = malloc && malloc->split;
	out->malloc_free = out->malloc_known ? malloc->free : 0;
	out->arenas_known = arenas != NULL;
	out->arenas_free = arenas ? arenas->free : 0;
}

/* The layout of more would take more memory than the rest of the comparison. */
#define HOLES_BLOCKS 2000000u

/* Between the blocks of a sample lie others that are not recorded. */
static int settle_host(struct pass *p, struct side_space *space)
{
	const struct feed *feed = &p->side->feed;
	struct space_map map = {0};
	int rc = 0;

	free_inside(p->model, p->time_ns, &space->layout);
	if (feed->each_live && feed->facts(feed->self)->mode != TRACE_MODE_SAMPLED &&
	    p->model->blocks.count <= HOLES_BLOCKS) {
		rc = space_map_host(p->model, feed->each_live, feed->self, 0, &map);
		if (!rc)
			layout_of(&map, &space->layout);
		space_map_fini(&map);
	}
	return rc;
}

/* The model stands at the moment of these spaces: read what is not in the events. */
static int settle(struct pass *p)
{
	for (size_t i = 0; i < p->side->space_count; i++) {
		struct side_space *space = p->side->spaces[i];
		struct space_map map = {0};
		const struct space *sp;
		int rc = 0;

		if (!space->done || space->settled)
			continue;
		space->settled = true;
		sp = i ? spaces_find(p->model->spaces, space->name) : NULL;
		if (sp && (sp->kind == SPACE_TORCH || sp->kind == SPACE_CUDA)) {
			rc = space_map_make(p->model, sp, 0, &map);
			if (!rc)
				layout_of(&map, &space->layout);
			space_map_fini(&map);
		} else if (!i) {
			rc = settle_host(p, space);
		}
		if (rc)
			return rc;
		if (p->requests) {
			enum request_source source = requests_source(p->requests);

			if (source == REQUESTS_MARKED || source == REQUESTS_FRAMES)
				space->requests = p->requests->begun;
		}
	}
	return 0;
}

static int apply(struct pass *p, const struct event *e, struct err *err)
{
	int rc;

	p->reached = false;
	p->thread = e->thread;
	p->time_ns = e->time_ns;
	if (p->requests && requests_apply(p->requests, e))
		return err_set(err, -ENOMEM, "no memory for the requests");
	rc = model_apply(p->model, e, err);
	if (rc)
		return rc;
	rc = listen_to_spaces(p);
	if (!rc)
		rc = p->rc;
	if (!rc && p->reached)
		rc = settle(p);
	return rc ? err_set(err, rc, "no memory for the comparison") : 0;
}

static int pass_run(struct pass *p, const char *what, struct err *err)
{
	struct side *s = p->side;
	struct feed feed = s->feed;
	struct event e;
	int rc = model_new(feed, &p->model, err);

	if (rc)
		return rc;
	listen(p, 0, p->model);
	feed_progress(&feed, what);
	rc = feed.rewind(feed.self, err);
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns > s->until_ns)
			break;
		rc = apply(p, &e, err);
		if (rc || (s->at_failure && e.kind == EV_FAILED && e.time_ns == s->until_ns))
			break;
		feed_passed(&feed, p->model->run.events);
	}
	progress_end();
	return rc < 0 ? rc : 0;
}

int side_sum(struct side *s, struct err *err)
{
	struct pass p = {.side = s};
	int rc = space_add(s, "host", SPACE_OTHER);

	if (!rc)
		rc = vec_reach(&s->stacks, 1);
	if (rc)
		return err_set(err, rc, "no memory for the comparison");
	rc = pass_run(&p, "reading", err);
	model_free(p.model);
	for (size_t i = 0; i < s->space_count; i++)
		s->spaces[i]->until = s->by_peak ? s->spaces[i]->peak_at : s->spaces[i]->acquired;
	return rc;
}

static int prepare(struct side *s, struct pass *p)
{
	for (size_t i = 0; i < s->space_count; i++) {
		struct side_space *space = s->spaces[i];

		space->series = calloc(s->sites.count + 1, sizeof(*space->series));
		space->chain_bytes = calloc(s->chains.count + 1, sizeof(*space->chain_bytes));
		space->curve = curve_points_new();
		if (s->pictures)
			space->sums = calloc(s->chains.count + 1, sizeof(*space->sums));
		if (!space->series || !space->chain_bytes || !space->curve ||
		    (s->pictures && !space->sums))
			return -ENOMEM;
	}
	stages_init(&p->stages, &s->feed, s->verdict.frameworks.frames);
	p->requests = stages_requests(&p->stages);
	return p->requests ? 0 : -ENOMEM;
}

int side_read(struct side *s, struct err *err)
{
	struct pass p = {.side = s, .second = true};
	int rc = prepare(s, &p);

	if (rc)
		err_set(err, rc, "no memory for the comparison");
	else
		rc = pass_run(&p, "following each line", err);
	for (size_t i = 0; i < s->space_count && !rc; i++) {
		struct side_space *space = s->spaces[i];

		if (!space->done)
			reach_moment(&p, space);
		for (size_t k = 0; k < s->sites.count; k++)
			series_finish(&space->series[k]);
		series_finish(&space->sum);
		curve_points_end(space->curve, s, s->until_ns);
	}
	if (!rc && (rc = settle(&p)))
		err_set(err, rc, "no memory for the comparison");
	if (!rc) {
		enum request_source source = requests_source(p.requests);

		s->marks = source == REQUESTS_MARKED || source == REQUESTS_FRAMES;
		s->requests.begun = p.requests->begun;
		s->requests.finished = p.requests->finished;
		s->requests.at_once = p.requests->most_at_once;
		s->requests.largest = p.requests->finished_peak;
	}
	requests_free(p.requests);
	model_free(p.model);
	return rc;
}
