/* test_environment.c - LD_PRELOAD for a program that is about to be executed, and how the next
 * recorded process undoes the change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "exec/environment.h"

#define US "/opt/whyoom/libwhyoom.so"
#define GPU "/opt/whyoom/libwhyoom-simgpu.so"
#define LENIENT "ASAN_OPTIONS=::verify_asan_link_order=0"

/* The changed environment as one text; the caller's stays unchanged. */
static const char *change(
    enum environment_change how, const char *runtime, const char *const *before)
{
	static char text[1000];
	char *copy[10], *bytes;
	size_t n = 0, size;
	char **after;

	for (; before[n]; n++)
		copy[n] = strdup(before[n]);
	copy[n] = NULL;
	size = environment_bytes(copy, runtime);
	text[0] = 0;
	if (size) {
		bytes = malloc(size + 1);
		bytes[size] = '#';
		after = environment_make(copy, how, runtime, bytes);
		for (; *after; after++) {
			strcat(text, *after);
			strcat(text, after[1] ? "|" : "");
		}
		assert_int_equal(bytes[size], '#');
		free(bytes);
	}
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(copy[i], before[i]);
		free(copy[i]);
	}
	assert_null(copy[n]);
	return text;
}

#define CHANGE(how, runtime, ...) change(how, runtime, (const char *const[]){__VA_ARGS__, NULL})

static void test_without(void **state)
{
	static const char *const lists[][2] = {
	    {US, ""},
	    {US ":" GPU, ""},
	    {US ":/lib/a.so", "/lib/a.so"},
	    {"/lib/a.so:" US, "/lib/a.so"},
	    {"/lib/a.so " US " b.so:c.so", "/lib/a.so b.so:c.so"},
	    {US ":" GPU ":/lib/a.so", "/lib/a.so"},
	    {"a.so::" US ":b.so", "a.so::b.so"},
	    {"libwhyoom.so a.so", "a.so"},
	    {"/x/libwhyoom.so.d/a.so:" US, "/x/libwhyoom.so.d/a.so"},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		char line[200] = "LD_PRELOAD=", want[200] = "A=1|";

		strcat(line, lists[i][0]);
		strcat(want, lists[i][1][0] ? "LD_PRELOAD=" : "");
		strcat(want, lists[i][1]);
		strcat(want, lists[i][1][0] ? "|B=2" : "B=2");
		assert_string_equal(CHANGE(ENVIRONMENT_WITHOUT, "", "A=1", line, "B=2"), want);
	}
}

static void test_none(void **state)
{
	char *empty[] = {NULL}, *others[] = {"LD_PRELOAD=/lib/a.so", "XLD_PRELOAD=" US, NULL};

	assert_int_equal(environment_bytes(NULL, ""), 0);
	assert_int_equal(environment_bytes(empty, ""), 0);
	assert_int_equal(environment_bytes(others, ""), 0);
}

static void test_twice(void **state)
{
	assert_string_equal(
	    CHANGE(ENVIRONMENT_TWICE, "", "A=1", "LD_PRELOAD=" US ":/lib/a.so", "B=2"),
	    "A=1|LD_PRELOAD=/lib/a.so|LD_PRELOAD=" US ":/lib/a.so|B=2|" LENIENT);
	assert_string_equal(CHANGE(ENVIRONMENT_TWICE, "", "LD_PRELOAD=" US),
	    "LD_PRELOAD=|LD_PRELOAD=" US "|" LENIENT);
}

static void test_lenient(void **state)
{
	assert_string_equal(CHANGE(ENVIRONMENT_LENIENT, "", "ASAN_OPTIONS=a=b", "LD_PRELOAD=" US),
	    "ASAN_OPTIONS=a=b::verify_asan_link_order=0|LD_PRELOAD=" US);
	assert_string_equal(CHANGE(ENVIRONMENT_LENIENT, "", "LD_PRELOAD=" US,
				"ASAN_OPTIONS=verify_asan_link_order=1"),
	    "LD_PRELOAD=" US "|ASAN_OPTIONS=verify_asan_link_order=1");
	assert_string_equal(
	    CHANGE(ENVIRONMENT_LENIENT, "", "LD_PRELOAD=" US), "LD_PRELOAD=" US "|" LENIENT);
}

static void test_behind(void **state)
{
	assert_string_equal(CHANGE(ENVIRONMENT_BEHIND, "libasan.so.8", "LD_PRELOAD=" US),
	    "LD_PRELOAD=libasan.so.8::" US);
	assert_string_equal(
	    CHANGE(ENVIRONMENT_BEHIND, "libasan.so.8", "LD_PRELOAD=" US ":/x/libtsan.so.2:a"),
	    "LD_PRELOAD=/x/libtsan.so.2:a:" US);
	assert_string_equal(CHANGE(ENVIRONMENT_BEHIND, "libasan.so.8", "LD_PRELOAD=" US ":a.so"),
	    "LD_PRELOAD=a.so");
}

static void test_library(void **state)
{
	char *environment[] = {"A=1", "LD_PRELOAD=a.so:" US, NULL}, path[64], small[8];

	assert_true(environment_library(environment, path, sizeof(path)));
	assert_string_equal(path, US);
	assert_false(environment_library(environment, small, sizeof(small)));
	environment[1] = NULL;
	assert_false(environment_library(environment, path, sizeof(path)));
}

static const char *settled(bool sanitized, const char *const *before)
{
	static char text[1000];
	char *copy[10], **line = copy;
	size_t n = 0;

	for (; before[n]; n++)
		copy[n] = strdup(before[n]);
	copy[n] = NULL;
	environment_settle(copy, sanitized);
	for (text[0] = 0; *line; line++) {
		strcat(text, *line);
		strcat(text, line[1] ? "|" : "");
	}
	return text;
}

#define SETTLED(sanitized, ...) settled(sanitized, (const char *const[]){__VA_ARGS__, NULL})

static void test_settled(void **state)
{
	assert_string_equal(SETTLED(false, "A=1", "LD_PRELOAD=/lib/a.so",
				"LD_PRELOAD=" US ":/lib/a.so", "B=2", LENIENT),
	    "A=1|LD_PRELOAD=" US ":/lib/a.so|B=2");
	assert_string_equal(
	    SETTLED(true, LENIENT, "LD_PRELOAD=libasan.so.8::" US), LENIENT "|LD_PRELOAD=" US);
	assert_string_equal(
	    SETTLED(false, "ASAN_OPTIONS=a=b::verify_asan_link_order=0", "LD_PRELOAD=" US),
	    "ASAN_OPTIONS=a=b|LD_PRELOAD=" US);
	/* a user's own option, and an environment without us */
	assert_string_equal(SETTLED(false, "ASAN_OPTIONS=verify_asan_link_order=0",
				"LD_PRELOAD=/x/libasan.so.8:" US),
	    "ASAN_OPTIONS=verify_asan_link_order=0|LD_PRELOAD=/x/libasan.so.8:" US);
	assert_string_equal(SETTLED(false, "LD_PRELOAD=a.so", LENIENT, "LD_PRELOAD=b.so"),
	    "LD_PRELOAD=a.so|" LENIENT "|LD_PRELOAD=b.so");
	assert_string_equal(SETTLED(false, "LD_PRELOAD=a.so::" US), "LD_PRELOAD=a.so::" US);
	environment_settle(NULL, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without),
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_twice),
	    cmocka_unit_test(test_lenient),
	    cmocka_unit_test(test_behind),
	    cmocka_unit_test(test_library),
	    cmocka_unit_test(test_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
