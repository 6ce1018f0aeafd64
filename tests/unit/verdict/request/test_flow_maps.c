/* Mappings are held by threads and tasks as blocks are: made, cut, and gone. */
#include "model/unit.h"

#include <sys/mman.h>

#include "model/request/request_held.h"
#include "model/script.h"
#include "verdict/request/flow_maps.h"

struct read {
	struct model *m;
	struct callsites *p;
	struct requests *r;
	struct requests_held h;
	struct flow_maps maps;
};

static int each(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	return flow_maps_each(self, fn, arg);
}

static void read_all(struct script *s, struct read *x)
{
	struct feed feed = script_feed(s);
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &x->m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(x->m, &e, &err), 0);
	model_finish(x->m);
	assert_int_equal(callsites_new(x->m, AT_END, &x->p, &err), 0);
	x->r = requests_new(NULL, NULL);
	flow_maps_init(&x->maps, x->r, x->p);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1) {
		assert_int_equal(requests_apply(x->r, &e), 0);
		assert_int_equal(flow_maps_apply(&x->maps, &e), 0);
	}
	assert_int_equal(requests_held_read(x->r, x->m, x->p, each, &x->maps, &x->h), 0);
}

static void done(struct script *s, struct read *x)
{
	flow_maps_fini(&x->maps);
	requests_held_fini(&x->h);
	requests_free(x->r);
	callsites_free(x->p);
	model_free(x->m);
	script_free(s);
}

/* Four threads have ended and left nothing, four hold a mapping each, one of which lost a part.
 * Malloc's own mappings and stacks are not held. */
static void test_held(void **state)
{
	static const uint32_t flags[] = {TRACE_MAP_ALLOCATOR, TRACE_MAP_STACK};
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;decode");
	struct read x;
	uint64_t at;

	for (uint32_t i = 0; i < 8; i++) {
		script_thread(s, 2 + i, 0);
		at = script_map(s, work, 2 * MiB, 0, TRACE_BACKING_ANON);
		script_map(s, work, 16 * MiB, flags[i % 2], TRACE_BACKING_ANON);
		if (i < 4) {
			script_unmap(s, at, 2 * MiB);
			script_event(s, EV_THREAD_EXIT, 0);
		} else if (i == 4) {
			script_unmap(s, at, MiB);
		}
	}
	read_all(s, &x);
	assert_int_equal(x.h.count, 4);
	assert_int_equal(x.h.sum, 7 * MiB);
	assert_int_equal(x.h.largest, 2 * MiB);
	assert_int_equal(x.h.alike, 4);
	assert_int_equal(x.h.finished, 4);
	assert_true(x.h.left == 0);
	done(s, &x);
	(void)state;
}

/* A mapping over another one takes its place. */
static void test_overlap(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;decode");
	struct read x;

	script_thread(s, 2, 0);
	script_map_at(s, work, 64 * MiB, 4 * MiB, 0);
	script_thread(s, 3, 0);
	script_map_at(s, work, 64 * MiB, 4 * MiB, 0);
	read_all(s, &x);
	assert_int_equal(x.h.count, 1);
	assert_int_equal(x.h.list[0].all, 4 * MiB);
	assert_int_equal(x.h.list[0].lane->thread, 3);
	done(s, &x);
	(void)state;
}

/* An unmapping that the kernel refused changes nothing. */
static void test_refused(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "thread;decode");
	struct read x;
	uint64_t at;

	script_thread(s, 2, 0);
	at = script_map(s, work, 4 * MiB, 0, TRACE_BACKING_ANON);
	script_unmap(s, at, 4 * MiB);
	script_ununmap(s, at, 4 * MiB);
	script_map(s, work, MiB, 0, TRACE_BACKING_ANON);
	script_unmap(s, at, 2 * MiB);
	script_ununmap(s, at, 2 * MiB);
	read_all(s, &x);
	assert_int_equal(x.h.count, 1);
	assert_int_equal(x.h.list[0].all, 5 * MiB);
	assert_int_equal(x.h.list[0].lane->live, 5 * MiB);
	done(s, &x);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_held),
	    cmocka_unit_test(test_overlap), cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
