#include "model/spaces.h"

static void clear(struct script *s, uint32_t space, uint32_t what, uint64_t object)
{
	struct event *e = script_event(s, EV_SPACE_CLEAR, space);

	e->u.space.what = what;
	e->u.space.handle = object;
}

static void in_context(
    struct script *s, uint32_t space, uint64_t address, uint64_t size, uint64_t context)
{
	struct event *e = script_event(s, EV_SPACE_ALLOC, space);

	e->address = address;
	e->size = size;
	e->u.space.context = context;
}

static void unfree(struct script *s, uint32_t space, uint64_t address, uint32_t flags)
{
	struct event *e = script_event(s, EV_SPACE_UNFREE, space);

	e->address = address;
	e->u.space.flags = flags;
}

/* The request that a block belongs to, by its task too. */
static void made_by_a_task(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), seen = 0;
	struct model *m;

	script_thread(s, 2, 7);
	script_space_alloc(s, cuda, 0, 0x10000, 4096);
	m = spaces_model(s);
	for (uint32_t i = 0; i < m->spaces->used; i++) {
		const struct space_block *b = spaces_block(m->spaces, i);

		if (!b->used)
			continue;
		seen++;
		assert_int_equal(b->block.thread, 2);
		assert_int_equal(b->block.task, 7);
	}
	assert_int_equal(seen, 1);
	model_free(m);
	script_free(s);
	(void)state;
}

/* A release without a space is of the space that holds the address. */
static void taken_and_given_back(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), pinned = script_space(s, "pinned");
	struct model *m;

	script_space_alloc(s, cuda, 0, 0x10000, 4096);
	script_space_alloc(s, pinned, 0, 0x20000, 8192);
	script_space_free(s, 0, 0x20000);
	script_space_free(s, 0, 0x99999); /* never seen */
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 4096);
	assert_int_equal(live(m, "pinned"), 0);
	assert_int_equal(m->spaces->unmatched, 1);
	model_free(m);
	unfree(s, 0, 0x20000, 0);
	unfree(s, 0, 0x20000, 0); /* once is enough */
	m = spaces_model(s);
	assert_int_equal(live(m, "pinned"), 8192);
	assert_int_equal(m->spaces->unmatched, 2);
	assert_int_equal(spaces_find(m->spaces, "pinned")->model->total.bytes, 8192);
	model_free(m);
	script_free(s);
}

/* An address that is handed out again was released, recorded or not. */
static void repaired(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	struct model *m;

	script_space_alloc(s, cuda, 0, 0x10000, 4096);
	script_space_alloc(s, cuda, 0, 0x10000, 2048); /* the same address */
	script_space_alloc(s, cuda, 0, 0x20000, 4096);
	script_space_alloc(s, cuda, 0, 0x1f000, 8192); /* over it */
	script_space_alloc(s, torch, 0, 0x10000, 512); /* a level of its own */
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2048 + 8192);
	assert_int_equal(live(m, "torch:0"), 512);
	assert_int_equal(m->spaces->repairs, 2);
	model_free(m);
	script_free(s);
}

static void handles(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0");
	struct event *e;
	struct model *m;

	handle_new(s, cuda, 7, 2 * MiB);
	e = script_event(s, EV_SPACE_ALLOC, cuda);
	e->address = 7;
	e->u.space.flags = TRACE_SPACE_HANDLE | TRACE_SPACE_REFERENCE;
	handle_release(s, 7);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2 * MiB); /* one reference is left */
	model_free(m);
	handle_release(s, 7);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 0);
	model_free(m);
	unfree(s, 0, 7, TRACE_SPACE_HANDLE);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2 * MiB);
	model_free(m);
	e = script_event(s, EV_SPACE_ALLOC, cuda); /* no memory of its own */
	e->address = 8;
	e->size = 1 * GiB;
	e->u.space.flags = TRACE_SPACE_HANDLE | TRACE_SPACE_MULTICAST;
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 2 * MiB);
	model_free(m);
	script_free(s);
}

static void in_bulk(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), other = script_space(s, "cuda:1");
	uint32_t pool = script_space(s, "pool:0"), pinned = script_space(s, "pinned");
	struct model *m;

	for (uint64_t i = 0; i < 20; i++) {
		in_context(s, cuda, 0x1000000 + (i << 16), 4096, 1 + i % 2);
		in_context(s, other, 0x2000000 + (i << 16), 4096, 3);
		in_context(s, pool, 0x3000000 + (i << 16), 4096, 0x70 + i % 2);
		in_context(s, pinned, 0x4000000 + (i << 16), 4096, 1 + i % 2);
	}
	clear(s, pool, TRACE_CLEAR_POOL, 0x70);
	m = spaces_model(s);
	assert_int_equal(live(m, "pool:0"), 10 * 4096);
	assert_int_equal(live(m, "cuda:0"), 20 * 4096);
	model_free(m);
	clear(s, cuda, TRACE_CLEAR_CONTEXT, 1);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 10 * 4096);
	assert_int_equal(live(m, "pinned"), 10 * 4096);
	model_free(m);
	handle_new(s, cuda, 5, 2 * MiB);
	handle_map(s, 5, 0x9000000, 2 * MiB);
	clear(s, cuda, TRACE_CLEAR_DEVICE, 0);
	m = spaces_model(s);
	assert_int_equal(live(m, "cuda:0"), 0);
	assert_int_equal(live(m, "pool:0"), 0);
	assert_int_equal(live(m, "pinned"), 0); /* of its contexts */
	assert_int_equal(live(m, "cuda:1"), 20 * 4096);
	model_free(m);
	script_free(s);
}

/* Any order of any events leaves the sums true. */
static void at_random(void **state)
{
	uint64_t seed = 88172645463325252ull;

	for (int round = 0; round < 30; round++) {
		struct script *s = script_new();
		uint32_t spaces[4] = {script_space(s, "cuda:0"), script_space(s, "torch:0"),
		    script_space(s, "pool:0"), script_space(s, "va")};
		struct event *e;

		for (int i = 0; i < 300; i++) {
			static const enum event_kind kinds[] = {EV_SPACE_ALLOC, EV_SPACE_ALLOC,
			    EV_SPACE_ALLOC, EV_SPACE_FREE, EV_SPACE_UNFREE, EV_SPACE_MAP,
			    EV_SPACE_MAP, EV_SPACE_UNMAP, EV_SPACE_UNUNMAP, EV_SPACE_CLEAR};

			e = script_event(
			    s, kinds[dice(&seed, 10)], dice(&seed, 5) ? spaces[dice(&seed, 4)] : 0);
			e->address = dice(&seed, 24) << 12;
			e->size = dice(&seed, 6) << 12;
			if (dice(&seed, 50) == 0)
				e->size = UINT64_MAX - dice(&seed, 3);
			e->thread = 1 + (uint32_t)dice(&seed, 2);
			e->u.space.flags = (uint32_t)dice(&seed, 4);
			e->u.space.handle = dice(&seed, 24) << 12;
			e->u.space.context = dice(&seed, 3);
			e->u.space.what = (uint32_t)dice(&seed, 6);
		}
		model_free(spaces_model(s));
		script_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(made_by_a_task),
	    cmocka_unit_test(taken_and_given_back),
	    cmocka_unit_test(repaired),
	    cmocka_unit_test(handles),
	    cmocka_unit_test(in_bulk),
	    cmocka_unit_test(at_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
