/* The recorder's notes on its own work. */
#include "model/read.h"
#include "model/script.h"

static struct script *script;
static struct model *m;

static int begin(void **state)
{
	struct err err;

	script = script_new();
	(void)state;
	return model_new(script_feed(script), &m, &err);
}

static int end(void **state)
{
	model_free(m);
	script_free(script);
	(void)state;
	return 0;
}

static void notice(uint32_t what, uint64_t value, uint64_t mean, uint64_t time_ns)
{
	struct event e = {.kind = EV_NOTICE, .time_ns = time_ns};
	struct err err;

	e.u.notice.what = what;
	e.u.notice.value = value;
	e.u.notice.mean = mean;
	assert_int_equal(model_apply(m, &e, &err), 0);
}

static void test_lost(void **state)
{
	notice(TRACE_NOTICE_LOST, 3, 0, 10);
	notice(TRACE_NOTICE_LOST, 4, 0, 20);
	assert_int_equal(m->recording.lost, 7);
	assert_false(m->recording.budget);
	notice(TRACE_NOTICE_BUDGET, 0, 0, 30);
	assert_true(m->recording.budget);
	(void)state;
}

/* Two pauses, of which the second lasts until the end. */
static void test_pause(void **state)
{
	struct event last = {.kind = EV_EXIT, .time_ns = 230};
	struct err err;

	notice(TRACE_NOTICE_PAUSE, 1, 0, 100);
	notice(TRACE_NOTICE_PAUSE, 0, 0, 150);
	assert_int_equal(m->recording.paused_ns, 50);
	notice(TRACE_NOTICE_PAUSE, 1, 0, 200);
	assert_int_equal(model_apply(m, &last, &err), 0);
	model_finish(m);
	assert_int_equal(m->recording.paused_ns, 80);
	(void)state;
}

/* A sample is made coarser twice, and finer once. */
static void test_sample(void **state)
{
	notice(TRACE_NOTICE_RATE, 0, 1024, 10);
	notice(TRACE_NOTICE_RATE, 0, 4096, 20);
	notice(TRACE_NOTICE_RATE, 0, 2048, 30);
	assert_int_equal(m->recording.coarser_times, 2);
	assert_int_equal(m->recording.coarsest_every, 4096);
	assert_int_equal(m->recording.coarse_every, 2048);
	notice(TRACE_NOTICE_THINNED, 500, 8192, 40);
	assert_int_equal(m->recording.thinned_times, 1);
	assert_int_equal(m->recording.thinned_blocks, 500);
	assert_int_equal(m->recording.thinned_every, 8192);
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_lost, begin, end),
	    cmocka_unit_test_setup_teardown(test_pause, begin, end),
	    cmocka_unit_test_setup_teardown(test_sample, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
