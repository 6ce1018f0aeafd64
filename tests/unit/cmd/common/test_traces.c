/* Several TRACE arguments are one set. */
#include <errno.h>

#include "../recorded.h"
#include "cmd/common/traces.h"

static void several_are_one(void **state)
{
	struct traces t;
	struct err err = {""};

	recorded_process("a/1.0.whyoom", 1, 3, false);
	recorded_process("a/2.0.whyoom", 2, 3, false);
	recorded_process("b/3.0.whyoom", 3, 3, false);
	recorded_process("4.0.whyoom", 4, 3, false);
	recorded_supervisor("b/run.whyoom");
	assert_int_equal(traces_open(&t,
			     (char *[]){(char *)scratch("a"), (char *)scratch("b"),
				 (char *)scratch("4.0.whyoom")},
			     3, &err),
	    0);
	assert_int_equal(t.set.count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(trace_facts(t.set.images[i])->pid, i + 1);
	assert_non_null(t.set.supervisor);
	assert_string_equal(t.set.path, scratch("a"));
	traces_close(&t);
	traces_close(&t); /* and once more */
}

static void one_that_cannot_be_read(void **state)
{
	struct traces t;
	struct err err = {""};

	recorded_process("a/1.0.whyoom", 1, 3, false);
	scratch_dir("empty");
	assert_int_equal(
	    traces_open(&t, (char *[]){(char *)scratch("a"), (char *)scratch("none")}, 2, &err),
	    -ENOENT);
	assert_non_null(strstr(err.text, scratch("none")));
	assert_true(traces_open(&t, (char *[]){(char *)scratch("a"), (char *)scratch("empty")}, 2,
			&err) < 0);
	assert_non_null(strstr(err.text, scratch("empty")));
}

/* A supervisor alone is no process, and no error. */
static void only_a_supervisor(void **state)
{
	struct traces t;
	struct err err = {""};

	recorded_supervisor("a/run.whyoom");
	assert_int_equal(traces_open(&t, (char *[]){(char *)scratch("a")}, 1, &err), 0);
	assert_int_equal(t.set.count, 0);
	assert_non_null(t.set.supervisor);
	traces_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(several_are_one),
	    scratch_test(one_that_cannot_be_read),
	    scratch_test(only_a_supervisor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
