#include "model/space/space_map.h"

#include "model/spaces.h"

static struct space_map map_of(const struct model *m, const char *name, uint64_t request)
{
	struct space_map map;

	assert_int_equal(space_map_make(m, spaces_find(m->spaces, name), request, &map), 0);
	assert_true(map.live_bytes + map.hole_bytes == map.bytes);
	return map;
}

/* Two segments and an empty one: blocks, free ranges, and blocks in the way. */
static void segments(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	uint32_t a = script_stack(s, "main@/app/a.py:1"), b = script_stack(s, "main@/app/a.py:2");
	const uint64_t one = 0x10000000, two = 0x20000000, three = 0x30000000;
	struct space_map map;
	struct model *m;

	script_space_alloc(s, cuda, a, one, 20 * MiB);
	script_space_alloc(s, cuda, a, two, 20 * MiB);
	script_space_alloc(s, cuda, a, three, 2 * MiB);
	script_space_alloc(s, cuda, a, 0x50000000, 64 * MiB); /* not PyTorch's */
	script_space_alloc(s, torch, a, one, 4 * MiB);
	script_space_alloc(s, torch, b, one + 8 * MiB, 1 * MiB);
	script_space_alloc(s, torch, b, one + 12 * MiB, 1 * MiB);
	script_space_alloc(s, torch, a, two, 20 * MiB);
	script_space_alloc(s, torch, a, three, 1 * MiB);
	script_space_free(s, torch, three);
	m = spaces_model(s);
	map = map_of(m, "torch:0", 10 * MiB);
	assert_int_equal(map.segments.count, 3);
	assert_int_equal(map.bytes, 42 * MiB);
	assert_int_equal(map.live_bytes, 26 * MiB);
	assert_int_equal(map.live_blocks, 4);
	assert_int_equal(map.holes, 4);
	assert_int_equal(map.largest_hole, 7 * MiB);
	assert_true(map.segments.items[0].start == one && map.segments.items[0].acquired);
	assert_int_equal(map.segments.items[0].largest_hole, 7 * MiB);
	assert_int_equal(map.segments.items[1].holes, 0);
	assert_int_equal(map.segments.items[2].live_blocks, 0);
	/* Ten MiB: from the middle free range to the end one block is in the way, of b. */
	assert_true(map.room.found);
	assert_int_equal(map.room.segment, 0);
	assert_int_equal(map.room.blocks, 1);
	assert_int_equal(map.room.bytes, 1 * MiB);
	assert_int_equal(map.callsites.count, 2);
	assert_int_equal(map.callsites.items[0].line, 1);
	assert_int_equal(map.callsites.items[0].bytes, 24 * MiB);
	assert_int_equal(map.callsites.items[1].blocks, 2);
	space_map_fini(&map);
	map = map_of(m, "torch:0", 21 * MiB);
	assert_false(map.room.found);
	space_map_fini(&map);
	map = map_of(m, "torch:0", 7 * MiB);
	assert_int_equal(map.room.blocks, 0);
	space_map_fini(&map);
	/* The driver's: by ranges of addresses. */
	map = map_of(m, "cuda:0", 0);
	assert_int_equal(map.segments.count, 4);
	assert_int_equal(map.live_bytes, 106 * MiB);
	assert_int_equal(map.holes, 0);
	space_map_fini(&map);
	model_free(m);
	script_free(s);
}

/* Mapped memory side by side is one segment that grows. */
static void expandable(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	uint32_t va = script_space(s, "va");
	struct space_map map;
	struct model *m;

	script_space_alloc(s, va, 0, 0x100000000, 1 * GiB);
	for (uint64_t i = 0; i < 3; i++) {
		handle_new(s, cuda, 10 + i, 20 * MiB);
		handle_map(s, 10 + i, 0x100000000 + i * 20 * MiB, 20 * MiB);
	}
	script_space_alloc(s, torch, 0, 0x100000000, 10 * MiB);
	/* No block starts in the second page. */
	script_space_alloc(s, torch, 0, 0x100000000 + 15 * MiB, 30 * MiB);
	handle_new(s, cuda, 99, 20 * MiB);
	m = spaces_model(s);
	map = map_of(m, "torch:0", 0);
	assert_int_equal(map.segments.count, 1);
	assert_int_equal(map.bytes, 60 * MiB);
	assert_true(map.segments.items[0].mapped);
	assert_int_equal(map.live_bytes, 40 * MiB);
	assert_int_equal(map.holes, 2);
	space_map_fini(&map);
	map = map_of(m, "cuda:0", 0);
	assert_int_equal(map.live_bytes, 60 * MiB);
	assert_int_equal(map.hidden_bytes, 20 * MiB);
	space_map_fini(&map);
	map = map_of(m, "va", 0);
	assert_int_equal(map.segments.count, 1);
	assert_int_equal(map.bytes, 1 * GiB);
	assert_int_equal(map.live_bytes, 60 * MiB);
	space_map_fini(&map);
	model_free(m);
	script_free(s);
}

static int two_blocks(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	struct block a = {.address = 0x1000, .size = 64, .serial = 1};
	struct block b = {.address = 0x1080, .size = 128, .serial = 2};

	return fn(arg, &b) || fn(arg, &a);
}

static void host(void **state)
{
	struct script *s = script_new();
	struct space_map map;
	struct model *m;

	script_map_at(s, script_stack(s, "main"), 0x10000000, 1 * MiB, 0);
	m = spaces_model(s);
	assert_int_equal(space_map_host(m, two_blocks, NULL, 0, &map), 0);
	assert_int_equal(map.segments.count, 2);
	assert_int_equal(map.live_bytes, 64 + 128 + 1 * MiB);
	assert_int_equal(map.hole_bytes, 64);
	space_map_fini(&map);
	model_free(m);
	script_free(s);
}

/* The feed has read the event behind the moment already. */
static void host_before_an_event(void **state)
{
	struct script *s = script_new();
	struct model *m = spaces_model(s);
	struct block b = {.address = 0x1080, .size = 128, .serial = 2};
	struct block freed = {.address = 0x1200, .size = 32, .serial = 3};
	struct event e = {.kind = EV_ALLOC, .block = &b};
	struct space_map map;

	model_ahead(m, &e);
	assert_int_equal(space_map_host(m, two_blocks, NULL, 0, &map), 0);
	assert_int_equal(map.live_bytes, 64);
	space_map_fini(&map);
	e = (struct event){.kind = EV_FREE, .block = &freed};
	model_ahead(m, &e);
	assert_int_equal(space_map_host(m, two_blocks, NULL, 0, &map), 0);
	assert_int_equal(map.live_bytes, 64 + 128 + 32);
	space_map_fini(&map);
	model_ahead(m, NULL);
	assert_int_equal(space_map_host(m, two_blocks, NULL, 0, &map), 0);
	assert_int_equal(map.live_bytes, 64 + 128);
	space_map_fini(&map);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(segments),
	    cmocka_unit_test(expandable),
	    cmocka_unit_test(host),
	    cmocka_unit_test(host_before_an_event),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
