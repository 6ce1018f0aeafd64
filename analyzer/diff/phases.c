/* phases.c - see phases.h. */
#include "diff/phases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

/* A phase takes at least this part of the run; a shorter one belongs to its neighbour. */
#define PHASE_PART 200u
/* Work has ended when less than this part of the peak is left. */
#define WORK_PART 2u

static uint64_t end_of(const struct side *s)
{
	return num_most(s->verdict.model->run.last_ns, s->feed.facts(s->feed.self)->last_ns);
}

static void add(struct side *s, const char *name, uint64_t from_ns, uint64_t until_ns)
{
	if (until_ns > from_ns && s->phase_count < SIDE_PHASES)
		s->phases[s->phase_count++] = (struct side_phase){name, from_ns, until_ns};
}

/* Without a failure the verdict's moment is the peak, and work goes on behind it: until most of
 * what lived then is released for good. */
static uint64_t work_end(const struct side *s)
{
	const struct model *m = s->verdict.model;
	const struct timeline *t = &m->timeline;
	uint32_t i = t->used;

	while (i && t->periods[i - 1].last < m->peak.bytes / WORK_PART)
		i--;
	return i && i < t->used ? (uint64_t)i << t->shift : end_of(s);
}

void phases_of_side(struct side *s)
{
	const struct phases *p = &s->verdict.flow.phases;
	bool goes_on = s->verdict.failure.kind == FAILURE_NONE;
	uint64_t end = end_of(s), least = end / PHASE_PART, at;

	s->phase_count = 0;
	if (!p->count)
		return;
	/* Phases that no marks tell begin with the first event: nothing is before it. */
	at = p->list[0].marked ? p->list[0].start_ns : 0;
	if (at > least)
		add(s, "start-up", 0, at);
	else
		at = 0;
	/* Until the next one begins: what lies between two belongs to the first. */
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t until = i + 1 < p->count ? p->list[i + 1].start_ns : p->list[i].end_ns;

		if (i + 1 == p->count && goes_on && !p->list[i].marked)
			until = num_most(until, work_end(s));
		if (i + 1 == p->count && end - num_least(end, until) <= least)
			until = end;
		add(s, p->list[i].name ? p->list[i].name : "unnamed", at, until);
		at = num_most(at, until);
	}
	if (end > at)
		add(s, "end", at, end);
}

/* The longest common sequence of names, from each pair of begins on. */
static void common(
    const struct side *a, const struct side *b, uint8_t length[SIDE_PHASES + 1][SIDE_PHASES + 1])
{
	memset(length, 0, sizeof(uint8_t[SIDE_PHASES + 1][SIDE_PHASES + 1]));
	for (uint32_t i = a->phase_count; i-- > 0;)
		for (uint32_t k = b->phase_count; k-- > 0;) {
			uint8_t skip = length[i + 1][k] > length[i][k + 1] ? length[i + 1][k]
									   : length[i][k + 1];

			length[i][k] = strcmp(a->phases[i].name, b->phases[k].name)
					   ? skip
					   : (uint8_t)(length[i + 1][k + 1] + 1);
		}
}

static void pair(struct diff_sides *sides, uint32_t a, uint32_t b)
{
	sides->phases[sides->phase_count++] = (struct phase_pair){a, b};
}

void phases_align(struct diff_sides *sides)
{
	struct side *a = &sides->a, *b = &sides->b;
	uint8_t length[SIDE_PHASES + 1][SIDE_PHASES + 1];
	uint32_t i = 0, k = 0;

	phases_of_side(a);
	phases_of_side(b);
	common(a, b, length);
	if (!length[0][0]) {
		a->phase_count = b->phase_count = 0;
		add(a, "run", 0, end_of(a));
		add(b, "run", 0, end_of(b));
		common(a, b, length);
	}
	sides->phase_count = 0;
	while (i < a->phase_count || k < b->phase_count) {
		bool both = i < a->phase_count && k < b->phase_count;

		if (both && !strcmp(a->phases[i].name, b->phases[k].name))
			pair(sides, i++, k++);
		else if (k == b->phase_count || (both && length[i + 1][k] >= length[i][k + 1]))
			pair(sides, i++, SITE_NONE);
		else
			pair(sides, SITE_NONE, k++);
	}
}

struct curve_points *curve_points_new(void)
{
	return calloc(1, sizeof(struct curve_points));
}

static uint64_t begin_of(const struct side_phase *p, uint32_t point)
{
	return p->from_ns + (uint64_t)((double)(p->until_ns - p->from_ns) * point / DIFF_POINTS);
}

static void begin_point(struct curve_points *c, const struct side *s)
{
	c->most[c->phase][c->point] = c->live;
	c->last[c->phase] = c->live;
	c->points[c->phase] = c->point + 1;
	c->next_ns = begin_of(&s->phases[c->phase], c->point + 1);
}

/* Ends points, and phases, until the one of that time. */
static void move_to(struct curve_points *c, const struct side *s, uint64_t time_ns)
{
	if (!s->phase_count || c->phase == s->phase_count)
		return;
	if (!c->begun) {
		c->begun = true;
		begin_point(c, s);
	}
	while (time_ns >= c->next_ns) {
		if (++c->point == DIFF_POINTS) {
			c->point = 0;
			/* The last phase takes what comes at its very end. */
			if (++c->phase == s->phase_count) {
				c->phase--;
				c->point = DIFF_POINTS - 1;
				c->next_ns = UINT64_MAX;
				return;
			}
		}
		begin_point(c, s);
	}
}

void curve_points_change(
    struct curve_points *c, const struct side *s, uint64_t time_ns, uint64_t live)
{
	if (time_ns >= c->next_ns)
		move_to(c, s, time_ns);
	c->live = live;
	if (!c->begun)
		return;
	c->most[c->phase][c->point] = num_most(c->most[c->phase][c->point], live);
	c->last[c->phase] = live;
}

void curve_points_end(struct curve_points *c, const struct side *s, uint64_t until_ns)
{
	move_to(c, s, num_least(until_ns, end_of(s)));
}

static void fill(
    const struct side *s, const struct side_space *space, uint32_t phase, struct diff_curve *out)
{
	const struct curve_points *c = space ? space->curve : NULL;

	/* A phase that began after the moment was not read. */
	if (!c || phase == SITE_NONE || !c->points[phase])
		return;
	*out = (struct diff_curve){.present = true,
	    .from_ns = s->phases[phase].from_ns,
	    .until_ns = s->phases[phase].until_ns,
	    .last = c->last[phase],
	    .points = c->points[phase],
	    .at = c->most[phase]};
	for (uint32_t i = 0; i < out->points; i++)
		out->most = num_most(out->most, out->at[i]);
}

int phases_compare(struct comparison *c)
{
	const struct diff_sides *sides = c->sides;
	uint32_t count = sides->phase_count;

	c->out->phases = arena_alloc(&c->result->arena, (count + 1) * sizeof(*c->out->phases));
	if (!c->out->phases)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct phase_pair *p = &sides->phases[i];
		struct diff_phase *out = &c->out->phases[i];

		out->name =
		    p->b != SITE_NONE ? sides->b.phases[p->b].name : sides->a.phases[p->a].name;
		fill(&sides->a, c->a, p->a, &out->a);
		fill(&sides->b, c->b, p->b, &out->b);
	}
	c->out->phase_count = count;
	return 0;
}
