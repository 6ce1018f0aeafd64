/* The orders of sites, in text and JSON. */
#include "model/unit.h"

#include "model/script.h"
#include "report/format.h"

static void test_orders(void **state)
{
	static const struct {
		enum sites_by by;
		const char *first;
	} of[] = {{SITES_LIVE, "big"}, {SITES_PEAK, "spike"}, {SITES_TOTAL, "churn"},
	    {SITES_GROWTH, "prompt"}, {SITES_LEAKED, "leak"}};
	struct script *s = script_new();
	uint32_t leak = script_stack(s, "main;leak"), churn = script_stack(s, "main;churn");
	uint32_t prompt = script_stack(s, "main;prompt");
	struct feed feed = script_feed(s);
	struct callsites *peak, *end;
	struct model *m;
	struct event e;
	struct err err;

	script_alloc(s, script_stack(s, "main;big"), 50 * MiB);
	for (uint64_t i = 1; i <= 1000; i++) {
		script_alloc(s, leak, 2000);
		script_release(s, script_alloc(s, churn, 20 * MiB));
		script_release(s, script_alloc(s, prompt, i * 5000));
	}
	script_release(s, script_alloc(s, script_stack(s, "main;spike"), 100 * MiB));
	assert_int_equal(model_new(feed, &m, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, AT_END, &end, &err), 0);
	assert_int_equal(callsites_new(m, AT_PEAK, &peak, &err), 0);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct sites_view v = {
		    m, of[i].by == SITES_PEAK ? peak : end, "end", of[i].by, 1, {0}};
		struct report_style st = {.columns = 100};
		struct str out = {0};
		const char *line;

		sites_text(&v, &st, &out);
		line = strchr(strchr(str_text(&out), '\n') + 1, '\n');
		assert_non_null(line);
		assert_non_null(strstr(line, of[i].first));
		/* Every line fits, with stacks too. */
		v.limit = 0;
		for (unsigned columns = 40; columns <= 160; columns += 5) {
			st = (struct report_style){.columns = columns, .verbose = columns % 2};
			str_clear(&out);
			sites_text(&v, &st, &out);
			for (const char *p = str_text(&out); *p; p += strcspn(p, "\n") + 1)
				assert_true(strcspn(p, "\n") <= columns);
		}
		v.limit = 1;
		str_clear(&out);
		sites_json(&v, NULL, &out);
		line = strstr(str_text(&out), "\"function\": ");
		assert_non_null(line);
		assert_int_equal(strncmp(line + 13, of[i].first, strlen(of[i].first)), 0);
		str_free(&out);
	}
	assert_int_equal(sites_by_name("leaked"), SITES_LEAKED);
	assert_int_equal(sites_by_name("size"), -1);
	callsites_free(end);
	callsites_free(peak);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
