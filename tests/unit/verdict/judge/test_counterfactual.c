/* Each rule against a simulation that remembers every block. */
#include "model/unit.h"

#include "model/script.h"
#include "verdict/judge/counterfactual.h"

#define TURNS 3000

static void replay(struct script *s, enum rule rule, uint64_t value, struct replay_result *out)
{
	static struct candidate c;
	struct feed feed = script_feed(s);
	struct model *m;
	struct callsites *p;
	struct event e;
	struct err err;

	memset(&c, 0, sizeof(c));
	assert_int_equal(model_new(feed, &m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, AT_END, &p, &err), 0);
	c.finding.claims[0] = (struct claim){
	    callsites_of_stack(p, STACK_STATS_HEAP, script_stack(s, "main;a")), rule, value, 0};
	c.finding.claim_count = 1;
	c.finding.start_ns = m->run.last_ns / 2;
	assert_int_equal(
	    counterfactual_replay(feed, &(struct scene){.callsites = p}, &c, 1, out, &err), 0);
	callsites_free(p);
	model_free(m);
}

static void test_rules(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	struct {
		uint64_t address, size, birth;
		bool freed;
	} blocks[TURNS];
	uint64_t seed = 11, capped = 0, other = 0, young = 0, live = 0, life = 200000;
	struct replay_result r;

	for (int i = 0; i < TURNS; i++) {
		blocks[i].size = 100 + dice(&seed, 5000);
		blocks[i].freed = false;
		blocks[i].address = script_alloc(s, a, blocks[i].size);
		blocks[i].birth = script_now(s);
		other += 50;
		script_alloc(s, b, 50);
		if (dice(&seed, 2)) {
			int k = (int)dice(&seed, (uint64_t)i + 1);
			if (!blocks[k].freed) {
				script_release(s, blocks[k].address);
				blocks[k].freed = true;
			}
		}
	}
	for (int i = 0; i < TURNS; i++) {
		if (blocks[i].freed)
			continue;
		live += blocks[i].size;
		capped += blocks[i].size < 1000 ? blocks[i].size : 1000;
		if (blocks[i].birth + life > script_now(s))
			young += blocks[i].size;
	}
	assert_int_equal(script_live(s), live + other);
	replay(s, RULE_CAP_SIZE, 1000, &r);
	assert_int_equal(r.live, live + other);
	assert_int_equal(r.without, capped + other);
	assert_true(r.without_peaks[TREND_MARKS - 1] >= r.without);
	replay(s, RULE_STREAM, 1000, &r);
	assert_int_equal(r.without, capped + other);
	replay(s, RULE_KEEP_BYTES, 30000, &r);
	assert_int_equal(r.without, 30000 + other);
	replay(s, RULE_EXPIRE, life, &r);
	/* Releases are due in bins of time: exact to one bin. */
	assert_in_range(r.without, young + other - 30000, young + other + 30000);
	replay(s, RULE_EXPIRE, UINT64_MAX / 2, &r);
	assert_int_equal(r.without, r.live);
	replay(s, RULE_CAP_SIZE, UINT64_MAX, &r);
	assert_int_equal(r.without, r.live);
	script_free(s);
	(void)state;
}

static void test_stops_at_the_failure(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	static struct candidate none;
	struct feed feed = script_feed(s);
	struct model *m;
	struct callsites *p;
	struct event e;
	struct err err;
	struct replay_result r;
	uint64_t block = script_alloc(s, a, 5000);

	script_failed(s, a, 9000);
	script_release(s, block);
	assert_int_equal(model_new(feed, &m, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	assert_int_equal(callsites_new(m, AT_FAILURE, &p, &err), 0);
	assert_int_equal(
	    counterfactual_replay(feed, &(struct scene){.callsites = p}, &none, 1, &r, &err), 0);
	assert_int_equal(r.live, 5000);
	assert_int_equal(r.without, 5000);
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules), cmocka_unit_test(test_stops_at_the_failure)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
