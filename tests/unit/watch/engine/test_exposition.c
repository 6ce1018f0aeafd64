/* Pages of metrics, right and wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "watch/engine/exposition.h"

static struct exposition begin(const char *page)
{
	return (struct exposition){.rest = page, .left = strlen(page)};
}

static void assert_name(const struct exposition_sample *s, const char *name)
{
	assert_int_equal(s->name.length, strlen(name));
	assert_memory_equal(s->name.at, name, s->name.length);
}

static void test_samples(void **state)
{
	struct exposition e =
	    begin("# HELP a is\n# TYPE a gauge\n"
		  "a 1\n"
		  "\n"
		  "vllm:b{x=\"1\",y=\"a \\\"b\\\\ \\n}\",} 2.5e3 1700000000000\r\n"
		  "  c { z = \"\" }\t-Inf\n"
		  "d NaN # {trace_id=\"7\"} 1\n"
		  "e{} +Inf");
	struct exposition_sample s;
	char value[20];

	assert_true(exposition_next(&e, &s));
	assert_name(&s, "a");
	assert_true(s.value == 1);
	assert_false(exposition_label(&s, "x", value, sizeof(value)));
	assert_true(exposition_next(&e, &s));
	assert_name(&s, "vllm:b");
	assert_true(s.value == 2500);
	assert_true(exposition_label(&s, "x", value, sizeof(value)));
	assert_string_equal(value, "1");
	assert_true(exposition_label(&s, "y", value, sizeof(value)));
	assert_string_equal(value, "a \"b\\ \n}");
	assert_true(exposition_label(&s, "y", value, 4));
	assert_string_equal(value, "a \"");
	assert_false(exposition_label(&s, "z", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_true(exposition_next(&e, &s));
	assert_name(&s, "c");
	assert_true(isinf(s.value) && s.value < 0);
	assert_true(exposition_label(&s, "z", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_true(exposition_next(&e, &s));
	assert_name(&s, "d");
	assert_true(isnan(s.value));
	assert_true(exposition_next(&e, &s));
	assert_name(&s, "e");
	assert_true(isinf(s.value));
	assert_false(exposition_next(&e, &s));
	assert_int_equal(e.samples, 5);
	assert_int_equal(e.skipped, 0);
	(void)state;
}

static void test_other_lines_are_skipped(void **state)
{
	struct exposition e =
	    begin("<html>\n"
		  "{\"error\": 501}\n"
		  "a\n"
		  "a{ 1\n"
		  "a{x} 1\n"
		  "a{x=1} 1\n"
		  "a{x=\"1} 1\n"
		  "a{x=\"1\\\"} 1\n"
		  "a{x=\"1\"\n"
		  "a one\n"
		  "a 1x\n"
		  "9a 1\n"
		  "a 00000000000000000000000000000000000000000000000000000000000000001\n"
		  "good 7\n");
	struct exposition_sample s;

	assert_true(exposition_next(&e, &s));
	assert_name(&s, "good");
	assert_true(s.value == 7);
	assert_false(exposition_next(&e, &s));
	assert_int_equal(e.skipped, 13);
	(void)state;
}

/* Damaged pages: each sample lies within the page, and the end is reached. The page is in a block
 * of its exact size, so that sanitizers and valgrind see a step beyond. */
static void test_damage(void **state)
{
	static const char page[] =
	    "# TYPE a counter\na{x=\"1\\n\",y=\"2\"} 3 4\nb 5\nc{z=\"\\\"\"} 6\n";
	static const char bytes[] = "\"\\{}=,# \n\r\t\0a:0\x80";
	unsigned seed = 7;

	for (unsigned round = 0; round < 20000; round++) {
		size_t length = (size_t)rand_r(&seed) % sizeof(page);
		char *copy = malloc(length + 1), value[8];
		struct exposition e = {.rest = copy, .left = length};
		struct exposition_sample s;
		unsigned samples = 0;

		copy = realloc(copy, length ? length : 1);
		e.rest = copy;
		memcpy(copy, page, length);
		for (int i = rand_r(&seed) % 4; i > 0 && length; i--)
			copy[(size_t)rand_r(&seed) % length] =
			    bytes[(size_t)rand_r(&seed) % sizeof(bytes)];
		while (exposition_next(&e, &s)) {
			samples++;
			assert_true(s.name.at >= copy && s.name.length &&
				    s.name.at + s.name.length <= copy + length);
			assert_true(
			    s.labels.at >= copy && s.labels.at + s.labels.length <= copy + length);
			exposition_label(&s, "y", value, sizeof(value));
			assert_true(strlen(value) < sizeof(value));
		}
		assert_int_equal(e.left, 0);
		assert_int_equal(samples, e.samples);
		free(copy);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_other_lines_are_skipped),
	    cmocka_unit_test(test_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
