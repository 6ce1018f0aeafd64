/*
 * subject.c - of all processes of a set, the one that the report is about: who was refused memory
 * and never got over it, else who was killed, else the one that was started.
 */
#include "verdict/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/space.h"
#include "util/str.h"
#include "verdict/failure.h"

static const char *command_line(struct verdict_result *r, const struct trace_facts *f)
{
	struct str s = {0};
	const char *text;

	for (size_t i = 0; f->argv && f->argv[i]; i++) {
		if (i)
			str_putc(&s, ' ');
		str_puts(&s, f->argv[i]);
	}
	if (!s.length && f->exe)
		str_puts(&s, f->exe);
	text = s.failed ? NULL : arena_copy(&r->arena, str_text(&s), s.length);
	str_free(&s);
	return text ? text : "";
}

static void describe(struct verdict_result *r, struct process *p, struct feed feed,
    const struct model *m, const struct supervised *s)
{
	const struct trace_facts *f = feed.facts(feed.self);
	struct ending end = ending_of(m, f, s);
	uint64_t last = f->last_ns > m->last_ns ? f->last_ns : m->last_ns;
	struct timespec now;

	/* It lived on after its last event, as long as somebody saw it. */
	if (s && s->ended && s->ended_ns > last)
		last = s->ended_ns;
	if (end.how == END_RUNNING && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
		uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;

		if (ns > f->start_mono_ns && ns - f->start_mono_ns > last)
			last = ns - f->start_mono_ns;
	}
	*p = (struct process){.pid = f->pid,
	    .cmdline = command_line(r, f),
	    .trace = f->path ? f->path : "",
	    .events = m->events,
	    .dropped = f->dropped_total + m->lost,
	    .start_real_ns = f->start_real_ns,
	    .seconds = (double)last / 1e9,
	    .how = end.how,
	    .code = end.code};
}

/* Higher: more likely what one asks about. */
static int importance(const struct model *m, const struct process *p, const struct trace_facts *f)
{
	bool bad =
	    p->how == END_SIGNAL || (p->how == END_EXIT && p->code != 0) || p->how == END_UNKNOWN;

	if (model_failure(m) || spaces_failure(m->spaces))
		return bad ? 5 : 3;
	if (p->how == END_SIGNAL && p->code == 9)
		return 4;
	if (p->how == END_UNKNOWN)
		return 2;
	return f->root ? 1 : 0;
}

static int read_supervised(const struct trace_set *set, const struct trace_facts *f,
    struct supervised *out, struct err *err)
{
	struct feed outside = feed_of_trace(set->supervisor);
	const struct trace_facts *sf = outside.facts(outside.self);

	return supervised_read(
	    &outside, f->pid, (int64_t)(sf->start_mono_ns - f->start_mono_ns), out, err);
}

int verdict_of_set(const struct trace_set *set, struct verdict_result *out, struct err *err)
{
	struct verdict_result r = {0};
	struct supervised *now = malloc(sizeof(*now)), *best = malloc(sizeof(*best));
	int rank = -1, rc = -ENOMEM;
	uint64_t largest = 0;

	r.processes = calloc(set->count + 1, sizeof(*r.processes));
	if (!r.processes || !now || !best) {
		err_set(err, rc, "no memory for the verdict");
		goto out;
	}
	for (size_t i = 0; i < set->count; i++) {
		struct feed feed = feed_of_trace(set->images[i]);
		const struct trace_facts *f = feed.facts(feed.self);
		struct model *m;
		int importance_now;

		rc = subject_model(feed, &m, err);
		if (rc)
			goto out;
		f = feed.facts(feed.self);
		if (set->supervisor && (rc = read_supervised(set, f, now, err))) {
			model_free(m);
			goto out;
		}
		describe(&r, &r.processes[i], feed, m, set->supervisor ? now : NULL);
		r.process_count++;
		importance_now = importance(m, &r.processes[i], f);
		if (importance_now > rank || (importance_now == rank && m->peak_bytes > largest)) {
			model_free(r.model);
			r.model = m;
			r.trace = set->images[i];
			r.subject = i;
			rank = importance_now;
			largest = m->peak_bytes;
			*best = *now;
		} else {
			model_free(m);
		}
	}
	if (!r.model) {
		rc = err_set(
		    err, -ENODATA, "%s: holds no process", set->path ? set->path : "the set");
		goto out;
	}
	r.knowledge = knowledge_open();
	rc = r.knowledge ? subject_judge(&r, r.model->feed, set->supervisor ? best : NULL, err)
			 : err_set(err, -ENOMEM, "no memory for what is known of frameworks");
	if (rc)
		goto out;
	*out = r;
	memset(&r, 0, sizeof(r));
out:
	free(now);
	free(best);
	verdict_fini(&r);
	return rc;
}

int verdict_of_feed(struct feed feed, const struct supervised *supervised,
    struct verdict_result *out, struct err *err)
{
	struct verdict_result r = {0};
	int rc = -ENOMEM;

	r.processes = calloc(1, sizeof(*r.processes));
	if (!r.processes) {
		err_set(err, rc, "no memory for the verdict");
		goto out;
	}
	rc = subject_model(feed, &r.model, err);
	if (rc)
		goto out;
	describe(&r, &r.processes[0], feed, r.model, supervised);
	r.process_count = 1;
	rc = subject_judge(&r, feed, supervised, err);
	if (rc)
		goto out;
	*out = r;
	memset(&r, 0, sizeof(r));
out:
	verdict_fini(&r);
	return rc;
}
