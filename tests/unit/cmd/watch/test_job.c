/* A process beside the watcher: its environment, its end, its time limit, and its group. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/watch/job.h"

static struct job job;

static struct job_end wait_for_end(void)
{
	struct job_end end;

	while (!job_ended(&job, &end))
		usleep(5000);
	assert_int_equal(job.pid, 0);
	assert_false(job_ended(&job, &end)); /* once */
	return end;
}

static void its_variables_and_its_status(void **state)
{
	char told[256], name[] = "HOME=none", out[512], none[] = "WHYOOM_ALERT_TEXT=";
	char *variables[] = {name, out, none, NULL};
	struct job_end end;

	snprintf(told, sizeof(told), "%s", scratch("told"));
	snprintf(out, sizeof(out), "WHERE=%s", told);
	assert_int_equal(job_start_command(&job,
			     "echo \"$HOME,$WHYOOM_ALERT_TEXT,$KEPT\" > \"$WHERE\"; cat; exit 7",
			     variables, true, 20),
	    0);
	end = wait_for_end();
	assert_false(end.late);
	assert_int_equal(WEXITSTATUS(end.status), 7);
	assert_string_equal(scratch_read(told), "none,,kept\n");
	(void)state;
}

static void its_group_is_killed_at_its_time(void **state)
{
	char *none[] = {NULL};
	struct job_end end;
	pid_t pid;

	assert_int_equal(job_start_command(&job, "sleep 1000 & sleep 1000", none, true, 0.3), 0);
	pid = job.pid;
	assert_false(job_ended(&job, &end));
	end = wait_for_end();
	assert_true(end.late);
	assert_true(WIFSIGNALED(end.status));
	while (!kill(-pid, 0)) /* its children, too */
		usleep(5000);
	assert_int_equal(errno, ESRCH);
	(void)state;
}

static void killed(void **state)
{
	char *none[] = {NULL};
	struct job_end end;

	job_kill(&job); /* none */
	assert_int_equal(job_start_command(&job, "sleep 1000", none, true, 1000), 0);
	job_kill(&job);
	assert_int_equal(job.pid, 0);
	assert_false(job_ended(&job, &end));
	(void)state;
}

static int other; /* a descriptor that the work must not have */

/* 3: as it should be. */
static int work(void *arg, int result)
{
	volatile double sum = 0;

	if (fcntl(other, F_GETFD) >= 0 || getpgid(0) != getpid() ||
	    getpriority(PRIO_PROCESS, 0) < 10)
		return 4;
	for (int i = 0; i < 20000000; i++)
		sum += i;
	(void)arg;
	return write(result, "done", 4) == 4 ? 3 : 5;
}

static void work_in_a_copy(void **state)
{
	struct job_end end;
	char got[8] = "";
	int told = -1;

	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(job_start_work(&job, work, NULL, &told, true, 60), 0);
	end = wait_for_end();
	assert_true(WIFEXITED(end.status));
	assert_int_equal(WEXITSTATUS(end.status), 3);
	assert_true(end.cpu_seconds > 0);
	assert_int_equal(read(told, got, sizeof(got) - 1), 4);
	assert_string_equal(got, "done");
	assert_int_equal(read(told, got, 1), 0); /* nobody else has it open */
	assert_false(job_take(&told, got, 1)); /* all is taken already */
	assert_int_equal(told, -1);
	close(other);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {scratch_test(its_variables_and_its_status),
	    scratch_test(its_group_is_killed_at_its_time), scratch_test(killed),
	    scratch_test(work_in_a_copy)};

	setenv("KEPT", "kept", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
