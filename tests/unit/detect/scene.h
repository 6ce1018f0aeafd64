/* scene.h - a detector judging a scripted process, for the tests of each. */
#ifndef TESTS_UNIT_DETECT_SCENE_H
#define TESTS_UNIT_DETECT_SCENE_H

#include "model/unit.h"

#include "detect/registry.h"
#include "model/script.h"

struct staged {
	struct script *s;
	struct model *m;
	struct places *p;
	struct finding f;
	enum open_call open_call; /* as if that had been read of all places */
	int rc;
};

/* Reads the script and asks one detector; `failed`: as if the process had run out. */
static inline void stage(struct staged *t, const struct detector *d, bool failed)
{
	struct feed feed = script_feed(t->s);
	struct scene scene;
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &t->m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(t->m, &e, &err), 0);
	model_finish(t->m);
	assert_int_equal(places_new(t->m,
			     model_failure(t->m) ? AT_FAILURE
			     : failed		 ? AT_END
						 : AT_PEAK,
			     &t->p, &err),
	    0);
	for (uint32_t i = 0; i < t->p->count; i++)
		t->p->list[i].open_call = t->open_call;
	scene = (struct scene){
	    .model = t->m, .places = t->p, .failure = model_failure(t->m), .failed = failed};
	memset(&t->f, 0, sizeof(t->f));
	t->rc = d->judge(&scene, &t->f);
}

static inline const char *blamed(const struct staged *t)
{
	return t->f.blame == PLACE_NONE ? "" : t->p->list[t->f.blame].function;
}

static inline void strike(struct staged *t)
{
	places_free(t->p);
	model_free(t->m);
	script_free(t->s);
}

#endif
