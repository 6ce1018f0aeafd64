/* scene.h - a detector judging a scripted process, for the tests of each. */
#ifndef TESTS_UNIT_DETECT_SCENE_H
#define TESTS_UNIT_DETECT_SCENE_H

#include "model/unit.h"

#include "detect/detect.h"
#include "model/callsite/proportion.h"
#include "model/script.h"

struct staged {
	struct script *s;
	struct model *m;
	struct callsites *p;
	struct finding f;
	enum open_call open_call; /* as if it was read of all call sites */
	bool open_repeats; /* the same */
	struct scene scene; /* known besides: space, slack, others, live blocks */
	struct requests *requests;
	struct requests_held held;
	const char *pinned_by; /* function of the call site that pins the slack */
	int rc;
};

/* The lanes at work until the moment. */
static inline void stage_requests(struct staged *t, struct feed feed)
{
	const struct failure *f = model_failure(t->m);
	struct proportion proportion;
	struct event e;
	struct err err;

	t->requests = requests_new(NULL, NULL);
	assert_non_null(t->requests);
	assert_int_equal(proportion_init(&proportion, t->p, f ? f->size : 0), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1 && e.time_ns <= t->p->moment_ns &&
	       e.kind != EV_FAILED) {
		assert_int_equal(requests_apply(t->requests, &e), 0);
		assert_int_equal(proportion_apply(&proportion, &e), 0);
	}
	proportion_finish(&proportion);
	proportion_fini(&proportion);
	assert_int_equal(
	    requests_held_read(t->requests, t->m, t->p, feed.each_live, feed.self, &t->held), 0);
	t->scene.held = &t->held;
}

/* Read the script and ask one detector; `failed`: as if the process had run out. */
static inline void stage(struct staged *t, detector *detect, bool failed)
{
	struct feed feed = script_feed(t->s);
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &t->m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(t->m, &e, &err), 0);
	model_finish(t->m);
	assert_int_equal(callsites_new(t->m,
			     model_failure(t->m) ? AT_FAILURE
			     : failed		 ? AT_END
						 : AT_PEAK,
			     &t->p, &err),
	    0);
	for (uint32_t i = 0; i < t->p->count; i++) {
		t->p->list[i].call.open = t->open_call;
		t->p->list[i].call.repeats = t->open_repeats;
	}
	t->scene.model = t->m;
	t->scene.callsites = t->p;
	stage_requests(t, feed);
	t->scene.end.refused = model_failure(t->m);
	t->scene.end.failed = failed;
	t->scene.slack.pinned_by = CALLSITE_NONE;
	for (uint32_t i = 0; i < t->p->count; i++)
		if (t->pinned_by && strcmp(t->p->list[i].function, t->pinned_by) == 0)
			t->scene.slack.pinned_by = i;
	memset(&t->f, 0, sizeof(t->f));
	t->rc = detect(&t->scene, &t->f);
}

static inline const char *blamed(const struct staged *t)
{
	return t->f.blame == CALLSITE_NONE ? "" : t->p->list[t->f.blame].function;
}

/* A thread's stack was refused at that stack. */
static inline void script_failed_thread(struct script *s, uint32_t stack, uint64_t size)
{
	struct event *e = script_event(s, EV_FAILED, TRACE_SPACE_HOST);

	e->stack = stack;
	e->size = size;
	e->api = TRACE_API_THREAD;
	e->u.failed.why = TRACE_FAIL_ERRNO;
}

static inline void strike(struct staged *t)
{
	requests_held_fini(&t->held);
	requests_free(t->requests);
	callsites_free(t->p);
	model_free(t->m);
	script_free(t->s);
}

#endif
