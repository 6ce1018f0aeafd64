/*
 * survivors.c - see survivors.h. The thresholds are shares and ranks, never sizes, so that scaling
 * a program changes nothing.
 */
#include "model/callsite/survivors.h"

#include <math.h>

#include "model/callsite/callsite.h"

/* Fewer blocks show no generations. */
#define SURVIVORS_MIN 4u

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
#define SINCE_STEPS_MIN 8u
#define EVEN_MIN 6 /* eighths */
#define EXCHANGED_PART 64 /* less of it gone since is no exchange */
struct generations {
	double born_before[8]; /* bytes, by eighths of the time before */
	double born_since_first[8]; /* of the time from the first of them on */
	double gone_before, alive_since; /* bytes */
	uint64_t since; /* blocks */
	uint32_t steps_since;
	double since_bytes; /* acquired in these */
	uint64_t since_ns; /* their begin */
};

/* What came since is enough to be judged by itself. */
static bool since_tells(const struct generations *s)
{
	return s->since >= SINCE_MIN && s->steps_since >= SINCE_STEPS_MIN;
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
    const struct generations *s, uint64_t first_ns, const struct callsites *all, bool even_since)
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
	       replaced_kept(all->replaced, first_ns, (uint64_t)before);
}

/* Of what lives of a step that began before then, what was born by then. */
static double born_until(const struct step *s, double alive, uint64_t time_ns)
{
	if (s->last_ns <= time_ns)
		return alive;
	if (s->time_ns < time_ns)
		return alive * (double)(time_ns - s->time_ns) / (double)(s->last_ns - s->time_ns);
	return 0;
}

double survivors_bytes_until(const struct callsite *c, uint64_t time_ns)
{
	double sum = 0;

	for (uint32_t i = 0; i < c->facts.step_count; i++) {
		const struct step *s = &c->facts.steps[i];

		sum += born_until(s, (double)(s->bytes - s->freed_bytes), time_ns);
	}
	return sum;
}

double survivors_count_until(const struct callsite *c, uint64_t time_ns)
{
	double sum = 0;

	for (uint32_t i = 0; i < c->facts.step_count; i++) {
		const struct step *s = &c->facts.steps[i];

		sum += born_until(s, (double)(s->count - s->freed_count), time_ns);
	}
	return sum;
}

/* How much of a history a step is. Where a small block of a sample stands for thousands, and a
 * large one for itself, the bytes that they stand for are more alike than their counts. */
static uint64_t weight_of(const struct callsite *p, const struct step *s)
{
	return p->facts.live_variance > 0 ? s->bytes - s->summed_bytes : s->count - s->summed_count;
}

/* A step as far as its blocks are events of their own: of the others none stayed. */
static struct step told(const struct step *s)
{
	struct step t = *s;

	t.count -= s->summed_count;
	t.bytes -= s->summed_bytes;
	t.freed_count -= s->summed_count;
	t.freed_bytes -= s->summed_bytes;
	t.summed_count = t.summed_bytes = 0;
	return t;
}

/* Bytes that a step of before lost. If it ends after, most of these are none of before. */
static double gone_of_before(
    const struct generations *over, const struct step *s, const struct callsites *all)
{
	double since = 0;

	if (s->last_ns > all->replaced_until_ns && over->steps_since &&
	    all->moment_ns > over->since_ns)
		since = over->since_bytes * (double)(s->last_ns - all->replaced_until_ns) /
			(double)(all->moment_ns - over->since_ns);
	return fmin((double)s->freed_bytes, fmax(0, (double)s->bytes - since));
}

void survivors_read(const struct callsites *all, const struct callsite *p, struct survivors *out)
{
	double eighth[8] = {0}, born[8] = {0}, best = 0;
	double late = 0, late_work = 0;
	uint64_t occurrence = 0, late_ns, late_serial, counted = 0;
	bool since_alone, who_lives;
	struct generations over = {0};
	int even = 0, used = 0;
	uint32_t first = 0; /* step that has any */

	while (first < p->facts.step_count &&
	       p->facts.steps[first].count == p->facts.steps[first].summed_count)
		first++;
	if (first == p->facts.step_count || !p->facts.total_count)
		return;
	/* A machine that stalls stretches time; a burst of other work stretches the count. */
	late_ns = last_third(p->facts.steps[first].time_ns, all->moment_ns);
	late_serial = last_third(p->facts.steps[first].serial, all->moment_serial);
	for (uint32_t i = first; i < p->facts.step_count; i++)
		if (p->facts.steps[i].time_ns > all->replaced_until_ns) {
			over.since += p->facts.steps[i].count;
			over.since_bytes += (double)p->facts.steps[i].bytes;
			if (!over.steps_since++)
				over.since_ns = p->facts.steps[i].time_ns;
		}
	/* Generations are told apart by counting: as far as all were seen. */
	since_alone = all->replaced_until_ns && since_tells(&over);
	who_lives = all->replaced_until_ns && !since_alone &&
		    p->facts.steps[first].time_ns <= all->replaced_until_ns;
	for (uint32_t i = first; i < p->facts.step_count; i++)
		if (!since_alone || p->facts.steps[i].time_ns > all->replaced_until_ns)
			counted += weight_of(p, &p->facts.steps[i]);
	for (uint32_t i = first; i < p->facts.step_count; i++) {
		const struct step own = told(&p->facts.steps[i]), *s = &own;
		double alive = (double)(s->bytes - s->freed_bytes);
		uint64_t weight = weight_of(p, s);
		uint64_t at = (occurrence + weight / 2) * 8 / (counted ? counted : 1);

		out->count += s->count - s->freed_count;
		out->bytes += s->bytes - s->freed_bytes;
		if (all->replaced_until_ns && s->time_ns <= all->replaced_until_ns) {
			spread(over.born_before, s, all->first_ns, all->replaced_until_ns);
			spread(over.born_since_first, s, p->facts.steps[first].time_ns,
			    all->replaced_until_ns);
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
	out->before = (uint64_t)eighth[0];
	out->even = used ? (double)even / used : 0;
	if (who_lives) { /* counted, those who came since would outnumber the others */
		out->before = (uint64_t)over.born_since_first[0];
		out->even = even_eighths(over.born_since_first) / 8.0;
		used = 8;
		late = (double)out->bytes - survivors_bytes_until(p, late_ns);
		late_work = 0;
	}
	if (late_work > late)
		late = late_work;
	out->late = out->bytes ? late / (double)out->bytes : 0;
	/* Each generation leaves as many behind as the others, and it has not ended: evenly spread
	 * births leave a third of the survivors in the last third, and half of that is asked for.
	 */
	out->stays =
	    out->count >= SURVIVORS_MIN && used >= 4 && out->even >= 0.75 && out->late >= 1.0 / 6;
	if (all->replaced_until_ns && p->facts.steps[first].time_ns <= all->replaced_until_ns)
		out->stays = out->stays && stays_over(&over, p->facts.steps[first].time_ns, all,
					       out->even >= 0.75);
}
