/* survivors.c - the blocks that remain of each generation. */
#include "model/callsite/callsite_parts.h"

#include <math.h>

#include "util/tuned.h"

TUNED(unsigned, SURVIVORS_MIN, 4u, "fewer blocks show no generations");
TUNED(unsigned, EIGHTHS_MIN, 4u, "blocks of fewer eighths of the history show no generations");
TUNED(unsigned, EVEN_PART, 4u,
    "a generation of a leak keeps a quarter of the best one's share at least");
TUNED(double, LATE_SHARE, 1.0 / 6, "even births leave a third in the last third: half of that");
TUNED(unsigned, SINCE_MIN, 16u,
    "of fewer blocks since the checkpoint the share that stays is chance");
TUNED(unsigned, SINCE_STEPS_MIN, 8u, "fewer steps show no generations since the checkpoint");
TUNED(
    unsigned, EXCHANGED_PART, 64u, "a loss of less than 1/64 since the checkpoint is no exchange");

static uint64_t last_third(uint64_t from, uint64_t until)
{
	return from + (until > from ? (until - from) / 3 * 2 : 0);
}

/* Before a checkpoint only survivors are known, so each generation looks fully kept, even if it is
 * the current content of a cache. Blocks since the checkpoint decide, if they are enough to show
 * generations. Otherwise survivors from all of the time before the checkpoint decide, unless newer
 * blocks replaced them: no cache that exchanges its content has such survivors. Or survivors from
 * all of the time since the first one do, if the whole process exchanged hardly anything. */
struct generations {
	double born_before[8]; /* bytes, by eighths of the time before the checkpoint */
	double born_since_first[8]; /* by eighths of the time since the first survivor */
	double gone_before, alive_since; /* bytes */
	uint64_t since; /* blocks since the checkpoint */
	uint32_t steps_since;
	double since_bytes; /* bytes acquired since then */
	uint64_t since_ns; /* begin of that time */
};

/* True when the blocks since the checkpoint suffice. */
static bool since_tells(const struct generations *s)
{
	return s->since >= SINCE_MIN && s->steps_since >= SINCE_STEPS_MIN;
}

/* Spread a step's bytes over the eighths of the time from there to the checkpoint. */
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

/* Return the number of eighths that have about as much as the best. */
static int even_eighths(const double *born)
{
	double best = 0;
	int even = 0;

	for (int i = 0; i < 8; i++)
		best = born[i] > best ? born[i] : best;
	for (int i = 0; i < 8; i++)
		even += best > 0 && born[i] >= best / EVEN_PART;
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
	if (even_eighths(s->born_before) >= 8 * SURVIVORS_EVEN)
		return true;
	return even_eighths(s->born_since_first) >= 8 * SURVIVORS_EVEN &&
	       replaced_kept(all->replaced, first_ns, (uint64_t)before);
}

/* Return the part of a step's survivors that was born by then. */
static double born_until(const struct step *s, double alive, uint64_t time_ns)
{
	if (s->last_ns <= time_ns)
		return alive;
	if (s->time_ns < time_ns)
		return alive * (double)(time_ns - s->time_ns) / (double)(s->last_ns - s->time_ns);
	return 0;
}

static double survivors_until(const struct callsite *c, uint64_t time_ns, bool bytes)
{
	double sum = 0;

	for (uint32_t i = 0; i < c->facts.step_count; i++) {
		const struct step *s = &c->facts.steps[i];

		sum += born_until(s,
		    (double)(bytes ? s->bytes - s->freed_bytes : s->count - s->freed_count),
		    time_ns);
	}
	return sum;
}

double survivors_bytes_until(const struct callsite *c, uint64_t time_ns)
{
	return survivors_until(c, time_ns, true);
}

double survivors_count_until(const struct callsite *c, uint64_t time_ns)
{
	return survivors_until(c, time_ns, false);
}

/* Return a step's weight in the history. In a sample, a small block stands for thousands and a
 * large one for itself, so bytes are more even than counts. */
static uint64_t weight_of(const struct callsite *p, const struct step *s)
{
	return p->facts.live_variance > 0 ? s->bytes - s->summed_bytes : s->count - s->summed_count;
}

/* Return a step without the blocks that a checkpoint summed up: none of them survived. */
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

/* Return a step's freed bytes from before the checkpoint; a later end means mostly newer blocks. */
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
	uint32_t first = 0; /* the first step with survivors */

	while (first < p->facts.step_count &&
	       p->facts.steps[first].count == p->facts.steps[first].summed_count)
		first++;
	if (first == p->facts.step_count || !p->facts.total_count)
		return;
	/* A stalled machine stretches the time; much other work stretches the serials. */
	late_ns = last_third(p->facts.steps[first].time_ns, all->moment_ns);
	late_serial = last_third(p->facts.steps[first].serial, all->moment_serial);
	for (uint32_t i = first; i < p->facts.step_count; i++)
		if (p->facts.steps[i].time_ns > all->replaced_until_ns) {
			over.since += p->facts.steps[i].count;
			over.since_bytes += (double)p->facts.steps[i].bytes;
			if (!over.steps_since++)
				over.since_ns = p->facts.steps[i].time_ns;
		}
	/* Count generations by blocks, if all were recorded. */
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
		even += eighth[i] / born[i] >= best / EVEN_PART && eighth[i] > 0;
	}
	out->before = (uint64_t)eighth[0];
	out->even = used ? (double)even / used : 0;
	if (who_lives) { /* if counted, newer survivors would outnumber the others */
		out->before = (uint64_t)over.born_since_first[0];
		out->even = even_eighths(over.born_since_first) / 8.0;
		used = 8;
		late = (double)out->bytes - survivors_bytes_until(p, late_ns);
		late_work = 0;
	}
	if (late_work > late)
		late = late_work;
	out->late = out->bytes ? late / (double)out->bytes : 0;
	/* Each generation leaves as much as the others, and this goes on: even births leave a third
	 * in the last third of the time; half of that is enough. */
	out->stays = out->count >= SURVIVORS_MIN && used >= (int)EIGHTHS_MIN &&
		     out->even >= SURVIVORS_EVEN && out->late >= LATE_SHARE;
	if (all->replaced_until_ns && p->facts.steps[first].time_ns <= all->replaced_until_ns)
		out->stays = out->stays && stays_over(&over, p->facts.steps[first].time_ns, all,
					       out->even >= SURVIVORS_EVEN);
}
