#include "verdict/judge/rank.h"

#include <math.h>

#include "util/tuned.h"

/* Fit the three weights: tests/scenarios/run --keep DIR, then tests/scenarios/calibrate DIR. */
TUNED(double, WEIGHT_BASE, -2.0,
    "a fit on programs never seen before, and half of the way back to the corpus's of -2.5");
TUNED(double, WEIGHT_SCORE, 3.5, "likewise: a perfect score alone gives 0.82");
TUNED(double, WEIGHT_MARGIN, 2.5, "likewise: without a rival a perfect score gives 0.98");
TUNED(double, FURTHER_TIMES, 9.0,
    "ten times the work so far: a fix that lasts less only delays the failure");
TUNED(double, FITS_WEIGHT, 0.6,
    "letting the request fit is most of a cause; how long that would have lasted is the rest");
TUNED(double, INADMISSIBLE_WEIGHT, 0.3,
    "below RANK_CONFIDENCE_MIN for any score, and still in order for the list of candidates");
TUNED(double, ALONE_STRENGTH, 0.3,
    "of a shape of which less holds, next to nothing is known: a kill within half a second, say");
TUNED(double, ALONE_SHARE, 0.9, "what leaves a tenth of the growth unexplained has a rival in it");
TUNED(double, ALONE_TIMES, 4.0, "a rival of a quarter of the score is a second explanation");
TUNED(double, TREND_WEIGHT, 0.5, "a trend never outweighs that nothing ran out, which scores 1");
TUNED(double, TREND_SCORE_MIN, 0.2, "it made 40 percent of the peak: worth a mention");

double rank_confidence(double score, double second)
{
	double margin = score > second ? score - second : 0;

	return 1 / (1 + exp(-(WEIGHT_BASE + WEIGHT_SCORE * score + WEIGHT_MARGIN * margin)));
}

static double clip(double x)
{
	return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Scale the holes with the live bytes that lie between them: without a share of these, that share
 * of the holes is gone. Only the allocator can tell about holes larger than the blocks between
 * them. */
static double with_slack(double removed, uint64_t live, uint64_t slack)
{
	return live ? removed + removed * fmin(1, (double)slack / (double)live) : removed;
}

static double rest_of(const struct replay_result *r)
{
	uint64_t top = r->without_peaks[TREND_MARKS - 1], start = r->without_start;

	return (double)peak_trend_of_marks(r->without_peaks, top > start ? top - start : 0);
}

static void weigh(const struct rank_input *in, struct candidate *c, const struct replay_result *r)
{
	const struct finding *f = &c->finding;
	double request = (double)in->request_bytes - (double)f->request_bytes;
	double growth = (double)r->live + (double)r->slack + (double)in->request_bytes -
			(double)r->live_start - (double)r->slack_start;
	double removed = with_slack((double)r->live - (double)r->without, r->live, r->slack);
	double at_start = with_slack(
	    (double)r->live_start - (double)r->without_start, r->live_start, r->slack_start);
	double rest = rest_of(r), room, spare = 0;
	/* The others' memory counts against the limit, and no change frees it. */
	double others = f->alone ? 0 : (double)in->others_grown;

	if (!in->failed) {
		/* Nothing needs a remedy; a trend is weighed by its part of the peak. */
		c->fits = true;
		c->share = f->blame == CALLSITE_NONE ? 1
			   : r->live		     ? clip((double)f->bytes / (double)r->live)
						     : 0;
		c->score = f->strength * c->share * (f->blame == CALLSITE_NONE ? 1 : TREND_WEIGHT);
		c->admissible = f->blame == CALLSITE_NONE || c->score >= TREND_SCORE_MIN;
		return;
	}
	request = fmax(request, 0);
	removed += (double)f->slack_bytes + (double)f->other_bytes;
	at_start += fmin((double)f->slack_bytes, (double)r->slack_start);
	growth += (double)f->other_bytes + others - (double)f->needed_bytes;
	/* In one piece the holes would have held the request, so it is no growth. */
	if (f->slack_bytes)
		growth -= request;
	c->removed = removed > 0 ? (uint64_t)removed : 0;
	c->share = growth > 0 ? clip((removed - at_start + (double)f->request_bytes) / growth) : 0;
	room = (double)in->limit_bytes - ((double)in->usage_bytes - removed) - request;
	c->fits = room >= 0 && (removed > 0 || f->request_bytes);
	if (c->trial.made) {
		c->fits = c->trial.fits;
		room = (double)c->trial.headroom;
	}
	if (f->steady) {
		double useful = (double)f->slack_bytes + (double)f->other_bytes;

		rest = (double)f->trend_bytes + others;
		c->share = c->fits ? useful / (useful + rest) : 0;
		/* It claims just what was missing, so nothing is left over; a limit is raised by as
		 * much again. */
		spare = (double)f->other_bytes;
	}
	c->headroom = (int64_t)room;
	c->further = !c->fits ? 0 : rest <= 0 ? 1 : clip((room + spare) / rest / FURTHER_TIMES);
	c->admissible = f->strength >= RANK_STRENGTH_MIN && c->fits;
	c->score = f->strength * c->share * (FITS_WEIGHT + (1 - FITS_WEIGHT) * c->further);
	if (!c->admissible)
		c->score *= INADMISSIBLE_WEIGHT;
}

/* The causes are all that there are. So where no change is admissible, and only one of them would
 * have let the request fit and explains the growth, that one is more likely than not, though its
 * shape is weak. Return whether the first is such a one. */
static bool admit_alone(const struct rank_input *in, struct candidate *sorted, size_t count)
{
	struct candidate *c = sorted;

	if (!in->failed || !count || c->admissible || !c->fits || c->share < ALONE_SHARE ||
	    c->finding.strength < ALONE_STRENGTH ||
	    (count > 1 && sorted[1].score > c->score / ALONE_TIMES))
		return false;
	c->admissible = true;
	c->score /= INADMISSIBLE_WEIGHT;
	return true;
}

void rank_candidates(const struct rank_input *in, struct candidate *candidates,
    struct replay_result *replays, size_t count)
{
	bool alone;

	for (size_t i = 0; i < count; i++)
		weigh(in, &candidates[i], &replays[i]);
	for (size_t i = 1; i < count; i++) {
		for (size_t j = i; j > 0 && candidates[j].score > candidates[j - 1].score; j--) {
			struct candidate c = candidates[j];
			struct replay_result r = replays[j];

			candidates[j] = candidates[j - 1];
			replays[j] = replays[j - 1];
			candidates[j - 1] = c;
			replays[j - 1] = r;
		}
	}
	alone = admit_alone(in, candidates, count);
	for (size_t i = 0; i < count; i++) {
		double rival = i ? candidates[0].score : count > 1 ? candidates[1].score : 0;

		candidates[i].confidence = rank_confidence(candidates[i].score, rival);
	}
	if (alone)
		candidates[0].confidence = fmax(candidates[0].confidence, RANK_CONFIDENCE_MIN);
}
