/* Impossible processes: random sizes, levels and addresses. Every verdict names a cause of the
 * table, its numbers add up, and the reports keep their form. */
#include "verdict/judged.h"

#include <math.h>

#include "report/format.h"
#include "util/text/term.h"

#define BLOCKS 40

static uint64_t seed = 20261121;

static uint64_t any_size(void)
{
	switch (dice(&seed, 12)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX - dice(&seed, 3);
	case 2:
		return 1ull << dice(&seed, 64);
	case 3:
		return dice(&seed, GiB);
	case 4:
	case 5:
		return MiB;
	default:
		return 1 + dice(&seed, 100000);
	}
}

static const char *any_info(void)
{
	static const char *const values[] = {"", "0", "-1", "18446744073709551615",
	    "99999999999999999999999", "1e9", "/opt/app/prog", "\033[31m"};

	return values[dice(&seed, 8)];
}

static struct script *any_process(void)
{
	static const char *const keys[] = {
	    "limit.as", "limit.data", "interpreter", "malloc.owner", "python"};
	static const char *const frames[] = {"main;f", "main;f;g", "main@/a/b.py:3;h@/a/c.py:4",
	    "main;f;malloc@/lib/libc.so.6", "\001\033[2Jevil\n;x", ""};
	struct script *s = script_new();
	uint64_t live[BLOCKS] = {0}, maps[BLOCKS] = {0}, sizes[BLOCKS] = {0};
	uint32_t stacks[7] = {0};
	int events = (int)dice(&seed, 400);

	for (int i = 0; i < 6; i++)
		stacks[i] = script_stack(s, frames[i]);
	for (int i = 0; i < 5; i++)
		if (dice(&seed, 3) == 0)
			script_info(s, keys[i], any_info());
	for (int i = 0; i < events; i++) {
		uint32_t stack = stacks[dice(&seed, 7)];
		uint64_t slot = dice(&seed, BLOCKS);

		script_step(s, dice(&seed, 50) ? dice(&seed, 5000) : dice(&seed, 1ull << 50));
		switch (dice(&seed, 12)) {
		case 0:
			script_failed(s, stack, any_size());
			break;
		case 1:
			script_level(s, 1 + (uint32_t)dice(&seed, 140), any_size());
			break;
		case 2:
			script_set(s, 1 + (uint32_t)dice(&seed, 20), any_size());
			script_sample(s);
			break;
		case 3:
			sizes[slot] = any_size();
			maps[slot] = dice(&seed, 1ull << 47) & ~4095ull;
			script_map_at(
			    s, stack, maps[slot], sizes[slot], (uint32_t)dice(&seed, 256));
			break;
		case 4:
			script_unmap(s, maps[slot], dice(&seed, 3) ? sizes[slot] : any_size());
			if (dice(&seed, 4) == 0)
				script_ununmap(s, maps[slot], sizes[slot]);
			break;
		case 5:
			if (live[slot])
				live[slot] = script_realloc(s, live[slot], stack, any_size());
			break;
		case 6:
		case 7:
			script_release(s, live[slot]); /* sometimes zero */
			live[slot] = 0;
			break;
		default:
			if (!live[slot])
				live[slot] = script_alloc(s, stack, any_size());
		}
	}
	if (dice(&seed, 3) == 0)
		script_killed(s, 1 + (uint32_t)dice(&seed, 20));
	else if (dice(&seed, 2))
		script_exit(s, (uint32_t)dice(&seed, 300));
	script_facts(s)->dropped_total = dice(&seed, 5) ? 0 : any_size();
	return s;
}

static void any_outside(struct supervised *out)
{
	memset(out, 0, sizeof(*out));
	out->ended = dice(&seed, 2);
	out->how = (uint32_t)dice(&seed, 5);
	out->code = dice(&seed, 2) ? 9 : (uint32_t)dice(&seed, 256);
	out->ended_ns = any_size();
	for (int i = 0; i < 20; i++) {
		levels_set(&out->first, (uint32_t)dice(&seed, 140), any_size(), any_size());
		levels_set(&out->last, (uint32_t)dice(&seed, 140), any_size(), any_size());
		levels_set(&out->highest, (uint32_t)dice(&seed, 140), any_size(), any_size());
	}
}

static void check_verdict(const struct verdict_result *r)
{
	const struct verdict *v = &r->verdict;

	assert_true(v->cause < CAUSE_COUNT);
	assert_true(v->confidence >= 0 && v->confidence <= 1);
	assert_true(v->summary && *v->summary);
	assert_true(v->runner_up < CAUSE_COUNT);
	assert_true(v->evidence_count <= EVIDENCE_MAX && v->fix_count <= FIXES_MAX);
	for (size_t i = 0; i < v->evidence_count; i++)
		assert_true(isfinite(v->evidence[i].value));
	assert_true(r->failure.kind != FAILURE_NONE || v->cause == CAUSE_HEALTHY ||
		    v->cause == CAUSE_UNKNOWN);
	assert_true(v->cause != CAUSE_HEALTHY || r->failure.kind == FAILURE_NONE);
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct candidate *c = &r->ranking.list[i];

		if (!(c->confidence >= 0 && c->confidence <= 1))
			fail_msg("%s: confidence %g, strength %g, share %g, further %g",
			    c->finding.cause, c->confidence, c->finding.strength, c->share,
			    c->further);
		assert_true(isfinite(c->score) && isfinite(c->share) && isfinite(c->further));
		assert_true(c->finding.claim_count <= CLAIMS_MAX);
		assert_true(i == 0 || c[-1].score >= c->score); /* best first */
	}
}

/* Lines of at most the width, each without control characters. */
static void check_lines(const struct str *text, unsigned width, unsigned lines_most)
{
	const char *at = str_text(text), *end;
	unsigned lines = 0;

	assert_false(text->failed);
	for (; (end = strchr(at, '\n')); at = end + 1, lines++) {
		char line[1024];
		size_t n = (size_t)(end - at);

		assert_true(n < sizeof(line));
		memcpy(line, at, n);
		line[n] = '\0';
		for (size_t i = 0; i < n; i++)
			assert_true((unsigned char)line[i] >= ' ' && line[i] != 127);
		if (term_columns(line) > width)
			fail_msg("%u columns of %u: %s", term_columns(line), width, line);
	}
	assert_string_equal(at, "");
	assert_true(lines > 0 && lines <= lines_most);
}

static void test_any(void **state)
{
	static struct supervised outside;
	unsigned causes = 0, failures = 0;

	for (int i = 0; i < 1500; i++) {
		struct script *s = any_process();
		struct report_style style = {.columns = 72 + (unsigned)dice(&seed, 90),
		    .verbose = dice(&seed, 2),
		    .unicode = dice(&seed, 2)};
		struct str text = {0};
		struct verdict_result r;
		struct err err = {""};

		if (dice(&seed, 2))
			any_outside(&outside);
		else
			memset(&outside, 0, sizeof(outside));
		/* Sums of such sizes wrap, so model_check() is not called. */
		assert_int_equal(
		    verdict_of_feed(script_feed(s), dice(&seed, 2) ? &outside : NULL, &r, &err), 0);
		assert_true(ledger_adds_up(&r.ledger));
		check_verdict(&r);
		report_text(&(struct report_view){.result = &r}, &style, &text);
		/* With verbose, exact numbers and whole stacks may be wider. */
		check_lines(&text, style.verbose ? 1000 : style.columns, 100000);
		str_clear(&text);
		style.verbose = false;
		report_brief(&r, "whyoom.1", &style, &text);
		check_lines(&text, style.columns, 10);
		str_clear(&text);
		report_json(&(struct report_view){.result = &r}, NULL, &text);
		assert_false(text.failed);
		assert_null(strstr(str_text(&text), "nan"));
		assert_null(strchr(str_text(&text), '\033'));
		causes += r.verdict.cause != CAUSE_UNKNOWN;
		failures += r.failure.kind != FAILURE_NONE;
		str_free(&text);
		verdict_fini(&r);
		script_free(s);
	}
	/* Some of it made sense. */
	assert_in_range(failures, 300, 1300);
	assert_true(causes > 50);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_any)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
