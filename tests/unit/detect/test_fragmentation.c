/* Speaks if the free ranges would have held the request, and only then. */
#include "detect/scene.h"

static bool on_host; /* the next one is */

static void ask(struct staged *t, uint64_t request, uint64_t holes, uint64_t below)
{
	uint32_t work = script_stack(t->s, "main;work"), keep = script_stack(t->s, "main;keep");

	for (int i = 0; i < 100; i++)
		script_alloc(t->s, keep, 10000);
	for (int i = 0; i < 1000; i++)
		script_release(t->s, script_alloc(t->s, work, 50000));
	script_failed(t->s, work, request);
	t->scene.space = on_host ? NULL : "torch:0";
	t->scene.slack.known = true;
	t->scene.slack.bytes = holes;
	t->scene.slack.holes = 50;
	t->scene.slack.below = below;
	t->pinned_by = "keep";
	stage(t, detect_fragmentation, true);
}

static void test_holes(void **state)
{
	struct staged t = {.s = script_new()};

	ask(&t, 1000000, 2500000, 100000);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "keep");
	assert_true(t.f.strength == 1);
	assert_int_equal(t.f.slack_bytes, 2500000);
	/* The live blocks did not grow since. */
	assert_true(t.f.steady);
	assert_true(t.f.coalesced);
	assert_int_equal(t.f.trend_bytes, 0);
	strike(&t);
	(void)state;
}

static void test_near_miss(void **state)
{
	struct staged t = {.s = script_new()}, below = {.s = script_new()};

	ask(&t, 1000000, 1020000, 30000);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.7 && t.f.strength < 0.8);
	strike(&t);
	/* Much was free below, and the free ranges alone were not enough. */
	ask(&below, 1000000, 600000, 900000);
	assert_int_equal(below.rc, 0);
	assert_true(below.f.strength < 0.6);
	strike(&below);
	(void)state;
}

/* Every allocator has such free bytes between its blocks. */
static void test_usual(void **state)
{
	struct staged t = {.s = script_new()};

	script_alloc(t.s, script_stack(t.s, "main;keep"), 9000000);
	ask(&t, 50000, 110000, 0);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength < 0.4);
	strike(&t);
	(void)state;
}

/* Others left less than lived before: the free ranges are not what is missing. */
static void test_less_than_before(void **state)
{
	struct staged t = {.s = script_new()};

	script_release(t.s, script_alloc(t.s, script_stack(t.s, "main;work"), 9000000));
	ask(&t, 1000000, 2500000, 100000);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

static void test_silent(void **state)
{
	struct staged few = {.s = script_new()}, room = {.s = script_new()},
		      host = {.s = script_new()};

	ask(&few, 1000000, 800000, 100000);
	assert_int_equal(few.rc, DETECT_SILENT);
	strike(&few);
	/* The level below had room: another limit refused. */
	ask(&room, 1000000, 5000000, 1000000);
	assert_int_equal(room.rc, DETECT_SILENT);
	strike(&room);
	script_failed(host.s, script_stack(host.s, "main"), 1000);
	stage(&host, detect_fragmentation, true);
	assert_int_equal(host.rc, DETECT_SILENT);
	strike(&host);
	(void)state;
}

/* malloc always has free bytes: they must be many, beside the live blocks. */
static void test_host(void **state)
{
	struct staged little = {.s = script_new()}, much = {.s = script_new()},
		      pieces = {.s = script_new()}, killed = {.s = script_new()};
	uint64_t blocks[100];

	on_host = true;
	ask(&little, 50000, 110000, 0); /* beside 1 MB */
	assert_int_equal(little.rc, DETECT_SILENT);
	strike(&little);
	ask(&much, 50000, 2000000, 0);
	assert_int_equal(much.rc, 0);
	assert_true(much.f.strength == 1);
	strike(&much);
	/* A hundred times the request, and none of it in one piece. */
	pieces.scene.slack.largest = 1900;
	ask(&pieces, 2000, 300000, 0);
	assert_int_equal(pieces.rc, 0);
	assert_true(pieces.f.strength == 1);
	strike(&pieces);
	on_host = false;
	/* A kill refuses nothing. */
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			blocks[i] =
			    script_alloc(killed.s, script_stack(killed.s, "main;work"), 50000);
		for (int i = 0; i < 100; i++)
			script_release(killed.s, blocks[i]);
	}
	script_alloc(killed.s, script_stack(killed.s, "main;keep"), 50000);
	killed.scene.slack =
	    (struct scene_slack){.known = true, .bytes = 4500000, .pinned_by = CALLSITE_NONE};
	stage(&killed, detect_fragmentation, true);
	assert_int_equal(killed.rc, 0);
	assert_true(killed.f.strength == 1);
	assert_int_equal(killed.f.slack_bytes, 4500000);
	strike(&killed);
	(void)state;
}

/* A reserve to grow into is there from the start; more live bytes than in the first half are
 * growth, even if they came at once, and they go on with more of it. */
static void test_kept_to_grow_into(void **state)
{
	for (int burst = 0; burst < 2; burst++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; i < 200 && !burst; i++)
			script_alloc(t.s, script_stack(t.s, "main;work"), 10000);
		for (int i = 0; i < 1000; i++)
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main;work"), 50000));
		for (int i = 0; i < 200 && burst; i++)
			script_alloc(t.s, script_stack(t.s, "main;work"), 10000);
		script_failed(t.s, script_stack(t.s, "main;work"), 10000);
		t.scene.slack = (struct scene_slack){.known = true,
		    .bytes = 4000000,
		    .reserved = 3900000,
		    .pinned_by = CALLSITE_NONE};
		stage(&t, detect_fragmentation, true);
		assert_int_equal(t.rc, 0);
		assert_true(burst ? t.f.strength < 0.6 : t.f.strength == 1);
		assert_in_range(t.f.trend_bytes, burst ? 1800000 : 0, burst ? 2000000 : 0);
		strike(&t);
	}
	(void)state;
}

/* Live bytes rose until every other chunk was released just now: what is asked for lived a moment
 * before and fitted, so the rise is no reason. Of a request that is nearly the rest nobody knows.
 */
static void test_released_just_now(void **state)
{
	static const uint64_t asked[] = {3000000, 3950000};
	double strength[2];

	for (size_t n = 0; n < 2; n++) {
		struct staged t = {.s = script_new()};
		uint32_t chunk = script_stack(t.s, "main;chunk");
		uint64_t chunks[800];

		for (int i = 0; i < 800; i++) {
			chunks[i] = script_alloc(t.s, chunk, 10000);
			script_wait(t.s, 100000);
		}
		for (int i = 0; i < 800; i += 2)
			script_release(t.s, chunks[i]);
		script_failed(t.s, script_stack(t.s, "main;multiply"), asked[n]);
		t.scene.slack = (struct scene_slack){
		    .known = true, .bytes = 4000000, .pinned_by = CALLSITE_NONE};
		stage(&t, detect_fragmentation, true);
		strength[n] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] > 0.6 && strength[1] < 0.3);
	(void)state;
}

/* More had lived, and fitted, long before a kill: live blocks that are larger than the holes are
 * not what is missing. They are where they have just become the most that ever lived. */
static void test_killed_below_the_peak(void **state)
{
	double strength[2];

	for (int grown = 0; grown < 2; grown++) {
		struct staged t = {.s = script_new()};
		uint32_t chunk = script_stack(t.s, "main;chunk");
		uint64_t chunks[800];

		for (int i = 0; i < 800; i++)
			chunks[i] = script_alloc(t.s, chunk, 10000);
		for (int i = 0; i < 800; i += 2)
			script_release(t.s, chunks[i]);
		for (int i = 0; i < (grown ? 500 : 100); i++) {
			script_wait(t.s, 1000000);
			script_alloc(t.s, script_stack(t.s, "main;keep"), 10000);
		}
		t.scene.slack = (struct scene_slack){
		    .known = true, .bytes = 4000000, .pinned_by = CALLSITE_NONE};
		stage(&t, detect_fragmentation, true);
		strength[grown] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] == 1 && strength[1] < 0.5);
	(void)state;
}

/* A device's holes that are as large as what lives would have held as much again; few holes are the
 * rounding of what grows. */
static void test_growth_of_a_device(void **state)
{
	static const uint64_t holes[] = {4000000, 200000};
	uint64_t trend[2];

	for (int n = 0; n < 2; n++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
		uint32_t layer = script_stack(t.s, "main;layer");

		for (int i = 0; i < 400; i++) {
			script_alloc(t.s, layer, 10000);
			script_release(t.s, script_alloc(t.s, layer, 20000));
		}
		script_failed(t.s, layer, 20000);
		t.scene.slack = (struct scene_slack){
		    .known = true, .bytes = holes[n], .pinned_by = CALLSITE_NONE};
		stage(&t, detect_fragmentation, true);
		assert_int_equal(t.rc, 0);
		trend[n] = t.f.trend_bytes;
		strike(&t);
	}
	assert_int_equal(trend[0], 0);
	assert_true(trend[1] > 1500000);
	(void)state;
}

/* What swings on a trend was at its top a moment ago, and the trend goes on. */
static void test_swings_on_a_trend(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
	uint32_t keep = script_stack(t.s, "main;keep"), swing = script_stack(t.s, "main;swing");
	uint64_t held[8];

	for (int i = 0; i < 400; i++) {
		script_alloc(t.s, keep, 10000);
		held[i % 8] = script_alloc(t.s, swing, 50000);
		for (int k = 0; i % 8 == 7 && k < 8; k++)
			script_release(t.s, held[k]);
	}
	script_failed(t.s, keep, 10000);
	t.scene.slack =
	    (struct scene_slack){.known = true, .bytes = 400000, .pinned_by = CALLSITE_NONE};
	stage(&t, detect_fragmentation, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.trend_bytes > 1500000);
	strike(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_holes),
	    cmocka_unit_test(test_near_miss), cmocka_unit_test(test_usual),
	    cmocka_unit_test(test_less_than_before), cmocka_unit_test(test_host),
	    cmocka_unit_test(test_silent), cmocka_unit_test(test_kept_to_grow_into),
	    cmocka_unit_test(test_released_just_now), cmocka_unit_test(test_killed_below_the_peak),
	    cmocka_unit_test(test_growth_of_a_device), cmocka_unit_test(test_swings_on_a_trend)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
