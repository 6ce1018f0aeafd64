/* How much of what was acquired was written to: curves that are made of known shares. */
#include <math.h>

#include "model/unit.h"

#include "replay/touch.h"

#define SAMPLES 40u

struct curve {
	struct recorded recorded;
	struct plan_facts plan;
};

/* Blocks grow by 10 MiB and mappings by 16 MiB from sample to sample, one after the other. */
static void make(struct curve *c, double blocks, double mappings, uint64_t moved)
{
	uint32_t block = plan_class(PLAN_BLOCK, 100 * KiB),
		 mapping = plan_class(PLAN_MAPPING, 2 * MiB);

	memset(c, 0, sizeof(*c));
	c->recorded.half_ns = 1 + (SAMPLES - 1) / 2;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct plan_moment m = {.time_ns = i + 1, .recorded = i};
		struct recorded_sample s = {.time_ns = i + 1};

		m.live[0] = 3 * MiB;
		m.live[block] = (i + 1) / 2 * 10 * MiB;
		m.live[mapping] = i / 2 * 16 * MiB;
		s.anonymous = 7 * MiB + m.live[0] + (uint64_t)(blocks * (double)m.live[block]) +
			      (uint64_t)(mappings * (double)m.live[mapping]);
		/* Something large was just being written to. */
		if (moved && i % 3 == 0) {
			s.anonymous -= s.anonymous / 2;
			m.moved = moved;
		}
		assert_int_equal(vec_push(&c->recorded.samples, s), 0);
		assert_int_equal(vec_push(&c->plan.moments, m), 0);
	}
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

	make(&c, 1, 1, 0);
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) > 0.95);
	assert_true(share(&fit, PLAN_MAPPING, 2 * MiB) > 0.95);
	assert_int_equal(fit.samples, SAMPLES / 2);
	assert_true(touch_share(&fit, PLAN_BLOCK, &c.plan.moments.items[SAMPLES - 1]) > 0.95);
	assert_true(touch_share(&fit, PLAN_ZEROED, &c.plan.moments.items[SAMPLES - 1]) < 0);
	done(&c);
	(void)state;
}

static void test_shares(void **state)
{
	struct touch_fit fit;
	struct curve c;

	make(&c, 0.9, 0.3, 0);
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_true(fabs(share(&fit, PLAN_BLOCK, 100 * KiB) - 0.9) < 0.1);
	assert_true(fabs(share(&fit, PLAN_MAPPING, 2 * MiB) - 0.3) < 0.1);
	/* Of what never came before: all, but of large mappings. */
	assert_true(share(&fit, PLAN_ZEROED, 100 * KiB) == 1);
	assert_true(share(&fit, PLAN_MAPPING, 100 * MiB) < 0.5);
	done(&c);
	(void)state;
}

static void test_what_is_on_its_way_says_little(void **state)
{
	struct touch_fit fit;
	struct curve c;

	make(&c, 1, 1, GiB);
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_true(share(&fit, PLAN_BLOCK, 100 * KiB) > 0.9);
	assert_true(share(&fit, PLAN_MAPPING, 2 * MiB) > 0.9);
	done(&c);
	(void)state;
}

/* What the first half does not show is in doubt, and little else. */
static void test_doubt(void **state)
{
	struct plan_moment seen = {0}, unseen = {0}, young = {.young = 100 * MiB};
	struct touch_fit fit;
	struct curve c;

	seen.live[plan_class(PLAN_BLOCK, 100 * KiB)] = 100 * MiB;
	unseen.live[plan_class(PLAN_MAPPING, GiB)] = 100 * MiB;
	make(&c, 0.5, 0.3, 0);
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_true(touch_doubt(&fit, &seen, true) < 10 * MiB);
	assert_true(touch_doubt(&fit, &seen, false) < 10 * MiB);
	assert_true(touch_doubt(&fit, &unseen, true) > 40 * MiB);
	assert_true(touch_doubt(&fit, &unseen, false) < 30 * MiB); /* next to nothing already */
	assert_int_equal(touch_doubt(&fit, &young, true), 0);
	assert_true(touch_doubt(&fit, &young, false) > 90 * MiB);
	done(&c);
	/* A first half in which all was written to at once. */
	make(&c, 1, 1, 0);
	for (size_t i = 0; i < c.plan.moments.count; i++)
		c.plan.moments.items[i].young = 100 * MiB;
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_true(touch_doubt(&fit, &young, false) < 10 * MiB);
	done(&c);
	(void)state;
}

static void test_nothing_measured(void **state)
{
	struct touch_fit fit;
	struct curve c;
	struct play_touch t;

	memset(&c, 0, sizeof(c));
	touch_fit(&c.recorded, &c.plan, &fit);
	assert_int_equal(fit.samples, 0);
	t = touch_policy(&fit);
	assert_int_equal(t.share[plan_class(PLAN_BLOCK, MiB)], 256);
	assert_int_equal(t.none, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all),
	    cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_what_is_on_its_way_says_little),
	    cmocka_unit_test(test_doubt),
	    cmocka_unit_test(test_nothing_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
