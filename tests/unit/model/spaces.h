/* spaces.h - a script's spaces as the model sees them, for the tests of its parts. */
#ifndef TESTS_UNIT_MODEL_SPACES_H
#define TESTS_UNIT_MODEL_SPACES_H

#include "model/unit.h"

#include "model/model.h"
#include "model/script.h"
#include "model/space/space.h"

/* Checked after each event, so that the first one that breaks something is found. */
static inline struct model *spaces_model(struct script *s)
{
	struct feed feed = script_feed(s);
	struct model *m;
	struct event e;
	struct err err = {""};

	assert_int_equal(model_new(feed, &m, &err), 0);
	assert_int_equal(feed.rewind(feed.self, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1) {
		assert_int_equal(model_apply(m, &e, &err), 0);
		spaces_check(m->spaces);
	}
	model_finish(m);
	model_check(m);
	return m;
}

static inline uint64_t live(const struct model *m, const char *name)
{
	struct space *sp = spaces_find(m->spaces, name);

	return sp ? sp->model->blocks.bytes : 0;
}

static inline void handle_new(struct script *s, uint32_t space, uint64_t handle, uint64_t size)
{
	struct event *e = script_event(s, EV_SPACE_ALLOC, space);

	e->address = handle;
	e->size = size;
	e->u.space.flags = TRACE_SPACE_HANDLE;
}

static inline void handle_release(struct script *s, uint64_t handle)
{
	struct event *e = script_event(s, EV_SPACE_FREE, 0);

	e->address = handle;
	e->u.space.flags = TRACE_SPACE_HANDLE;
}

static inline void handle_map(struct script *s, uint64_t handle, uint64_t address, uint64_t size)
{
	struct event *e = script_event(s, EV_SPACE_MAP, 0);

	e->address = address;
	e->size = size;
	e->u.space.handle = handle;
}

static inline void unmap(struct script *s, uint64_t address, uint64_t size, bool undo)
{
	struct event *e = script_event(s, undo ? EV_SPACE_UNUNMAP : EV_SPACE_UNMAP, 0);

	e->address = address;
	e->size = size;
}

#endif
