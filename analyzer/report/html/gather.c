/* gather.c - the pass over the events: what each space's stacks and call sites held when. */
#include "report/html/page_parts.h"

#include <stdlib.h>
#include <string.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/progress.h"
#include "verdict/ledger/classes.h"

_Static_assert(CURVE_CLASSES == CLASS_COUNT + 1, "each class has a group");

/* The call site, by size, and its class. */
static void find_callsite(const struct page_space *sp, struct page_stack *s)
{
	static const enum stack_stats_kind kinds[] = {STACK_STATS_HEAP, STACK_STATS_MAP,
	    STACK_STATS_SHARED, STACK_STATS_FILE, STACK_STATS_COPY};

	s->place = PAGE_NO_PLACE;
	s->class = CLASS_COUNT;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint32_t at = callsites_of_stack(sp->callsites, kinds[i], s->stack);

		if (at == CALLSITE_NONE)
			continue;
		s->place = sp->places[at];
		if (sp->callsites->classes[at])
			s->class = sp->callsites->classes[at] - 1u;
		return;
	}
}

static struct page_stack *add_stack(struct page_space *sp, uint32_t stack)
{
	struct page_stack new = {.stack = stack, .epoch = sp->epoch};

	find_callsite(sp, &new);
	return vec_push(&sp->stacks, new) ? NULL : &sp->stacks.items[sp->stacks.count - 1];
}

static struct page_stack *find_or_add(struct page_space *sp, uint32_t stack)
{
	struct page_stack *s;
	uint64_t *slot;

	if (!sp->space) {
		if (vec_reach(&sp->dense, (size_t)stack + 1))
			return NULL;
		if (sp->dense.items[stack])
			return &sp->stacks.items[sp->dense.items[stack] - 1];
		s = add_stack(sp, stack);
		sp->dense.items[stack] = s ? (uint32_t)sp->stacks.count : 0;
		return s;
	}
	slot = map_put(&sp->sparse, stack);
	if (!slot)
		return NULL;
	if (*slot)
		return &sp->stacks.items[*slot - 1];
	s = add_stack(sp, stack);
	*slot = s ? sp->stacks.count : 0;
	return s;
}

const struct page_stack *page_stack_find(const struct page_space *sp, uint32_t stack)
{
	const uint64_t *slot;

	if (!sp->space)
		return stack < sp->dense.count && sp->dense.items[stack]
			   ? &sp->stacks.items[sp->dense.items[stack] - 1]
			   : NULL;
	slot = map_find(&sp->sparse, stack);
	return slot && *slot ? &sp->stacks.items[*slot - 1] : NULL;
}

/* The stack's sums, ready to change: those of the last peak are kept. NULL: no memory. */
static struct page_stack *stack_of(struct page_space *sp, uint32_t stack)
{
	struct page_stack *s = find_or_add(sp, stack);

	if (!s) {
		sp->error = -ENOMEM;
		return NULL;
	}
	if (s->epoch != sp->epoch) {
		s->measures[AT_ITS_PEAK] = s->live;
		s->epoch = sp->epoch;
	}
	return s;
}

static void curves_change(
    struct page_space *sp, const struct page_stack *s, uint64_t time_ns, int64_t bytes)
{
	curve_change(&sp->whole, time_ns, s->place, s->class, bytes);
	curve_change(&sp->late, time_ns, s->place, s->class, bytes);
}

/* Mappings come without their worker: a thread's are known by where and when they were made. */
static uint64_t mapping_key(uint32_t stack, uint64_t birth_ns)
{
	return (uint64_t)stack * 0x9e3779b97f4a7c15u ^ birth_ns;
}

/* The stack that stands for its call site. */
static uint32_t like_stack(const struct page_space *sp, uint32_t stack)
{
	const struct page_stack *s = page_stack_find(sp, stack);

	return s && s->place != PAGE_NO_PLACE ? sp->callsites->list[sp->of_place[s->place]].stack
					      : 0;
}

static struct group_of groups_of(
    struct page_space *sp, uint32_t stack, uint32_t thread, uint32_t task, uint64_t birth_ns)
{
	struct work *w = &sp->page->work;
	enum role stage = work_stage(w, stack);

	return (struct group_of){{sp->page->threads && thread < PAGE_THREADS ? thread : GROUP_NONE,
				     stage == ROLE_NONE ? GROUP_NONE : (uint32_t)stage,
				     work_request_at(w, thread, task, birth_ns)},
	    groups_full(&sp->groups) ? like_stack(sp, stack) : 0};
}

static int group_acquired(struct page_space *sp, uint32_t stack, uint32_t thread, uint32_t task,
    uint64_t birth_ns, struct alike blocks, uint64_t time_ns)
{
	struct group_of of = groups_of(sp, stack, thread, task, birth_ns);

	return groups_acquired(&sp->groups, &of, stack, blocks.bytes, blocks.count, time_ns);
}

static int group_released(struct page_space *sp, uint32_t stack, uint32_t thread, uint32_t task,
    uint64_t birth_ns, uint64_t bytes)
{
	struct group_of of = groups_of(sp, stack, thread, task, birth_ns);

	return groups_released(&sp->groups, &of, stack, bytes);
}

/* The block that the event released was temporary. 0 or -ENOMEM. */
static int group_temporary(struct page_space *sp, const struct event *e)
{
	const struct block *b = e->block;
	struct group_of of = groups_of(sp, b->stack, b->thread, b->task, b->birth_ns);

	return groups_temporary(&sp->groups, &of, b->stack, block_bytes(b));
}

/* A block was acquired or released. */
static void on_block(struct page_space *sp, const struct event *e)
{
	const struct block *b = e->block;
	struct alike blocks;
	int rc;

	if (!b)
		return;
	blocks = (struct alike){.bytes = block_bytes(b), .count = block_count(b)};
	rc =
	    e->kind == EV_FREE
		? group_released(sp, b->stack, b->thread, b->task, b->birth_ns, blocks.bytes)
		: group_acquired(sp, b->stack, b->thread, b->task, b->birth_ns, blocks, e->time_ns);
	if (rc)
		sp->error = rc;
}

static void mapping_acquired(
    struct page_space *sp, uint32_t stack, struct alike blocks, uint64_t time_ns)
{
	const struct event *e = sp->page->event;
	uint64_t *slot = map_put(&sp->mappings, mapping_key(stack, time_ns));

	if (slot)
		*slot = (uint64_t)e->thread << 32 | e->task;
	if (!slot || group_acquired(sp, stack, e->thread, e->task, time_ns, blocks, time_ns))
		sp->error = -ENOMEM;
}

static void mapping_released(
    struct page_space *sp, uint32_t stack, uint64_t bytes, uint64_t birth_ns)
{
	const uint64_t *slot = map_find(&sp->mappings, mapping_key(stack, birth_ns));

	if (slot &&
	    group_released(sp, stack, (uint32_t)(*slot >> 32), (uint32_t)*slot, birth_ns, bytes))
		sp->error = -ENOMEM;
}

static void acquired(
    void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks, uint64_t time_ns)
{
	struct page_space *sp = arg;
	struct page_stack *s = stack_of(sp, stack);

	if (!s)
		return;
	sp->changes++;
	s->live += blocks.bytes;
	s->measures[IN_ALL] += blocks.bytes;
	s->measures[COUNTED] += blocks.count;
	sp->live += blocks.bytes;
	if (sp->live > sp->peak) {
		sp->peak = sp->live;
		sp->peak_ns = time_ns;
		sp->epoch++;
	}
	curves_change(sp, s, time_ns, (int64_t)blocks.bytes);
	if (slices_acquired(&sp->slices, s->place, time_ns, blocks.bytes, blocks.count))
		sp->error = -ENOMEM;
	if (sp->page->grouped && kind != STACK_STATS_HEAP)
		mapping_acquired(sp, stack, blocks, time_ns);
	else if (sp->page->grouped && !sp->space)
		on_block(sp, sp->page->event);
}

static void released(void *arg, uint32_t stack, enum stack_stats_kind kind, struct alike blocks,
    uint64_t birth_ns, uint64_t time_ns)
{
	struct page_space *sp = arg;
	struct page_stack *s = stack_of(sp, stack);

	if (!s)
		return;
	sp->changes++;
	s->live = num_less(s->live, blocks.bytes);
	sp->live = num_less(sp->live, blocks.bytes);
	curves_change(sp, s, time_ns, -(int64_t)blocks.bytes);
	if (slices_released(&sp->slices, s->place, birth_ns, time_ns, blocks.bytes, blocks.count))
		sp->error = -ENOMEM;
	if (sp->page->grouped && kind != STACK_STATS_HEAP)
		mapping_released(sp, stack, blocks.bytes, birth_ns);
	else if (sp->page->grouped && !sp->space)
		on_block(sp, sp->page->event);
}

/* One pass is for the host alone, in sums; another, without its blocks, for all other spaces. */
struct pass {
	struct page *page;
	struct model *m;
	uint32_t first, end; /* the page's spaces that it fills */
	uint32_t known; /* spaces of the model that were looked at */
	bool taken; /* the moment is behind */
};

static struct page_space *page_space_of(struct page *page, const char *name)
{
	for (uint32_t i = 1; i < page->count; i++)
		if (!strcmp(page->spaces[i].name, name))
			return &page->spaces[i];
	return NULL;
}

/* A block of one of the other spaces. */
static int on_space_block(void *arg, const struct space *space, const struct event *e)
{
	struct page *page = arg;
	struct page_space *sp = page_space_of(page, space->name);
	int rc;

	if (sp && sp->page->grouped)
		on_block(sp, e);
	rc = temporary_space_note(&page->temporary, space, e);
	if (!rc && sp && page->grouped && page->temporary.found)
		rc = group_temporary(sp, e);
	return rc ? rc : sp ? sp->error : 0;
}

/* Observes the spaces that the event created; it was their first. */
static void watch_spaces(struct pass *p, const struct event *e)
{
	const struct spaces *s = p->m->spaces;

	for (; s && p->known < s->count; p->known++) {
		struct model *m = s->list[p->known]->model;
		struct page_space *sp = page_space_of(p->page, s->list[p->known]->name);

		if (!sp)
			continue;
		m->options.observer = (struct observer){sp, acquired, released};
		if (m->blocks.bytes)
			acquired(sp, e->stack, STACK_STATS_HEAP,
			    (struct alike){m->blocks.bytes, m->blocks.count, m->blocks.bytes, 0},
			    e->time_ns);
	}
}

static void note_level(struct page_space *sp, const char *name, uint64_t time_ns, uint64_t value)
{
	uint64_t end = sp->page->end_ns;
	uint64_t at = end ? (uint64_t)((double)time_ns / (double)end * CURVE_BUCKETS) : 0;

	sp->level.name = name;
	sp->level.at[num_least(at, CURVE_BUCKETS - 1)] = value;
}

/* What others count: resident bytes, what PyTorch reserved, what a device has in use. */
static void read_levels(struct pass *p, const struct event *e)
{
	uint64_t value, total;

	if (!p->first) {
		if (e->kind == EV_LEVEL && e->space == TRACE_SPACE_HOST &&
		    event_level(e, TRACE_LEVEL_RSS, &value))
			note_level(&p->page->spaces[0], "resident", e->time_ns, value);
		return;
	}
	if (e->space == TRACE_SPACE_HOST || !p->m->spaces)
		return;
	for (uint32_t i = 0; i < p->m->spaces->count; i++) {
		const struct space *space = p->m->spaces->list[i];
		const struct levels *levels = &space->model->measured.levels;
		struct page_space *sp = page_space_of(p->page, space->name);

		if (!sp)
			continue;
		if (space->kind == SPACE_TORCH && levels_get(levels, TRACE_LEVEL_RESERVED, &value))
			note_level(sp, "reserved", e->time_ns, value);
		if (space->kind == SPACE_CUDA &&
		    levels_get(levels, TRACE_LEVEL_DEV_TOTAL, &total) &&
		    levels_get(levels, TRACE_LEVEL_DEV_FREE, &value))
			note_level(sp, "in use on the device", e->time_ns, num_less(total, value));
	}
}

static bool may_map(const struct page_space *sp, uint32_t stacks)
{
	uint32_t live = 0;

	for (size_t i = 0; i < sp->stacks.count; i++)
		live += sp->stacks.items[i].live > 0;
	return live && live <= stacks;
}

int page_make_map(const struct page_space *sp, const struct model *m, uint32_t stacks,
    struct space_map *out, bool *made)
{
	const struct feed *feed = &sp->page->feed;
	struct space *space = sp->space ? spaces_find(m->spaces, sp->name) : NULL;
	int rc;

	*made = false;
	if (!may_map(sp, stacks) || (sp->space && !space) ||
	    (space && space->kind != SPACE_TORCH && space->kind != SPACE_CUDA &&
		space->kind != SPACE_POOL &&
		!(sp->page->asked && !strcmp(space->name, sp->page->asked->space))))
		return 0;
	rc = space ? space_map_make(m, space, sp->request, out)
		   : space_map_host(m, feed->each_live, feed->self, sp->request, out);
	*made = !rc;
	return rc;
}

static int make_map(struct pass *p, struct page_space *sp)
{
	struct page *page = p->page;
	int rc = page_make_map(sp, p->m, PAGE_MAP_STACKS, &sp->map, &sp->mapped);

	if (!rc && sp->mapped && sp == &page->spaces[page->first] &&
	    (!page->asked || page->asked->time_ns == page->moment_ns))
		map_table(&sp->map, &page->map_table);
	return rc;
}

/* Notes what lives at the moment. */
static int take(struct pass *p)
{
	int rc = 0;

	p->taken = true;
	for (uint32_t i = p->first; i < p->end && !rc; i++) {
		struct page_space *sp = &p->page->spaces[i];

		sp->at_moment = sp->live;
		for (size_t k = 0; k < sp->stacks.count; k++)
			sp->stacks.items[k].measures[AT_THE_MOMENT] = sp->stacks.items[k].live;
		groups_take(&sp->groups);
		moments_own(sp);
		rc = make_map(p, sp);
	}
	return rc;
}

/* Bytes that a checkpoint only has the sums of. */
static void add_sums(struct page_space *sp, const struct event *e)
{
	struct page_stack *s = stack_of(sp, e->stack);

	if (!s || e->space != TRACE_SPACE_HOST)
		return;
	s->measures[IN_ALL] = num_sum(s->measures[IN_ALL], e->u.went.bytes);
	s->measures[COUNTED] = num_sum(s->measures[COUNTED], e->u.went.count);
}

/* Make the maps of the moments that are over before the event, which is not applied yet. */
static int on_time(struct pass *p, const struct event *e)
{
	struct page *page = p->page;
	bool own = !p->taken && e->time_ns > page->moment_ns;
	int rc = 0;

	for (uint32_t i = p->first; i < p->end && !rc; i++) {
		if (!moments_due(&page->spaces[i], e->time_ns))
			continue;
		model_ahead(p->m, e);
		rc = moments_take(&page->spaces[i], p->m, e->time_ns);
	}
	if (own && !rc) {
		model_ahead(p->m, e);
		rc = take(p);
	}
	if (p->m->ahead.any)
		model_ahead(p->m, NULL);
	return rc;
}

static int on_event(struct pass *p, const struct event *e, struct err *err)
{
	struct page *page = p->page;
	int rc;

	page->event = e;
	rc = on_time(p, e);
	if (!rc && !p->first)
		rc = work_apply(&page->work, e);
	if (!rc)
		rc = model_apply(p->m, e, err);
	if (!rc && !p->first)
		rc = temporary_note(&page->temporary, e);
	if (!rc && !p->first && page->grouped && page->temporary.found)
		rc = group_temporary(&page->spaces[0], e);
	if (rc)
		return rc;
	watch_spaces(p, e);
	if (e->level_count)
		read_levels(p, e);
	if (e->kind == EV_WENT && !p->first)
		add_sums(&page->spaces[0], e);
	if (!p->taken && e->kind == EV_FAILED && e->time_ns == page->moment_ns)
		rc = take(p);
	for (uint32_t i = p->first; i < p->end && !rc; i++)
		rc = page->spaces[i].error;
	return rc;
}

static int finish(struct page_space *sp, const struct pass *p)
{
	const struct space *space = sp->space ? spaces_find(p->m->spaces, sp->name) : NULL;
	uint32_t number = space ? space->index + 1 : sp->space ? SPACES_MAX + 1 : 0;

	curve_end(&sp->whole);
	curve_end(&sp->late);
	for (size_t i = 0; i < sp->stacks.count; i++) {
		struct page_stack *s = &sp->stacks.items[i];

		if (s->epoch != sp->epoch)
			s->measures[AT_ITS_PEAK] = s->live;
		s->measures[TEMPORARY] = temporary_bytes(&p->page->temporary, number, s->stack);
	}
	map_free(&sp->mappings);
	return groups_end(&sp->groups);
}

/* The model of a pass: the host's has only sums. 0; negative errno with err. */
static int begin_pass(struct pass *p, struct err *err)
{
	struct page *page = p->page;
	int rc = model_new(page->feed, &p->m, err);

	if (rc)
		return rc;
	page->temporary = (struct temporary){.until_ns = UINT64_MAX};
	p->m->options = temporary_options(&page->temporary);
	p->m->options.sums = !p->first;
	if (!p->first)
		p->m->options.observer = (struct observer){&page->spaces[0], acquired, released};
	else
		p->m->options.space_witness = (struct space_witness){page, on_space_block};
	return 0;
}

/* 0 or -ENOMEM. */
static int end_pass(struct pass *p)
{
	int rc = 0;

	for (uint32_t i = p->first; i < p->end; i++)
		if (finish(&p->page->spaces[i], p))
			rc = -ENOMEM;
	temporary_fini(&p->page->temporary);
	model_free(p->m);
	feed_rest(&p->page->feed);
	return rc;
}

static int read_pass(struct page *page, uint32_t first, uint32_t end, struct err *err)
{
	struct pass p = {.page = page, .first = first, .end = end};
	const struct feed *feed = &page->feed;
	struct event e;
	int rc = begin_pass(&p, err);

	if (rc)
		return rc;
	feed_progress(feed, "drawing");
	rc = first ? feed_rewind_spaces(feed, err) : feed->rewind(feed->self, err);
	while (rc == 0 && (rc = feed->next(feed->self, &e, err)) == 1) {
		rc = on_event(&p, &e, err);
		feed_passed(feed, p.m->run.events);
	}
	for (uint32_t i = first; i < end && !rc; i++)
		rc = moments_take(&page->spaces[i], p.m, UINT64_MAX);
	if (!rc && !p.taken)
		rc = take(&p);
	progress_end();
	if (end_pass(&p) && !rc)
		rc = -ENOMEM;
	return rc;
}

int page_read_events(struct page *page, struct err *err)
{
	int rc = read_pass(page, 0, 1, err);

	if (!rc && page->count > 1)
		rc = read_pass(page, 1, page->count, err);
	if (rc == -ENOMEM)
		err_set(err, rc, "no memory for the page");
	return rc;
}
