/* pages.c - see pages.h. */
#include "watch/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watch/engine/engine_words.h"
#include "watch/profile.h"
#include "watch/screen.h"

#define WIDTH 100u

static void fail(struct http_answer *out, unsigned status, const char *why)
{
	out->status = status;
	str_printf(&out->text, "%s\n", why);
}

static void answer_metrics(const struct pages *p, struct http_answer *out)
{
	size_t count;
	const struct engine *engines = engines_list(p->engines, &count);

	out->type = METRICS_CONTENT_TYPE;
	metrics_write(p->states, p->count, p->labels, p->label_count, &out->text);
	engine_metrics(engines, count, p->labels, p->label_count, &out->text);
	metrics_write_own(p->own, &out->text);
}

static void answer_list(const struct pages *p, struct http_answer *out)
{
	screen_write(p->states, p->count, WIDTH, &out->text);
	engine_lines(p->engines, &out->text);
	str_puts(&out->text,
	    "\n/metrics               for Prometheus\n"
	    "/debug/pprof/heap      what lives, for go tool pprof, Parca, Pyroscope\n"
	    "/debug/pprof/allocs    the same, what was allocated first\n"
	    "  ?pid=PID             of that process, else of the one that holds most\n"
	    "  ?space=SPACE         host, cuda:0, torch:0, ...; else all memory once\n");
}

static uint64_t held(const struct watched *w)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < w->space_count; i++)
		bytes += w->spaces[i].live_bytes;
	return bytes;
}

/* Find the process of a pid; of NULL the one that holds most. `count`: there is none. */
static size_t find(const struct pages *p, const char *pid)
{
	size_t found = p->count;
	char text[16];

	for (size_t i = 0; i < p->count; i++) {
		snprintf(text, sizeof(text), "%" PRIu32, p->states[i]->pid);
		if (pid ? !strcmp(pid, text)
			: found == p->count || held(p->states[i]) > held(p->states[found]))
			found = i;
	}
	return found;
}

static void answer_profile(const struct pages *p, const struct http_request *r,
    enum export_measure measure, struct http_answer *out)
{
	const char *seconds = http_query(r, "seconds"), *debug = http_query(r, "debug");
	size_t which = find(p, http_query(r, "pid"));
	struct err err;
	int fd, rc;

	if ((seconds && strcmp(seconds, "0")) || (debug && strcmp(debug, "0"))) {
		fail(out, 400, "there is neither a difference (seconds) nor a text (debug)");
		return;
	}
	if (which == p->count) {
		fail(out, 404, "no such process is watched");
		return;
	}
	fd = memfd_create("whyoom-profile", MFD_CLOEXEC);
	if (fd < 0) {
		fail(out, 500, strerror(errno));
		return;
	}
	rc = profile_write(
	    watch_model(p->watches[which]), http_query(r, "space"), measure, fd, &err);
	if (rc) {
		close(fd);
		fail(out, rc == -ENOENT ? 404 : 500, err.text);
		return;
	}
	out->type = "application/octet-stream";
	out->name = measure == MEASURE_TOTAL ? "allocs.pb.gz" : "heap.pb.gz";
	out->fd = fd;
}

void pages_answer(void *arg, const struct http_request *r, struct http_answer *out)
{
	const struct pages *p = arg;

	if (!strcmp(r->path, "/metrics"))
		answer_metrics(p, out);
	else if (!strcmp(r->path, "/debug/pprof/heap"))
		answer_profile(p, r, MEASURE_LIVE, out);
	else if (!strcmp(r->path, "/debug/pprof/allocs"))
		answer_profile(p, r, MEASURE_TOTAL, out);
	else if (!strcmp(r->path, "/"))
		answer_list(p, out);
	else
		fail(out, 404, "there is /, /metrics, /debug/pprof/heap and /debug/pprof/allocs");
}
