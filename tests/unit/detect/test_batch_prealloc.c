/* Speaks of equal blocks made in one go; not of parameters or requests' leftovers. */
#include "detect/scene.h"

static void serve(struct staged *t, int requests)
{
	uint32_t work = script_stack(t->s, "main;serve");

	for (int i = 0; i < requests; i++)
		script_release(t->s, script_alloc(t->s, work, 20000));
}

static void test_pool(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keys = script_stack(t.s, "main;pool;keys"),
		 values = script_stack(t.s, "main;pool;values");

	serve(&t, 2000);
	for (int i = 0; i < 12; i++)
		script_alloc(t.s, keys, 1000000);
	for (int i = 0; i < 12; i++)
		script_alloc(t.s, values, 1000000);
	serve(&t, 2000);
	script_failed(t.s, script_stack(t.s, "main;serve"), 20000);
	stage(&t, detect_batch_prealloc, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength == 1);
	assert_int_equal(t.f.bytes, 22000000); /* all but the first of each */
	assert_int_equal(t.f.claim_count, 2);
	strike(&t);
	(void)state;
}

/* Keys and values of all layers in a block each: the second is as useless as any second block. A
 * single block, or two of different sizes, may be all that serving needs. */
static void test_twins(void **state)
{
	static const uint64_t values_of[] = {30000000, 0, 20000000};

	for (int n = 0; n < 3; n++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};

		serve(&t, 200);
		script_alloc(t.s, script_stack(t.s, "main;keys"), 30000000);
		if (values_of[n])
			script_alloc(t.s, script_stack(t.s, "main;values"), values_of[n]);
		serve(&t, 2000);
		script_failed(t.s, script_stack(t.s, "main;serve"), 20000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.bytes, n ? 0 : 30000000);
		strike(&t);
	}
	(void)state;
}

/* One block that came before any work need not have been used; later a part of it was. */
static void test_first_block(void **state)
{
	for (int used = 0; used < 2; used++) {
		struct staged t = {.s = script_new()};

		script_alloc(t.s, script_stack(t.s, "main;keys"), 30000000);
		serve(&t, used ? 2000 : 0);
		script_failed(t.s, script_stack(t.s, "main;serve"), 20000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.bytes, used ? 0 : 30000000);
		strike(&t);
	}
	(void)state;
}

/* On the host: an array's header is no block of the pool, and what a library takes a few words for
 * is no work; but if many small blocks come and go between any two, each is a request's leftover.
 */
static void test_headers(void **state)
{
	static const uint64_t sizes[] = {0, 40, 200}; /* of what comes and goes; 0: nothing does */

	for (int way = 0; way < 3; way++) {
		bool served = sizes[way] >= 200;
		struct staged t = {.s = script_new()};
		uint32_t slot = script_stack(t.s, "take@/app/m.py:3;array"),
			 header = script_stack(t.s, "take@/app/m.py:3;object"),
			 work = script_stack(t.s, "main;serve");

		for (int i = 0; i < 100; i++) {
			script_alloc(t.s, slot, 1000000);
			script_alloc(t.s, header, 96);
			for (int k = 0; sizes[way] && k < 20; k++)
				script_release(t.s, script_alloc(t.s, work, sizes[way]));
		}
		script_failed(t.s, slot, 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, served ? DETECT_SILENT : 0);
		if (!served)
			assert_int_equal(finding_fact(&t.f, FACT_BLOCK_COUNT), 100);
		strike(&t);
	}
	(void)state;
}

/* Keys and values of a slot in a block for each layer, in a list that the same line enlarges:
 * neither separates the other's. Large exchanged blocks do. */
static void test_lists(void **state)
{
	for (int exchanged = 0; exchanged < 2; exchanged++) {
		struct staged t = {.s = script_new()};
		uint32_t blocks[] = {script_stack(t.s, "slot@/app/m.c:3;fill@/lib/libc.so.6"),
		    script_stack(t.s, "slot@/app/m.c:4;fill@/lib/libc.so.6")};
		uint32_t lists[] = {script_stack(t.s, "slot@/app/m.c:3;grow@/lib/libc.so.6"),
		    script_stack(t.s, "slot@/app/m.c:4;grow@/lib/libc.so.6")};

		for (int slot = 0; slot < 6; slot++) {
			uint64_t list[2] = {
			    script_alloc(t.s, lists[0], 24), script_alloc(t.s, lists[1], 24)};

			for (int i = 0; i < 24; i++) {
				script_alloc(t.s, blocks[i % 2], 1000000);
				if (i / 2 & (i / 2 - 1))
					continue;
				script_release(t.s, list[i % 2]);
				list[i % 2] = script_alloc(
				    t.s, lists[i % 2], exchanged && i % 2 ? 300000 : 48 << i / 4);
			}
		}
		script_failed(t.s, blocks[0], 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.claim_count, exchanged ? 1 : 2);
		assert_true(exchanged || t.f.strength > 0.99);
		strike(&t);
	}
	(void)state;
}

/* The line's blocks of its first run are not of the pool; blocks that it makes and releases
 * beside each one later may be a request's, and so may its long earlier work, or piles that were
 * released again and again. */
static void test_first_call(void **state)
{
	enum { FIRST, GOES_ON, ONE_LARGE, LATE, PILES, WAYS };

	for (int way = FIRST; way < WAYS; way++) {
		bool goes_on = way == GOES_ON;
		struct staged t = {.s = script_new()};
		uint32_t slot = script_stack(t.s, "take@/app/m.c:3;array@/lib/libc.so.6"),
			 import = script_stack(t.s, "take@/app/m.c:3;compile@/lib/libc.so.6");

		/* Requests, before: for longer than the large ones take. */
		for (int k = 0; way == LATE && k < 1000; k++)
			script_release(t.s, script_alloc(t.s, import, 3000));
		for (int k = 0; way == PILES && k < 5; k++) {
			uint64_t pile[20];

			for (int n = 0; n < 20; n++)
				pile[n] = script_alloc(t.s, slot, 3000);
			for (int n = 0; n < 20; n++)
				script_release(t.s, pile[n]);
		}
		for (int i = 0; i < (way == ONE_LARGE ? 1 : 8); i++) {
			for (int k = 0; (!i || goes_on) && k < 40; k++)
				script_release(t.s, script_alloc(t.s, import, 3000));
			script_alloc(t.s, slot, 1000000);
			script_wait(t.s, 100000); /* it is filled */
		}
		script_failed(t.s, slot, 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, way == FIRST ? 0 : DETECT_SILENT);
		if (way == FIRST)
			assert_int_equal(finding_fact(&t.f, FACT_BLOCK_COUNT), 8);
		strike(&t);
	}
	(void)state;
}

static void test_parameters(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t a = script_stack(t.s, "main;model;up"), b = script_stack(t.s, "main;model;query"),
		 c = script_stack(t.s, "main;model;down");

	serve(&t, 2000);
	for (int i = 0; i < 24; i++) {
		script_alloc(t.s, a, 1000000);
		script_alloc(t.s, b, 400000);
		script_alloc(t.s, c, 900000);
	}
	script_failed(t.s, a, 1000000);
	stage(&t, detect_batch_prealloc, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* On the host: each slot is filled from a copy that the same line made, and no other work is
 * done. With requests in between they may be leftovers. The line's other requests are no part. */
static void test_filled(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new()};
		uint32_t slot = script_stack(t.s, "main;slots");

		for (int i = 0; i < 40; i++) {
			uint64_t copy = script_alloc(t.s, slot, 1000032);

			script_alloc(t.s, slot, 1000000);
			script_release(t.s, copy);
			serve(&t, way == 1 ? 6 : 0);
		}
		script_failed(t.s, slot, way == 2 ? 8000000 : 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, way == 1 ? DETECT_SILENT : 0);
		if (way != 1)
			assert_int_equal(t.f.request_bytes, way == 2 ? 0 : 1000000);
		strike(&t);
	}
	(void)state;
}

/* A pool that is refused its rest is released and tried again: each try had all its blocks.
 * Without an earlier refusal they belong to others. */
static void test_tried_again(void **state)
{
	for (int refused = 0; refused < 2; refused++) {
		struct staged t = {.s = script_new()};
		uint32_t slot = script_stack(t.s, "main;slots");
		uint64_t blocks[27];

		serve(&t, 2000);
		for (int n = 0; n < 3; n++) {
			for (int i = 0; i < 27; i++)
				blocks[i] = script_alloc(t.s, slot, 25 * MiB);
			if (n < 2 && refused)
				script_failed(t.s, slot, 25 * MiB);
			for (int i = 0; i < 27 && n < 2; i++)
				script_release(t.s, blocks[i]);
		}
		script_failed(t.s, slot, 25 * MiB);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, refused ? 0 : DETECT_SILENT);
		if (refused)
			assert_true(t.f.strength > 0.9 && t.f.bytes >= 25 * 25 * MiB);
		strike(&t);
	}
	(void)state;
}

/* A function of its own that handles each finished block is work, and so is a call around the
 * keeping function that returns each time; a loop around it, and calls inside, need not be. An
 * array's header beside each block is no block of its own. */
static void test_work_beside(void **state)
{
	static const struct {
		const char *beside;
		uint64_t size;
		enum open_call open;
		int rc;
		uint64_t header; /* 0: there is none */
	} of[] = {{"main;preview", 100000, OPEN_CALL_NO, DETECT_SILENT, 0},
	    {"main;slots;preview", 100000, OPEN_CALL_NO, 0, 0},
	    {"main", 100000, OPEN_CALL_NO, DETECT_SILENT, 0},
	    {"main", 100000, OPEN_CALL_NO, DETECT_SILENT, 64},
	    {"main", 100000, OPEN_CALL_MAYBE, 0, 0}, {"main;preview", 10000, OPEN_CALL_NO, 0, 0}};

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct staged t = {.s = script_new(), .open_call = of[n].open};
		uint32_t slot = script_stack(
			     t.s, of[n].header ? "main;slots@/app/m.cpp:3" : "main;slots"),
			 header = script_stack(t.s, "main;slots@/app/m.cpp:3;array@/lib/libx.so"),
			 beside = script_stack(t.s, of[n].beside);

		for (int i = 0; i < 200; i++) {
			script_alloc(t.s, slot, 1000000);
			if (of[n].header)
				script_alloc(t.s, header, of[n].header);
			/* One of forty fails before it gets so far. */
			if (i % 40)
				script_release(t.s, script_alloc(t.s, beside, of[n].size));
		}
		script_failed(t.s, slot, 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, of[n].rc);
		strike(&t);
	}
	(void)state;
}

/* They are only known to be equal and complete: the more there are, the less likely a pool and
 * the more likely a leak. */
static void test_many(void **state)
{
	static const int blocks[] = {60, 200, 400};
	double pool[3], leak[3];

	for (int n = 0; n < 3; n++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep");
		struct finding f;

		for (int i = 0; i < blocks[n]; i++)
			script_alloc(t.s, keep, 1000000);
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		pool[n] = t.f.strength;
		assert_int_equal(detect_leak(&t.scene, &f), 0);
		leak[n] = f.strength;
		strike(&t);
	}
	assert_true(pool[0] == 1 && pool[1] < 0.9 && pool[1] > pool[2] + 0.3);
	/* Nothing was given back: sixty may be put in place, 400 are of so many requests. */
	assert_true(leak[0] <= 0.3 && leak[0] < leak[1] && leak[1] < leak[2] && leak[2] > 0.5);
	(void)state;
}

static void test_leak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;keep");

	for (int i = 0; i < 200; i++) {
		serve(&t, 5);
		script_alloc(t.s, keep, 100000);
	}
	script_failed(t.s, keep, 100000);
	stage(&t, detect_batch_prealloc, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

#define NET "/usr/lib/python3/dist-packages/net/a.py"

/* A library's cache made layer by layer, within one call; all of it at one line of the user's. */
static void layers(struct staged *t, int requests, int each)
{
	const uint32_t embed = script_stack(t->s, "main;serve"),
		       work = script_stack(t->s, "main;serve;layer@" NET ":5"),
		       keys = script_stack(t->s, "main;serve;keys@" NET ":6"),
		       values = script_stack(t->s, "main;serve;values@" NET ":7");

	script_alloc(t->s, script_stack(t->s, "main;load"), 3000000);
	serve(t, 2000);
	for (int r = 0; r < requests; r++) {
		script_release(t->s, script_alloc(t->s, embed, 70000));
		for (int i = 0; i < each; i++) {
			script_release(t->s, script_alloc(t->s, work, 900000));
			script_alloc(t->s, keys, 1000000);
			script_alloc(t->s, values, 1000000);
		}
	}
	script_failed(t->s, keys, 1000000);
	t->scene.space = "torch:0";
	stage(t, detect_batch_prealloc, true);
}

static void test_layers(void **state)
{
	struct staged once = {.s = script_new()}, often = {.s = script_new()};

	layers(&once, 1, 6);
	assert_int_equal(once.rc, 0);
	assert_string_equal(blamed(&once), "serve");
	/* It was never finished: no part of it was used. */
	assert_int_equal(once.f.bytes, 12000000);
	assert_int_equal(once.f.request_bytes, 1000000);
	strike(&once);
	/* Requests that each leave some blocks. */
	layers(&often, 6, 1);
	assert_true(often.rc == DETECT_SILENT || often.f.strength < 0.4);
	strike(&often);
	(void)state;
}

/* A whole cache in one piece, by frames known for caches: a refused pool if no work was done
 * with it; never an intermediate. Less surely one without such frames and names. */
static void cache(struct staged *t, int requests, const char *at)
{
	static enum role roles[] = {
	    ROLE_KV_CACHE, ROLE_KV_CACHE, ROLE_KV_CACHE, ROLE_KV_CACHE, ROLE_KV_CACHE};
	uint32_t make = script_stack(t->s, at);

	serve(t, requests);
	for (uint64_t i = 1; i < 4; i++)
		script_alloc(t->s, script_stack(t->s, "main;load"), 100000 * i);
	script_alloc(t->s, make, 1000);
	script_failed(t->s, make, 100000000);
	t->scene.roles = roles;
}

static void test_cache_in_one_piece(void **state)
{
	struct staged first = {.s = script_new()}, later = {.s = script_new()},
		      unknown = {.s = script_new()};

	cache(&first, 0, "main;context;cache");
	stage(&first, detect_batch_prealloc, true);
	assert_int_equal(first.rc, 0);
	assert_true(first.f.strength == 1);
	assert_int_equal(first.f.request_bytes, 100000000);
	assert_string_equal(blamed(&first), "cache");
	first.rc = detect_oversized_intermediate(&first.scene, &first.f);
	assert_true(first.rc == DETECT_SILENT || first.f.request_bytes == 0);
	strike(&first);

	cache(&later, 2000, "main;context;cache");
	stage(&later, detect_batch_prealloc, true);
	assert_true(later.rc == DETECT_SILENT || later.f.request_bytes == 0);
	strike(&later);

	cache(&unknown, 0, "main;prepare;make");
	unknown.scene.roles = NULL;
	stage(&unknown, detect_batch_prealloc, true);
	assert_int_equal(unknown.rc, 0);
	assert_int_equal(unknown.f.request_bytes, 100000000);
	assert_true(unknown.f.strength > 0.55 && unknown.f.strength < 0.65);
	strike(&unknown);
	(void)state;
}

/* The weights are in place, and the first request after them is larger: a pool, of which one
 * block was refused; neither weights nor a request's block. */
static void test_first_refused(void **state)
{
	static enum role roles[8];

	for (int weights = 0; weights < 2; weights++) {
		struct staged t = {.s = script_new()};

		for (uint64_t i = 0; i < 100; i++)
			script_alloc(t.s, script_stack(t.s, "main;load"), 10000 + i % 3 * 5000);
		script_failed(t.s, script_stack(t.s, weights ? "main;load" : "main;pool"), 9000000);
		t.scene.space = "torch:0";
		stage(&t, detect_batch_prealloc, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			roles[i] = strcmp(t.p->list[i].function, "load") == 0 ? ROLE_WEIGHTS_LOAD
									      : ROLE_NONE;
		t.scene.roles = roles;
		t.rc = detect_batch_prealloc(&t.scene, &t.f);
		if (weights) {
			assert_true(t.rc == DETECT_SILENT || t.f.request_bytes == 0);
		} else {
			assert_int_equal(t.rc, 0);
			assert_true(t.f.strength > 0.8 && t.f.strength < 0.95);
			assert_string_equal(blamed(&t), "pool");
		}
		t.rc = detect_oversized_model(&t.scene, &t.f);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.request_bytes, weights ? 9000000 : 0);
		t.rc = detect_oversized_intermediate(&t.scene, &t.f);
		assert_true(weights || t.rc == DETECT_SILENT || t.f.strength < 0.5);
		strike(&t);
	}
	(void)state;
}

/* Larger than all that lives, before any work: room for work, unless a name says that it is
 * weights; less surely if no name says so. */
static void test_room_by_name(void **state)
{
	static const struct {
		const char *at;
		double least, most;
	} of[] = {{"main;reserve_slots", 0.9, 1}, {"main;make_kv_cache;zeros", 0.9, 1},
	    {"main;load_weights", 0, 0}, {"main;score", 0.55, 0.65}};

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct staged t = {.s = script_new()};

		for (uint64_t i = 0; i < 20; i++)
			script_alloc(t.s, script_stack(t.s, "main;read"), 10000 + i % 3 * 5000);
		script_failed(t.s, script_stack(t.s, of[n].at), 90000000);
		stage(&t, detect_batch_prealloc, true);
		if (of[n].most > 0) {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.request_bytes, 90000000);
			assert_true(t.f.strength >= of[n].least && t.f.strength <= of[n].most);
		} else {
			assert_true(t.rc == DETECT_SILENT || !t.f.request_bytes);
		}
		strike(&t);
	}
	(void)state;
}

/* A block for each size of a batch, one larger than the other, before any work: all are kept, so
 * they are no prompt. Not fewer, and not between requests. */
static void test_stairs(void **state)
{
	enum { STAIRS, FEW, BETWEEN, AFTER, WAYS };

	for (int way = STAIRS; way < WAYS; way++) {
		struct staged t = {.s = script_new()};
		uint32_t plan = script_stack(t.s, "main;plan");
		uint64_t count = way == FEW ? 6 : 16;

		serve(&t, way == AFTER ? 20000 : 0);
		for (uint64_t i = 1; i <= count; i++) {
			script_alloc(t.s, plan, i * 1000000);
			serve(&t, way == BETWEEN ? 400 : 0);
		}
		script_failed(t.s, plan, 17000000);
		stage(&t, detect_batch_prealloc, true);
		if (way == STAIRS) {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_STAIRS);
			assert_string_equal(blamed(&t), "plan");
			assert_true(t.f.strength > 0.75 && t.f.strength < 0.85);
			assert_int_equal(t.f.bytes, 136000000);
			assert_int_equal(t.f.request_bytes, 17000000);
			assert_int_equal(detect_prompt_growth(&t.scene, &t.f), 0);
			assert_true(t.f.strength < 0.5);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.form != FORM_STAIRS);
		}
		strike(&t);
	}
	(void)state;
}

/* A pool's blocks differ by a header at most: what differs by pages are a model's layers. */
static void test_about_equal(void **state)
{
	for (int pages = 0; pages < 2; pages++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};

		serve(&t, 2000);
		for (int i = 0; i < 24; i++)
			script_alloc(t.s, script_stack(t.s, "main;take"),
			    1000000 + (i % 3	  ? 0
					  : pages ? 8192
						  : 128));
		serve(&t, 2000);
		script_failed(t.s, script_stack(t.s, "main;serve"), 20000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, pages ? DETECT_SILENT : 0);
		strike(&t);
	}
	(void)state;
}

/* Equal blocks at start are a pool, and less surely if a name says that they are weights. */
static void test_weights_by_name(void **state)
{
	static const char *const at[] = {"main;take", "main;take_slots", "main;load_layers"};
	double strength[3];

	for (int n = 0; n < 3; n++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; i < 12; i++)
			script_alloc(t.s, script_stack(t.s, at[n]), 1000000);
		script_failed(t.s, script_stack(t.s, at[n]), 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		strength[n] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] == 1 && strength[1] == 1);
	assert_true(strength[2] > 0.6 && strength[2] < 0.8);
	(void)state;
}

/* Ten equal blocks at once are a pool if one thread took them, and ten working sets if ten did. */
static void test_one_each(void **state)
{
	for (uint32_t threads = 1; threads <= 10; threads += 9) {
		struct staged t = {.s = script_new()};
		uint32_t part = script_stack(t.s, "main;upload;part");

		serve(&t, 2000);
		for (uint32_t i = 0; i < 10; i++) {
			script_thread(t.s, 1 + i % threads, 0);
			script_alloc(t.s, part, 10000000);
		}
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, threads == 1 ? 0 : DETECT_SILENT);
		strike(&t);
	}
	(void)state;
}

/* Slots are made after the weights, and the next does not fit: what came before them fitted. The
 * line of the refused slot is blamed, though another pool is as large without it. */
static void test_room_after_weights(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
	uint32_t load = script_stack(t.s, "main;load_weights"),
		 slots = script_stack(t.s, "main;make_slots"),
		 others = script_stack(t.s, "main;lanes");
	uint64_t before;

	serve(&t, 200);
	for (int i = 0; i < 40; i++)
		script_alloc(t.s, load, 100000 + 20000 * (i % 4));
	for (int i = 0; i < 10; i++)
		script_alloc(t.s, others, 1000000);
	before = script_now(t.s);
	for (int i = 0; i < 10; i++)
		script_alloc(t.s, slots, 999000);
	script_failed(t.s, slots, 999000);
	stage(&t, detect_batch_prealloc, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "make_slots");
	assert_true(t.f.start_ns > before);
	strike(&t);
	(void)state;
}

/* One block that comes after earlier work is a request's, whatever it is called. Before any work
 * its name makes it surer, and a second block of another size does not. */
static void test_one_block(void **state)
{
	enum { LATE, FIRST, NAMED, TWO_SIZES, WAYS };
	double strength[WAYS];

	for (int way = LATE; way < WAYS; way++) {
		struct staged t = {.s = script_new()};

		if (way == LATE)
			serve(&t, 2000);
		script_alloc(t.s,
		    script_stack(t.s, way == NAMED || way == LATE ? "main;slots" : "main;make"),
		    30000000);
		if (way == TWO_SIZES)
			script_alloc(t.s, script_stack(t.s, "main;more"), 20000000);
		serve(&t, 2000);
		script_failed(t.s, script_stack(t.s, "main;serve"), 20000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, way == LATE ? DETECT_SILENT : 0);
		strength[way] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[NAMED] > 1.1 * strength[FIRST] && strength[NAMED] < 1);
	assert_float_equal(strength[TWO_SIZES], strength[FIRST], 0.01);
	(void)state;
}

/* A slot has blocks of three sizes, each from its own line: parts of one pool only if the names of
 * all say that they are room. */
static void test_parts_of_room(void **state)
{
	static const char *const lines[2][3] = {{"main;keys", "main;state", "main;table"},
	    {"main;slot_keys", "main;slot_state", "main;slot_table"}};

	for (int named = 0; named < 2; named++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; i < 20; i++)
			for (int k = 0; k < 3; k++)
				script_alloc(t.s, script_stack(t.s, lines[named][k]),
				    1000000 + (uint64_t)k * 700000);
		script_failed(t.s, script_stack(t.s, lines[named][0]), 1000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, named ? 0 : DETECT_SILENT);
		if (named)
			assert_int_equal(finding_fact(&t.f, FACT_BLOCK_COUNT), 60);
		strike(&t);
	}
	(void)state;
}

/* The buffers of a new worker beside the old one's, after requests: two goes, and each is a pool.
 * Many more blocks than a sure pool has, unless they came in two goes. */
static void test_second_go(void **state)
{
	for (int goes = 1; goes < 3; goes++) {
		struct staged t = {.s = script_new()};
		uint32_t buffer = script_stack(t.s, "main;lend");

		for (int i = 0; i < 200; i++)
			script_alloc(t.s, buffer, 400000);
		if (goes == 2)
			serve(&t, 1500);
		for (int i = 0; i < 200; i++)
			script_alloc(t.s, buffer, 400000);
		script_failed(t.s, buffer, 400000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		assert_true(goes == 2 ? t.f.strength > 0.9 : t.f.strength < 0.5);
		strike(&t);
	}
	(void)state;
}

/* The first piece of room, smaller than the weights before it: the name says that it is room, and
 * weights that fitted are the less likely matter. Not after work, nor as one more of its kind. */
static void test_room_refused(void **state)
{
	static const struct {
		const char *at;
		uint64_t made; /* at that line, before */
		int requests;
		bool room;
	} of[] = {{"main;reserve_slots", 0, 0, true}, {"main;make", 0, 0, false},
	    {"main;reserve_slots", 300000, 0, false}, {"main;reserve_slots", 0, 4000, false}};
	double model[sizeof(of) / sizeof(*of)];

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};

		for (uint64_t i = 0; i < 20; i++)
			script_alloc(
			    t.s, script_stack(t.s, "main;load_weights"), 50000 + i % 3 * 10000);
		if (of[n].made)
			script_alloc(t.s, script_stack(t.s, of[n].at), of[n].made);
		serve(&t, of[n].requests);
		script_failed(t.s, script_stack(t.s, of[n].at), 900000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc == 0 && t.f.strength > 0.6, of[n].room);
		if (of[n].room) {
			assert_string_equal(blamed(&t), "reserve_slots");
			assert_int_equal(t.f.request_bytes, 900000);
		}
		t.rc = detect_oversized_model(&t.scene, &t.f);
		model[n] = t.rc ? 0 : t.f.strength;
		strike(&t);
	}
	assert_true(model[0] < 0.7 * model[1]);
	(void)state;
}

/* A device's only block, called room: work that came later has not shown that it was needed. */
static void test_room_on_a_device(void **state)
{
	static const char *const names[] = {"main;reserve_slots", "main;make"};

	for (int n = 0; n < 2; n++) {
		struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};

		script_alloc(t.s, script_stack(t.s, names[n]), 30000000);
		serve(&t, 200);
		script_failed(t.s, script_stack(t.s, "main;serve"), 9000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.bytes, n ? 0 : 30000000);
		strike(&t);
	}
	(void)state;
}

/* Two pools, the larger one complete: a process that is killed while it makes the other one had
 * room for the first. */
static void test_killed_in_the_making(void **state)
{
	for (int more = 0; more < 2; more++) {
		struct staged t = {.s = script_new()};

		for (int i = 0; i < 18; i++)
			script_alloc(t.s, script_stack(t.s, "main;first"), 1000000);
		for (int i = 0; i < 11; i++)
			script_alloc(t.s, script_stack(t.s, "main;second"), 1100000);
		if (more)
			script_alloc(t.s, script_stack(t.s, "main;then"), 900000);
		stage(&t, detect_batch_prealloc, false);
		t.scene.end.failed = true;
		t.rc = detect_batch_prealloc(&t.scene, &t.f);
		assert_int_equal(t.rc, 0);
		assert_string_equal(blamed(&t), more ? "first" : "second");
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_room_after_weights),
	    cmocka_unit_test(test_one_block), cmocka_unit_test(test_parts_of_room),
	    cmocka_unit_test(test_second_go), cmocka_unit_test(test_room_refused),
	    cmocka_unit_test(test_room_on_a_device), cmocka_unit_test(test_killed_in_the_making),
	    cmocka_unit_test(test_pool), cmocka_unit_test(test_twins),
	    cmocka_unit_test(test_first_block), cmocka_unit_test(test_headers),
	    cmocka_unit_test(test_first_call), cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_parameters), cmocka_unit_test(test_many),
	    cmocka_unit_test(test_leak), cmocka_unit_test(test_filled),
	    cmocka_unit_test(test_work_beside), cmocka_unit_test(test_tried_again),
	    cmocka_unit_test(test_layers), cmocka_unit_test(test_cache_in_one_piece),
	    cmocka_unit_test(test_first_refused), cmocka_unit_test(test_room_by_name),
	    cmocka_unit_test(test_stairs), cmocka_unit_test(test_about_equal),
	    cmocka_unit_test(test_weights_by_name), cmocka_unit_test(test_one_each)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
