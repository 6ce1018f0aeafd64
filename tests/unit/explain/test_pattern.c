/* Macros, blanks, named groups, the start of a match, and patterns that would run away. */
#include "../util/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "explain/pattern.h"
#include "known.h"

static struct pattern *make(const char *text)
{
	struct pattern *p = NULL;
	struct err err = {""};

	if (pattern_new(text, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static bool matches(const char *pattern, const char *text)
{
	struct pattern *p = make(pattern);
	struct pattern_match m;
	bool found = pattern_find(p, text, strlen(text), 0, strlen(text), &m);

	pattern_free(p);
	return found;
}

static void test_macros(void **state)
{
	assert_true(matches("^{SIZE}$", "1.50 GiB"));
	assert_true(matches("^{SIZE}$", "20.00MiB"));
	assert_true(matches("^{SIZE}$", "512 bytes"));
	assert_false(matches("^{SIZE}$", "GiB"));
	assert_true(matches("^{INT}$", "1,234,567"));
	assert_true(matches("^{INT}$", "1234567"));
	assert_false(matches("^{INT}$", "1,23"));
	assert_true(matches("^{NUM}$", "0.92"));
	assert_true(matches("^a{NL}b$", "a\r\n  b"));
	assert_true(matches("^a{NL}b$", "a\\n  b"));
	assert_true(matches("^a\n{LOG}b$", "a\nINFO x: b"));
	assert_true(matches("^\\{SIZE}$", "{SIZE}"));
	(void)state;
}

static void test_blanks(void **state)
{
	assert_true(matches("^a b$", "a b"));
	assert_true(matches("^a b$", "a \t b"));
	assert_true(matches("^a b$", "a\nb"));
	assert_true(matches("^a b$", "a \r\n> b"));
	assert_false(matches("^a b$", "ab"));
	assert_false(matches("^a b$", "a\n\nb"));
	assert_true(matches("^a[ ]b$", "a b"));
	assert_false(matches("^a[ ]b$", "a  b"));
	assert_true(matches("^a ?b$", "ab"));
	(void)state;
}

static void test_groups_and_bounds(void **state)
{
	struct pattern *p = make("(?<first>\\d+)(?:-(?<second>\\d+))?");
	struct pattern_match m;
	const char *text = "xx 12 345-6";

	assert_true(pattern_find(p, text, strlen(text), 0, strlen(text), &m));
	assert_int_equal(m.begin, 3);
	assert_int_equal(m.end, 5);
	assert_int_equal(m.group_count, 1);
	assert_string_equal(m.groups[0].name, "first");
	assert_int_equal(m.groups[0].bytes, 2);
	assert_true(pattern_find(p, text, strlen(text), 6, 6, &m));
	assert_int_equal(m.group_count, 2);
	assert_memory_equal(m.groups[1].text, "6", 1);
	assert_false(pattern_find(p, text, strlen(text), 0, 2, &m));
	pattern_free(p);
	(void)state;
}

static void test_mistakes(void **state)
{
	struct pattern *p = NULL;
	struct err err = {""};

	assert_int_equal(pattern_new("a(b", &p, &err), -EINVAL);
	assert_non_null(strstr(err.text, "parenthes"));
	assert_null(p);
	pattern_free(NULL);
	(void)state;
}

/* Exponential patterns, and those that need much stack, give up soon. */
static void test_runaway(void **state)
{
	static const char *const patterns[] = {"(a+)+$", "(a|aa)+$", "(?:(a)|b)*c", "^(.*?,){25}P"};
	size_t bytes = 200000;
	char *text = malloc(bytes + 1);
	struct timespec from, to;

	memset(text, 'a', bytes);
	text[bytes] = '\0';
	text[bytes - 1] = '!';
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (size_t i = 0; i < 4; i++) {
		struct pattern *p = make(patterns[i]);
		struct pattern_match m;

		assert_false(pattern_find(p, text, bytes, 0, 0, &m));
		pattern_free(p);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_true(to.tv_sec - from.tv_sec < 10);
	free(text);
	(void)state;
}

/* A log compiles only the patterns that it needs, so that no log finds all mistakes. */
static void test_shipped(void **state)
{
	struct knowledge *k = known_shipped();
	const struct knowledge_message *const *messages;
	size_t count = knowledge_messages(k, &messages);

	for (size_t i = 0; i < count; i++) {
		if (messages[i]->claim)
			continue;
		pattern_free(make(messages[i]->pattern));
		if (messages[i]->each)
			pattern_free(make(messages[i]->each));
	}
	assert_true(count > 400);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_macros),
	    cmocka_unit_test(test_blanks),
	    cmocka_unit_test(test_groups_and_bounds),
	    cmocka_unit_test(test_mistakes),
	    cmocka_unit_test(test_runaway),
	    cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
