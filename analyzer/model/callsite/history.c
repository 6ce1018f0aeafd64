/*
 * history.c - see history.h. The thresholds say from where on a shape is called by its name; they
 * are shares and ranks, never sizes, so that scaling a program changes nothing.
 */
#include "model/callsite/history.h"

#include <math.h>
#include <string.h>

#include "model/callsite/series.h"
#include "model/callsite/trend.h"

/* Of blocks that live: those as large as their step's largest hold nearly all bytes, so their
 * number is that of bytes by size. */
static uint64_t grown_bytes(const struct callsite *p)
{
	uint64_t grown = 0;

	for (uint32_t i = 0; i < p->step_count; i++) {
		uint64_t alive = p->steps[i].bytes - p->steps[i].freed_bytes, blocks, early;

		if (!alive || p->steps[i].max <= p->size.first)
			continue;
		blocks = (alive + p->steps[i].max - 1) / p->steps[i].max;
		early = blocks * p->size.first;
		grown += alive > early ? alive - early : 0;
	}
	return grown < p->live_bytes ? grown : p->live_bytes;
}

/* So many that ended are what is usual, and one that is so many times as large is not. */
#define ENDED_MIN 8u
#define UNUSUAL_TIMES 4u

/*
 * What grew is one object, which realloc() enlarged again and again while little else was done, and
 * many like it that had ended before stayed small: one piece of work that is out of series, and no
 * growth from each to the next.
 */
static bool grew_within_one(const struct callsite *p, const struct member *members, size_t count)
{
	uint64_t ended = 0, largest = 0;

	for (size_t i = 0; i < count; i++) {
		ended += stack_stats_ended_count(members[i].at);
		if (stack_stats_ended_largest(members[i].at) > largest)
			largest = stack_stats_ended_largest(members[i].at);
	}
	for (size_t i = 0; i < count && ended >= ENDED_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course c = stack_stats_course(s);

		if (c.object.serial && stack_stats_largest(s) == p->largest &&
		    largest <= stack_stats_largest(s) / UNUSUAL_TIMES &&
		    c.object.first <= largest &&
		    c.object.acquired >= (c.object.until - c.object.before) / 2)
			return true;
	}
	return false;
}

/* Of those given back, the share that came after one that was made before it, and one at a time.
 * Several who take from a queue are done with what they took in another order: of two three in
 * four, of ten eleven in twenty, and of what goes in no order half. What is older than the last one
 * given back has all gone nevertheless. What goes at once may be several's who work in step, if it
 * is little beside what waits; else a pile is dropped. */
#define IN_ORDER 0.55
#define BACKLOG_MIN 16u

/* The last one waited longer than all did on average, by so much: with a steady backlog they are
 * equal, with one that grows evenly it is twice as much. */
#define WAITS_LONGER 1.5

/* Of what lives, the blocks that were there when the last one was given back, in order: as far as
 * cohorts tell when they came. */
static double waited_then(const struct stack_stats *s, const struct stack_stats_order *last)
{
	double then = 0, at = 0;
	struct cohort own;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		double left = (double)(c->count - c->freed_count), part = 1;

		/* Those that were given back of it came first. */
		if (c->serial <= last->serial)
			at = (double)c->time_ns + (double)(c->last_ns - c->time_ns) *
						      (double)c->freed_count / (double)c->count;
		if ((double)c->last_ns > at + (double)last->life_ns)
			part = (at + (double)last->life_ns - (double)c->time_ns) /
			       (double)(c->last_ns - c->time_ns + 1);
		then += fmin(left, fmax(0, part * (double)c->count - (double)c->freed_count));
	}
	return then;
}

/* What goes at once is several's who work in step only while others wait meanwhile. */
#define WAITED_PART 16u

/* Of which most lives; NULL: there is none. */
static const struct stack_stats *heaviest(const struct member *members, size_t count)
{
	const struct stack_stats *s = NULL;

	for (size_t i = 0; i < count; i++)
		if (!s || stack_stats_live_bytes(members[i].at) > stack_stats_live_bytes(s))
			s = members[i].at;
	return s;
}

static void read_backlog(struct callsite *p, const struct member *members, size_t count)
{
	const struct stack_stats *s = heaviest(members, count);
	double in_step = 1;
	struct stack_stats_course course;
	uint64_t older = 0, left = 0, ended;
	struct cohort own;

	ended = s ? stack_stats_ended_count(s) : 0;
	if (!s || stack_stats_live_bytes(s) < p->live_bytes / 2 ||
	    stack_stats_live_count(s) < BACKLOG_MIN || ended < BACKLOG_MIN ||
	    stack_stats_live_bytes(s) < stack_stats_peak_bytes(s) - stack_stats_peak_bytes(s) / 8)
		return;
	course = stack_stats_course(s);
	if (waited_then(s, &course.order) > (double)stack_stats_live_count(s) / WAITED_PART)
		in_step = (double)(stack_stats_live_count(s) / BACKLOG_MIN);
	if ((double)course.order.ascending < IN_ORDER * (double)ended ||
	    (double)course.order.turns * fmax(1 / IN_ORDER, in_step) < (double)ended ||
	    (double)course.order.life_ns * (double)stack_stats_freed_count(s) <
		WAITS_LONGER * (double)stack_stats_life_ns(s))
		return;
	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		older += c->serial <= course.order.serial ? left : 0;
		left = c->count - c->freed_count;
	}
	if (older > ended / BACKLOG_MIN) /* nothing is left of what came before */
		return;
	p->backlog.grows = true;
	p->backlog.count = stack_stats_live_count(s);
	p->backlog.bytes = stack_stats_live_bytes(s);
	p->backlog.served = ended;
	p->backlog.wait_ns = course.order.life_ns;
}

/* A stack that made less of its place's bytes does not speak for it. */
#define SPEAKS_PART 8u

/* Piles that were given back are a habit, by whatever way they were made; and of the present one so
 * much lives. */
#define PILES_MIN 4u
#define PILE_ALIVE_PART 4u
#define PILE_UNUSUAL_TIMES 4u

/* Of n numbers in any order ln n + 0.58 are larger than all before; so many times as many are no
 * chance. */
#define RECORDS_TIMES 2.5
#define RISE_TIMES 2u

/* Its heaviest stack speaks for the place. */
static void read_rise(struct callsite *p, const struct member *members, size_t count)
{
	const struct stack_stats_piles *piles;
	const struct stack_stats *s = heaviest(members, count);
	uint64_t now;

	if (!s || p->pile.times < PILES_MIN)
		return;
	piles = &stack_stats_rare(s)->piles;
	now = stack_stats_course(s).no_pile ? 0 : stack_stats_live_bytes(s);
	if (piles->times < PILES_MIN || now < p->live_bytes / SPEAKS_PART ||
	    now <= piles->largest || now < RISE_TIMES * piles->first ||
	    now > PILE_UNUSUAL_TIMES * piles->largest ||
	    piles->records + 1.0 < RECORDS_TIMES * (log(piles->times + 1.0) + 0.58))
		return;
	p->pile.grows = true;
	p->pile.now = p->live_bytes;
	p->pile.first = (uint64_t)((double)piles->first * (double)p->live_bytes / (double)now);
	p->pile.records = piles->records + 1;
}

static void read_pile(struct callsite *p, const struct member *members, size_t count)
{
	uint64_t ended_ns = 0, largest = 0;

	for (size_t i = 0; i < count; i++) {
		const struct stack_stats_piles *piles = &stack_stats_rare(members[i].at)->piles;

		p->pile.times += piles->times;
		largest += piles->largest;
		if (piles->ended_ns > ended_ns)
			ended_ns = piles->ended_ns;
	}
	for (size_t i = 0; i < count && p->pile.times >= PILES_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course c = stack_stats_course(s);
		uint64_t made = stack_stats_total_count(s) - c.pile.before;

		/* One block of it is more than all of those were: it is something else that the
		 * same line makes. */
		if (c.no_pile || c.pile.since_ns < ended_ns ||
		    stack_stats_live_count(s) < made - made / PILE_ALIVE_PART ||
		    stack_stats_live_bytes(s) > largest * stack_stats_live_count(s))
			continue;
		if (!p->pile.bytes || c.pile.since_ns < p->pile.since_ns)
			p->pile.since_ns = c.pile.since_ns;
		p->pile.bytes += stack_stats_live_bytes(s);
	}
	p->pile.largest = largest;
	read_rise(p, members, count);
	/* The next of their kind is none that is out of the ordinary. */
	if (p->pile.bytes < PILE_UNUSUAL_TIMES * largest)
		p->pile.bytes = 0;
}

void history_sizes(struct callsite *p, const struct member *members, size_t count, uint64_t padding)
{
	struct series s = {.count = 0};
	struct callsite best;
	uint64_t growing = 0; /* live bytes of all its stacks whose blocks grow */

	series_of_steps(p, padding, &s);
	if (!s.count)
		return;
	p->size.live_bytes = p->live_bytes;
	series_judge(&s, p);
	if (!p->size.grows && s.count >= 8 * SERIES_MIN) {
		best = *p;
		series_coarser(&s, 4);
		series_judge(&s, &best);
		if (best.size.grows)
			*p = best;
	}
	for (size_t i = 0; i < count && count > 1; i++) {
		if (stack_stats_largest(members[i].at) < p->largest / 4)
			continue;
		best = *p;
		best.size.live_bytes = stack_stats_live_bytes(members[i].at);
		series_of_stack_stats(members[i].at, padding, &s);
		series_judge(&s, &best);
		if (!best.size.grows)
			continue;
		growing += stack_stats_live_bytes(members[i].at);
		/* Where all of them together grow, a few that came by another way of a padding
		 * allocator's own say less. */
		if (p->size.grows && padding &&
		    stack_stats_total_bytes(members[i].at) < p->total_bytes / SPEAKS_PART)
			continue;
		/* The clearest, among those that make the large ones. */
		if (!p->size.grows ||
		    (best.size.last * 2 >= p->size.last && best.size.tau >= p->size.tau))
			*p = best;
	}
	if (growing > p->size.live_bytes)
		p->size.live_bytes = growing;
	if (p->size.grows && grew_within_one(p, members, count))
		p->size.grows = false;
	read_backlog(p, members, count);
	read_pile(p, members, count);
	p->grown_bytes = p->size.grows ? grown_bytes(p) : 0;
}

/* Where the last third of what passed since `from` begins. */
static uint64_t last_third(uint64_t from, uint64_t until)
{
	return from + (until > from ? (until - from) / 3 * 2 : 0);
}

/*
 * Of what was acquired before a checkpoint only what outlived it is known: each generation then
 * looks as if it had been kept whole, be it the present content of a cache whose former ones all
 * went. Whether it stays is told by what came and went since, as far as that is enough to tell its
 * generations apart; a short time after a long one is not, as steps are as long as the whole of
 * what is known asks for. Then it is told by survivors from all of the time before, which no
 * content that is exchanged has, unless what came since took their place; or from all of the time
 * since the first of them, if hardly anything was exchanged in the whole process.
 */
#define SINCE_MIN 16u
#define SINCE_SERIES_MIN 8u
#define EVEN_MIN 6 /* eighths */
#define EXCHANGED_PART 64 /* less of it gone since is no exchange */
struct survivors {
	double born_before[8]; /* bytes, by eighths of the time before */
	double born_since_first[8]; /* of the time from the first of them on */
	double gone_before, alive_since; /* bytes */
	uint64_t since; /* blocks */
	uint32_t steps_since;
	double since_bytes; /* acquired in these */
	uint64_t since_ns; /* their begin */
};

/* What came since is enough to be judged by itself. */
static bool since_tells(const struct survivors *s)
{
	return s->since >= SINCE_MIN && s->steps_since >= SINCE_SERIES_MIN;
}

/* Of the time from there to the checkpoint; a step's bytes over all of it. */
static void spread(double *eighths, const struct step *s, uint64_t from_ns, uint64_t until_ns)
{
	double span = until_ns > from_ns ? (double)(until_ns - from_ns) : 1;

	for (int part = 0; part < 8; part++) {
		double at =
		    (double)s->time_ns + (part + 0.5) / 8 * (double)(s->last_ns - s->time_ns);
		double eighth = (at - (double)from_ns) * 8 / span;

		eighths[eighth < 0 ? 0 : eighth >= 7 ? 7 : (int)eighth] += (double)s->bytes / 8;
	}
}

/* How many of them have about as much as the others. */
static int even_eighths(const double *born)
{
	double best = 0;
	int even = 0;

	for (int i = 0; i < 8; i++)
		best = born[i] > best ? born[i] : best;
	for (int i = 0; i < 8; i++)
		even += best > 0 && born[i] >= best / 4;
	return even;
}

static bool stays_over(
    const struct survivors *s, uint64_t first_ns, const struct callsites *all, bool even_since)
{
	double before = 0;

	for (int i = 0; i < 8; i++)
		before += s->born_before[i];
	if (s->since >= SINCE_MIN && s->gone_before > before / EXCHANGED_PART &&
	    s->alive_since <= 2 * s->gone_before)
		return false;
	if (since_tells(s))
		return even_since;
	if (even_eighths(s->born_before) >= EVEN_MIN)
		return true;
	return even_eighths(s->born_since_first) >= EVEN_MIN &&
	       replaced_kept(all->past, first_ns, (uint64_t)before);
}

static double kept(const struct callsite *callsite, uint64_t time_ns, bool count)
{
	double sum = 0;

	for (uint32_t i = 0; i < callsite->step_count; i++) {
		const struct step *s = &callsite->steps[i];
		double alive = count ? (double)(s->count - s->freed_count)
				     : (double)(s->bytes - s->freed_bytes);

		if (s->last_ns <= time_ns)
			sum += alive;
		else if (s->time_ns < time_ns)
			sum += alive * (double)(time_ns - s->time_ns) /
			       (double)(s->last_ns - s->time_ns);
	}
	return sum;
}

/* How much of a history a step is. Where a small block of a sample stands for thousands, and a
 * large one for itself, the bytes that they stand for are more alike than their counts. */
static uint64_t weight_of(const struct callsite *p, const struct step *s)
{
	return p->live_variance > 0 ? s->bytes - s->went_bytes : s->count - s->went_count;
}

/* A step as far as its blocks are events of their own: of the others none stayed. */
static struct step told(const struct step *s)
{
	struct step t = *s;

	t.count -= s->went_count;
	t.bytes -= s->went_bytes;
	t.freed_count -= s->went_count;
	t.freed_bytes -= s->went_bytes;
	t.went_count = t.went_bytes = 0;
	return t;
}

/* Bytes that a step of before lost. If it ends after, most of these are none of before. */
static double gone_of_before(
    const struct survivors *over, const struct step *s, const struct callsites *all)
{
	double since = 0;

	if (s->last_ns > all->past_ns && over->steps_since && all->moment_ns > over->since_ns)
		since = over->since_bytes * (double)(s->last_ns - all->past_ns) /
			(double)(all->moment_ns - over->since_ns);
	return fmin((double)s->freed_bytes, fmax(0, (double)s->bytes - since));
}

static void read_survivors(struct callsite *p, const struct callsites *all)
{
	double eighth[8] = {0}, born[8] = {0}, best = 0;
	double late = 0, late_work = 0;
	uint64_t occurrence = 0, late_ns, late_serial, counted = 0;
	bool since_alone, who_lives;
	struct survivors over = {0};
	int even = 0, used = 0;
	uint32_t first = 0; /* step that has any */

	while (first < p->step_count && p->steps[first].count == p->steps[first].went_count)
		first++;
	if (first == p->step_count || !p->total_count)
		return;
	/* A machine that stalls stretches time; a burst of other work stretches the count. */
	late_ns = last_third(p->steps[first].time_ns, all->moment_ns);
	late_serial = last_third(p->steps[first].serial, all->moment_serial);
	for (uint32_t i = first; i < p->step_count; i++)
		if (p->steps[i].time_ns > all->past_ns) {
			over.since += p->steps[i].count;
			over.since_bytes += (double)p->steps[i].bytes;
			if (!over.steps_since++)
				over.since_ns = p->steps[i].time_ns;
		}
	/* Generations are told apart by counting: as far as all were seen. */
	since_alone = all->past_ns && since_tells(&over);
	who_lives = all->past_ns && !since_alone && p->steps[first].time_ns <= all->past_ns;
	for (uint32_t i = first; i < p->step_count; i++)
		if (!since_alone || p->steps[i].time_ns > all->past_ns)
			counted += weight_of(p, &p->steps[i]);
	for (uint32_t i = first; i < p->step_count; i++) {
		const struct step own = told(&p->steps[i]), *s = &own;
		double alive = (double)(s->bytes - s->freed_bytes);
		uint64_t weight = weight_of(p, s);
		uint64_t at = (occurrence + weight / 2) * 8 / (counted ? counted : 1);

		p->keep.count += s->count - s->freed_count;
		p->keep.bytes += s->bytes - s->freed_bytes;
		if (all->past_ns && s->time_ns <= all->past_ns) {
			spread(over.born_before, s, all->first_ns, all->past_ns);
			spread(over.born_since_first, s, p->steps[first].time_ns, all->past_ns);
			over.gone_before += gone_of_before(&over, s, all);
			if (since_alone) {
				late += s->time_ns >= late_ns ? alive : 0;
				late_work += s->serial >= late_serial ? alive : 0;
				continue;
			}
		} else {
			over.alive_since += alive;
		}
		eighth[at > 7 ? 7 : at] += alive;
		born[at > 7 ? 7 : at] += (double)s->bytes;
		if (s->time_ns >= late_ns)
			late += alive;
		if (s->serial >= late_serial)
			late_work += alive;
		occurrence += weight;
	}
	for (int i = 0; i < 8; i++) {
		if (born[i] > 0 && eighth[i] / born[i] > best)
			best = eighth[i] / born[i];
	}
	for (int i = 0; i < 8; i++) {
		if (born[i] <= 0)
			continue;
		used++;
		even += eighth[i] / born[i] >= best / 4 && eighth[i] > 0;
	}
	p->keep.before = (uint64_t)eighth[0];
	p->keep.even = used ? (double)even / used : 0;
	if (who_lives) { /* counted, those who came since would outnumber the others */
		p->keep.before = (uint64_t)over.born_since_first[0];
		p->keep.even = even_eighths(over.born_since_first) / 8.0;
		used = 8;
		late = (double)p->keep.bytes - kept(p, late_ns, false);
		late_work = 0;
	}
	if (late_work > late)
		late = late_work;
	p->keep.late = p->keep.bytes ? late / (double)p->keep.bytes : 0;
	/* Each generation leaves as many behind as the others, and it has not ended: evenly spread
	 * births leave a third of the survivors in the last third, and half of that is asked for.
	 */
	p->keep.stays = p->keep.count >= SERIES_MIN && used >= 4 && p->keep.even >= 0.75 &&
			p->keep.late >= 1.0 / 6;
	if (all->past_ns && p->steps[first].time_ns <= all->past_ns)
		p->keep.stays = p->keep.stays && stays_over(&over, p->steps[first].time_ns, all,
						     p->keep.even >= 0.75);
}

double callsite_kept(const struct callsite *callsite, uint64_t time_ns)
{
	return kept(callsite, time_ns, false);
}

double callsite_kept_count(const struct callsite *callsite, uint64_t time_ns)
{
	return kept(callsite, time_ns, true);
}

/*
 * What a place keeps feeds another's blocks when these grow in proportion to it, by a good part of
 * its bytes: a prompt made of all that was said. An index grows with it as well, but by a factor at
 * a time, and holds no more than what it points to.
 */
#define FEED_CORRELATION 0.9
#define FEED_SLOPE 0.2

/* Correlation of a grower's blocks with what a keeper kept, in bytes or in blocks. */
static double together(
    const struct callsite *k, const struct callsite *g, bool count, double *slope)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->size.count; i++) {
		if (g->size.at[i].time_ns < k->steps[0].time_ns)
			continue;
		x[n] = kept(k, g->size.at[i].time_ns, count);
		y[n++] = g->size.at[i].size;
	}
	*slope = 0;
	return n < SERIES_MIN ? 0 : trend_fit(x, y, n, slope);
}

static void relate(struct callsites *p, uint32_t keeper, uint32_t grower)
{
	struct callsite *k = &p->list[keeper], *g = &p->list[grower];
	double slope;

	if (together(k, g, false, &slope) < FEED_CORRELATION || slope <= 0)
		return;
	if (g->size.geometric && g->size.last <= k->keep.bytes) {
		if (g->index_of == CALLSITE_NONE || p->list[g->index_of].keep.bytes < k->keep.bytes)
			g->index_of = keeper;
		return;
	}
	if (slope >= FEED_SLOPE && (k->feeds == CALLSITE_NONE || slope > k->feed_slope)) {
		k->feeds = grower;
		k->feed_slope = slope;
	}
}

/*
 * A list of everything kept, made anew at each step: its size follows the number of what is kept,
 * at some bytes each (a pointer, or a slot of a table), by even steps, since it is not enlarged but
 * made again; and that happens about as often as something is added.
 */
#define LIST_CORRELATION 0.98
#define LIST_BYTES_LEAST 4.0
#define LIST_BYTES_MOST 128.0
#define LIST_SERIES_MIN 8u
#define LIST_TIMES_FEWER 32u

static void relate_list(struct callsites *p, uint32_t keeper, uint32_t grower)
{
	struct callsite *k = &p->list[keeper], *g = &p->list[grower];
	double slope;

	if (k->listed_by != CALLSITE_NONE || g->size.geometric || g->size.count < LIST_SERIES_MIN ||
	    g->total_count < k->keep.count / LIST_TIMES_FEWER)
		return;
	if (together(k, g, true, &slope) >= LIST_CORRELATION && slope >= LIST_BYTES_LEAST &&
	    slope <= LIST_BYTES_MOST)
		k->listed_by = grower;
}

/*
 * Copies of a state, each kept: either one block holds it all, and is as large as the state was at
 * the time; or each copy is made of many blocks, and what is kept there is the sum of what the
 * state held at each step. In both cases the state is there besides, and the copies outweigh it.
 */
#define COPY_CORRELATION 0.97
/* Packed or escaped, and on its way through another form. */
#define COPY_SLOPE_LEAST 0.2
#define COPY_SLOPE_MOST 4.0
/* From this part of everything on, a place is worth the search. */
#define COPIES_PART 16u

/* The largest block of a place that replaces its buffer time and again, as it was at that time. */
static double buffer_then(const struct callsite *p, uint64_t time_ns)
{
	double size = 0;

	for (uint32_t i = 0; i < p->size.count && p->size.at[i].time_ns <= time_ns; i++)
		size = p->size.at[i].size;
	return size;
}

/* The last of what it keeps are no larger than the rest: of copies that grow from nothing they are
 * nearly twice as large. */
#define ALIKE_TIMES 1.5

/* It keeps what it makes. Each step takes longer than the one before, for there is more to copy:
 * the last third of the time adds less than that of the steps, and says nothing. */
static bool is_state(const struct callsite *p)
{
	return p->keep.count >= SERIES_MIN && p->keep.even >= 0.75 &&
	       (!p->size.grows || (double)p->size.last * (double)p->keep.count <=
				      ALIKE_TIMES * (double)p->keep.bytes);
}

/* A state that grows little, beside what it held from the start, is one all the same: its copies
 * are as large as it was, each time. */
#define CREEPS_FACTOR 1.1
#define AS_LARGE_PART 16.0

static bool creeps(const struct callsite *p)
{
	return series_rises(p) && (double)p->size.last >= CREEPS_FACTOR * (double)p->size.first;
}

static bool as_large(const double *x, const double *y, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (fabs(x[i] - y[i]) > y[i] / AS_LARGE_PART)
			return false;
	return true;
}

/* How closely the blocks of `c` follow what `state` held; 0: they do not. */
static double copies_whole(const struct callsite *c, const struct callsite *state)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS], slope, fit;
	bool buffer = (state->size.grows || creeps(state)) && !state->keep.stays;
	uint32_t n = 0;

	if ((!c->size.grows && !creeps(c)) || (!buffer && !is_state(state)))
		return 0;
	for (uint32_t i = 0; i < c->size.count; i++) {
		x[n] = buffer ? buffer_then(state, c->size.at[i].time_ns)
			      : kept(state, c->size.at[i].time_ns, false);
		y[n++] = c->size.at[i].size;
	}
	fit = n < SERIES_MIN ? 0 : trend_fit(x, y, n, &slope);
	if (!c->size.grows && !as_large(x, y, n))
		return 0;
	return fit >= COPY_CORRELATION && slope >= COPY_SLOPE_LEAST && slope <= COPY_SLOPE_MOST
		   ? fit
		   : 0;
}

/*
 * Half-way by what the state got since `first_ns`, when there was none of them, a quarter of its
 * copies is there; of what grows along with it, half. By its bytes, and by its blocks, for one that
 * is larger than all others is no growth. `copies`: after each of its steps.
 */
static bool is_convex(
    const struct callsite *state, const double *copies, uint32_t n, uint64_t first_ns, bool blocks)
{
	double before = kept(state, first_ns, blocks);
	double all = kept(state, state->steps[n - 1].last_ns, blocks);

	for (uint32_t i = 0; i < n; i++)
		if (kept(state, state->steps[i].last_ns, blocks) >= before + (all - before) / 2)
			return copies[i] <= 0.375 * copies[n - 1];
	return false;
}

/* The same where a copy is many blocks: what is kept follows the sum of what the state held after
 * each of its blocks, which is convex, and not its last value. */
static double copies_in_pieces(const struct callsite *c, const struct callsite *state)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS], held = 0, sum = 0, slope, fit;
	uint32_t n = 0;

	if (c->size.grows || !is_state(state) || state->keep.count < 4 * SERIES_MIN ||
	    state->step_count < 2 * SERIES_MIN)
		return 0;
	for (uint32_t i = 0; i < state->step_count; i++) {
		const struct step *s = &state->steps[i];
		double added = (double)(s->bytes - s->freed_bytes);

		sum += ((double)held + added / 2) * (double)(s->count - s->freed_count);
		held += added;
		x[n] = sum;
		y[n++] = kept(c, s->last_ns, false);
	}
	if (!is_convex(state, y, n, c->first_ns, false) ||
	    !is_convex(state, y, n, c->first_ns, true))
		return 0;
	fit = trend_fit(x, y, n, &slope);
	return fit >= COPY_CORRELATION && slope >= 1.0 / 32 && slope <= COPY_SLOPE_MOST ? fit : 0;
}

static void find_state(struct callsites *p, uint32_t copies)
{
	struct callsite *c = &p->list[copies];
	double best = 0, fit;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct callsite *state = &p->list[i];
		uint64_t held = is_state(state) ? state->keep.bytes : state->size.last;

		if (i == copies || held < c->largest / 8 || held > c->keep.bytes / 4 ||
		    !state->step_count)
			continue;
		fit = fmax(copies_whole(c, state), copies_in_pieces(c, state));
		if (fit > best) {
			best = fit;
			c->copies_of = i;
		}
	}
}

/*
 * Its growth has ended: nothing came for longer than a third of the time in which it grew, and than
 * twice its longest pause so far (a table that doubles pauses for as long as it has been growing).
 */
static bool is_over(const struct callsite *p, const struct callsites *all, const struct timeline *t)
{
	uint64_t longest = 0, pause, grew = timeline_active(t, p->first_ns, p->last_ns);
	uint64_t since = timeline_active(t, p->last_ns, all->moment_ns);

	if (since <= grew / 3 || (uint32_t)(p - all->list) == all->failed)
		return false;
	for (uint32_t i = 1; i < p->step_count; i++) {
		pause = timeline_active(t, p->steps[i - 1].last_ns, p->steps[i].time_ns);
		if (pause > longest)
			longest = pause;
	}
	return since > 2 * longest + 2 * timeline_period_ns(t);
}

void history_read(struct callsites *p, const struct timeline *timeline)
{
	for (uint32_t i = 0; i < p->count; i++) {
		read_survivors(&p->list[i], p);
		if (p->list[i].step_count) {
			p->list[i].first_ns = p->list[i].steps[0].time_ns;
			p->list[i].last_ns = p->list[i].steps[p->list[i].step_count - 1].last_ns;
		}
	}
	for (uint32_t i = 0; i < p->count; i++) {
		struct callsite *own = &p->list[i];
		uint64_t heap;

		if (own->size.grows && is_over(own, p, timeline)) {
			own->size.grows = false;
			own->grown_bytes = 0;
		}

		/* Blocks that grow beside others of the line that hold nearly all: it does not
		 * grow. Where all of them come and go, an interpreter's arenas hold what those
		 * list, and are of one size whatever lies in them. */
		heap = own->live_bytes -
		       (callsite_is_working_set(own, p->moment_ns) ? own->map_bytes : 0);
		if (own->size.grows && !(own->size.geometric && own->keep.stays) &&
		    own->size.live_bytes <= heap / 8 && own->size.last <= heap / 8) {
			own->size.grows = false;
			own->grown_bytes = 0;
		}
		/* A table that grows by a factor, at the line that also makes what it holds. */
		if (own->size.grows && own->size.geometric && own->keep.stays &&
		    own->size.live_bytes <= own->live_bytes / 2) {
			own->index_of = i;
			own->grown_bytes = 0;
		}
	}
	for (uint32_t k = 0; k < p->count; k++) {
		const struct callsite *keeper = &p->list[k];

		/* What is under a thousandth of the whole decides nothing, and this is a double
		 * loop. */
		if (!keeper->keep.stays || (keeper->size.grows && keeper->index_of != k) ||
		    keeper->keep.bytes < (p->live_bytes + p->map_bytes) / 1024)
			continue;
		for (uint32_t g = 0; g < p->count; g++) {
			if (g == k || !p->list[g].size.grows || p->list[g].index_of == g)
				continue;
			if (p->list[g].size.last >= (p->live_bytes + p->map_bytes) / 1024)
				relate(p, k, g);
			relate_list(p, k, g);
		}
	}
	for (uint32_t c = 0; c < p->count; c++)
		if (p->list[c].keep.stays &&
		    p->list[c].keep.bytes >= (p->live_bytes + p->map_bytes) / COPIES_PART)
			find_state(p, c);
}
