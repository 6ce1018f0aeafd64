/* test_unrecorded.c - the table of unrecorded programs: equal ones share an entry, starts
 * without an entry are counted, failed starts are taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "trace/unrecorded.h"

static struct trace_header h, other;

static const struct trace_unrecorded *find(const struct trace_header *in, const char *path)
{
	for (int i = 0; i < TRACE_UNRECORDED_PLACES; i++)
		if (in->unrecorded_program[i].why && !strcmp(in->unrecorded_program[i].path, path))
			return &in->unrecorded_program[i];
	return NULL;
}

static int begin(void **state)
{
	memset(&h, 0, sizeof(h));
	memset(&other, 0, sizeof(other));
	return 0;
}

static void test_same(void **state)
{
	unrecorded_add(&h, TRACE_UNRECORDED_MUSL, "/bin/a");
	unrecorded_add(&h, TRACE_UNRECORDED_STATIC, "/bin/b");
	unrecorded_add(&h, TRACE_UNRECORDED_MUSL, "/bin/a");
	unrecorded_add(&h, TRACE_UNRECORDED_STATIC, "/bin/a"); /* another program by now */
	assert_int_equal(h.unrecorded, 4);
	assert_int_equal(h.unrecorded_program[0].count, 2);
	assert_int_equal(find(&h, "/bin/b")->count, 1);
	assert_int_equal(h.unrecorded_program[2].why, TRACE_UNRECORDED_STATIC);
	assert_int_equal(h.unrecorded_program[3].why, 0);
}

static void test_taken_back(void **state)
{
	unrecorded_add(&h, TRACE_UNRECORDED_MUSL, "/bin/a");
	unrecorded_take_back(&h, TRACE_UNRECORDED_MUSL, "/bin/a");
	assert_int_equal(h.unrecorded, 0);
	assert_int_equal(find(&h, "/bin/a")->count, 0);
	unrecorded_pass_on(&h, &other);
	assert_null(find(&other, "/bin/a"));
}

static void test_long(void **state)
{
	const size_t room = sizeof(h.unrecorded_program[0].path) - 1;
	char path[400];

	memset(path, 'x', sizeof(path));
	memcpy(path + sizeof(path) - 5, "/end", 5);
	unrecorded_add(&h, TRACE_UNRECORDED_MUSL, path);
	unrecorded_add(&h, TRACE_UNRECORDED_MUSL, path);
	assert_int_equal(h.unrecorded_program[0].count, 2);
	assert_int_equal(strlen(h.unrecorded_program[0].path), room);
	assert_string_equal(h.unrecorded_program[0].path + room - 4, "/end");
}

static void test_full(void **state)
{
	char path[40];

	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "/bin/%d", i % 20);
		unrecorded_add(&h, TRACE_UNRECORDED_SETUID, path);
	}
	assert_int_equal(h.unrecorded, 100);
	assert_int_equal(find(&h, "/bin/15")->count, 5);
	assert_null(find(&h, "/bin/16"));
	unrecorded_add(&other, TRACE_UNRECORDED_SETUID, "/bin/15");
	unrecorded_pass_on(&h, &other);
	assert_int_equal(other.unrecorded, 101);
	assert_int_equal(find(&other, "/bin/15")->count, 6);
}

/* An incomplete entry, and one without a terminator. */
static void test_damaged(void **state)
{
	h.unrecorded = 3;
	h.unrecorded_program[0] = (struct trace_unrecorded){TRACE_UNRECORDED_TAKEN, 1, "x"};
	h.unrecorded_program[1] = (struct trace_unrecorded){TRACE_UNRECORDED_MUSL, 1, ""};
	memset(h.unrecorded_program[1].path, 'y', sizeof(h.unrecorded_program[1].path));
	unrecorded_pass_on(&h, &other);
	assert_int_equal(other.unrecorded, 3);
	assert_int_equal(other.unrecorded_program[0].why, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_same, begin),
	    cmocka_unit_test_setup(test_taken_back, begin),
	    cmocka_unit_test_setup(test_long, begin),
	    cmocka_unit_test_setup(test_full, begin),
	    cmocka_unit_test_setup(test_damaged, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
