#include "util/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "util/clock_ns.h"
#include "util/text/fmt.h"

#define SECOND 1000000000ull
#define LOG_SECONDS 10 /* between two lines where stderr is no terminal */

static struct {
	const char *what;
	uint64_t total, done, begin_ns, shown_ns;
	bool shown, terminal;
	unsigned within; /* passes begun within this one, which goes on */
} now;
/* Of the command: start of the count, and its latest line in a log. */
static uint64_t command_ns, logged_ns;

void progress_begin(const char *what, uint64_t total)
{
	if (now.what) {
		now.within++;
		return;
	}
	now.total = total;
	now.done = 0;
	now.begin_ns = clock_ns(CLOCK_MONOTONIC);
	now.shown_ns = 0;
	now.terminal = isatty(STDERR_FILENO);
	if (!command_ns)
		command_ns = logged_ns = now.begin_ns;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	now.what = what; /* set last: log_tick() reads it */
}

const char *progress_line(
    char *line, unsigned room, const char *what, uint64_t done, uint64_t total, uint64_t ns)
{
	struct fmt left;

	if (!total || done > total)
		snprintf(line, room, "%s ...", what);
	else if (done > total / 100 && done < total)
		snprintf(line, room, "%s: %u %%, %s left", what,
		    (unsigned)(100.0 * (double)done / (double)total),
		    fmt_duration(
			&left, (uint64_t)((double)ns * (double)(total - done) / (double)done)));
	else
		snprintf(line, room, "%s: %u %%", what,
		    (unsigned)(100.0 * (double)done / (double)total));
	return line;
}

/* Use only calls that a handler may make: no memory, no floating-point output. */
static void log_line(uint64_t at)
{
	const char *what = now.what;
	uint64_t done = now.done, total = now.total, seconds = (at - command_ns) / SECOND;
	char line[300];
	int n;

	if (!what)
		n = snprintf(
		    line, sizeof(line), "whyoom: at work, %u s so far\n", (unsigned)seconds);
	else if (total && done <= total)
		n = snprintf(line, sizeof(line), "whyoom: %.200s: %u %%, %u s so far\n", what,
		    (unsigned)(100.0 * (double)done / (double)total), (unsigned)seconds);
	else
		n = snprintf(
		    line, sizeof(line), "whyoom: %.200s, %u s so far\n", what, (unsigned)seconds);
	logged_ns = at;
	/* A log that cannot be written is no reason to fail. */
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

static void log_tick(int signal_number)
{
	int error = errno;
	uint64_t at = clock_ns(CLOCK_MONOTONIC);

	(void)signal_number;
	if (at - logged_ns >= LOG_SECONDS * SECOND)
		log_line(at);
	errno = error;
}

void progress_watch(void)
{
	struct sigaction action = {.sa_handler = log_tick, .sa_flags = SA_RESTART};
	const struct itimerval each = {{LOG_SECONDS, 0}, {LOG_SECONDS, 0}};

	if (isatty(STDERR_FILENO))
		return;
	command_ns = logged_ns = clock_ns(CLOCK_MONOTONIC);
	if (!sigaction(SIGALRM, &action, NULL))
		setitimer(ITIMER_REAL, &each, NULL);
}

void progress_unwatch(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
}

void progress_step(uint64_t done)
{
	char line[200];
	uint64_t at;

	if (!now.what || now.within)
		return;
	now.done = done;
	at = clock_ns(CLOCK_MONOTONIC);
	if (!now.terminal) {
		if (at - logged_ns >= LOG_SECONDS * SECOND)
			log_line(at);
		return;
	}
	if (at - now.begin_ns < SECOND || at - now.shown_ns < SECOND / 5)
		return;
	now.shown_ns = at;
	now.shown = true;
	fprintf(stderr, "\r\033[K%s",
	    progress_line(line, sizeof(line), now.what, done, now.total, at - now.begin_ns));
	fflush(stderr);
}

double progress_share(void)
{
	if (!now.what || !now.total || now.done > now.total)
		return 0;
	return (double)now.done / (double)now.total;
}

void progress_clear(void)
{
	if (now.shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
		now.shown = false;
	}
}

void progress_end(void)
{
	if (now.within) {
		now.within--;
		return;
	}
	progress_clear();
	now.what = NULL;
}
