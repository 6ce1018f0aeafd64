/* PyTorch's requests, replayed: a small record, written by hand, as it was and with changes.
 * tests/torch does the same with PyTorch's own. */
#include "model/unit.h"

#include "model/script.h"
#include "model/torch/caching_allocator.h"
#include "model/torch/torch_replay.h"

#define BASE 0x200000000ull

static struct script *s;
static uint32_t cuda, torch, va, stack;
static uint64_t reserved, allocated;

static void start(const char *settings)
{
	s = script_new();
	cuda = script_space(s, "cuda:0");
	torch = script_space(s, "torch:0");
	va = script_space(s, "va");
	stack = script_stack(s, "main;serve@/app/serve.py:12");
	reserved = allocated = 0;
	if (settings)
		script_info(s, "env.PYTORCH_CUDA_ALLOC_CONF", settings);
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 900 * MiB, TRACE_LEVEL_DEV_TOTAL, 1000 * MiB);
}

static void told(void)
{
	script_space_level(
	    s, torch, TRACE_LEVEL_RESERVED, reserved, TRACE_LEVEL_ALLOCATED, allocated);
}

static void segment(uint64_t address, uint64_t size)
{
	script_space_alloc(s, cuda, stack, address, size);
	reserved += size;
}

static void give(uint64_t address, uint64_t size)
{
	script_space_free(s, 0, address);
	reserved -= size;
}

static void block(uint64_t address, uint64_t size)
{
	script_space_alloc(s, torch, stack, address, size);
	allocated += size;
	told();
}

static void release(uint64_t address, uint64_t size)
{
	script_space_free(s, torch, address);
	allocated -= size;
	told();
}

/* The device refuses, twice, and then PyTorch. */
static void refused(uint64_t size)
{
	for (int i = 0; i < 2; i++)
		script_space_failed(s, cuda, stack, size, 1)->u.failed.result = 2;
	script_space_failed(s, torch, stack, size, 0)->u.failed.result = 2;
}

static struct torch_match match;

static struct torch_outcome tried(const struct torch_change *change)
{
	static const struct torch_change none;
	struct torch_outcome out;
	struct err err = {""};

	assert_int_equal(
	    torch_replay(script_feed(s), 0, change ? change : &none, 1, &out, &match, &err), 0);
	return out;
}

static void finish(void)
{
	script_free(s);
	s = NULL;
}

/* 500 MiB that are held, two segments that a block each pins, and a refusal. */
static void write_fragmented(void)
{
	start(NULL);
	segment(BASE, 500 * MiB);
	block(BASE, 500 * MiB);
	segment(BASE + 500 * MiB, 150 * MiB);
	block(BASE + 500 * MiB, 150 * MiB);
	segment(BASE + 650 * MiB, 150 * MiB);
	block(BASE + 650 * MiB, 150 * MiB);
	release(BASE + 500 * MiB, 150 * MiB);
	release(BASE + 650 * MiB, 150 * MiB);
	block(BASE + 500 * MiB, 20 * MiB);
	block(BASE + 520 * MiB, 120 * MiB);
	block(BASE + 650 * MiB, 30 * MiB);
	release(BASE + 520 * MiB, 120 * MiB);
	refused(200 * MiB);
}

static void test_identical(void **state)
{
	struct torch_outcome o;

	write_fragmented();
	o = tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.streams, 1);
	assert_int_equal(match.segments, 3);
	assert_int_equal(match.requests, 7);
	assert_null(match.doubt);
	assert_false(o.fits);
	assert_true(o.refused);
	assert_int_equal(o.granted_refusals, 0);
	assert_int_equal(o.refusal.block.serial, 7);
	assert_true(o.refusal.block.refused);
	assert_int_equal(o.refusal.segment, 200 * MiB);
	assert_int_equal(o.refusal.reserved, 800 * MiB);
	assert_int_equal(o.refusal.allocated, 550 * MiB);
	assert_int_equal(o.refusal.largest_hole, 130 * MiB);
	assert_int_equal(o.refusal.room, 100 * MiB); /* 100 MiB of the device are not PyTorch's */
	assert_int_equal(o.headroom, -100 * (int64_t)MiB);
	assert_int_equal(o.peak_reserved, 800 * MiB);
	finish();
	(void)state;
}

static void test_expandable(void **state)
{
	struct caching_settings settings;
	struct torch_change change = {.settings = &settings};
	struct torch_outcome o;

	write_fragmented();
	torch_replay_settings(script_feed(s), &settings);
	settings.expandable = true;
	o = tried(&change);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL); /* of the record, still */
	assert_true(o.fits);
	assert_int_equal(o.granted_refusals, 1);
	assert_true(o.headroom >= 0 && o.headroom < 200 * (int64_t)MiB);
	finish();
	(void)state;
}

static void test_memory(void **state)
{
	struct torch_change change = {.memory = 1100 * MiB};
	struct torch_outcome o;

	write_fragmented();
	o = tried(&change);
	assert_true(o.fits);
	assert_int_equal(o.headroom, 0); /* to the byte */
	change.memory -= MiB;
	o = tried(&change);
	assert_false(o.fits);
	assert_int_equal(o.headroom, -(int64_t)MiB);
	/* With less it ends earlier, at a request that was granted in the record. */
	change.memory = 700 * MiB;
	o = tried(&change);
	assert_false(o.fits);
	assert_false(o.refusal.block.refused);
	assert_int_equal(o.refusal.block.serial, 2);
	assert_int_equal(o.refusal.block.address, BASE + 500 * MiB);
	finish();
	(void)state;
}

static uint64_t without_second(void *arg, const struct torch_block *b)
{
	++*(unsigned *)arg;
	return b->serial == 4 || b->serial == 6 ? 0 : b->size;
}

static uint64_t smaller(void *arg, const struct torch_block *b)
{
	(void)arg;
	return b->refused ? 90 * MiB + 1 : b->size;
}

static uint64_t short_life(void *arg, const struct torch_block *b)
{
	(void)arg;
	return b->serial == 1 ? 100 : UINT64_MAX;
}

static void test_rewrite(void **state)
{
	unsigned asked = 0;
	struct torch_change drop = {.rewrite = {.arg = &asked, .size = without_second}};
	struct torch_change shrink = {.rewrite = {.size = smaller}};
	struct torch_change hurry = {.rewrite = {.life = short_life}};
	struct torch_outcome o;

	write_fragmented();
	o = tried(&drop); /* nothing pins the two segments: a flush gives them back */
	assert_true(o.fits);
	assert_int_equal(asked, 7);
	assert_int_equal(o.requests, 5);
	assert_int_equal(o.end_allocated, 500 * MiB); /* the refused block was never held */
	o = tried(&shrink); /* and rounded: into the free 120 MiB */
	assert_true(o.fits);
	assert_int_equal(o.granted_refusals, 1);
	assert_int_equal(o.end_allocated, 550 * MiB);
	o = tried(&hurry); /* its 500 MiB serve all others */
	assert_true(o.fits);
	assert_int_equal(o.end_reserved, 500 * MiB);
	assert_int_equal(o.end_allocated, 50 * MiB);
	finish();
	(void)state;
}

static uint64_t as_much_again(void *arg, const struct torch_block *b)
{
	(void)arg;
	assert_true(b->refused);
	return 200 * MiB;
}

/* The refused request is granted, and its work goes on: it holds that block, and asks for more. */
static void test_further(void **state)
{
	struct torch_change change = {.memory = 1300 * MiB, .rewrite = {.further = as_much_again}};
	struct torch_outcome o;

	write_fragmented();
	o = tried(&change);
	assert_true(o.fits);
	assert_int_equal(o.headroom, 0);
	assert_int_equal(o.end_allocated, 550 * MiB);
	change.memory -= MiB;
	o = tried(&change);
	assert_false(o.fits);
	assert_int_equal(o.headroom, -(int64_t)MiB);
	assert_int_equal(o.refusal.size, 200 * MiB);
	assert_int_equal(o.end_allocated, 550 * MiB);
	finish();
	(void)state;
}

static uint64_t five_steps(void *arg, const struct torch_block *b)
{
	(void)arg;
	return b->serial == 1 ? 5000 : UINT64_MAX;
}

/* Its address is another block's by then. */
static void test_life_of_another(void **state)
{
	struct torch_change hurry = {.rewrite = {.life = five_steps}};

	start(NULL);
	segment(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	release(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	for (int i = 0; i < 5; i++)
		told();
	segment(BASE + 100 * MiB, 50 * MiB);
	block(BASE + 100 * MiB, 50 * MiB);
	assert_int_equal(tried(&hurry).end_allocated, 150 * MiB);
	finish();
	(void)state;
}

static uint64_t second_larger(void *arg, const struct torch_block *b)
{
	(void)arg;
	return b->serial == 2 ? 150 * MiB : b->size;
}

/* The driver's level of the device is old; the record shows that there was more room. */
static void test_stale_sample(void **state)
{
	struct torch_change change = {.memory = 1100 * MiB, .rewrite = {.size = second_larger}};

	start(NULL);
	segment(BASE, 950 * MiB);
	block(BASE, 950 * MiB);
	segment(BASE + 950 * MiB, 50 * MiB);
	block(BASE + 950 * MiB, 50 * MiB);
	assert_true(tried(NULL).fits);
	assert_true(tried(&change).fits);
	change.memory -= MiB;
	assert_false(tried(&change).fits);
	finish();
	(void)state;
}

/* The program emptied the cache: that is not the allocator's choice, and happens again. */
static void test_emptied(void **state)
{
	struct torch_outcome o;

	start(NULL);
	segment(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	release(BASE, 100 * MiB);
	give(BASE, 100 * MiB);
	segment(BASE, 60 * MiB);
	block(BASE, 60 * MiB);
	o = tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_true(o.fits);
	assert_int_equal(o.peak_reserved, 100 * MiB);
	assert_int_equal(o.end_reserved, 60 * MiB);
	assert_int_equal(o.headroom, 800 * (int64_t)MiB);
	finish();

	/* Also where the allocator itself may give back a part. */
	start("max_split_size_mb:100");
	segment(BASE, 30 * MiB);
	block(BASE, 30 * MiB);
	release(BASE, 30 * MiB);
	give(BASE, 30 * MiB);
	segment(BASE, 50 * MiB);
	block(BASE, 50 * MiB);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	finish();
	(void)state;
}

/* A free block that was passed over belongs to another stream. */
static void test_streams(void **state)
{
	start(NULL);
	segment(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	release(BASE, 100 * MiB);
	segment(BASE + 100 * MiB, 60 * MiB);
	block(BASE + 100 * MiB, 60 * MiB);
	release(BASE + 100 * MiB, 60 * MiB);
	block(BASE, 50 * MiB);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.streams, 2);
	finish();
	(void)state;
}

/* A graph's pool keeps its segments while a flush takes all others. */
static void test_private(void **state)
{
	start(NULL);
	segment(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	segment(BASE + 100 * MiB, 80 * MiB);
	block(BASE + 100 * MiB, 80 * MiB);
	release(BASE, 100 * MiB);
	release(BASE + 100 * MiB, 80 * MiB);
	give(BASE, 100 * MiB);
	segment(BASE, 70 * MiB);
	block(BASE, 70 * MiB);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.streams, 2);
	finish();

	/* And a refusal shows it, too. */
	start(NULL);
	segment(BASE, 100 * MiB);
	block(BASE, 100 * MiB);
	segment(BASE + 100 * MiB, 750 * MiB);
	block(BASE + 100 * MiB, 750 * MiB);
	release(BASE, 100 * MiB);
	refused(120 * MiB);
	assert_false(tried(NULL).fits);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	finish();
	(void)state;
}

/* An event that the model cannot explain is reported, with its position. */
static void test_differs(void **state)
{
	start("new_setting:3");
	segment(BASE, 30 * MiB);
	block(BASE, 15 * MiB); /* PyTorch would have taken 16 MiB */
	release(BASE, 15 * MiB);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_NOT);
	assert_string_equal(match.first.what, "segment");
	assert_int_equal(match.first.recorded, 30 * MiB);
	assert_int_equal(match.first.request, 1);
	assert_true(match.deviation > 0.4 && match.deviation < 0.5);
	assert_non_null(match.doubt);
	finish();

	start(NULL);
	script_space_alloc(s, cuda, stack, BASE, 30 * MiB);
	script_alloc(s, stack, 100);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_NONE);
	finish();
	(void)state;
}

/* More was not allowed, though the device was never asked. */
static void test_limit(void **state)
{
	struct torch_change twice = {.memory = 2000 * MiB};
	struct torch_outcome o;

	start(NULL);
	segment(BASE, 300 * MiB);
	block(BASE, 300 * MiB);
	script_space_failed(s, torch, stack, 200 * MiB, 0)->u.failed.result = 2;
	o = tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_false(o.fits);
	assert_int_equal(o.headroom, -1); /* at least */
	assert_true(tried(&twice).fits); /* as the limit is a share of the device */
	finish();

	start("per_process_memory_fraction:0.4");
	segment(BASE, 300 * MiB);
	block(BASE, 300 * MiB);
	script_space_failed(s, torch, stack, 200 * MiB, 0)->u.failed.result = 2;
	o = tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(o.headroom, -100 * (int64_t)MiB);
	finish();
	(void)state;
}

/* A page of an expandable segment. */
static void page(uint64_t address, uint64_t handle)
{
	struct event *e = script_event(s, EV_SPACE_ALLOC, cuda);

	e->address = handle;
	e->size = 20 * MiB;
	e->u.space.flags = TRACE_SPACE_HANDLE;
	e = script_event(s, EV_SPACE_MAP, 0);
	e->address = address;
	e->size = 20 * MiB;
	e->u.space.handle = handle;
	reserved += 20 * MiB;
}

static void unpage(uint64_t address, uint64_t handle)
{
	struct event *e = script_event(s, EV_SPACE_UNMAP, 0);

	e->address = address;
	e->size = 20 * MiB;
	e = script_event(s, EV_SPACE_FREE, 0);
	e->address = handle;
	e->u.space.flags = TRACE_SPACE_HANDLE;
	reserved -= 20 * MiB;
}

/* A stream with memory for the request would not have lost its range for it. */
static void test_range_of_another_stream(void **state)
{
	start("expandable_segments:True");
	script_space_alloc(s, va, stack, BASE, 1140 * MiB);
	page(BASE, 0x5000);
	page(BASE + 20 * MiB, 0x5001);
	block(BASE, 40 * MiB);
	release(BASE, 40 * MiB);
	script_space_alloc(s, va, stack, BASE + 2 * GiB, 1140 * MiB);
	script_space_failed(s, cuda, stack, 20 * MiB, 1)->u.failed.result = 2;
	unpage(BASE, 0x5000);
	unpage(BASE + 20 * MiB, 0x5001);
	script_space_free(s, va, BASE);
	page(BASE + 2 * GiB, 0x5002);
	page(BASE + 2 * GiB + 20 * MiB, 0x5003);
	block(BASE + 2 * GiB, 30 * MiB);
	tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.streams, 2);
	finish();
	(void)state;
}

/* Pages of an expandable segment, and other libraries' memory on the device. */
static void test_ranges(void **state)
{
	struct torch_outcome o;

	start("expandable_segments:True");
	script_space_alloc(s, cuda, stack, 0x100000000ull, 50 * MiB); /* of another library */
	script_space_alloc(s, va, stack, BASE, 1140 * MiB);
	page(BASE, 0x5000);
	page(BASE + 20 * MiB, 0x5001);
	block(BASE, 25 * MiB);
	block(BASE + 25 * MiB, 15 * MiB);
	o = tried(NULL);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.segments, 2);
	assert_true(o.fits);
	assert_int_equal(o.headroom, 810 * (int64_t)MiB); /* 1,000 less 100, 50 and 40 */
	finish();
	(void)state;
}

/* Any trace gets an answer: addresses that overlap, releases of nothing, levels that contradict. */
static void nonsense(uint64_t seed)
{
	static const uint64_t sizes[] = {0, 1, 512, 513, MiB, MiB + 512, 9 * MiB, 10 * MiB,
	    20 * MiB, 21 * MiB + 7, 600 * MiB, 1ull << 41, 1ull << 56, UINT64_MAX};
	static const char *const conf[] = {NULL, "expandable_segments:True", "max_split_size_mb:20",
	    "garbage_collection_threshold:0.1,per_process_memory_fraction:0.5"};
	struct caching_settings settings;
	struct torch_change change = {.settings = &settings, .memory = 500 * MiB};
	struct event *e;

	start(conf[seed % 4]);
	for (int n = 0; n < 400; n++) {
		static const enum event_kind kinds[] = {EV_SPACE_ALLOC, EV_SPACE_ALLOC,
		    EV_SPACE_ALLOC, EV_SPACE_FREE, EV_SPACE_FREE, EV_SPACE_MAP, EV_SPACE_UNMAP,
		    EV_FAILED};
		uint32_t spaces[] = {0, cuda, torch, torch, va};
		uint64_t where = dice(&seed, 60);

		e = script_event(s, kinds[dice(&seed, 8)], spaces[dice(&seed, 5)]);
		e->address = where ? BASE + where * 512 * (dice(&seed, 2) ? 1 : 4096) : UINT64_MAX;
		e->size = sizes[dice(&seed, sizeof(sizes) / sizeof(*sizes))];
		e->thread = (uint32_t)dice(&seed, 2);
		if (e->kind == EV_FAILED)
			e->u.failed.result = 2;
		else
			e->u.space.flags = dice(&seed, 4) ? 0 : TRACE_SPACE_HANDLE;
		if (dice(&seed, 5) == 0) {
			reserved = sizes[dice(&seed, sizeof(sizes) / sizeof(*sizes))];
			told();
		}
	}
	torch_replay_settings(script_feed(s), &settings);
	settings.expandable = !settings.expandable;
	tried(NULL);
	tried(&change);
	finish();
}

static void test_nonsense(void **state)
{
	for (uint64_t seed = 1; seed < 300; seed++)
		nonsense(seed);
	(void)state;
}

/* The second block of 300 MiB waits for the first one's end, by the refused request's work too. */
static struct {
	uint64_t delay, end;
	uint64_t late; /* serial of the one that is put off */
	bool granted;
} shifted;

static uint64_t shift_delay(void *arg, const struct torch_block *b, uint64_t *end)
{
	(void)arg;
	if (b->serial == 2)
		*end = shifted.end;
	return b->serial >= shifted.late ? shifted.delay : 0;
}

static bool shift_ends(void *arg, uint64_t serial)
{
	(void)arg, (void)serial;
	return true;
}

static void shift_granted(void *arg, uint64_t serial)
{
	(void)arg;
	shifted.granted |= serial == 4;
}

static void test_put_off(void **state)
{
	struct torch_change change = {
	    .shift = {.delay = shift_delay, .ends = shift_ends, .granted = shift_granted}};
	struct torch_outcome o;

	start(NULL);
	segment(BASE, 300 * MiB);
	block(BASE, 300 * MiB);
	segment(BASE + 300 * MiB, 300 * MiB);
	block(BASE + 300 * MiB, 300 * MiB);
	segment(BASE + 600 * MiB, 200 * MiB);
	block(BASE + 600 * MiB, 200 * MiB);
	refused(200 * MiB);
	release(BASE, 300 * MiB);
	release(BASE + 300 * MiB, 300 * MiB);
	release(BASE + 600 * MiB, 200 * MiB);

	/* Nothing waits: as it was. */
	shifted.delay = 0;
	shifted.end = UINT64_MAX;
	shifted.granted = false;
	o = tried(&change);
	assert_int_equal(match.kind, TORCH_MATCH_IDENTICAL);
	assert_int_equal(match.refused, 4);
	assert_false(o.fits);
	assert_false(shifted.granted);
	assert_int_equal(o.peak_allocated, 800 * MiB);
	assert_int_equal(o.end_allocated, 0);

	/* The third block and the refused request come when all is over, and are released later. */
	shifted.delay = 1000000;
	shifted.late = 3;
	o = tried(&change);
	assert_true(o.fits);
	assert_true(shifted.granted);
	assert_int_equal(o.requests, 4);
	assert_int_equal(o.peak_allocated, 600 * MiB);
	assert_int_equal(o.end_allocated, 0);

	/* By less than the others live: a request is refused again, and the answer names it. */
	shifted.delay = 1;
	o = tried(&change);
	assert_false(o.fits);
	assert_int_equal(o.refusal.block.serial, 4);
	assert_int_equal(o.peak_allocated, 800 * MiB);

	/* The second one's work ends long before the record releases it. */
	shifted.delay = 0;
	shifted.end = 1;
	o = tried(&change);
	assert_true(o.fits);
	assert_int_equal(o.peak_allocated, 700 * MiB);
	finish();
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_identical),
	    cmocka_unit_test(test_expandable),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_rewrite),
	    cmocka_unit_test(test_further),
	    cmocka_unit_test(test_life_of_another),
	    cmocka_unit_test(test_stale_sample),
	    cmocka_unit_test(test_emptied),
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_private),
	    cmocka_unit_test(test_differs),
	    cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_range_of_another_stream),
	    cmocka_unit_test(test_put_off),
	    cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
