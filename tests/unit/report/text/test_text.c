/* One screen, in order: verdict, ledger, blame, fixes; at 80 and 200 columns, plain when not on
 * a terminal. */
#include "../sample.h"

#include "util/text/term.h"

static void test_order_and_size(void **state)
{
	static const unsigned widths[] = {40, 50, 60, 80, 200};
	struct verdict_result r;
	struct script *s = sample(&r);

	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		struct report_style st = {.columns = widths[i], .unicode = true};
		struct str out = {0};
		const char *verdict, *ledger, *who, *change;

		report_text(&(struct report_view){.result = &r}, &st, &out);
		verdict = strstr(str_text(&out), "leak ");
		ledger = strstr(str_text(&out), "\nWhere 160 MiB went");
		who = strstr(str_text(&out), "\nTo blame: ");
		change = strstr(str_text(&out), "\nWhat to change");
		assert_true(verdict == str_text(&out));
		assert_true(verdict < ledger && ledger < who && who < change);
		assert_true(lines(str_text(&out)) <= (widths[i] >= 80 ? 24 : 45));
		assert_null(strchr(str_text(&out), '\033')); /* neither ours nor the trace's */
		for (const char *p = str_text(&out); *p; p += strcspn(p, "\n") + 1) {
			char line[1024];
			size_t n = strcspn(p, "\n");

			assert_true(n < sizeof(line));
			memcpy(line, p, n);
			line[n] = '\0';
			assert_true(term_columns(line) <= widths[i]);
			if (!p[n])
				break;
		}
		str_free(&out);
	}
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

static void test_verbose_says_more(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);
	struct report_style st = {.columns = 80, .verbose = true};
	struct str out = {0};

	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), "\nEvidence\n"));
	assert_non_null(strstr(str_text(&out), "\nCauses considered\n"));
	assert_non_null(strstr(str_text(&out), "\nWhat if\n"));
	assert_non_null(strstr(str_text(&out), "(167,772,160 bytes)"));
	assert_non_null(strstr(str_text(&out), "153600000")); /* leaked, to the byte */
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A verdict that is not sure names the second cause and its place; blamed bytes say what of them is
 * a request that was refused. */
static void test_rival_and_request(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);
	struct report_style st = {.columns = 200};
	struct str out = {0};

	r.ranking.list[1].finding =
	    (struct finding){.cause = CAUSE_CONCURRENCY, .blame = r.ranking.list[0].finding.blame};
	r.ranking.count = 2;
	r.verdict.runner_up = CAUSE_CONCURRENCY;
	r.verdict.runner_up_confidence = 0.05;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_null(strstr(str_text(&out), "If it is not that"));
	assert_null(strstr(str_text(&out), "of it refused"));
	str_clear(&out);
	r.verdict.runner_up_confidence = 0.25;
	r.verdict.blame.refused = 2 * MiB;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), "\n  If it is not that: concurrency (25 %), in ev"));
	assert_non_null(strstr(str_text(&out), ", 2.00 MiB of it refused\n"));
	str_clear(&out);
	/* Of a series the finding counts less than was refused. */
	r.verdict.cause = CAUSE_PROMPT_GROWTH;
	r.failure.requested_bytes = 3 * MiB;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), ", 3.00 MiB of it refused\n"));
	str_clear(&out);
	/* The sentence of an unknown cause names candidates, but a device's does not. */
	r.verdict.cause = CAUSE_UNKNOWN;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_null(strstr(str_text(&out), "likeliest"));
	str_clear(&out);
	r.failure.kind = FAILURE_CUDA_OOM;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(
	    strstr(str_text(&out), "\n  The likeliest cause: concurrency (25 %), in ev"));
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A wrapper's dozens of shells are counted: the reader looks for the program. */
static void test_many_processes(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);
	struct report_style st = {.columns = 80, .verbose = true};
	struct process all[40], *own = r.tree.processes;
	struct str out = {0};

	for (uint32_t i = 0; i < 40; i++)
		all[i] = (struct process){.pid = 500 + i, .cmdline = "bash", .events = 10};
	all[0] = *own;
	all[7].dropped = 3;
	r.tree.processes = all;
	r.tree.count = 40;
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), "\n    pid 507, 10 events"));
	assert_non_null(strstr(str_text(&out), "\n    38 more with 380 events in total"));
	assert_null(strstr(str_text(&out), "pid 508"));
	r.tree.count = 10;
	str_clear(&out);
	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), "\n    pid 508, 10 events"));
	r.tree.processes = own;
	r.tree.count = 1;
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

static void test_colour_is_asked_for(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);
	struct report_style st = {.columns = 80, .colour = true};
	struct str out = {0};

	report_text(&(struct report_view){.result = &r}, &st, &out);
	assert_non_null(strstr(str_text(&out), term_style(true, TERM_RED)));
	assert_null(strstr(str_text(&out), "\033[31mil")); /* the trace's own is not passed on */
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

static void test_brief(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);

	for (unsigned columns = 40; columns <= 200; columns += 20) {
		struct report_style st = {.columns = columns};
		struct str out = {0};

		report_brief(&r, "whyoom.4711", &st, &out);
		assert_true(lines(str_text(&out)) <= 10);
		assert_int_equal(strncmp(str_text(&out), "whyoom: leak", 12), 0);
		assert_non_null(strstr(str_text(&out), "whyoom report whyoom.4711"));
		assert_null(strchr(str_text(&out), '\033'));
		str_free(&out);
	}
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A container's end has room for few bytes, and whoever reads them has no terminal. */
static void test_last_word(void **state)
{
	struct verdict_result r;
	struct script *s = sample(&r);
	char sentence[3000], path[400];
	struct str out = {0}, safe = {0};

	report_last_word(&r, "whyoom.4711", &out);
	assert_int_equal(strncmp(str_text(&out), "whyoom: leak", 12), 0);
	str_safe(&safe, r.verdict.summary);
	assert_non_null(strstr(str_text(&out), safe.text));
	str_free(&safe);
	assert_non_null(strstr(str_text(&out), " Fix: "));
	assert_non_null(strstr(str_text(&out), " More: whyoom report whyoom.4711"));
	str_clear(&out);
	/* Longer parts are cut, between characters, wherever a cut falls. */
	for (size_t shift = 0; shift < 4; shift++) {
		memset(sentence, 'x', shift);
		for (size_t i = shift; i + 4 < sizeof(sentence); i += 4)
			memcpy(sentence + i, "\xf0\x9f\xa7\xa0", 5);
		r.verdict.summary = sentence;
		r.verdict.fixes[0].text = sentence;
		r.verdict.fix_count = 1;
		report_last_word(&r, "whyoom.4711", &out);
		assert_in_range(out.length, LAST_WORD_MAX / 2, LAST_WORD_MAX);
		for (const char *p = out.text; *p; p += str_utf8(p))
			assert_int_not_equal(str_utf8(p), 0);
		assert_non_null(strstr(out.text, " Fix: "));
		assert_non_null(strstr(out.text, " More: whyoom report whyoom.4711"));
		str_clear(&out);
	}
	/* No control characters; a path that is too long is left out, not cut. */
	r.verdict.summary = "one\ntwo\033[31m\t\xff\xc2\x9b";
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	report_last_word(&r, path, &out);
	assert_non_null(strstr(out.text, "one\\x0atwo\\x1b[31m"));
	for (const char *p = out.text; *p; p += str_utf8(p))
		assert_true(str_code(p, str_utf8(p)) >= 0x20 &&
			    (str_code(p, str_utf8(p)) < 0x7f || str_code(p, str_utf8(p)) > 0x9f));
	assert_null(strstr(out.text, "ppp"));
	str_free(&out);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order_and_size),
	    cmocka_unit_test(test_verbose_says_more),
	    cmocka_unit_test(test_rival_and_request),
	    cmocka_unit_test(test_many_processes),
	    cmocka_unit_test(test_colour_is_asked_for),
	    cmocka_unit_test(test_brief),
	    cmocka_unit_test(test_last_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
