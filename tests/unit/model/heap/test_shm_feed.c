/* A process's events, filtered for one file system. */
#include "model/heap/shm_feed.h"
#include "model/model.h"
#include "model/read.h"
#include "model/script.h"

static void test_filter(void **state)
{
	const struct script_volume one = {5, 64 * MiB, 60 * MiB, 1, 0}, two = {6, MiB, MiB, 2, 0};
	struct script *s = script_new();
	struct shm_feed f;
	struct feed feed;
	struct model *m;
	struct event *e;
	uint64_t a, b, heap, late;

	script_info(s, "limit.data", "1000000000"); /* where shared memory counts as none */
	heap = script_alloc(s, script_stack(s, "main;work"), MiB);
	a = script_map_shm(s, script_stack(s, "main;a"), 8 * MiB, &one);
	b = script_map_shm(s, script_stack(s, "main;b"), MiB, &two);
	script_map(s, script_stack(s, "main;own"), MiB, 0, TRACE_BACKING_ANON);
	script_release(s, heap);
	/* Moved, as is an unrelated one. */
	for (int i = 0; i < 2; i++) {
		script_unmap(s, i ? a : b, i ? 8 * MiB : MiB);
		e = script_event(s, EV_MAP, 0);
		e->address = a + (uint64_t)(16 + i) * GiB;
		e->size = i ? 8 * MiB : MiB;
		e->api = TRACE_API_MREMAP;
		e->u.map.flags = TRACE_MAP_REMAP;
	}
	late = script_now(s);
	script_map_shm(s, script_stack(s, "main;c"), 4 * MiB, &one);
	script_failed(s, script_stack(s, "main;work"), GiB); /* of malloc */
	script_exit(s, 1);

	shm_feed_init(&f, script_feed(s), 5);
	feed = shm_feed_of(&f);
	for (int again = 0; again < 2; again++) {
		m = read_all(feed);
		assert_int_equal(m->blocks.bytes, 0);
		assert_int_equal(m->maps.bytes, 12 * MiB);
		assert_int_equal(m->peak.bytes, 12 * MiB);
		assert_null(model_failure(m));
		assert_true(m->run.exited);
		model_free(m);
	}
	f.until_ns = late;
	m = read_all(feed);
	assert_int_equal(m->maps.bytes, 8 * MiB);
	assert_false(m->run.exited);
	model_free(m);
	shm_feed_fini(&f);
	script_free(s);
	(void)state;
}

/* Another mapping over it removes it; a failed unmapping brings it back; and a part of it may
 * go. */
static void test_ranges(void **state)
{
	const struct script_volume one = {5, 64 * MiB, 60 * MiB, 1, 0};
	struct script *s = script_new();
	struct shm_feed f;
	struct model *m;
	uint64_t a, b, c;

	a = script_map_shm(s, script_stack(s, "main;a"), 8 * MiB, &one);
	b = script_map_shm(s, script_stack(s, "main;b"), 4 * MiB, &one);
	c = script_map_shm(s, script_stack(s, "main;c"), 2 * MiB, &one);
	script_map_at(s, script_stack(s, "main;over"), a, 8 * MiB, TRACE_MAP_FIXED);
	script_unmap(s, b, 4 * MiB);
	script_ununmap(s, b, 4 * MiB);
	script_unmap(s, c + MiB, MiB);
	shm_feed_init(&f, script_feed(s), 5);
	m = read_all(shm_feed_of(&f));
	assert_int_equal(m->maps.bytes, 5 * MiB);
	model_free(m);
	shm_feed_fini(&f);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_filter),
	    cmocka_unit_test(test_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
