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

	w.space_count = 2;
	strcpy(w.spaces[0].name, "host");
	w.spaces[0].limit = "cgroup";
	w.spaces[0].limit_bytes = 1000;
	w.spaces[0].left = 400;
	w.spaces[0].forecast = (struct forecast){FORECAST_GROWS, 2, 200, 150, INFINITY};
	strcpy(w.spaces[1].name, "cuda:0");
	w.spaces[1].forecast = (struct forecast){.seconds = INFINITY};
	w.listed = 1;
	w.sites[0] = (struct watched_site){"f", "\xff.py", 7, 300, 3, 1.5};
	return w;
}

static void test_page(void **state)
{
	static const char *const lines[] = {
	    "whyoom_process_info{pid=\"42\",pod=\"p\",command=\"serve \\\"a\\\\b\\\"\\n\",mode="
	    "\"full\"} 1\n",
	    "whyoom_memory_limit_bytes{pid=\"42\",pod=\"p\",space=\"host\",limit=\"cgroup\"} "
	    "1000\n",
	    "whyoom_memory_used_bytes{pid=\"42\",pod=\"p\",space=\"host\"} 600\n",
	    "whyoom_memory_headroom_bytes{pid=\"42\",pod=\"p\",space=\"host\"} 400\n",
	    "bound=\"expected\"} 200\n", "bound=\"latest\"} +Inf\n",
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
	assert_int_equal(page.text[page.length - 1], '\n');
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
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_page), cmocka_unit_test(test_labels)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
