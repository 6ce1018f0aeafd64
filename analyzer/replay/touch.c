/* touch.c - see touch.h. */
#include "replay/touch.h"

#include <math.h>
#include <string.h>

#define ROUNDS 64
#define SHARE_ERROR 0.5 /* of what a share is before anything was measured */
/* Of large mappings it is, which are pools of some library as a rule, of which next to nothing is
 * used at once; of all else, 1. */
#define SHARE_POOL 0.1
#define SAMPLE_ERROR 0.03 /* of the most that was measured */
#define SAMPLES 8.0 /* count as much as any number of them: neighbours say the same */

struct fit {
	const struct recorded *recorded;
	const struct plan_facts *plan;
	double variance, part; /* of a sample */
	double share[PLAN_CLASSES], error[PLAN_CLASSES];
	double base;
	uint64_t until_ns;
	uint32_t samples;
};

/* The anonymous bytes measured at the moment; 0: it is none of the fit. */
static uint64_t measured(const struct fit *f, const struct plan_moment *m)
{
	if (m->recorded == PLAN_NONE || m->time_ns > f->until_ns)
		return 0;
	return f->recorded->samples.items[m->recorded].anonymous;
}

/* What the shares leave of it, the class `but` left out. */
static double left(const struct fit *f, const struct plan_moment *m, uint32_t but)
{
	double sum = (double)measured(f, m) - f->base;

	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		if (k != but)
			sum -= f->share[k] * (double)m->live[k];
	return sum;
}

/* The smaller, the more may have been on its way when it was measured. Memory is written to some
 * time after it was acquired, never before: what was measured is rather too little than too much.
 */
static double weight(const struct fit *f, const struct plan_moment *m)
{
	double w = f->part / (f->variance + (double)m->moved * (double)m->moved);

	return left(f, m, PLAN_CLASSES) > 0 ? TOUCH_ABOVE * w : w;
}

static double expected(uint32_t class)
{
	return class == PLAN_CLASSES - 1 ? SHARE_POOL : 1;
}

static void fit_class(struct fit *f, uint32_t class)
{
	const double drawn = 1 / (SHARE_ERROR * SHARE_ERROR);
	double above = 0, below = 0;

	for (size_t i = 0; i < f->plan->moments.count; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];
		double live = (double)m->live[class], w = weight(f, m);

		if (!measured(f, m))
			continue;
		above += w * live * left(f, m, class);
		below += w * live * live;
	}
	f->error[class] = sqrt(1 / (below + drawn));
	f->share[class] = (above + drawn * expected(class)) / (below + drawn);
	if (f->share[class] > 1)
		f->share[class] = 1;
	if (f->share[class] < 0)
		f->share[class] = 0;
}

static void fit_base(struct fit *f)
{
	double sum = 0, weights = 0;

	f->base = 0;
	for (size_t i = 0; i < f->plan->moments.count; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];

		if (!measured(f, m))
			continue;
		sum += weight(f, m) * left(f, m, PLAN_CLASSES);
		weights += weight(f, m);
	}
	f->base = weights > 0 ? sum / weights : 0;
	if (f->base < 0)
		f->base = 0;
}

static void survey(struct fit *f)
{
	uint64_t most = 1u << 20;
	double error;

	f->until_ns = f->recorded->half_ns;
	for (size_t i = 0; i < f->plan->moments.count; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];

		if (!measured(f, m))
			continue;
		f->samples++;
		if (measured(f, m) > most)
			most = measured(f, m);
	}
	error = SAMPLE_ERROR * (double)most;
	f->variance = error * error;
	f->part = f->samples > SAMPLES ? SAMPLES / f->samples : 1;
}

/* What is young is taken for half written to, give or take a half, as long as nothing is known. */
static double behind(const struct fit *f)
{
	const double drawn = 1 / (SHARE_ERROR * SHARE_ERROR);
	double above = 0, below = 0;

	for (size_t i = 0; i < f->plan->moments.count; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];
		double w = f->part / f->variance, young = (double)m->young;

		if (!measured(f, m))
			continue;
		above -= w * young * left(f, m, PLAN_CLASSES);
		below += w * young * young;
	}
	return fmin(1,
	    fmax(0, (above + drawn * SHARE_ERROR) / (below + drawn)) + sqrt(1 / (below + drawn)));
}

void touch_fit(
    const struct recorded *recorded, const struct plan_facts *plan, struct touch_fit *out)
{
	struct fit f = {.recorded = recorded, .plan = plan};

	for (uint32_t k = 0; k < PLAN_CLASSES; k++) {
		f.share[k] = expected(k);
		f.error[k] = k ? SHARE_ERROR : 0;
	}
	survey(&f);
	for (int n = 0; n < ROUNDS && f.samples; n++) {
		fit_base(&f);
		for (uint32_t k = 1; k < PLAN_CLASSES; k++)
			fit_class(&f, k);
	}
	memcpy(out->share, f.share, sizeof(out->share));
	memcpy(out->error, f.error, sizeof(out->error));
	out->behind = f.samples ? behind(&f) : 1;
	out->until_ns = f.samples ? f.until_ns : 0;
	out->samples = f.samples;
}

struct play_touch touch_policy(const struct touch_fit *fit)
{
	struct play_touch t = {.none = 0};

	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		t.share[k] = (uint16_t)(fit->share[k] * 256 + 0.5);
	return t;
}

double touch_share(const struct touch_fit *fit, enum plan_kind kind, const struct plan_moment *m)
{
	double sum = 0, touched = 0;

	for (uint32_t n = 0; n < PLAN_SIZES; n++) {
		uint32_t class = 1 + kind * PLAN_SIZES + n;

		sum += (double)m->live[class];
		touched += fit->share[class] * (double)m->live[class];
	}
	return sum > 0 ? touched / sum : -1;
}

uint64_t touch_bytes(const struct touch_fit *fit, const struct plan_moment *m)
{
	double sum = 0;

	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		sum += fit->share[k] * (double)m->live[k];
	return (uint64_t)sum;
}

uint64_t touch_doubt(const struct touch_fit *fit, const struct plan_moment *m, bool up)
{
	double sum = up ? 0 : fit->behind * (double)m->young;

	for (uint32_t k = 1; k < PLAN_CLASSES; k++) {
		double room = up ? 1 - fit->share[k] : fit->share[k];

		sum += fmin(room, fit->error[k]) * (double)m->live[k];
	}
	return (uint64_t)sum;
}
