/* Speaks of memory that ran out while it was filled, and not after work with it began. */
#include "detect/scene.h"

static const uint64_t shapes[] = {40000, 40000, 110000, 110000, 500};

static enum role weights[64];

static void known(struct staged *t)
{
	for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++)
		weights[i] = ROLE_WEIGHTS_LOAD;
	t->scene.roles = weights;
}

static void load(struct staged *t, int layers)
{
	uint32_t at = script_stack(t->s, "main;build");

	t->scene.space = "torch:0";
	for (int i = 0; i < layers; i++)
		for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++)
			script_alloc(t->s, at, shapes[k]);
}

static void test_loading(void **state)
{
	struct staged t = {.s = script_new()};

	load(&t, 40);
	script_failed(t.s, script_stack(t.s, "main;build"), 110000);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "build");
	assert_true(t.f.strength == 0.8);
	assert_int_equal(t.f.bytes, t.p->live_bytes);
	assert_int_equal(t.f.request_bytes, 110000);
	known(&t);
	assert_int_equal(detect_oversized_model(&t.scene, &t.f), 0);
	assert_true(t.f.strength == 1);
	strike(&t);
	(void)state;
}

/* Weights of one size are cast, one after the other, when all of them are there. */
static void test_cast(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
	uint32_t load = script_stack(t.s, "main;load"), cast = script_stack(t.s, "main;cast");
	uint64_t half[20];

	for (int i = 0; i < 20; i++)
		half[i] = script_alloc(t.s, load, 200000);
	for (int i = 0; i < 14; i++) {
		script_alloc(t.s, cast, 400000);
		script_release(t.s, half[i]);
	}
	script_failed(t.s, cast, 400000);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.6);
	assert_string_equal(blamed(&t), "cast");
	assert_true(detect_batch_prealloc(&t.scene, &t.f) == DETECT_SILENT ||
		    strcmp(blamed(&t), "cast") != 0);
	assert_true(detect_leak(&t.scene, &t.f) == DETECT_SILENT || t.f.strength < 0.5);
	strike(&t);
	(void)state;
}

/* Others hold nine times as much. */
static void test_beside_others(void **state)
{
	struct staged t = {.s = script_new()};

	load(&t, 40);
	script_failed(t.s, script_stack(t.s, "main;build"), 110000);
	t.scene.others = (struct scene_others){.known = true, .bytes = 9 * 40 * 300500};
	stage(&t, detect_oversized_model, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.1);
	strike(&t);
	(void)state;
}

/* Beside known weights: two states of each, or blocks that each of many steps kept. */
static void test_states(void **state)
{
	static enum role roles[8];

	for (int steps = 0; steps < 2; steps++) {
		struct staged t = {.s = script_new()};
		uint32_t at = script_stack(t.s, "main;train"),
			 work = script_stack(t.s, "main;work");

		load(&t, 10);
		for (int i = 0; i < (steps ? 20 : 2) * 50; i++) {
			script_alloc(t.s, at, shapes[i % 5] / (steps ? 10 : 1));
			if (i % 4 == 0)
				script_release(t.s, script_alloc(t.s, work, 500));
		}
		script_failed(t.s, at, 110000);
		stage(&t, detect_oversized_model, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			roles[i] = strcmp(t.p->list[i].function, "build") == 0 ? ROLE_WEIGHTS_LOAD
									       : ROLE_NONE;
		t.scene.roles = roles;
		t.rc = detect_oversized_model(&t.scene, &t.f);
		assert_int_equal(t.rc, 0);
		assert_true(steps ? t.f.strength < 0.5 : t.f.strength >= 0.7);
		strike(&t);
	}
	(void)state;
}

/* Leftovers of many ended requests are not loaded; but a pool's threads may have loaded a part
 * each. */
static void test_served(void **state)
{
	for (int tasks = 0; tasks < 2; tasks++) {
		struct staged t = {.s = script_new()};

		for (uint32_t n = 0; n < 40; n++) {
			script_thread(t.s, tasks ? 1 : 2 + n, tasks ? 2 + n : 0);
			load(&t, 1);
			script_event(t.s, tasks ? EV_TASK_END : EV_THREAD_EXIT, 0);
		}
		script_failed(t.s, script_stack(t.s, "main;build"), 110000);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, 0);
		assert_true(tasks ? t.f.strength < 0.4 : t.f.strength == 0.8);
		strike(&t);
	}
	(void)state;
}

/* Each parameter is staged first. */
static void test_staged_copies(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t copy = script_stack(t.s, "main;copy");

	for (int i = 0; i < 40; i++) {
		uint64_t staged = script_alloc(t.s, copy, 110000);

		load(&t, 1);
		script_release(t.s, staged);
	}
	script_failed(t.s, copy, 110000);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength >= 0.7);
	strike(&t);
	(void)state;
}

static void test_worked_with(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;forward");

	load(&t, 40);
	for (int i = 0; i < 2000; i++)
		script_release(t.s, script_alloc(t.s, work, 30000));
	script_failed(t.s, work, 30000);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* One block comes and goes for each that stays, twelve times as large: no copy of it. */
static void test_worked_beside(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;build;work");

	for (int i = 0; i < 200; i++) {
		uint64_t image = script_alloc(t.s, work, 12 * shapes[i % 4]);

		script_alloc(t.s, script_stack(t.s, "main;build"), shapes[i % 4]);
		script_release(t.s, image);
	}
	t.scene.space = "torch:0";
	script_failed(t.s, work, 2000000);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* Nothing is in place yet: the refused request reads the very first weight. */
static void test_first_weight(void **state)
{
	for (int reads = 0; reads < 2; reads++) {
		struct staged t = {.s = script_new()};
		uint32_t read = script_stack(t.s, "main;read");

		script_release(t.s, script_alloc(t.s, read, 4096));
		script_alloc(t.s, script_stack(t.s, "main;start"), 1000000);
		script_failed(t.s, read, 40000000);
		if (reads)
			known(&t);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, reads ? 0 : DETECT_SILENT);
		if (reads) {
			assert_string_equal(blamed(&t), "read");
			assert_int_equal(t.f.request_bytes, 40000000);
			assert_true(t.f.strength == 1);
		}
		strike(&t);
	}
	(void)state;
}

/* Equal blocks may be a model's as well as a pool's, and so may one request before any work: then
 * names tell. */
static void test_named(void **state)
{
	static const struct {
		const char *at;
		bool first, layers;
	} of[] = {{"main;load_weights", true, true}, {"main;read;next_layer", true, true},
	    {"main;reserve_slots", false, false}, {"main;go", false, false}};
	double layers[4];

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct staged one = {.s = script_new()}, many = {.s = script_new()};
		uint32_t at = script_stack(one.s, of[n].at);

		script_alloc(one.s, script_stack(one.s, "main;start"), 1000000);
		script_failed(one.s, at, 40000000);
		stage(&one, detect_oversized_model, true);
		assert_int_equal(one.rc == 0 && one.f.request_bytes == 40000000, of[n].first);
		strike(&one);

		at = script_stack(many.s, of[n].at);
		for (int i = 0; i < 24; i++)
			script_alloc(many.s, at, 1000000);
		script_failed(many.s, at, 1000000);
		stage(&many, detect_oversized_model, true);
		layers[n] = many.rc ? 0 : many.f.strength;
		strike(&many);
	}
	assert_true(layers[0] > 0.5 && layers[1] > 0.5);
	assert_true(layers[2] < layers[0] - 0.2 && layers[3] < layers[0] - 0.2);
	(void)state;
}

/* On the host, too, also after the program's modules ran and released much; but not after calls
 * that worked, nor while there is work. */
static void test_host(void **state)
{
	for (int worked = 0; worked < 3; worked++) {
		struct staged t = {.s = script_new()};
		uint32_t start = script_stack(t.s, "<module>@/app/main.py:1"),
			 work = script_stack(t.s, "<module>@/app/main.py:9;answer@/app/main.py:5");

		for (int i = 0; i < 2000; i++)
			script_release(t.s, script_alloc(t.s, worked == 1 ? work : start, 30000));
		for (int i = 0; i < 40; i++) {
			load(&t, 1);
			for (int k = 0; worked == 2 && k < 30; k++)
				script_release(t.s, script_alloc(t.s, work, 30000));
		}
		t.scene.space = NULL;
		script_failed(t.s, script_stack(t.s, "main;build"), 110000);
		stage(&t, detect_oversized_model, true);
		if (!worked) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "build");
			assert_true(t.f.strength >= 0.8);
			assert_int_equal(t.f.request_bytes, 110000);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.4);
		}
		strike(&t);
	}
	(void)state;
}

/* Sizes of a model's parameters recur; blocks that all differ in size may be anything, a table
 * that is put in place while nothing comes and goes. */
static void test_host_scattered(void **state)
{
	enum { RECUR, PLACED, WORKED, WAYS };

	for (int way = RECUR; way < WAYS; way++) {
		struct staged t = {.s = script_new()};
		uint32_t build = script_stack(t.s, "main;build"),
			 work = script_stack(t.s, "main;work");
		uint64_t seed = 5;

		for (int i = 0; i < 60; i++) {
			script_alloc(t.s, build,
			    100000 + (way ? dice(&seed, 90000) : dice(&seed, 5) * 20000));
			if (way == WORKED)
				script_release(t.s, script_alloc(t.s, work, 8000));
		}
		script_failed(t.s, build, 110000);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, 0);
		if (way == PLACED)
			assert_true(t.f.strength >= 0.6 && t.f.strength <= 0.7);
		else
			assert_true(way ? t.f.strength <= 0.3 : t.f.strength >= 0.8);
		strike(&t);
	}
	(void)state;
}

/* Each is read into a copy first, at the same line, while one call is open; layer after layer,
 * or in no order. */
static void read_in_order(
    struct staged *t, const uint64_t *sizes, size_t count, int layers, bool order)
{
	uint32_t copy = script_stack(t->s, "main;read;into"),
		 keep = script_stack(t->s, "main;read");
	uint64_t seed = 5;

	for (size_t i = 0; i < count * (size_t)layers; i++) {
		uint64_t size = sizes[order ? i % count : dice(&seed, count)];
		uint64_t staged = script_alloc(t->s, copy, size);

		script_alloc(t->s, keep, size);
		/* One more at the line that keeps, but for every third kept block. */
		if (i % 3)
			script_release(t->s, script_alloc(t->s, keep, size / 2));
		script_release(t->s, staged);
	}
	script_failed(t->s, keep, sizes[0]);
	t->open_call = OPEN_CALL_MAYBE;
}

static void read_in(struct staged *t, const uint64_t *sizes, size_t count, int layers)
{
	read_in_order(t, sizes, count, layers, true);
}

static void test_host_read(void **state)
{
	static const uint64_t layer[] = {60000, 40000, 110000, 90000}, alike[] = {60000};
	struct staged t = {.s = script_new()}, same = {.s = script_new()},
		      repeated = {.s = script_new()}, any = {.s = script_new()};
	struct finding leak;

	read_in(&t, layer, 4, 12);
	stage(&t, detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "read");
	assert_true(t.f.strength == 0.8);
	assert_int_equal(detect_leak(&t.scene, &leak), 0);
	assert_true(leak.strength <= 0.5);
	strike(&t);
	/* Calls like it came and went before: this one works at a request, too. */
	repeated.open_repeats = true;
	read_in(&repeated, layer, 4, 12);
	stage(&repeated, detect_oversized_model, true);
	assert_int_equal(repeated.rc, DETECT_SILENT);
	strike(&repeated);
	/* Without an order they come as requested. */
	read_in_order(&any, layer, 4, 12, false);
	stage(&any, detect_oversized_model, true);
	assert_true(any.rc == DETECT_SILENT || any.f.strength < 0.6);
	assert_int_equal(detect_leak(&any.scene, &leak), 0);
	assert_true(leak.strength > 0.7);
	strike(&any);
	/* Blocks of one size may be requests' leftovers. */
	read_in(&same, alike, 1, 48);
	stage(&same, detect_oversized_model, true);
	assert_true(same.rc == DETECT_SILENT || same.f.strength < 0.3);
	assert_int_equal(detect_leak(&same.scene, &leak), 0);
	assert_true(leak.strength > 0.7);
	strike(&same);
	(void)state;
}

/* One block with most of the bytes may be anything, whatever lies beside it, unless its name says
 * that it is loaded. */
static void test_host_one_block(void **state)
{
	static const uint64_t layer[] = {60000, 40000, 110000, 90000};

	for (int way = 0; way < 3; way++) {
		bool one = way > 0, named = way == 2;
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, named ? "main;load_whole" : "main;grow");

		for (int i = 0; i < 12; i++)
			script_alloc(t.s, keep, layer[i % 4]);
		script_alloc(t.s, keep, one ? 4000000 : 200000);
		script_failed(t.s, keep, 4000000);
		stage(&t, detect_oversized_model, true);
		if (one && !named)
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.3);
		else
			assert_true(t.rc == 0 && t.f.strength > 0.6);
		strike(&t);
	}
	(void)state;
}

/* The vectors in one block, then lists by the dozen: together they are what is read in, more surely
 * the less of it is the one block. */
static void test_host_block_and_lists(void **state)
{
	double strength[2];

	for (int large = 0; large < 2; large++) {
		struct staged t = {.s = script_new()};
		uint32_t list = script_stack(t.s, "main;lists");

		script_alloc(t.s, script_stack(t.s, "main;whole"), large ? 40000000 : 5000000);
		for (uint64_t i = 0; i < 50; i++)
			script_alloc(t.s, list, 80000 + i % 5 * 10000);
		script_failed(t.s, list, 80000);
		stage(&t, detect_oversized_model, true);
		assert_true(large ? t.rc == DETECT_SILENT || t.f.strength < 0.2 : t.rc == 0);
		strength[large] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] > 0.5);
	(void)state;
}

/* Three lines of one size in turns are a layer's; two may be keys and values. */
/* Each line makes all blocks of one shape, from a wider copy: in one call that is a model, layer
 * after layer. Leftovers of ended calls are not, nor are blocks that are all alike. */
static void test_host_company(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new()};
		uint32_t up = script_stack(t.s, "main;layer@/app/m.py:3"),
			 down = script_stack(t.s, "main;layer@/app/m.py:4");
		struct finding leak;

		for (int i = 0; i < 24; i++)
			for (int k = 0; k < 2; k++) {
				uint64_t size = k && way != 2 ? 110000 : 60000;
				uint64_t wide = script_alloc(t.s, k ? down : up, 2 * size);

				script_alloc(t.s, k ? down : up, size);
				script_release(t.s, wide);
			}
		script_failed(t.s, up, 120000);
		t.open_call = way == 1 ? OPEN_CALL_NO : OPEN_CALL_MAYBE;
		stage(&t, detect_oversized_model, true);
		assert_int_equal(detect_leak(&t.scene, &leak), 0);
		if (way == 0) {
			assert_int_equal(t.rc, 0);
			assert_true(t.f.strength == 0.8);
			assert_true(leak.strength <= 0.5);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.3);
			assert_true(leak.strength > 0.7);
		}
		strike(&t);
	}
	(void)state;
}

/* Weights are read until memory runs out: blocks that come and go carry them, and blocks made of
 * them are a part of the model. If they were read long before, it would be work. */
static void test_host_reading(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct staged t = {.s = script_new()};
		uint32_t read = script_stack(t.s, "main;load;read"),
			 keep = script_stack(t.s, "main;load;pack");
		enum role roles[8] = {ROLE_NONE};
		struct finding again;

		for (int i = 0; i < 40; i++) {
			uint64_t full = early && i ? 0 : script_alloc(t.s, read, 400000);

			for (int k = 0; k < 3; k++)
				script_release(t.s, script_alloc(t.s, keep, 400000));
			script_alloc(t.s, keep, 100000);
			if (full && i < 39)
				script_release(t.s, full);
		}
		script_failed(t.s, keep, 400000);
		stage(&t, detect_oversized_model, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			if (strcmp(t.p->list[i].function, "read") == 0)
				roles[i] = ROLE_WEIGHTS_LOAD;
		t.scene.roles = roles;
		if (early)
			assert_true(detect_oversized_model(&t.scene, &again) == DETECT_SILENT ||
				    again.strength < 0.3);
		else {
			assert_int_equal(detect_oversized_model(&t.scene, &again), 0);
			assert_true(again.strength >= 0.9);
			assert_int_equal(detect_leak(&t.scene, &again), 0);
			assert_true(again.strength <= 0.5);
		}
		strike(&t);
	}
	(void)state;
}

static void test_host_turns(void **state)
{
	static const char *const lines[] = {"main;up", "main;gate", "main;down"};

	for (int n = 2; n <= 3; n++) {
		struct staged t = {.s = script_new()};
		struct finding pool;

		for (int i = 0; i < 30; i++)
			for (int k = 0; k < n; k++)
				script_alloc(t.s, script_stack(t.s, lines[k]), 100000);
		script_failed(t.s, script_stack(t.s, lines[0]), 100000);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, 0);
		if (n == 3) {
			assert_true(t.f.strength == 0.8);
			assert_int_equal(detect_batch_prealloc(&t.scene, &pool), DETECT_SILENT);
		} else {
			assert_true(t.f.strength < 0.3);
			assert_int_equal(detect_batch_prealloc(&t.scene, &pool), 0);
		}
		strike(&t);
	}
	(void)state;
}

/* In a layer, four have one shape, and two others have one each; one line makes the four, one
 * each the others, and all are read the same way. */
static void test_host_ways(void **state)
{
	static const char *const ways[] = {
	    "main;make@a.c:1;read", "main;make@a.c:2;read", "main;make@a.c:3;read"};
	static const uint64_t sizes[] = {50000, 200000, 200000};

	for (int turns = 0; turns < 2; turns++) {
		struct staged t = {.s = script_new()};
		uint32_t raw = script_stack(t.s, "main;make;half");
		struct finding leak;

		for (int i = 0; i < (turns ? 12 : 3) * 6; i++) {
			int of = turns ? i % 6 < 4 ? 0 : i % 6 - 3 : i < 12 ? 0 : i < 15 ? 1 : 2;
			uint64_t half = script_alloc(t.s, raw, sizes[of] / 2);

			script_alloc(t.s, script_stack(t.s, ways[of]), sizes[of]);
			script_release(t.s, half);
		}
		script_failed(t.s, script_stack(t.s, ways[1]), 200000);
		stage(&t, detect_oversized_model, true);
		if (turns) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "read");
			assert_true(t.f.strength == 0.8);
			assert_int_equal(detect_leak(&t.scene, &leak), 0);
			assert_true(leak.strength <= 0.5);
		} else {
			/* One size after the other is no layer after layer. */
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.6);
		}
		strike(&t);
	}
	(void)state;
}

/* Requests were served, then another model was to join the first: known weights of one call.
 * Leftovers of ended calls, or unknown blocks, are none. */
static void test_loading_late(void **state)
{
	static enum role roles[8];

	for (int n = 0; n < 3; n++) {
		struct staged t = {
		    .s = script_new(), .open_call = n == 1 ? OPEN_CALL_NO : OPEN_CALL_MAYBE};
		uint32_t work = script_stack(t.s, "main;forward"),
			 late = script_stack(t.s, "main;second");
		struct finding one;

		load(&t, 4);
		for (int i = 0; i < 2000; i++)
			script_release(t.s, script_alloc(t.s, work, 30000));
		for (int i = 0; i < 200; i++)
			script_alloc(t.s, late, shapes[i % 5]);
		script_failed(t.s, late, 110000);
		stage(&t, detect_oversized_model, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			roles[i] = n < 2 && strcmp(t.p->list[i].function, "forward") != 0
				       ? ROLE_WEIGHTS_LOAD
				       : ROLE_NONE;
		t.scene.roles = roles;
		t.rc = detect_oversized_model(&t.scene, &t.f);
		assert_int_equal(t.rc, n ? DETECT_SILENT : 0);
		if (!n) {
			assert_string_equal(blamed(&t), "second");
			assert_true(t.f.strength > 0.95);
			assert_int_equal(t.f.request_bytes, 110000);
			assert_true(
			    detect_oversized_intermediate(&t.scene, &one) == DETECT_SILENT ||
			    one.strength < 0.5);
		}
		strike(&t);
	}
	(void)state;
}

/* What each of several requests in flight holds is no model, however alike their blocks are to
 * one's parameters. */
static void test_in_flight(void **state)
{
	for (uint32_t threads = 1; threads <= 8; threads += 7) {
		struct staged t = {.s = script_new()};

		for (uint32_t i = 0; i < 80; i++) {
			script_thread(t.s, 1 + i % threads, 0);
			script_alloc(t.s, script_stack(t.s, "main;build"), shapes[i / threads % 5]);
		}
		script_failed(t.s, script_stack(t.s, "main;build"), 110000);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, threads == 1 ? 0 : DETECT_SILENT);
		strike(&t);
	}
	(void)state;
}

/* What requests in flight hold on a device is no weight, whatever its sizes are. */
static void test_in_flight_on_device(void **state)
{
	double strength[2];

	for (uint32_t way = 0; way < 2; way++) {
		struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
		uint32_t answer = script_stack(t.s, "main;answer");

		for (int i = 0; i < 16; i++)
			script_alloc(t.s, script_stack(t.s, "main;build"), shapes[i % 5]);
		for (uint32_t i = 0; i < 8; i++) {
			script_thread(t.s, way ? 1 + i : 1, 0);
			script_alloc(t.s, answer, 400000 + 100000 * (i % 2));
		}
		script_failed(t.s, answer, 400000);
		stage(&t, detect_oversized_model, true);
		strength[way] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] > 0.7 && strength[1] < 0.3);
	(void)state;
}

/* A header of each block beside it, made in the same line through other functions. */
static void test_headers(void **state)
{
	struct staged t = {.s = script_new()};

	for (int i = 0; i < 40; i++) {
		script_alloc(t.s, script_stack(t.s, "main;reserve;operator new@/lib/libx.so"), 24);
		script_alloc(t.s, script_stack(t.s, "main;reserve"), 100000);
	}
	script_failed(t.s, script_stack(t.s, "main;reserve"), 100000);
	stage(&t, detect_batch_prealloc, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.9);
	strike(&t);
	(void)state;
}

/* Holes that would have held what was refused are as much of a reason; so is room that was still
 * being made, by its name. */
static void test_beside_holes_and_room(void **state)
{
	double strength[3];

	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
		uint32_t load = script_stack(t.s, "main;build"),
			 slots = script_stack(t.s, way == 2 ? "main;make_slots" : "main;make_more");

		for (int i = 0; i < 20; i++)
			script_release(t.s, script_alloc(t.s, load, 20000));
		for (int i = 0; i < 40; i++)
			script_alloc(t.s, load, 100000 + 20000 * (i % 4));
		for (int i = 0; i < 10; i++)
			script_alloc(t.s, slots, 300000);
		script_failed(t.s, slots, 300000);
		if (way == 1)
			t.scene.slack = (struct scene_slack){
			    .known = true, .bytes = 4000000, .pinned_by = CALLSITE_NONE};
		stage(&t, detect_oversized_model, true);
		assert_int_equal(t.rc, 0);
		strength[way] = t.f.strength;
		strike(&t);
	}
	for (int way = 1; way < 3; way++)
		assert_true(strength[way] < 0.8 * strength[0]);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_holes_and_room),
	    cmocka_unit_test(test_loading), cmocka_unit_test(test_in_flight),
	    cmocka_unit_test(test_in_flight_on_device), cmocka_unit_test(test_cast),
	    cmocka_unit_test(test_states), cmocka_unit_test(test_beside_others),
	    cmocka_unit_test(test_served), cmocka_unit_test(test_staged_copies),
	    cmocka_unit_test(test_worked_with), cmocka_unit_test(test_host),
	    cmocka_unit_test(test_host_scattered), cmocka_unit_test(test_worked_beside),
	    cmocka_unit_test(test_first_weight), cmocka_unit_test(test_named),
	    cmocka_unit_test(test_host_read), cmocka_unit_test(test_host_one_block),
	    cmocka_unit_test(test_host_block_and_lists), cmocka_unit_test(test_host_company),
	    cmocka_unit_test(test_host_reading), cmocka_unit_test(test_host_turns),
	    cmocka_unit_test(test_host_ways), cmocka_unit_test(test_loading_late),
	    cmocka_unit_test(test_headers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
