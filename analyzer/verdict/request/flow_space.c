#include "verdict/request/flow_space.h"

#include <errno.h>
#include <stdlib.h>

#include "util/progress.h"
#include "verdict/request/stages.h"

/* The blocks of a space, through a model of their own. */
struct blocks {
	struct model *model;
	const char *name;
	bool found; /* the space exists */
};

static int blocks_apply(
    struct blocks *b, const struct event *e, struct witness witness, bool *came, struct err *err)
{
	struct space *sp;
	/* This model needs no blocks of the host. */
	int rc = e->kind <= EV_UNFREE ? 0 : model_apply(b->model, e, err);

	*came = false;
	if (rc || b->found || e->kind <= EV_UNFREE)
		return rc;
	sp = spaces_find(b->model->spaces, b->name);
	if (sp) {
		sp->model->options.witness = witness;
		*came = b->found = true;
	}
	return 0;
}

struct flow_space {
	struct feed feed;
	struct blocks blocks;
	uint64_t until;
	struct stages stages;
	struct requests *requests;
};

static bool in_request(void *arg, uint32_t stack)
{
	return stages_in_request(arg, stack);
}

static int on_block(void *arg, const struct event *e)
{
	return requests_apply(arg, e);
}

struct flow_space *flow_space_new(
    struct feed feed, struct framework_frames *known, const char *name, uint64_t until)
{
	struct flow_space *f = calloc(1, sizeof(*f));
	struct err err;

	if (!f)
		return NULL;
	f->feed = feed;
	f->until = until;
	f->blocks.name = name;
	stages_init(&f->stages, &f->feed, known);
	f->requests = requests_new(known ? in_request : NULL, &f->stages);
	if (!f->requests || model_new(feed, &f->blocks.model, &err)) {
		flow_space_free(f);
		return NULL;
	}
	return f;
}

void flow_space_free(struct flow_space *f)
{
	if (!f)
		return;
	model_free(f->blocks.model);
	requests_free(f->requests);
	free(f);
}

const char *flow_space_name(const struct flow_space *f)
{
	return f->blocks.name;
}

static bool is_done(const struct flow_space *f)
{
	return f->blocks.model->run.others >= f->until;
}

/* Add the blocks of the event that created the space. */
static int first_blocks(struct flow_space *f)
{
	const struct spaces *all = f->blocks.model->spaces;
	uint32_t own = spaces_find(all, f->blocks.name)->index;
	int rc = 0;

	for (uint32_t i = 0; i < all->used && !rc; i++) {
		const struct space_block *b = spaces_block(all, i);

		if (b->used && b->space == own)
			rc = requests_acquired(f->requests, &b->block, b->block.birth_ns);
	}
	return rc;
}

int flow_space_apply(struct flow_space *f, const struct event *e, struct err *err)
{
	struct witness witness = {f->requests, on_block};
	bool came;
	int rc;

	if (is_done(f))
		return 0;
	rc = blocks_apply(&f->blocks, e, witness, &came, err);
	if (!rc)
		rc = requests_passed(f->requests, e);
	if (!rc && came)
		rc = first_blocks(f);
	return rc ? err_set(err, rc, "no memory for the requests") : 0;
}

int flow_space_read(struct flow_space *f, struct err *err)
{
	struct event e;
	uint64_t events = 0;
	int rc = 0;

	feed_progress(&f->feed, "reading who worked on the device");
	while (rc == 0 && !is_done(f) && (rc = f->feed.next(f->feed.self, &e, err)) == 1) {
		rc = flow_space_apply(f, &e, err);
		feed_passed(&f->feed, ++events);
	}
	progress_end();
	return rc;
}

struct requests *flow_space_take(struct flow_space *f)
{
	struct requests *requests = f->requests;

	/* Its argument is freed with *f. */
	requests->is_entry = NULL;
	f->requests = NULL;
	return requests;
}

static int on_made(void *arg, const struct event *e)
{
	return proportion_apply(arg, e);
}

int flow_space_proportion(struct feed feed, const char *name, uint64_t until,
    struct proportion *proportion, struct err *err)
{
	struct blocks blocks = {.name = name};
	struct event e;
	uint64_t events = 0;
	bool came;
	int rc = model_new(feed, &blocks.model, err);

	if (rc)
		return rc;
	rc = feed_rewind_spaces(&feed, err);
	feed_progress(&feed, "reading what was made of what on the device");
	while (rc == 0 && blocks.model->run.others < until &&
	       (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = blocks_apply(&blocks, &e, (struct witness){proportion, on_made}, &came, err);
		feed_passed(&feed, ++events);
	}
	progress_end();
	model_free(blocks.model);
	return rc;
}
