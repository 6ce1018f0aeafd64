#include "util/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "util/fmt.h"

#define SECOND 1000000000ull

static struct {
	const char *what;
	uint64_t total, done, begin_ns, shown_ns;
	bool shown, terminal;
	unsigned within; /* others' that began meanwhile: this one goes on */
} now;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

void progress_begin(const char *what, uint64_t total)
{
	if (now.what) {
		now.within++;
		return;
	}
	now.what = what;
	now.total = total;
	now.done = 0;
	now.begin_ns = clock_ns();
	now.shown_ns = 0;
	now.terminal = isatty(STDERR_FILENO);
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

void progress_step(uint64_t done)
{
	char line[200];
	uint64_t at;

	if (!now.what || now.within)
		return;
	now.done = done;
	if (!now.terminal)
		return;
	at = clock_ns();
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
