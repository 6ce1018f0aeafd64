/* The page of metrics: labels are escaped, what is not known is NaN or absent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch/metrics.h"

static struct watched process(void)
{
	struct watched w = {.pid = 42, .command = "serve \"a\\b\"\n", .running = true};

	strcpy(w.model, "m/8b");
	w.trace = "42.0";
	w.malloc_free = 7;
	w.python_free = NAN;
	w.space_count = 2;
	strcpy(w.spaces[0].name, "host");
	w.spaces[0].limit = "cgroup";
	w.spaces[0].limit_bytes = 1000;
	w.spaces[0].left = 400;
	w.spaces[0].forecast = (struct forecast){.state = FORECAST_GROWS,
	    .rate = 2,
	    .seconds = 200,
	    .soonest = 150,
	    .latest = INFINITY,
	    .alarm = true};
	strcpy(w.spaces[1].name, "cuda:0");
	w.spaces[1].forecast = (struct forecast){.seconds = INFINITY};
	w.listed = 1;
	w.sites[0] = (struct watched_site){.function = "f",
	    .file = "\xff.py",
	    .line = 7,
	    .live_bytes = 300,
	    .live_count = 3,
	    .rate = 1.5};
	return w;
}

static void test_page(void **state)
{
	static const char *const lines[] = {
	    "whyoom_process_info{pid=\"42\",pod=\"p\",command=\"serve \\\"a\\\\b\\\"\\n\",mode="
	    "\"full\",model=\"m/8b\"} 1\n",
	    "whyoom_memory_limit_bytes{pid=\"42\",pod=\"p\",space=\"host\",limit=\"cgroup\"} "
	    "1000\n",
	    "whyoom_memory_used_bytes{pid=\"42\",pod=\"p\",space=\"host\"} 600\n",
	    "whyoom_memory_headroom_bytes{pid=\"42\",pod=\"p\",space=\"host\"} 400\n",
	    "bound=\"expected\"} 200\n", "bound=\"latest\"} +Inf\n",
	    "whyoom_memory_alarm{pid=\"42\",pod=\"p\",space=\"host\"} 1\n",
	    "whyoom_memory_alarm{pid=\"42\",pod=\"p\",space=\"cuda:0\"} NaN\n",
	    "space=\"cuda:0\",bound=\"expected\"} NaN\n",
	    "whyoom_site_growth_bytes_per_second{pid=\"42\",pod=\"p\",function=\"f\",file="
	    "\"\xef\xbf"
	    "\xbd.py\",line=\"7\"} 1.5\n"};
	const struct metrics_label label = {"pod", "p"};
	struct watched w = process();
	const struct watched *all[] = {&w};
	struct str page = {0};

	metrics_write(all, 1, &label, 1, &page);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_non_null(strstr(page.text, lines[i]));
	/* Without a limit there is no headroom. */
	assert_null(strstr(page.text, "headroom_bytes{pid=\"42\",pod=\"p\",space=\"cuda:0\""));
	/* Nor holes without PyTorch, nor requests without marks. */
	assert_null(strstr(page.text, "whyoom_memory_hole_bytes{"));
	assert_null(strstr(page.text, "whyoom_requests_total{"));
	assert_non_null(strstr(page.text, "allocator=\"malloc\"} 7\n"));
	assert_null(strstr(page.text, "allocator=\"python\""));
	assert_int_equal(page.text[page.length - 1], '\n');
	str_free(&page);
	(void)state;
}

static void test_marks_and_holes(void **state)
{
	static const char *const lines[] = {"whyoom_requests_total{pid=\"42\"} 5\n",
	    "whyoom_requests_in_flight{pid=\"42\"} 2\n",
	    "whyoom_memory_hole_bytes{pid=\"42\",space=\"cuda:0\"} 30\n",
	    "whyoom_memory_largest_hole_bytes{pid=\"42\",space=\"cuda:0\"} 20\n",
	    "whyoom_memory_fragmentation_ratio{pid=\"42\",space=\"cuda:0\"} 0.25\n",
	    "whyoom_watch_cpu_seconds_total 1.5\n", "whyoom_watch_looks_total 3\n",
	    "whyoom_watch_answers_total 4\n", "whyoom_watch_resident_bytes 5\n"};
	const struct metrics_own own = {
	    .cpu_seconds = 1.5, .looks = 3, .answers = 4, .resident_bytes = 5};
	struct watched w = process();
	const struct watched *all[] = {&w};
	struct str page = {0};

	w.marks = true;
	w.requests = 5;
	w.in_flight = 2;
	w.spaces[1].holes_known = true;
	w.spaces[1].hole_bytes = 30;
	w.spaces[1].largest_hole = 20;
	w.spaces[1].unusable = 0.25;
	metrics_write(all, 1, NULL, 0, &page);
	metrics_write_own(&own, &page);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_non_null(strstr(page.text, lines[i]));
	str_free(&page);
	(void)state;
}

static const char *const signs[] = {"whyoom_tasks_in_flight{pid=\"42\"} 3\n",
    "whyoom_kv_cache_bytes{pid=\"42\",space=\"cuda:0\"} 250\n",
    "whyoom_kv_cache_ratio{pid=\"42\",space=\"cuda:0\"} 0.25\n",
    "whyoom_kv_cache_bytes{pid=\"42\",space=\"host\"} 0\n",
    "whyoom_memory_role_bytes{pid=\"42\",space=\"cuda:0\",role=\"kv-cache\"} 250\n",
    "whyoom_memory_retained_bytes{pid=\"42\",space=\"cuda:0\"} 70\n",
    "whyoom_verdict_info{pid=\"42\",cause=\"leak\",function=\"f\",file=\"a.py\",line=\"3\"} "
    "1\n",
    "whyoom_verdict_confidence_ratio{pid=\"42\"} 0.75\n",
    "whyoom_pressure_ratio{pid=\"42\",tasks=\"some\"} 0.5\n",
    "whyoom_pressure_ratio{pid=\"42\",tasks=\"full\"} 0.25\n",
    "whyoom_pressure_seconds_total{pid=\"42\",tasks=\"full\"} 4\n",
    "whyoom_throttled_total{pid=\"42\"} 9\n", "whyoom_reclaim_scanned_bytes_total{pid=\"42\"} 30\n",
    "whyoom_reclaimed_bytes_total{pid=\"42\"} 20\n", "whyoom_refault_bytes_total{pid=\"42\"} 10\n"};

static void test_signs(void **state)
{
	struct watched w = process();
	const struct watched *all[] = {&w};
	struct str page = {0};

	metrics_write(all, 1, NULL, 0, &page);
	assert_null(strstr(page.text, "whyoom_tasks_in_flight{"));
	assert_null(strstr(page.text, "whyoom_verdict_info{"));
	assert_null(strstr(page.text, "whyoom_pressure_ratio{"));
	assert_null(strstr(page.text, "whyoom_throttled_total{"));
	assert_null(strstr(page.text, "whyoom_reclaim_scanned_bytes_total{"));
	str_clear(&page);
	w.has_tasks = true;
	w.tasks = 3;
	w.spaces[1].live_bytes = 1000;
	w.spaces[1].role_bytes[ROLE_KV_CACHE] = 250;
	w.spaces[1].retained_bytes = 70;
	w.likely = (struct watched_cause){.known = true,
	    .cause = CAUSE_LEAK,
	    .confidence = 0.75,
	    .function = "f",
	    .file = "a.py",
	    .line = 3};
	w.pressure = (struct pressure){.stalls_known = true,
	    .some = 0.5,
	    .full = 0.25,
	    .some_seconds = 8,
	    .full_seconds = 4,
	    .throttled_known = true,
	    .throttled = 9,
	    .reclaim_known = true,
	    .scanned_bytes = 30,
	    .reclaimed_bytes = 20,
	    .refault_bytes = 10};
	metrics_write(all, 1, NULL, 0, &page);
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		assert_non_null(strstr(page.text, signs[i]));
	str_free(&page);
	(void)state;
}

/* Two processes of one pid are two series; each other one keeps its own. */
static void test_one_pid_twice(void **state)
{
	struct watched w = process(), same = process(), other = process();
	const struct watched *all[] = {&w, &other, &same};
	struct str page = {0};

	same.trace = "42.1";
	other.pid = 43;
	metrics_write(all, 3, NULL, 0, &page);
	assert_non_null(strstr(page.text, "whyoom_events_total{pid=\"42\",trace=\"42.0\"}"));
	assert_non_null(strstr(page.text, "whyoom_events_total{pid=\"42\",trace=\"42.1\"}"));
	assert_non_null(strstr(page.text, "whyoom_events_total{pid=\"43\"}"));
	str_free(&page);
	(void)state;
}

static void test_labels(void **state)
{
	assert_true(metrics_label_valid("model_name"));
	assert_false(metrics_label_valid("pid"));
	assert_false(metrics_label_valid("__name__"));
	assert_false(metrics_label_valid("1a"));
	assert_false(metrics_label_valid("a-b"));
	assert_false(metrics_label_valid(""));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_page),
	    cmocka_unit_test(test_marks_and_holes), cmocka_unit_test(test_signs),
	    cmocka_unit_test(test_one_pid_twice), cmocka_unit_test(test_labels)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
