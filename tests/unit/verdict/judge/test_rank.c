/* The winning finding: by growth removed, by what fits afterwards; and its confidence. */
#include "model/unit.h"

#include "verdict/judge/rank.h"

static void test_confidence(void **state)
{
	assert_true(rank_confidence(1, 0) > 0.95);
	assert_true(rank_confidence(0.2, 0) < RANK_CONFIDENCE_MIN);
	assert_true(rank_confidence(0.9, 0.85) < rank_confidence(0.9, 0.2));
	assert_true(rank_confidence(0.5, 0.9) < 0.5);
	for (double s = 0; s < 1; s += 0.1)
		assert_true(rank_confidence(s + 0.1, 0.1) > rank_confidence(s, 0.1));
	(void)state;
}

/* By even steps, in the second half. */
static void peaks(struct replay_result *r, uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < TREND_MARKS; i++)
		r->without_peaks[i] = from + (to - from) * i / (TREND_MARKS - 1);
}

/* One makes room for a single request, the other ends the growth. */
static void test_order(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 50, .failed = true};
	static struct candidate c[3];
	struct replay_result r[3];

	memset(c, 0, sizeof(c));
	memset(r, 0, sizeof(r));
	for (int i = 0; i < 3; i++) {
		c[i].finding.strength = 0.9;
		r[i].live = 900;
		r[i].live_start = r[i].without_start = 100;
		peaks(&r[i], 100, 100);
	}
	c[0].finding.cause = CAUSE_LEAK;
	r[0].without = 700;
	peaks(&r[0], 400, 700);
	c[1].finding.cause = CAUSE_PROMPT_GROWTH;
	r[1].without = 100;
	c[2].finding.cause = CAUSE_CONCURRENCY;
	r[2].without = 880;
	peaks(&r[2], 500, 880);
	rank_candidates(&in, c, r, 3);
	assert_int_equal(c[0].finding.cause, CAUSE_PROMPT_GROWTH);
	assert_true(c[0].admissible && c[0].fits);
	assert_float_equal(c[0].share, 800.0 / 850, 1e-6);
	assert_float_equal(c[0].further, 1, 1e-6);
	assert_int_equal(c[0].headroom, 760);
	assert_int_equal(c[1].finding.cause, CAUSE_LEAK);
	assert_true(c[1].admissible && c[1].further < 0.1);
	assert_false(c[2].fits);
	assert_false(c[2].admissible);
	assert_true(c[0].confidence > 0.8);
	(void)state;
}

/* Free ranges that existed all along do not explain the failure if others took far more since;
 * what those hold does. */
static void test_others(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 20, .failed = true};
	static struct candidate c[2];
	struct replay_result r[2];

	for (int grown = 0; grown < 2; grown++) {
		in.others_grown = grown ? 800 : 0;
		memset(c, 0, sizeof(c));
		memset(r, 0, sizeof(r));
		for (int i = 0; i < 2; i++)
			r[i].live = r[i].live_start = r[i].without = r[i].without_start = 100;
		c[0].finding = (struct finding){.cause = CAUSE_FRAGMENTATION,
		    .strength = 1,
		    .slack_bytes = 50,
		    .steady = true,
		    .coalesced = true};
		c[1].finding = (struct finding){
		    .cause = CAUSE_EXTERNAL, .strength = 0.9, .other_bytes = 840, .alone = true};
		rank_candidates(&in, c, r, 2);
		assert_int_equal(c[0].finding.cause, grown ? CAUSE_EXTERNAL : CAUSE_FRAGMENTATION);
		assert_true(c[0].admissible);
	}
	(void)state;
}

/* A limit that is too low lacks just what was missing: a neighbour that took next to nothing since
 * takes nothing of its fix, and one that took as much does. */
static void test_limit_too_low(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 50, .failed = true};
	double further[2];

	for (int grown = 0; grown < 2; grown++) {
		static struct candidate c;
		struct replay_result r = {
		    .live = 900, .live_start = 900, .without = 900, .without_start = 900};

		in.others_grown = grown ? 40 : 1;
		memset(&c, 0, sizeof(c));
		c.finding = (struct finding){
		    .cause = CAUSE_EXTERNAL, .strength = 1, .other_bytes = 40, .steady = true};
		rank_candidates(&in, &c, &r, 1);
		assert_true(c.fits && c.admissible);
		further[grown] = c.further;
	}
	assert_float_equal(further[0], 1, 1e-6);
	assert_true(further[1] < 0.2);
	(void)state;
}

/* The allocator's own account of the space holds, whatever the sum. */
static void test_trial(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 50, .failed = true};
	static struct candidate c;
	struct replay_result r = {
	    .live = 900, .live_start = 100, .without = 100, .without_start = 100};

	memset(&c, 0, sizeof(c));
	c.finding.strength = 1;
	c.trial = (struct candidate_trial){.made = true, .fits = false, .headroom = -7};
	rank_candidates(&in, &c, &r, 1);
	assert_false(c.fits);
	assert_false(c.admissible);
	assert_int_equal(c.headroom, -7);
	c.trial = (struct candidate_trial){.made = true, .fits = true, .headroom = 33};
	rank_candidates(&in, &c, &r, 1);
	assert_true(c.fits && c.admissible);
	assert_int_equal(c.headroom, 33);
	(void)state;
}

/* A request that would not have been made counts as growth removed. */
static void test_request(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 200, .request_bytes = 3000, .failed = true};
	static struct candidate c;
	struct replay_result r = {
	    .live = 150, .without = 150, .live_start = 150, .without_start = 150};

	memset(&c, 0, sizeof(c));
	c.finding.strength = 1;
	c.finding.request_bytes = 3000;
	rank_candidates(&in, &c, &r, 1);
	assert_true(c.fits);
	assert_float_equal(c.share, 1, 1e-6);
	assert_int_equal(c.headroom, 800);
	(void)state;
}

/* Free ranges go with the blocks between them, as far as those are removed; in one piece they
 * served the refused size, and that was no growth then. */
static void test_slack(void **state)
{
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 100, .failed = true};
	static struct candidate c[2];
	struct replay_result r[2];

	memset(c, 0, sizeof(c));
	memset(r, 0, sizeof(r));
	for (int i = 0; i < 2; i++) {
		c[i].finding.strength = 1;
		r[i].live = r[i].without = 600;
		r[i].live_start = r[i].without_start = 580;
		r[i].slack = 300;
		r[i].slack_start = 20;
		peaks(&r[i], 600, 600);
	}
	c[0].finding.cause = CAUSE_LEAK;
	r[0].without = 300;
	r[0].without_start = 300;
	c[1].finding.cause = CAUSE_FRAGMENTATION;
	c[1].finding.slack_bytes = 300;
	rank_candidates(&in, c, r, 2);
	assert_int_equal(c[0].finding.cause, CAUSE_FRAGMENTATION);
	assert_int_equal(c[0].removed, 300);
	assert_float_equal(c[0].share, 280.0 / 300, 1e-6);
	assert_int_equal(c[1].removed, 450);
	assert_true(c[1].fits);
	(void)state;
}

/* A weak shape that explains everything wins where there is no other explanation, and is not sure.
 */
static void test_alone(void **state)
{
	const struct {
		double strength, rival;
		bool admissible;
	} of[] = {{0.35, 0, true}, {0.35, 0.05, true}, {0.35, 0.3, false}, {0.35, 0.6, false},
	    {0.2, 0, false}};
	struct rank_input in = {
	    .limit_bytes = 1000, .usage_bytes = 990, .request_bytes = 50, .failed = true};

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		static struct candidate c[2];
		struct replay_result r[2];

		memset(c, 0, sizeof(c));
		memset(r, 0, sizeof(r));
		for (int i = 0; i < 2; i++) {
			r[i].live = 900;
			r[i].live_start = r[i].without_start = r[i].without = 100;
			peaks(&r[i], 100, 100);
		}
		c[0].finding = (struct finding){.cause = CAUSE_EXTERNAL,
		    .strength = of[n].strength,
		    .steady = true,
		    .other_bytes = 40};
		c[1].finding = (struct finding){.cause = CAUSE_LEAK, .strength = of[n].rival};
		rank_candidates(&in, c, r, 2);
		assert_int_equal(
		    c[0].finding.cause == CAUSE_EXTERNAL && c[0].admissible, of[n].admissible);
		if (of[n].admissible)
			assert_in_range(100 * c[0].confidence, 50, 70);
		else if (c[0].finding.cause == CAUSE_EXTERNAL)
			assert_true(c[0].confidence < RANK_CONFIDENCE_MIN);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_confidence),
	    cmocka_unit_test(test_order), cmocka_unit_test(test_others),
	    cmocka_unit_test(test_limit_too_low), cmocka_unit_test(test_trial),
	    cmocka_unit_test(test_request), cmocka_unit_test(test_slack),
	    cmocka_unit_test(test_alone)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
