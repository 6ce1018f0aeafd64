/* What is said of engines, to people and to Prometheus. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages.h"
#include "watch/engine/engine_words.h"

static struct engine answered(const char *page)
{
	struct engine e = {.url = "http://h:1/metrics", .answered = true};
	struct err err;

	assert_int_equal(kv_pool_read(page, strlen(page), &e.pool, &err), 0);
	e.pressure = kv_pool_pressure(&e.pool);
	return e;
}

static void assert_line(const struct engine *e, const char *expected)
{
	struct str out = {0};

	engine_line(e, &out);
	assert_string_equal(str_text(&out), expected);
	str_free(&out);
}

static void test_lines(void **state)
{
	struct engine e = answered(VLLM);

	assert_line(&e,
	    "vllm at http://h:1/metrics, meta-llama/Llama-3.1-8B-Instruct: pool 98 % full of "
	    "432,000 tokens, 24 run, 72 wait, 3 preempted so far; the pool is too small for them");
	e = answered(LLAMA);
	assert_line(&e, "llama.cpp at http://h:1/metrics: does not say how full its pool is, "
			"4 run, 1 wait");
	e = answered("vllm:num_requests_running{model_name=\"a\\nb\\\\\"} 1\n");
	assert_line(&e, "vllm at http://h:1/metrics, a\\x0ab\\: does not say how full its pool is, "
			"1 run");
	e = (struct engine){.url = "http://h:1/metrics"};
	assert_line(&e, "engine at http://h:1/metrics: no answer yet");
	e.problem = "it answered 404";
	assert_line(&e, "engine at http://h:1/metrics: it answered 404");
	(void)state;
}

static void test_metrics(void **state)
{
	const struct engine all[] = {answered(VLLM), answered(TGI), {.url = "http://none/metrics"}};
	static const char *const lines[] = {
	    "whyoom_engine_up{engine=\"http://h:1/metrics\",pod=\"p\"} 1\n",
	    "whyoom_engine_up{engine=\"http://none/metrics\",pod=\"p\"} 0\n",
	    "whyoom_engine_info{engine=\"http://h:1/metrics\",pod=\"p\",kind=\"vllm\",model=\"meta-"
	    "llama/Llama-3.1-8B-Instruct\"} 1\n",
	    "# TYPE whyoom_kv_cache_usage_ratio gauge\nwhyoom_kv_cache_usage_ratio{engine=\"http://"
	    "h:1/metrics\",pod=\"p\"} 0.97499999999999998\n# HELP",
	    "whyoom_kv_cache_preemptions_total{engine=\"http://h:1/metrics\",pod=\"p\"} 3\n# HELP",
	    "whyoom_kv_cache_pressure{engine=\"http://h:1/metrics\",pod=\"p\"} 1\n"
	    "whyoom_kv_cache_pressure{engine=\"http://h:1/metrics\",pod=\"p\"} NaN\n",
	    "whyoom_engine_requests_waiting{engine=\"http://h:1/metrics\",pod=\"p\"} 72\n"};
	const struct metrics_label label = {"pod", "p"};
	struct str out = {0};

	engine_metrics(all, 3, &label, 1, &out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_non_null(strstr(out.text, lines[i]));
	assert_int_equal(out.text[out.length - 1], '\n');
	str_clear(&out);
	engine_metrics(NULL, 0, &label, 1, &out);
	assert_string_equal(str_text(&out), "");
	str_free(&out);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_metrics),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
