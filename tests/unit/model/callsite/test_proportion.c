/* Blocks that follow their input from request to request; and those that do not. */
#include "model/unit.h"

#include "model/callsite/callsite.h"
#include "model/callsite/proportion.h"
#include "model/script.h"

enum follows { TIMES, SQUARE, NOTHING, NOT_THE_LAST };

static const uint64_t asked[] = {3000, 800, 9000, 2000, 700, 5000, 1200, 7000, 900, 4000};

static uint64_t made_for(enum follows how, uint64_t input, uint64_t request, bool last)
{
	if (how == SQUARE)
		return input * input / 50;
	if (how == NOTHING && !last)
		return asked[request * 7 % 10] * 64;
	if (how == NOT_THE_LAST && last)
		return 64 * input * 10;
	return 64 * input;
}

/* Ten requests of different sizes, and one that is far larger. */
static struct proportion_found look_layers(
    enum follows how, uint64_t last, bool refused, int layers)
{
	struct script *s = script_new();
	struct feed feed = script_feed(s);
	uint32_t render = script_stack(s, "main;render@m.c:3");
	uint32_t prefill = script_stack(s, "main;prefill@m.c:9");
	uint32_t other = script_stack(s, "main;log@m.c:20");
	struct proportion_found found;
	struct proportion p;
	struct callsites *callsites;
	struct model *m;
	struct event e;
	struct err err;

	for (uint64_t r = 0; r <= 10; r++) {
		uint64_t input = r == 10 ? last : asked[r];
		uint64_t size = made_for(how, input, r, r == 10);
		uint64_t prompt, kv;

		for (int layer = 1; layer < layers && r < 10; layer++) {
			prompt = script_alloc(s, render, input);
			script_release(s, script_alloc(s, prefill, size));
			script_release(s, prompt);
		}
		prompt = script_alloc(s, render, input);
		script_release(s, script_alloc(s, other, 600 + asked[r * 3 % 10] % 500));
		if (r == 10 && refused) {
			script_failed(s, prefill, size);
			break;
		}
		kv = script_alloc(s, prefill, size);
		if (r == 10)
			break;
		script_release(s, kv);
		script_release(s, prompt);
	}
	assert_int_equal(model_new(feed, &m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, refused ? AT_FAILURE : AT_END, &callsites, &err), 0);
	assert_int_equal(proportion_init(&p, callsites, refused ? model_failure(m)->size : 0), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(proportion_apply(&p, &e), 0);
	proportion_finish(&p);
	proportion_fini(&p);
	found = callsites->proportion;
	if (found.callsite != CALLSITE_NONE) {
		assert_string_equal(callsites->list[found.callsite].function, "prefill");
		assert_string_equal(callsites->list[found.driver].function, "render");
	}
	callsites_free(callsites);
	model_free(m);
	script_free(s);
	return found;
}

static struct proportion_found look(enum follows how, uint64_t last, bool refused)
{
	return look_layers(how, last, refused, 1);
}

/* A request's layers repeat both sizes, before the next request's. */
static void test_layered(void **state)
{
	assert_false(look(SQUARE, 100000, true).layered);
	assert_false(look_layers(SQUARE, 100000, true, 2).layered);
	assert_true(look_layers(SQUARE, 100000, true, 4).layered);
	assert_true(look_layers(TIMES, 100000, true, 4).layered);
	(void)state;
}

static void test_follows(void **state)
{
	for (int refused = 0; refused < 2; refused++) {
		struct proportion_found found = look(TIMES, 100000, refused);

		assert_int_not_equal(found.callsite, CALLSITE_NONE);
		assert_int_equal(found.target, 6400000);
		assert_int_equal(found.input, 100000);
		assert_int_equal(found.pairs, 10);
		assert_in_range(found.typical, 64 * 700, 64 * 9000);
		assert_true(found.fit > 0.99);
		assert_true(found.slope > 0.99 && found.slope < 1.01);
		found = look(SQUARE, 100000, refused);
		assert_int_not_equal(found.callsite, CALLSITE_NONE);
		assert_true(found.slope > 1.99 && found.slope < 2.01);
	}
	(void)state;
}

static void test_does_not(void **state)
{
	for (int refused = 0; refused < 2; refused++) {
		assert_int_equal(look(NOTHING, 100000, refused).callsite, CALLSITE_NONE);
		/* Its input was long, but it is far off the line. */
		assert_int_equal(look(NOT_THE_LAST, 100000, refused).callsite, CALLSITE_NONE);
		/* As large as its input makes it, and that input was ordinary. */
		assert_int_equal(look(TIMES, 8000, refused).callsite, CALLSITE_NONE);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_follows),
	    cmocka_unit_test(test_does_not),
	    cmocka_unit_test(test_layered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
