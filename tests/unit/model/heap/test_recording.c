/* The recorder's notes on its own work. */
#include "model/unit.h"

#include "model/heap/recording.h"
#include "trace/event.h"

static void notice(
    struct recording *r, uint32_t what, uint64_t value, uint64_t mean, uint64_t time_ns)
{
	struct event e = {.kind = EV_NOTICE, .time_ns = time_ns};

	e.u.notice.what = what;
	e.u.notice.value = value;
	e.u.notice.mean = mean;
	recording_note(r, &e);
}

static void test_lost(void **state)
{
	struct recording r = {0};

	notice(&r, TRACE_NOTICE_LOST, 3, 0, 10);
	notice(&r, TRACE_NOTICE_LOST, 4, 0, 20);
	assert_int_equal(r.lost, 7);
	assert_false(r.budget);
	notice(&r, TRACE_NOTICE_BUDGET, 0, 0, 30);
	assert_true(r.budget);
	(void)state;
}

/* Two pauses, of which the second lasts until the end. */
static void test_pause(void **state)
{
	struct recording r = {0};

	notice(&r, TRACE_NOTICE_PAUSE, 1, 0, 100);
	notice(&r, TRACE_NOTICE_PAUSE, 0, 0, 150);
	assert_int_equal(r.paused_ns, 50);
	notice(&r, TRACE_NOTICE_PAUSE, 1, 0, 200);
	recording_end(&r, 230);
	assert_int_equal(r.paused_ns, 80);
	recording_end(&r, 999);
	assert_int_equal(r.paused_ns, 80);
	(void)state;
}

/* A sample is made coarser twice, and finer once. */
static void test_sample(void **state)
{
	struct recording r = {0};

	notice(&r, TRACE_NOTICE_RATE, 0, 1024, 10);
	notice(&r, TRACE_NOTICE_RATE, 0, 4096, 20);
	notice(&r, TRACE_NOTICE_RATE, 0, 2048, 30);
	assert_int_equal(r.coarser_times, 2);
	assert_int_equal(r.coarsest_every, 4096);
	assert_int_equal(r.coarse_every, 2048);
	notice(&r, TRACE_NOTICE_THINNED, 500, 8192, 40);
	assert_int_equal(r.thinned_times, 1);
	assert_int_equal(r.thinned_blocks, 500);
	assert_int_equal(r.thinned_every, 8192);
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
