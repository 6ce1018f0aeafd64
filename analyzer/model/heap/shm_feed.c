#include "model/heap/shm_feed.h"

#include <string.h>

static void on_hit(void *arg, const struct range *piece, int whole, int split)
{
	struct shm_feed *f = arg;

	(void)piece, (void)whole, (void)split;
	f->hit = true;
}

/* Remove the mapping; hit: there was a part of it. */
static int take(struct shm_feed *f, const struct event *e)
{
	f->hit = false;
	if (e->address > UINT64_MAX - e->size)
		return 0;
	return ranges_cut(&f->mapped, e->address, e->address + e->size, on_hit, f);
}

static int put(struct shm_feed *f, const struct event *e, uint64_t file)
{
	struct range r = {.start = e->address, .end = e->address + e->size, .serial = file};

	return e->address > UINT64_MAX - e->size ? 0 : ranges_add(&f->mapped, &r);
}

/* 1: pass it on; 0: leave it out; negative errno. */
static int on_map(struct shm_feed *f, struct event *e)
{
	uint64_t device = 0;
	bool moved = e->u.map.flags & TRACE_MAP_REMAP && f->hit;
	int rc = take(f, e);

	if (rc)
		return rc;
	event_level(e, TRACE_LEVEL_SHM_DEVICE, &device);
	if (device == f->device || moved) {
		rc = put(f, e, event_level_value(e, TRACE_LEVEL_SHM_FILE));
		return rc ? rc : 1;
	}
	if (!f->hit)
		return 0;
	/* Mappings that lay there are gone. */
	e->kind = EV_UNMAP;
	memset(&e->u, 0, sizeof(e->u));
	e->level_count = 0;
	f->hit = false;
	return 1;
}

static int pass(struct shm_feed *f, struct event *e)
{
	int rc;

	switch (e->kind) {
	case EV_ALLOC:
	case EV_FREE:
	case EV_UNFREE:
	case EV_WENT:
		return e->space != TRACE_SPACE_HOST;
	case EV_ADVISE:
	case EV_BRK:
		return 0;
	case EV_MAP:
		return on_map(f, e);
	case EV_UNMAP:
		rc = take(f, e);
		return rc ? rc : f->hit;
	case EV_UNUNMAP:
		rc = f->hit ? put(f, e, 0) : 0;
		return rc ? rc : f->hit;
	case EV_FAILED:
		return e->space != TRACE_SPACE_HOST || e->api == TRACE_API_FALLOCATE;
	default:
		return 1;
	}
}

static int next(void *self, struct event *out, struct err *err)
{
	struct shm_feed *f = self;
	int rc, told;

	do {
		rc = f->below.next(f->below.self, out, err);
		if (rc != 1)
			return rc;
		if (out->time_ns > f->until_ns)
			return 0;
		told = pass(f, out);
	} while (!told);
	return told < 0 ? err_set(err, told, "no memory for what is mapped") : 1;
}

static void forget(struct shm_feed *f)
{
	ranges_fini(&f->mapped);
	ranges_init(&f->mapped);
	f->hit = false;
}

static int rewind_below(void *self, struct err *err)
{
	struct shm_feed *f = self;

	forget(f);
	return f->below.rewind(f->below.self, err);
}

static size_t symbols(void *self, uint32_t stack, const struct symbol **out)
{
	struct shm_feed *f = self;

	return f->below.symbols(f->below.self, stack, out);
}

/* The process's limits do not apply to the file system. */
static const char *info(void *self, const char *key)
{
	struct shm_feed *f = self;

	return strcmp(key, "limit.data") == 0 ? NULL : f->below.info(f->below.self, key);
}

static const struct trace_facts *facts(void *self)
{
	struct shm_feed *f = self;

	return f->below.facts(f->below.self);
}

static uint64_t bytes_read(void *self)
{
	struct shm_feed *f = self;

	return f->below.bytes_read(f->below.self);
}

static const char *space(void *self, uint32_t id)
{
	struct shm_feed *f = self;

	return f->below.space(f->below.self, id);
}

/* There are no blocks of malloc. */
static int each_live(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	(void)self, (void)fn, (void)arg;
	return 0;
}

static int path(void *self, uint32_t stack, struct stack_path *out)
{
	struct shm_feed *f = self;

	return f->below.path(f->below.self, stack, out);
}

static int rewind_spaces(void *self, struct err *err)
{
	struct shm_feed *f = self;

	forget(f);
	return f->below.rewind_spaces(f->below.self, err);
}

static int stack_order(void *self, const uint32_t **order, size_t *count)
{
	struct shm_feed *f = self;

	return f->below.stack_order(f->below.self, order, count);
}

static int fold_stacks(void *self, const struct trace_fold *fold, uint16_t *out)
{
	struct shm_feed *f = self;

	return f->below.fold_stacks(f->below.self, fold, out);
}

static uint32_t stack_limit(void *self)
{
	struct shm_feed *f = self;

	return f->below.stack_limit(f->below.self);
}

void shm_feed_init(struct shm_feed *out, struct feed below, uint64_t device)
{
	*out = (struct shm_feed){.below = below, .device = device, .until_ns = UINT64_MAX};
	ranges_init(&out->mapped);
}

void shm_feed_fini(struct shm_feed *f)
{
	ranges_fini(&f->mapped);
}

struct feed shm_feed_of(struct shm_feed *f)
{
	const struct feed *b = &f->below;

	return (struct feed){.self = f,
	    .next = next,
	    .rewind = rewind_below,
	    .symbols = symbols,
	    .info = info,
	    .facts = facts,
	    .bytes_read = b->bytes_read ? bytes_read : NULL,
	    .space = b->space ? space : NULL,
	    .each_live = each_live,
	    .path = b->path ? path : NULL,
	    .rewind_spaces = b->rewind_spaces ? rewind_spaces : NULL,
	    .stack_order = b->stack_order ? stack_order : NULL,
	    .fold_stacks = b->fold_stacks ? fold_stacks : NULL,
	    .stack_limit = b->stack_limit ? stack_limit : NULL};
}
