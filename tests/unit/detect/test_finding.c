/* Claims beyond the room: the largest stay, and the sum is of those. */
#include "detect/scene.h"

#include "util/text/str.h"

static void test_claims(void **state)
{
	struct finding f = {0};
	uint64_t sum = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < 3 * CLAIMS_MAX; i++)
		finding_claim(&f, i, RULE_CAP_SIZE, 0, (i * 7919) % 1000 + 1);
	assert_int_equal(f.claim_count, CLAIMS_MAX);
	for (uint32_t i = 0; i < f.claim_count; i++) {
		sum += f.claims[i].bytes;
		if (f.claims[i].bytes < least)
			least = f.claims[i].bytes;
	}
	assert_int_equal(f.bytes, sum);
	for (uint32_t i = 0; i < 3 * CLAIMS_MAX; i++) {
		uint64_t bytes = (i * 7919) % 1000 + 1;
		bool found = false;

		for (uint32_t c = 0; c < f.claim_count; c++)
			found |= f.claims[c].callsite == i;
		assert_true(found || bytes <= least);
	}
	(void)state;
}

/* A call site's steps may keep a little more than lives: nothing remains then. */
static void test_claim_without(void **state)
{
	struct callsite callsite = {.facts.live_bytes = 1000};
	struct callsites callsites = {.list = &callsite, .count = 1};
	static const uint64_t less[] = {0, 400, 1000, 1010}, rest[] = {1000, 600, 0, 0};

	for (int i = 0; i < 4; i++) {
		struct finding f = {0};

		finding_claim_without(&f, &callsites, 0, less[i]);
		assert_int_equal(f.claims[0].rule, RULE_KEEP_BYTES);
		assert_int_equal(f.claims[0].value, rest[i]);
		assert_int_equal(f.bytes, 1000 - rest[i]);
	}
	(void)state;
}

static void test_evidence(void **state)
{
	struct finding f = {0};

	for (int i = 0; i < 40; i++)
		finding_evidence(&f, (enum fact)i, i);
	assert_int_equal(f.evidence_count, EVIDENCE_MAX);
	assert_float_equal(f.evidence[EVIDENCE_MAX - 1].value, EVIDENCE_MAX - 1, 0);
	assert_float_equal(finding_fact(&f, (enum fact)3), 3, 0);
	assert_float_equal(finding_fact(&f, (enum fact)30), 0, 0);
	(void)state;
}

/* Lists that are enlarged between large blocks are no work that comes and goes. */
static void test_enlarged(void **state)
{
	for (int enlarged = 0; enlarged < 2; enlarged++) {
		struct staged t = {.s = script_new()};
		uint32_t row = script_stack(t.s, "main;row"), part = script_stack(t.s, "main;part");
		const struct callsite *p;

		for (int i = 0; i < 20; i++) {
			uint64_t list = script_alloc(t.s, part, 600);

			script_alloc(t.s, row, MiB);
			for (uint64_t k = 0; k < 20; k++) {
				if (!enlarged)
					script_release(t.s, list);
				list = enlarged ? script_realloc(t.s, list, part, 700 + k * 100)
						: script_alloc(t.s, part, 700 + k * 100);
			}
		}
		stage(&t, detect_leak, true);
		p = &t.p->list[str_same(t.p->list[0].function, "row") ? 0 : 1];
		assert_int_equal(scene_worked_between(&t.scene, p), !enlarged);
		if (enlarged)
			assert_true(scene_released_since(&t.scene, 0) == 0);
		else
			assert_true(scene_released_since(&t.scene, 0) > 0.8);
		strike(&t);
	}
	(void)state;
}

/* Lists that were begun at another line, and enlarged at this one until they were released or kept:
 * those that were released are work. */
static void test_ended(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t begin = script_stack(t.s, "main;begin"), part = script_stack(t.s, "main;part");

	for (int i = 0; i < 200; i++) {
		uint64_t list = script_alloc(t.s, begin, 600);

		for (uint64_t k = 0; k < 9; k++)
			list = script_realloc(t.s, list, part, 700 + k * 100);
		if (i % 4)
			script_release(t.s, list);
	}
	stage(&t, detect_leak, true);
	for (uint32_t i = 0; i < t.p->count; i++) {
		const struct callsite *p = &t.p->list[i];

		if (!str_same(p->function, "part"))
			continue;
		assert_true(p->facts.regrown >= p->facts.freed_count);
		assert_int_equal(p->facts.freed_count - p->facts.moved_count, 150);
		assert_true(scene_released_since(&t.scene, 0) > 0.05);
	}
	strike(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims),
	    cmocka_unit_test(test_claim_without), cmocka_unit_test(test_evidence),
	    cmocka_unit_test(test_enlarged), cmocka_unit_test(test_ended)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
