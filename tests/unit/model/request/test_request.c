/* Requests by marks, by frames on stacks, and without either by lanes, their ends and rounds; in
 * the promised memory. */
#include "model/unit.h"

#include "model/request/request.h"
#include "model/script.h"

static bool inside(void *arg, uint32_t stack)
{
	return stack == *(uint32_t *)arg;
}

static struct requests *read_all(struct script *s, uint32_t *entry)
{
	struct feed feed = script_feed(s);
	struct requests *r = requests_new(entry ? inside : NULL, entry);
	struct event e;
	struct err err;

	assert_non_null(r);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(requests_apply(r, &e), 0);
	return r;
}

static void mark(struct script *s, uint32_t phase, uint64_t id, const char *name)
{
	struct event *e = script_event(s, EV_MARK, 0);

	e->u.mark.phase = phase;
	e->u.mark.what = TRACE_MARK_REQUEST;
	e->u.mark.id = id;
	e->u.mark.name = name;
}

/* Two that overlap, on two tasks of a thread; a third thread helps one of them. */
static void test_marks(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "loop;work");
	struct requests *r;
	uint64_t a;

	script_thread(s, 1, 1);
	mark(s, TRACE_MARK_BEGIN, 7, "ask");
	a = script_alloc(s, work, 1000);
	script_thread(s, 1, 2);
	mark(s, TRACE_MARK_BEGIN, 8, "ask");
	script_alloc(s, work, 300);
	script_thread(s, 5, 0);
	mark(s, TRACE_MARK_ENTER, 8, NULL);
	script_alloc(s, work, 30);
	mark(s, TRACE_MARK_LEAVE, 8, NULL);
	script_alloc(s, work, 9);
	script_thread(s, 1, 1);
	script_release(s, a);
	script_alloc(s, work, 50);
	mark(s, TRACE_MARK_END, 7, NULL);
	script_alloc(s, work, 5);
	mark(s, TRACE_MARK_END, 99, NULL); /* never began */
	r = read_all(s, NULL);
	assert_int_equal(requests_source(r), REQUESTS_MARKED);
	assert_int_equal(r->begun, 2);
	assert_int_equal(r->finished, 1);
	assert_int_equal(r->in_flight, 1);
	assert_int_equal(r->most_at_once, 2);
	assert_int_equal(r->kept_count, 1);
	assert_int_equal(r->kept[0].id, 7);
	assert_string_equal(r->kept[0].name, "ask");
	assert_int_equal(r->kept[0].acquired, 1050);
	assert_int_equal(r->kept[0].peak, 1000);
	assert_int_equal(r->kept[0].live, 50);
	assert_null(requests_of_lane(r, requests_lane(r, 1, 1)));
	assert_int_equal(requests_of_lane(r, requests_lane(r, 1, 2))->acquired, 330);
	assert_null(requests_of_lane(r, requests_lane(r, 5, 0)));
	requests_free(r);
	script_free(s);
	(void)state;
}

/* A run of events inside an entry is a request, until marks come. */
static void test_frames(void **state)
{
	struct script *s = script_new();
	uint32_t in = script_stack(s, "main;invoke"), out = script_stack(s, "main;print");
	struct requests *r;

	for (int i = 0; i < 3; i++) {
		uint64_t at = script_alloc(s, in, 100);

		script_alloc(s, in, 10);
		script_release(s, at);
		script_alloc(s, out, 1);
	}
	script_alloc(s, in, 500);
	r = read_all(s, &in);
	assert_int_equal(requests_source(r), REQUESTS_FRAMES);
	assert_int_equal(r->begun, 4);
	assert_int_equal(r->finished, 3);
	assert_int_equal(r->most_at_once, 1);
	assert_int_equal(r->kept[2].peak, 110);
	assert_int_equal(r->kept[2].live, 10);
	requests_free(r);

	mark(s, TRACE_MARK_BEGIN, 1, NULL);
	r = read_all(s, &in);
	assert_int_equal(requests_source(r), REQUESTS_MARKED);
	assert_int_equal(r->begun, 1);
	assert_int_equal(r->kept_count, 0);
	requests_free(r);
	script_free(s);
	(void)state;
}

/* While a call of the thread's own goes on, its tasks' work belongs to it; otherwise tasks have
 * calls of their own. */
static void test_frames_of_tasks(void **state)
{
	struct script *s = script_new();
	uint32_t in = script_stack(s, "main;invoke"), out = script_stack(s, "main;print");
	struct requests *r;

	for (uint32_t i = 1; i <= 3; i++) {
		script_alloc(s, in, 1);
		script_thread(s, 1, i);
		script_alloc(s, in, 100);
		script_thread(s, 1, 0);
		script_alloc(s, out, 1);
	}
	/* First seen through a task that ends before the call. */
	script_thread(s, 1, 4);
	script_alloc(s, in, 1);
	script_thread(s, 1, 0);
	script_alloc(s, in, 1);
	script_event(s, EV_TASK_END, 0)->task = 4;
	script_alloc(s, in, 1);
	script_alloc(s, out, 1);
	for (uint32_t i = 5; i <= 6; i++) {
		script_thread(s, 1, i);
		script_alloc(s, in, 100);
	}
	r = read_all(s, &in);
	assert_int_equal(r->begun, 6);
	assert_int_equal(r->finished, 4);
	assert_int_equal(r->most_at_once, 2);
	assert_int_equal(r->kept[0].live, 101);
	requests_free(r);
	script_free(s);
	(void)state;
}

/* Threads and tasks that end, and their leftovers. */
static void test_ended(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "main;work");
	struct requests *r;

	for (uint32_t i = 1; i <= 6; i++) {
		uint64_t at;

		script_thread(s, 1, i);
		at = script_alloc(s, work, 4096);
		if (i % 2)
			script_release(s, at);
		script_event(s, EV_TASK_END, 0);
	}
	r = read_all(s, NULL);
	assert_int_equal(requests_source(r), REQUESTS_TASKS);
	assert_int_equal(requests_ended(r, 4096).count, 6);
	assert_int_equal(requests_ended(r, 4096).clean, 3);
	assert_int_equal(requests_ended(r, 8192).count, 0);
	assert_true(requests_lane(r, 1, 2)->ended);
	requests_free(r);
	script_free(s);
	(void)state;
}

/* Work that is released, with a little left each time: the rounds show even when the leftovers
 * are many times a round; a block that moves is no fall. */
static void test_rounds(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "main;work");
	const struct lane *l;
	struct requests *r;
	uint64_t last = 0, grows;

	for (int i = 0; i < 1000; i++) {
		uint64_t at = script_alloc(s, work, 1000);

		script_alloc(s, work, 100);
		script_release(s, at);
		last = script_now(s);
	}
	script_alloc(s, work, 1000);
	r = read_all(s, NULL);
	l = requests_lane(r, 1, 0);
	assert_int_equal(l->rounds, 1000);
	assert_int_equal(l->base_ns, last);
	requests_free(r);

	script_thread(s, 2, 0);
	grows = script_alloc(s, work, 1000);
	for (int i = 2; i < 50; i++)
		grows = script_realloc(s, grows, work, (uint64_t)i * 1000);
	r = read_all(s, NULL);
	assert_int_equal(requests_lane(r, 2, 0)->rounds, 0);
	requests_free(r);
	script_free(s);
	(void)state;
}

/* More tasks than there is room for: tasks that hold nothing make room. */
static void test_many(void **state)
{
	struct requests *r = requests_new(NULL, NULL);
	struct block b = {.size = 64, .thread = 1};

	for (uint32_t i = 1; i <= 3 * REQUEST_LANES; i++) {
		b.task = i;
		assert_int_equal(requests_acquired(r, &b, i), 0);
		if (i % 64)
			assert_int_equal(
			    requests_apply(
				r, &(struct event){.kind = EV_FREE, .block = &b, .time_ns = i}),
			    0);
		assert_true(r->lanes.count <= REQUEST_LANES);
	}
	assert_non_null(requests_lane(r, 1, 3 * REQUEST_LANES));
	assert_non_null(requests_lane(r, 1, 64));
	assert_true(requests_ended(r, 64).count >= REQUEST_LANES);
	/* All of them hold something: the rest get no owner. */
	for (uint32_t i = 1; i <= 2 * REQUEST_LANES; i++) {
		b.task = i;
		assert_int_equal(requests_acquired(r, &b, i), 0);
		assert_true(r->lanes.count <= REQUEST_LANES);
	}
	assert_true(r->overflow > 0);
	requests_free(r);
	(void)state;
}

/* More requests at once than there is room for are counted. */
static void test_many_open(void **state)
{
	struct script *s = script_new();
	struct requests *r;

	for (uint32_t i = 1; i <= REQUESTS_OPEN + 10; i++) {
		script_thread(s, 1, i);
		mark(s, TRACE_MARK_BEGIN, i, NULL);
	}
	for (uint32_t i = 1; i <= REQUESTS_OPEN + 10; i++)
		mark(s, TRACE_MARK_END, i, NULL);
	r = read_all(s, NULL);
	assert_int_equal(r->begun, REQUESTS_OPEN + 10);
	assert_int_equal(r->finished, REQUESTS_OPEN);
	assert_int_equal(r->in_flight, 0);
	assert_int_equal(r->kept_count, REQUESTS_KEPT);
	requests_free(r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks),
	    cmocka_unit_test(test_frames), cmocka_unit_test(test_frames_of_tasks),
	    cmocka_unit_test(test_ended), cmocka_unit_test(test_rounds),
	    cmocka_unit_test(test_many), cmocka_unit_test(test_many_open)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
