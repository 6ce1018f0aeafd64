#include "cmd/watch/alert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cmd/watch/job.h"
#include "util/text/note.h"
#include "util/vec.h"
#include "watch/screen.h"

#define POLL_MS 50
#define VARIABLES_MAX 32u

/* What is known of a process. */
struct subject {
	char *path;
	enum alert_state seen; /* at the latest look */
	enum alert_state now; /* that counts */
	enum alert_state told;
	VEC(char *) facts; /* variables of the environment, of the latest look; NULL at the end */
};

struct alerts {
	const char *command;
	bool quiet;
	struct job job;
	VEC(struct subject) subjects;
};

const char *alert_state_name(enum alert_state state)
{
	static const char *const names[] = {[ALERT_OK] = "ok",
	    [ALERT_GROWING] = "growing",
	    [ALERT_AT_RISK] = "at-risk",
	    [ALERT_ENDED] = "ended"};

	return names[state];
}

enum alert_state alert_state_of(const struct watched *w, enum alert_state before)
{
	enum alert_state state = ALERT_OK;
	bool known = false;

	if (!w->running)
		return ALERT_ENDED;
	for (size_t i = 0; i < w->space_count; i++) {
		const struct forecast *f = &w->spaces[i].forecast;

		known = known || f->state != FORECAST_UNKNOWN;
		if (f->state != FORECAST_GROWS)
			continue;
		if (f->alarm)
			return ALERT_AT_RISK;
		state = ALERT_GROWING;
	}
	return known ? state : before;
}

struct alerts *alerts_new(const char *command, bool quiet)
{
	struct alerts *a = calloc(1, sizeof(*a));

	if (a) {
		a->command = command;
		a->quiet = quiet;
	}
	return a;
}

static void forget_facts(struct subject *s)
{
	for (size_t i = 0; i < s->facts.count; i++)
		free(s->facts.items[i]);
	vec_free(&s->facts);
}

static void forget(struct alerts *a, size_t at)
{
	forget_facts(&a->subjects.items[at]);
	free(a->subjects.items[at].path);
	a->subjects.items[at] = a->subjects.items[--a->subjects.count];
}

void alerts_free(struct alerts *a)
{
	if (!a)
		return;
	job_kill(&a->job);
	while (a->subjects.count)
		forget(a, a->subjects.count - 1);
	vec_free(&a->subjects);
	free(a);
}

static struct subject *find(struct alerts *a, const char *path)
{
	for (size_t i = 0; i < a->subjects.count; i++)
		if (!strcmp(a->subjects.items[i].path, path))
			return &a->subjects.items[i];
	return NULL;
}

/* NULL: no memory. */
static struct subject *new_subject(struct alerts *a, const char *path)
{
	char *copy = strdup(path);

	if (!copy || vec_push(&a->subjects, (struct subject){.path = copy})) {
		free(copy);
		return NULL;
	}
	return &a->subjects.items[a->subjects.count - 1];
}

static __attribute__((format(printf, 3, 4))) int add(
    struct subject *s, const char *name, const char *format, ...)
{
	struct str text = {0};
	va_list args;
	char *copy;

	str_printf(&text, "WHYOOM_ALERT_%s=", name);
	va_start(args, format);
	str_vprintf(&text, format, args);
	va_end(args);
	copy = text.failed ? NULL : strdup(str_text(&text));
	str_free(&text);
	if (!copy || vec_push(&s->facts, copy)) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

static int add_seconds(struct subject *s, const char *name, double seconds)
{
	return isinf(seconds) ? 0 : add(s, name, "%.0f", seconds);
}

/* The space that the state is of: the one that is full first, else the host. */
static const struct watched_space *space_of(const struct watched *w)
{
	const struct watched_space *first = &w->spaces[0];

	for (size_t i = 1; i < w->space_count; i++)
		if (w->spaces[i].forecast.state == FORECAST_GROWS &&
		    (first->forecast.state != FORECAST_GROWS ||
			w->spaces[i].forecast.seconds < first->forecast.seconds))
			first = &w->spaces[i];
	return first;
}

static int add_space(struct subject *s, const struct watched_space *space)
{
	int r = add(s, "SPACE", "%s", space->name);

	r = r ? r : add(s, "LIVE_BYTES", "%" PRIu64, space->live_bytes);
	if (!r && space->limit) {
		r = add(s, "LIMIT", "%s", space->limit);
		r = r ? r : add(s, "LIMIT_BYTES", "%" PRIu64, space->limit_bytes);
		r = r ? r : add(s, "HEADROOM_BYTES", "%" PRIu64, space->left);
	}
	if (!r && space->forecast.state == FORECAST_GROWS) {
		r = add(s, "BYTES_PER_SECOND", "%.0f", space->forecast.rate);
		r = r ? r : add_seconds(s, "SECONDS", space->forecast.seconds);
		r = r ? r : add_seconds(s, "SOONEST", space->forecast.soonest);
		r = r ? r : add_seconds(s, "LATEST", space->forecast.latest);
	}
	return r;
}

static int add_function(struct subject *s, const char *function, const char *file, uint32_t line)
{
	int r = add(s, "FUNCTION", "%s", function ? function : "");

	if (!r && file && *file) {
		r = add(s, "FILE", "%s", file);
		r = r ? r : add(s, "LINE", "%" PRIu32, line);
	}
	return r;
}

/* Where a verdict has been made, it knows more than the growth. */
static int add_blame(struct subject *s, const struct watched *w)
{
	const struct watched_cause *c = &w->likely;
	int r = 0;

	if (c->known) {
		r = add(s, "CAUSE", "%s", cause_name(c->cause));
		r = r ? r : add(s, "CONFIDENCE", "%.2f", c->confidence);
	}
	if (!r && c->known && *c->function)
		return add_function(s, c->function, c->file, c->line);
	if (!r && w->listed && w->sites[0].rate > 0)
		r = add_function(s, w->sites[0].function, w->sites[0].file, w->sites[0].line);
	return r;
}

static int add_line(struct subject *s, const struct watched *w)
{
	struct str line = {0};
	int r;

	screen_line(&w, 1, &line);
	r = line.failed
		? -ENOMEM
		: add(s, "TEXT", "%.*s", (int)strcspn(str_text(&line), "\n"), str_text(&line));
	str_free(&line);
	return r;
}

static int gather(struct subject *s, const struct watched *w)
{
	int r;

	forget_facts(s);
	r = add(s, "PID", "%" PRIu32, w->pid);
	r = r ? r : add(s, "COMMAND", "%s", w->command);
	r = r ? r : add(s, "TRACE", "%s", s->path);
	if (!r && *w->model)
		r = add(s, "MODEL", "%s", w->model);
	if (!r && w->space_count)
		r = add_space(s, space_of(w));
	r = r ? r : add_blame(s, w);
	return r ? r : add_line(s, w);
}

int alerts_see(struct alerts *a, const struct watched *w, const char *path)
{
	struct subject *s = find(a, path);
	enum alert_state state;

	if (!w->running) {
		alerts_end(a, path);
		return 0;
	}
	s = s ? s : new_subject(a, path);
	if (!s)
		return -ENOMEM;
	state = alert_state_of(w, s->now);
	if (state == s->seen)
		s->now = state;
	s->seen = state;
	return gather(s, w);
}

void alerts_end(struct alerts *a, const char *path)
{
	struct subject *s = find(a, path);

	if (s)
		s->now = ALERT_ENDED;
}

static int start(struct alerts *a, struct subject *s)
{
	size_t known = s->facts.count;
	int r = add(s, "STATE", "%s", alert_state_name(s->now));

	r = r ? r : add(s, "BEFORE", "%s", alert_state_name(s->told));
	if (r || (r = vec_push(&s->facts, NULL)))
		return r;
	r = job_start_command(&a->job, a->command, s->facts.items, a->quiet, ALERT_SECONDS);
	if (r && r != -ENOMEM)
		note("--on-alert cannot be run: %s", strerror(-r));
	while (s->facts.count > known)
		free(s->facts.items[--s->facts.count]);
	s->told = s->now;
	return r == -ENOMEM ? r : 0;
}

static void say_end(const struct job_end *end)
{
	if (end->late)
		note("--on-alert was killed after %.0f seconds", ALERT_SECONDS);
	else if (WIFEXITED(end->status) && WEXITSTATUS(end->status))
		note("--on-alert ended with status %d", WEXITSTATUS(end->status));
	else if (WIFSIGNALED(end->status))
		note("--on-alert was killed by signal %d", WTERMSIG(end->status));
}

int alerts_serve(struct alerts *a)
{
	struct job_end end;

	if (job_ended(&a->job, &end) && !a->quiet)
		say_end(&end);
	for (size_t i = 0; i < a->subjects.count && !a->job.pid; i++) {
		struct subject *s = &a->subjects.items[i];
		int r = s->now != s->told ? start(a, s) : 0;

		if (r)
			return r;
		if (s->told == ALERT_ENDED)
			forget(a, i--);
	}
	return 0;
}

bool alerts_busy(const struct alerts *a)
{
	for (size_t i = 0; i < a->subjects.count; i++)
		if (a->subjects.items[i].now != a->subjects.items[i].told)
			return true;
	return a->job.pid != 0;
}

void alerts_finish(struct alerts *a, const volatile sig_atomic_t *stopped)
{
	while (!*stopped && alerts_busy(a) && !alerts_serve(a))
		poll(NULL, 0, POLL_MS);
}
