/* touch.c - see touch.h. */
#include "replay/touch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/touch_solve.h"
#include "util/tuned.h"

#define MIB 1048576.0
TUNED(int, ROUNDS, 80, "only a bound: a fit ends when it settles");
TUNED(size_t, SAMPLES_MAX, 512, "neighbouring samples say the same, and more only take time");

/* Assumed before anything is measured: the share of a block that is written to, and its error. */
TUNED(double, SHARE_ERROR, 0.1, "programs write to nearly all of a block that they ask for");
TUNED(double, POOL, 0.1, "a large mapping is mostly a library's pool, nearly unused at first");
TUNED(double, POOL_ERROR, 0.3, "some programs fill a large mapping at once");
TUNED(double, FILES, 0.1, "few pages of mapped files become private copies");
TUNED(double, FILES_ERROR, 0.1, "as uncertain as the value itself");
TUNED(double, FILES_MAX, 0.5, "more would let files explain what blocks hold");
TUNED(double, BASE, 0.5, "MiB: stack and data of a small program");
TUNED(double, BASE_ERROR, 1, "MiB: as an interpreter has more than that");
TUNED(double, BASE_ERROR_GAPS, 1024, "MiB: where events are missing, any amount may be");

TUNED(double, SAMPLE_ERROR, 0.03, "of the peak: pages move while the kernel adds them up");
TUNED(double, COUNTER_MIB, 0.25, "the kernel's counters of resident pages lag by up to 64 pages");
TUNED(double, SAMPLES_WEIGHT, 8.0, "neighbouring samples agree, so many count as much as eight");
TUNED(double, ABOVE, 2, "nothing but a wrong share explains more than the fit has");
TUNED(double, EXPLAINED, 0.02, "pages that are not written to yet explain less than the fit has");
TUNED(double, ROSE, 1.005, "a smaller rise of the peak is the counters' own error");

/* A measurement, in MiB. */
struct seen {
	uint64_t time_ns;
	double bytes; /* without small blocks and the replay's own overhead */
	double part[TOUCH_PARTS]; /* the bytes that each parameter is a share of */
	double late; /* bytes of it that may be unwritten yet */
	double residual; /* excess over the replay */
};

struct fit {
	const struct recorded *recorded;
	const struct plan_facts *plan;
	const struct touch_replay *replay;
	VEC(struct seen) seen;
	size_t looks; /* the first so many are of a moment; the others are peaks */
	double error; /* of a measurement */
	double value[TOUCH_PARTS];
	double normal[TOUCH_PARTS][TOUCH_PARTS];
};

static const struct recorded_sample *sample_of(const struct fit *f, const struct plan_moment *m)
{
	return m->recorded == PLAN_NONE ? NULL : &f->recorded->samples.items[m->recorded];
}

static bool is_look(const struct fit *f, const struct plan_moment *m)
{
	const struct recorded_sample *s = sample_of(f, m);

	return s && s->anonymous && !s->unsure && m->time_ns <= f->recorded->half_ns;
}

static double expected(uint32_t part)
{
	return part == 0 ? BASE : part == 1 ? FILES : part == TOUCH_PARTS - 1 ? POOL : 1;
}

static double expected_error(const struct fit *f, uint32_t part)
{
	return part == 0		 ? f->recorded->gaps ? BASE_ERROR_GAPS : BASE_ERROR
	       : part == 1		 ? FILES_ERROR
	       : part == TOUCH_PARTS - 1 ? POOL_ERROR
					 : SHARE_ERROR;
}

static double most_of(uint32_t part)
{
	return part == 0 ? INFINITY : part == 1 ? FILES_MAX : 1;
}

/* Returns the replay's resident MiB at the moment without the shares of blocks. */
static double overhead(const struct fit *f, size_t moment)
{
	const struct plan_moment *m = &f->plan->moments.items[moment];
	double bytes = f->replay ? f->replay->resident[moment] : (double)m->live[0];

	for (uint32_t k = 1; k < PLAN_CLASSES && f->replay; k++)
		bytes -= f->replay->share[k] * (double)m->live[k];
	return bytes / MIB;
}

static double replayed(const struct fit *f, size_t moment)
{
	const struct plan_moment *m = &f->plan->moments.items[moment];
	double bytes = overhead(f, moment) * MIB;

	for (uint32_t k = 1; k < PLAN_CLASSES; k++)
		bytes += (f->replay ? f->replay->share[k] : expected(k + 1)) * (double)m->live[k];
	return bytes / MIB;
}

static int see(struct fit *f, size_t moment, uint64_t bytes, uint64_t files)
{
	const struct plan_moment *m = &f->plan->moments.items[moment];
	struct seen s = {.time_ns = m->time_ns,
	    .bytes = (double)bytes / MIB - overhead(f, moment),
	    .late = (double)m->young / MIB,
	    .residual = (double)bytes / MIB - replayed(f, moment)};

	s.part[0] = 1;
	s.part[1] = (double)files / MIB;
	for (uint32_t k = 1; k < PLAN_CLASSES; k++)
		s.part[k + 1] = (double)m->live[k] / MIB;
	return vec_push(&f->seen, s) ? -ENOMEM : 0;
}

static int take_looks(struct fit *f, uint32_t *samples)
{
	size_t count = 0, every, n = 0;
	double most = 1;
	int rc = 0;

	for (size_t i = 0; i < f->plan->moments.count; i++)
		count += is_look(f, &f->plan->moments.items[i]);
	*samples = (uint32_t)count;
	every = count / SAMPLES_MAX + 1;
	for (size_t i = 0; i < f->plan->moments.count && !rc; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];
		const struct recorded_sample *s = sample_of(f, m);

		if (!is_look(f, m))
			continue;
		most = fmax(most, (double)s->anonymous / MIB);
		if (n++ % every == 0)
			rc = see(f, i, s->anonymous, s->of_files);
	}
	f->looks = f->seen.count;
	f->error = hypot(SAMPLE_ERROR * most, COUNTER_MIB);
	return rc;
}

/* Where the peak of resident memory rose between two samples, it was when the replay had most. */
static int take_peaks(struct fit *f)
{
	uint64_t before = 0;
	size_t from = 0;
	int rc = 0;

	for (size_t i = 0; i < f->plan->moments.count && !rc; i++) {
		const struct plan_moment *m = &f->plan->moments.items[i];
		const struct recorded_sample *s = sample_of(f, m);
		size_t at = from;

		if (m->time_ns > f->recorded->half_ns)
			break;
		if (!s || !s->peak)
			continue;
		for (size_t k = from; k <= i; k++)
			at = replayed(f, k) > replayed(f, at) ? k : at;
		if (before && (double)s->peak > (double)before * ROSE + 65536 &&
		    s->peak > s->of_files && f->seen.count < f->looks + SAMPLES_MAX)
			rc = see(f, at, s->peak - s->of_files, s->of_files);
		before = s->peak > before ? s->peak : before;
		from = i;
	}
	return rc;
}

static bool nothing_changed(const struct fit *f, const struct seen *then, const struct seen *now)
{
	for (uint32_t k = 2; k < TOUCH_PARTS; k++)
		if (fabs(now->part[k] - then->part[k]) > f->error)
			return false;
	return true;
}

/* Growth without new live blocks means that memory was unwritten before. */
static void find_late(struct fit *f)
{
	for (size_t i = 0; i < f->seen.count; i++) {
		struct seen *s = &f->seen.items[i];
		double late = 0;

		for (size_t k = 0; k < f->looks; k++) {
			const struct seen *later = &f->seen.items[k];

			if (later->time_ns > s->time_ns && later->residual - s->residual > late &&
			    nothing_changed(f, s, later))
				late = later->residual - s->residual;
		}
		if (late > f->error / 2)
			s->late = fmax(s->late, late);
	}
}

static double find_open(const struct fit *f)
{
	const struct seen *last = f->looks ? &f->seen.items[f->looks - 1] : NULL;
	double open = 0; /* over the second half of that time */

	for (size_t i = 0; i + 1 < f->looks; i++) {
		const struct seen *s = &f->seen.items[i];
		double grown = last->residual - s->residual;

		if (s->time_ns >= f->recorded->half_ns / 2 && grown > f->error &&
		    nothing_changed(f, s, last))
			open = fmax(open, grown);
	}
	return open * MIB;
}

static double left(const struct fit *f, const struct seen *s)
{
	double sum = s->bytes;

	for (uint32_t k = 0; k < TOUCH_PARTS; k++)
		sum -= f->value[k] * s->part[k];
	return sum;
}

/* Builds the normal equations, with weights by the present parameters. */
static void add_up(struct fit *f, double *right)
{
	double count = (double)f->seen.count,
	       part = (count > SAMPLES_WEIGHT ? SAMPLES_WEIGHT / count : 1) / (f->error * f->error);

	memset(f->normal, 0, sizeof(f->normal));
	for (uint32_t k = 0; k < TOUCH_PARTS; k++) {
		double error = expected_error(f, k), drawn = 1 / (error * error);

		f->normal[k][k] = drawn;
		right[k] = drawn * expected(k);
	}
	for (size_t i = 0; i < f->seen.count; i++) {
		const struct seen *s = &f->seen.items[i];
		double r = left(f, s), bytes = s->bytes, w = part;

		if (r > 0)
			w *= ABOVE;
		else if (-r < s->late)
			w *= EXPLAINED;
		if (r < 0)
			bytes += fmin(-r, s->late);
		for (uint32_t k = 0; k < TOUCH_PARTS; k++) {
			right[k] += w * s->part[k] * bytes;
			for (uint32_t n = 0; n < TOUCH_PARTS; n++)
				f->normal[k][n] += w * s->part[k] * s->part[n];
		}
	}
}

static void settle(struct fit *f)
{
	double right[TOUCH_PARTS], next[TOUCH_PARTS], most[TOUCH_PARTS];

	for (uint32_t k = 0; k < TOUCH_PARTS; k++) {
		f->value[k] = expected(k);
		most[k] = most_of(k);
	}
	for (int n = 0; n < ROUNDS; n++) {
		double change = 0;

		add_up(f, right);
		touch_solve(&f->normal[0][0], right, most, TOUCH_PARTS, next);
		for (uint32_t k = 0; k < TOUCH_PARTS; k++) {
			change = fmax(change, fabs(next[k] - f->value[k]));
			f->value[k] = n > 10 ? (f->value[k] + next[k]) / 2 : next[k];
		}
		if (change < 1e-5)
			break;
	}
	add_up(f, right);
}

int touch_fit(const struct recorded *recorded, const struct plan_facts *plan,
    const struct touch_replay *replay, struct touch_fit *out)
{
	struct fit f = {.recorded = recorded, .plan = plan, .replay = replay};
	int rc;

	memset(out, 0, sizeof(*out));
	rc = take_looks(&f, &out->samples);
	if (!rc && f.looks)
		rc = take_peaks(&f);
	if (!rc) {
		find_late(&f);
		settle(&f);
		touch_invert(&f.normal[0][0], TOUCH_PARTS, &out->doubt[0][0]);
		out->share[0] = 1;
		for (uint32_t k = 1; k < PLAN_CLASSES; k++)
			out->share[k] = f.value[k + 1];
		out->base = f.value[0] * MIB;
		out->files = f.value[1];
		out->open = find_open(&f);
		out->until_ns = out->samples ? recorded->half_ns : 0;
	}
	vec_free(&f.seen);
	return rc;
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

double touch_beside(const struct touch_fit *fit, double files)
{
	return fit->base + fit->files * files;
}

double touch_doubt(const struct touch_fit *fit, const struct plan_moment *m, double files, bool up)
{
	double part[TOUCH_PARTS] = {1, files / MIB}, variance = 0, room, doubt;

	room = up ? 2 * BASE_ERROR * MIB : touch_beside(fit, files);
	for (uint32_t k = 1; k < PLAN_CLASSES; k++) {
		part[k + 1] = (double)m->live[k] / MIB;
		room += (up ? 1 - fit->share[k] : fit->share[k]) * (double)m->live[k];
	}
	for (uint32_t k = 0; k < TOUCH_PARTS; k++)
		for (uint32_t n = 0; n < TOUCH_PARTS; n++)
			variance += part[k] * fit->doubt[k][n] * part[n];
	doubt = sqrt(fmax(0, variance)) * MIB;
	return fmin(room, up ? doubt + fit->open : doubt);
}
