/* Each engine's page, as its current and an older version answer it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages.h"
#include "watch/engine/kv_pool.h"

static struct kv_pool read_page(const char *page)
{
	struct err err;
	struct kv_pool p;

	assert_int_equal(kv_pool_read(page, strlen(page), &p, &err), 0);
	return p;
}

static void assert_number(double got, double expected)
{
	assert_true(isnan(expected) ? isnan(got) : fabs(got - expected) < 1e-9);
}

static void test_engines(void **state)
{
	static const struct {
		const char *page, *kind, *model;
		double usage, tokens, running, waiting, preemptions, pressure;
	} all[] = {
	    {VLLM, "vllm", "meta-llama/Llama-3.1-8B-Instruct", 0.975, 432000, 24, 72, 3, 1},
	    {VLLM_OLD, "vllm", "meta-llama/Llama-2-7b", 1, NAN, 8, 0, 0, 0},
	    {SGLANG, "sglang", "qwen", 0.93, 161721, 40, 5, 11, 1}, /* it has just retracted two */
	    {SGLANG_OLD, "sglang", "google/gemma-2-9b-it", 0.28, NAN, 3, 0, NAN, 0},
	    {TGI, "tgi", "", NAN, NAN, 8, 4, NAN, NAN},
	    {LLAMA, "llama.cpp", "", NAN, NAN, 4, 1, NAN, NAN},
	    {LLAMA_OLD, "llama.cpp", "", 0.63, NAN, 4, 1, NAN, 0},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct kv_pool p = read_page(all[i].page);

		assert_string_equal(p.kind, all[i].kind);
		assert_string_equal(p.model, all[i].model);
		assert_number(p.usage, all[i].usage);
		assert_number(p.tokens, all[i].tokens);
		assert_number(p.running, all[i].running);
		assert_number(p.waiting, all[i].waiting);
		assert_number(p.preemptions, all[i].preemptions);
		assert_number(kv_pool_pressure(&p), all[i].pressure);
	}
	(void)state;
}

/* Data-parallel engines of one server; versions that publish the old name and the new one; names as
 * Ray writes them. */
static void test_several(void **state)
{
	struct kv_pool p =
	    read_page("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
		      "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.75\n"
		      "vllm:gpu_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.99\n"
		      "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2\n"
		      "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 3\n");

	assert_number(p.usage, 0.75);
	assert_number(p.waiting, 5);
	assert_string_equal(p.model, "m");
	p = read_page("vllm:num_requests_running{model_name=\"a\"} 1\n"
		      "vllm:num_requests_running{model_name=\"b\"} 2\n"
		      "vllm:num_requests_running{model_name=\"a\"} 4\n");
	assert_number(p.running, 7);
	assert_string_equal(p.model, "");
	p = read_page("ray_vllm_gpu_cache_usage_perc{model_name=\"m\"} 0.5\n");
	assert_number(p.usage, 0.5);
	(void)state;
}

static void test_preemptions(void **state)
{
	struct kv_pool before = read_page("vllm:num_preemptions_total 3\n");
	struct kv_pool now = read_page("vllm:num_preemptions_total 5\n");
	struct kv_pool silent = read_page("vllm:num_requests_running 5\n");

	assert_number(kv_pool_preempted_between(&before, &now), 2);
	assert_number(kv_pool_preempted_between(&now, &now), 0);
	assert_number(kv_pool_preempted_between(&now, &before), 3); /* it was started again */
	assert_number(kv_pool_preempted_between(&silent, &now), NAN);
	assert_number(kv_pool_preempted_between(&before, &silent), NAN);
	(void)state;
}

static void test_strangers(void **state)
{
	static const char *const pages[] = {"", "<html>no</html>\n",
	    "process_cpu_seconds_total 4\n", "whyoom_memory_used_bytes{pid=\"1\"} 4\n",
	    "vllm:unknown 1\n"};
	struct err err;
	struct kv_pool p;

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		assert_int_equal(kv_pool_read(pages[i], strlen(pages[i]), &p, &err), -ENODATA);
		assert_non_null(
		    strstr(err.text, i < 2 ? "no page of metrics" : "no metrics of vLLM"));
	}
	/* Numbers that cannot be are as good as none. */
	p = read_page("vllm:kv_cache_usage_perc -1\nvllm:num_requests_waiting NaN\n"
		      "vllm:num_requests_running +Inf\n");
	assert_number(p.usage, NAN);
	assert_number(p.waiting, NAN);
	p = read_page("vllm:kv_cache_usage_perc 1.5\n");
	assert_number(p.usage, 1);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_engines),
	    cmocka_unit_test(test_several),
	    cmocka_unit_test(test_preemptions),
	    cmocka_unit_test(test_strangers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
