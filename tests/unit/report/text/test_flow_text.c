/* Phases, requests and stages in the text and in the JSON, of a verdict on marked requests and
 * known frames; and none without those. */
#include "model/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/script.h"
#include "report/format.h"
#include "report/parts.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/request/flow.h"

static struct knowledge *known(void)
{
	struct knowledge *k = knowledge_new();
	char path[] = "/tmp/whyoom-flow-XXXXXX";
	struct err err = {""};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "framework = acme\nname = Acme\npackage = acme/\n\n"
				"[role document-loader]\npython = acme/load.py\n\n"
				"[role prompt-assembly]\npython = acme/prompt.py\n") > 0);
	close(fd);
	assert_int_equal(knowledge_add(k, path, &err), 0);
	unlink(path);
	return k;
}

static void mark(struct script *s, uint32_t phase, uint64_t id)
{
	struct event *e = script_event(s, EV_MARK, 0);

	e->u.mark.phase = phase;
	e->u.mark.id = id;
	e->u.mark.name = "ask";
}

static void pipeline(struct script *s, uint32_t requests)
{
	uint32_t load = script_stack(s, "main;read@/x/acme/load.py:3"),
		 prompt = script_stack(s, "main;format@/x/acme/prompt.py:4");

	for (int i = 0; i < 200; i++) {
		script_alloc(s, load, 100 * KiB);
		script_wait(s, 1000000);
	}
	for (uint32_t i = 1; i <= requests; i++) {
		uint64_t at;

		script_thread(s, 1, i);
		mark(s, TRACE_MARK_BEGIN, i);
		at = script_alloc(s, prompt, 300 * KiB);
		script_wait(s, 1000000);
		if (i > requests - 4)
			continue;
		script_release(s, at);
		mark(s, TRACE_MARK_END, i);
	}
	script_set(s, TRACE_LEVEL_LIMIT_AS, 40 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, 39 * MiB);
	script_failed(s, prompt, 2 * MiB);
	script_exit(s, 1);
}

static void test_known(void **state)
{
	struct report_style style = {.columns = 200};
	struct verdict_result r;
	struct script *s = script_new();
	struct str text = {0}, json = {0};
	struct err err;

	pipeline(s, 100);
	assert_int_equal(verdict_of_feed(script_feed(s), NULL, &r, &err), 0);
	/* As if it had been there from the start. */
	r.frameworks.knowledge = known();
	r.frameworks.frames = framework_frames_new(r.frameworks.knowledge);
	assert_int_equal(flow_read(&r, script_feed(s), &err), 0);
	flow_text(&r, &style, &text);
	assert_non_null(strstr(str_text(&text), "loading"));
	assert_non_null(strstr(str_text(&text), "serving since"));
	assert_non_null(strstr(str_text(&text), "100 requests, up to 4 at once, 4 in flight"));
	assert_non_null(strstr(str_text(&text), "\n  document-loader   19.5 MiB  19.5 MiB "));
	assert_non_null(strstr(str_text(&text), "\n  prompt-assembly   1.17 MiB  1.17 MiB "));
	/* Minutes are long words. */
	str_clear(&text);
	r.flow.stages[0].peak_ns = 125000000000;
	flow_text(&r, &style, &text);
	assert_non_null(strstr(str_text(&text), " MiB  2 min 05 s\n"));
	report_json(&(struct report_view){.result = &r}, NULL, &json);
	assert_non_null(strstr(str_text(&json), "\"source\": \"marks\""));
	assert_non_null(strstr(str_text(&json), "\"finished\": 96"));
	assert_non_null(strstr(str_text(&json), "\"held_bytes\": 307200"));
	assert_non_null(strstr(str_text(&json), "\"stage\": \"document-loader\""));
	str_free(&text);
	str_free(&json);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

static void test_nothing_known(void **state)
{
	struct report_style style = {.columns = 80};
	struct verdict_result r;
	struct script *s = script_new();
	struct str text = {0};
	struct err err;

	for (int i = 0; i < 100; i++)
		script_alloc(s, script_stack(s, "main;keep"), 1000);
	script_exit(s, 0);
	assert_int_equal(verdict_of_feed(script_feed(s), NULL, &r, &err), 0);
	flow_text(&r, &style, &text);
	assert_int_equal(text.length, 0);
	str_free(&text);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known), cmocka_unit_test(test_nothing_known)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
