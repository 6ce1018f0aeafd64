/* The written share of acquired bytes: curves that are made of known shares. */
#include <math.h>

#include "model/unit.h"

#include "replay/touch.h"
#include "replay/touch_solve.h"

#define SAMPLES 40u

struct curve {
	struct recorded recorded;
	struct plan_facts plan;
};

/* Blocks and mappings come and go, 10 and 16 MiB at a time, each in its own way. With `late`,
 * half was not written yet at each third sample; `told`: and the plan says so. */
static void make(struct curve *c, double blocks, double mappings, bool late, bool told)
{
	uint32_t block = plan_class(PLAN_BLOCK, 100 * KiB),
		 mapping = plan_class(PLAN_MAPPING, 2 * MiB);

	memset(c, 0, sizeof(*c));
	c->recorded.half_ns = 1 + (SAMPLES - 1) / 2;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct plan_moment m = {.time_ns = i + 1, .recorded = i};
		struct recorded_sample s = {.time_ns = i + 1};

		m.live[0] = 3 * MiB;
		m.live[block] = i * 7 % 11 * 10 * MiB;
		m.live[mapping] = i * 3 % 8 * 16 * MiB;
		s.anonymous = MiB + m.live[0] + (uint64_t)(blocks * (double)m.live[block]) +
			      (uint64_t)(mappings * (double)m.live[mapping]);
		if (late && i % 3 == 2) {
			m.young = told ? s.anonymous / 2 : 0;
			s.anonymous -= s.anonymous / 2;
		}
		s.resident = s.anonymous;
		assert_int_equal(vec_push(&c->recorded.samples, s), 0);
		assert_int_equal(vec_push(&c->plan.moments, m), 0);
	}
}

static struct touch_fit fit_of(const struct curve *c, const struct touch_replay *replay)
{
	struct touch_fit fit;

	assert_int_equal(touch_fit(&c->recorded, &c->plan, replay, &fit), 0);
	return fit;
}

static void done(struct curve *c)
{
	recorded_fini(&c->recorded);
	plan_facts_fini(&c->plan);
}

static double share(const struct touch_fit *fit, enum plan_kind kind, uint64_t size)
{
	return fit->share[plan_class(kind, size)];
}

static void test_all(void **state)
{
	struct touch_fit fit;
	struct curve c;

	make(&c, 1, 1, false, false);
	fit = fit_of(&c, NULL);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) > 0.95);
	assert_true(share(&fit, PLAN_MAPPING, 2 * MiB) > 0.95);
	assert_true(fabs(touch_beside(&fit, 0) - MiB) < MiB);
	assert_int_equal(fit.samples, SAMPLES / 2);
	assert_true(touch_share(&fit, PLAN_BLOCK, &c.plan.moments.items[SAMPLES - 1]) > 0.95);
	assert_true(touch_share(&fit, PLAN_ZEROED, &c.plan.moments.items[SAMPLES - 1]) < 0);
	/* Much lies beside, since not all was recorded. */
	c.recorded.gaps = true;
	for (uint32_t i = 0; i < SAMPLES; i++)
		c.recorded.samples.items[i].anonymous += 50 * MiB;
	fit = fit_of(&c, NULL);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) > 0.95);
	assert_true(fabs(touch_beside(&fit, 0) - 51 * MiB) < 5 * MiB);
	done(&c);
	(void)state;
}

static void test_shares(void **state)
{
	struct touch_fit fit;
	struct curve c;

	make(&c, 0.9, 0.3, false, false);
	fit = fit_of(&c, NULL);
	assert_true(fabs(share(&fit, PLAN_BLOCK, 100 * KiB) - 0.9) < 0.1);
	assert_true(fabs(share(&fit, PLAN_MAPPING, 2 * MiB) - 0.3) < 0.1);
	/* Of a size that never came before: all, except of large mappings. */
	assert_true(share(&fit, PLAN_ZEROED, 100 * KiB) > 0.99);
	assert_true(share(&fit, PLAN_MAPPING, 100 * MiB) < 0.5);
	done(&c);
	(void)state;
}

/* Resident bytes that an allocator keeps for no block are no part of the shares. */
static void test_overhead(void **state)
{
	double resident[SAMPLES], used[PLAN_CLASSES];
	struct touch_replay replay = {resident, used};
	struct touch_fit fit;
	struct curve c;

	make(&c, 0.5, 0.5, false, false);
	for (uint32_t k = 0; k < PLAN_CLASSES; k++)
		used[k] = 0.8;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		const struct plan_moment *m = &c.plan.moments.items[i];

		resident[i] = (double)m->live[0];
		for (uint32_t k = 1; k < PLAN_CLASSES; k++)
			resident[i] += used[k] * (double)m->live[k];
		/* Freed, and not given back. */
		resident[i] += 3.0 * i * (double)MiB;
		c.recorded.samples.items[i].anonymous += 3 * i * MiB;
	}
	fit = fit_of(&c, &replay);
	assert_true(fabs(share(&fit, PLAN_BLOCK, 100 * KiB) - 0.5) < 0.1);
	assert_true(fabs(share(&fit, PLAN_MAPPING, 2 * MiB) - 0.5) < 0.1);
	fit = fit_of(&c, NULL);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) + share(&fit, PLAN_MAPPING, 2 * MiB) > 1.2);
	done(&c);
	(void)state;
}

static void test_what_is_on_its_way_says_little(void **state)
{
	struct touch_fit fit;
	struct curve c;

	make(&c, 1, 1, true, true);
	fit = fit_of(&c, NULL);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) > 0.95);
	assert_true(share(&fit, PLAN_MAPPING, 2 * MiB) > 0.95);
	done(&c);
	make(&c, 1, 1, true, false);
	fit = fit_of(&c, NULL);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) + share(&fit, PLAN_MAPPING, 2 * MiB) < 1.9);
	done(&c);
	(void)state;
}

/* One block, and the curve grows up to its half until the first half is over. */
static void test_slowly(void **state)
{
	uint32_t block = plan_class(PLAN_BLOCK, GiB);
	struct touch_fit fit;
	struct curve c;

	make(&c, 1, 1, false, false);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct plan_moment *m = &c.plan.moments.items[i];

		memset(m->live, 0, sizeof(m->live));
		m->live[block] = GiB;
		c.recorded.samples.items[i].anonymous = (i + 1) * GiB / SAMPLES;
	}
	fit = fit_of(&c, NULL);
	assert_true(fit.share[block] > 0.45); /* not the mean of it */
	assert_true(touch_doubt(&fit, &c.plan.moments.items[SAMPLES - 1], 0, true) > 200 * MiB);
	done(&c);
	(void)state;
}

/* The kernel's peak between two samples exceeds both: a block came, was written to, and went. */
static void test_peak_between(void **state)
{
	uint32_t block = plan_class(PLAN_ZEROED, GiB);
	double shares[2];

	for (int seen = 0; seen < 2; seen++) {
		struct plan_moment between = {.time_ns = 6, .recorded = PLAN_NONE};
		struct touch_fit fit;
		struct curve c;

		make(&c, 1, 1, false, false);
		memcpy(between.live, c.plan.moments.items[5].live, sizeof(between.live));
		between.live[block] = 200 * MiB;
		assert_int_equal(vec_push(&c.plan.moments, between), 0);
		for (size_t i = c.plan.moments.count - 1; i > 6; i--)
			c.plan.moments.items[i] = c.plan.moments.items[i - 1];
		c.plan.moments.items[6] = between;
		for (uint32_t i = 0; i < SAMPLES && seen; i++) {
			struct recorded_sample *s = &c.recorded.samples.items[i];
			uint64_t then = c.recorded.samples.items[5].anonymous + 100 * MiB;

			s->peak = i > 5 && s->anonymous < then ? then : s->anonymous;
		}
		fit = fit_of(&c, NULL);
		shares[seen] = fit.share[block];
		done(&c);
	}
	assert_true(shares[0] > 0.99);
	assert_true(fabs(shares[1] - 0.5) < 0.2);
	(void)state;
}

/* Shares that the first half does not show are in doubt, and little else. */
static void test_doubt(void **state)
{
	struct plan_moment seen = {0}, unseen = {0};
	struct touch_fit fit;
	struct curve c;

	seen.live[plan_class(PLAN_BLOCK, 100 * KiB)] = 100 * MiB;
	unseen.live[plan_class(PLAN_MAPPING, GiB)] = 100 * MiB;
	make(&c, 0.5, 0.3, false, false);
	fit = fit_of(&c, NULL);
	assert_true(touch_doubt(&fit, &seen, 0, true) < 10 * MiB);
	assert_true(touch_doubt(&fit, &seen, false, false) < 10 * MiB);
	assert_true(touch_doubt(&fit, &unseen, 0, true) > 25 * MiB);
	assert_true(
	    touch_doubt(&fit, &unseen, false, false) < 30 * MiB); /* next to nothing already */
	done(&c);
	(void)state;
}

static void test_nothing_measured(void **state)
{
	struct touch_fit fit;
	struct curve c;
	struct play_touch t;

	memset(&c, 0, sizeof(c));
	fit = fit_of(&c, NULL);
	assert_int_equal(fit.samples, 0);
	t = touch_policy(&fit);
	assert_int_equal(t.share[plan_class(PLAN_BLOCK, MiB)], 256);
	assert_int_equal(t.none, 0);
	(void)state;
}

/* Between bounds: a share beyond one is set to it, and the rest adapts. */
static void test_solve(void **state)
{
	const double a[] = {2, 1, 0, 1, 3, 1, 0, 1, 4}, most[] = {INFINITY, 1, 1};
	double b[] = {4, 5, 6}, x[3], inverse[9];

	touch_solve(a, b, most, 3, x);
	assert_true(fabs(x[2] - 1) < 1e-9 || fabs(x[1] - 1) < 1e-9);
	assert_true(x[1] <= 1 && x[2] <= 1);
	assert_true(fabs(2 * x[0] + x[1] - 4) < 1e-9); /* free: its equation holds */
	b[0] = -1;
	touch_solve(a, b, most, 3, x);
	assert_true(x[0] == 0);
	touch_invert(a, 3, inverse);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			double sum = 0;

			for (int k = 0; k < 3; k++)
				sum += a[3 * i + k] * inverse[3 * k + j];
			assert_true(fabs(sum - (i == j)) < 1e-9);
		}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_overhead),
	    cmocka_unit_test(test_what_is_on_its_way_says_little),
	    cmocka_unit_test(test_slowly),
	    cmocka_unit_test(test_peak_between),
	    cmocka_unit_test(test_doubt),
	    cmocka_unit_test(test_nothing_measured),
	    cmocka_unit_test(test_solve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
