/* Facts of a process that cannot be made on every machine are refused in words, too. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/refusals.h"

static struct target process(void)
{
	return (struct target){
	    .pid = 4711, .leader = 4711, .state = 'S', .name = "server", .uid = geteuid()};
}

static void refused(struct target t, int code, const char *words)
{
	struct err err = {""};

	assert_int_equal(refusals_check(&t, REFUSALS_ATTACH, &err), code);
	assert_non_null(strstr(err.text, words));
	target_fini(&t);
}

static void test_states(void **state)
{
	struct target t = process();

	(void)state;
	t.kernel = true;
	refused(t, -EINVAL, "thread of the kernel");
	t = process();
	t.seccomp = 1;
	refused(t, -EPERM, "strict mode");
	t = process();
	t.leader = 4700;
	refused(t, -EINVAL, "thread of process 4700");
	t = process();
	t.tracer = 1;
	refused(t, -EBUSY, "traced by process 1");
	t = process();
	t.state = 'T';
	refused(t, -EBUSY, "kill -CONT 4711");
	t = process();
	t.state = 'Z';
	refused(t, -ESRCH, "has ended");
	t = process();
	t.pid = t.leader = getpid();
	refused(t, -EINVAL, "this command itself");
}

static void test_warning(void **state)
{
	struct target t = process();

	(void)state;
	assert_string_equal(refusals_warning(&t), "");
	t.seccomp = 2;
	assert_non_null(strstr(refusals_warning(&t), "seccomp filter"));
}

static void test_trace(void **state)
{
	struct target t = process();
	struct err err;

	(void)state;
	assert_int_equal(refusals_trace(&t, -ESRCH, &err), -ESRCH);
	assert_non_null(strstr(err.text, "has ended"));
	assert_int_equal(refusals_trace(&t, -EPERM, &err), -EPERM);
	assert_non_null(strstr(err.text, "may not be traced"));
	assert_non_null(strstr(err.text, "--cap-add=SYS_PTRACE"));
	assert_int_equal(refusals_trace(&t, -EIO, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_warning),
	    cmocka_unit_test(test_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
