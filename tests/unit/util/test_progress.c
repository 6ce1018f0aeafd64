#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "util/progress.h"

static void says_how_far_and_how_long(void **state)
{
	char line[200];

	assert_string_equal(progress_line(line, sizeof(line), "reading x", 25, 100, 2000000000),
	    "reading x: 25 %, 6.00 s left");
	assert_string_equal(progress_line(line, sizeof(line), "x", 0, 100, 2000000000), "x: 0 %");
	assert_string_equal(progress_line(line, sizeof(line), "x", 100, 100, 1), "x: 100 %");
	assert_string_equal(progress_line(line, sizeof(line), "x", 5, 0, 1), "x ...");
	assert_string_equal(progress_line(line, sizeof(line), "x", 101, 100, 1), "x ...");
	assert_string_equal(progress_line(line, 6, "reading", 1, 100, 1), "readi");
}

/* Long tasks run side by side, each in a process of its own whose stderr is a file. */
struct work {
	void (*run)(void);
	pid_t pid;
	int fd;
};

static void start(struct work *w)
{
	char path[] = "/tmp/whyoom-progress-XXXXXX";

	w->fd = mkstemp(path);
	assert_true(w->fd >= 0);
	unlink(path);
	w->pid = fork();
	if (w->pid == 0) {
		dup2(w->fd, 2);
		w->run();
		_exit(0);
	}
}

static const char *log_of(const struct work *w)
{
	static char text[4096];
	int status;
	ssize_t n;

	assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
	assert_int_equal(status, 0);
	n = pread(w->fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(w->fd);
	return text;
}

static void work_a_second(void)
{
	progress_begin("work", 2);
	usleep(1100000);
	progress_step(1);
	progress_end();
}

static void work_two_phases(void)
{
	progress_watch();
	progress_begin("reading", 200);
	for (int i = 0; i < 60; i++) {
		usleep(100000);
		progress_step(50);
	}
	progress_end();
	progress_begin("judging", 0);
	progress_begin("a part of it", 100);
	/* Progress is unknown. */
	for (int i = 0; i < 60; i++)
		usleep(100000);
	progress_end();
	progress_end();
	progress_begin("the rest", 100);
	progress_step(99);
	progress_end();
}

static void work_steps(void)
{
	progress_begin("reading", 200);
	for (int i = 0; i < 105; i++) {
		usleep(100000);
		progress_step(50);
	}
	progress_end();
}

static struct work works[] = {
    {.run = work_a_second}, {.run = work_two_phases}, {.run = work_steps}};

/* Work of a second has no line if stderr is no terminal. */
static void silent_when_short(void **state)
{
	assert_string_equal(log_of(&works[0]), "");
}

/* A line each 10 s, whatever the phases: in a phase that reports nothing, too. */
static void a_line_each_ten_seconds(void **state)
{
	const char *text = log_of(&works[1]);

	assert_int_equal(strncmp(text, "whyoom: judging, 1", 18), 0);
	assert_string_equal(strchr(text, '\n'), "\n");
}

/* Without the signal, if the task reports its progress. */
static void a_line_by_steps(void **state)
{
	assert_string_equal(log_of(&works[2]), "whyoom: reading: 25 %, 10 s so far\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(says_how_far_and_how_long),
	    cmocka_unit_test(silent_when_short),
	    cmocka_unit_test(a_line_each_ten_seconds),
	    cmocka_unit_test(a_line_by_steps),
	};
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		start(&works[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
