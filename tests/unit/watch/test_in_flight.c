/* Requests and tasks that have begun and not ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watch/signs/in_flight.h"
#include "whyoom/trace.h"

static struct in_flight f;

static void mark(uint32_t what, uint32_t phase, uint64_t id)
{
	assert_int_equal(in_flight_see(&f, &(struct event){.kind = EV_MARK,
					       .u.mark = {.what = what, .phase = phase, .id = id}}),
	    0);
}

static void task(enum event_kind kind, uint32_t number)
{
	assert_int_equal(in_flight_see(&f, &(struct event){.kind = kind, .task = number}), 0);
}

static void test_requests(void **state)
{
	mark(TRACE_MARK_PHASE, TRACE_MARK_BEGIN, 1); /* no request */
	assert_false(f.marks);
	mark(TRACE_MARK_REQUEST, TRACE_MARK_BEGIN, 1);
	mark(TRACE_MARK_REQUEST, TRACE_MARK_BEGIN, 2);
	mark(TRACE_MARK_REQUEST, TRACE_MARK_ENTER, 2);
	assert_true(f.marks);
	assert_int_equal(in_flight_requests(&f), 2);
	/* It began before what was read, so it takes none of the others away. */
	mark(TRACE_MARK_REQUEST, TRACE_MARK_END, 77);
	assert_int_equal(in_flight_requests(&f), 2);
	mark(TRACE_MARK_REQUEST, TRACE_MARK_END, 1);
	mark(TRACE_MARK_REQUEST, TRACE_MARK_END, 1);
	assert_int_equal(in_flight_requests(&f), 1);
	/* An id may come again after its end. */
	mark(TRACE_MARK_REQUEST, TRACE_MARK_BEGIN, 1);
	assert_int_equal(in_flight_requests(&f), 2);
	assert_int_equal(f.requests, 3);
	in_flight_fini(&f);
	assert_int_equal(in_flight_requests(&f), 0);
	assert_int_equal(f.requests, 0);
	(void)state;
}

static void test_tasks(void **state)
{
	task(EV_ALLOC, 0);
	task(EV_FREE, 5); /* may be of the task before */
	assert_false(f.has_tasks);
	task(EV_ALLOC, 1);
	task(EV_MAP, 2);
	task(EV_ALLOC, 2);
	task(EV_ALLOC, 1);
	assert_true(f.has_tasks);
	assert_int_equal(in_flight_tasks(&f), 2);
	task(EV_TASK_END, 1);
	task(EV_TASK_END, 1);
	task(EV_TASK_END, 9);
	assert_int_equal(in_flight_tasks(&f), 1);
	task(EV_TASK_END, 2);
	assert_int_equal(in_flight_tasks(&f), 0);
	in_flight_fini(&f);
	(void)state;
}

static void test_bound(void **state)
{
	for (uint32_t i = 1; i <= 2 * IN_FLIGHT_MAX; i++)
		mark(TRACE_MARK_REQUEST, TRACE_MARK_BEGIN, i);
	assert_int_equal(in_flight_requests(&f), IN_FLIGHT_MAX);
	assert_int_equal(f.requests, 2 * IN_FLIGHT_MAX);
	in_flight_fini(&f);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests),
	    cmocka_unit_test(test_tasks), cmocka_unit_test(test_bound)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
