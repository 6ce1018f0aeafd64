/* steps.c - see steps.h. */
#include "reduce/steps.h"

#include <errno.h>
#include <string.h>

#include "util/map.h"
#include "util/num.h"
#include "util/progress.h"
#include "verdict/device/device.h"
#include "verdict/failure/failure.h"

#define PERIOD 8u /* steps that are repeated together, at most */
#define HANDLES (1ull << 63)

struct reading {
	struct program *out;
	const struct verdict_result *verdict;
	struct feed feed;
	struct map blocks; /* address: number of the block, plus 1 */
	struct map threads; /* serial: number, plus 1 */
	int rc;
};

static uint32_t number(struct reading *r, struct map *map, uint64_t key, uint32_t *next)
{
	uint64_t *at = map_put(map, key);

	if (!at) {
		r->rc = -ENOMEM;
		return 0;
	}
	if (!*at)
		*at = ++*next;
	return (uint32_t)*at - 1;
}

/* The driver does not care which thread asks. */
static uint32_t thread_of(struct reading *r, const struct event *e)
{
	return r->out->device ? 0 : number(r, &r->threads, e->thread, &r->out->threads);
}

static void add(
    struct reading *r, const struct event *e, enum step_what what, uint32_t block, uint64_t size)
{
	struct program_step s = {.what = what,
	    .thread = thread_of(r, e),
	    .block = block,
	    .size = size,
	    .stack = e->stack};

	if (vec_push(&r->out->all, s))
		r->rc = -ENOMEM;
	r->out->requested += size;
}

static void acquire(
    struct reading *r, const struct event *e, enum step_what what, uint64_t key, uint64_t size)
{
	map_remove(&r->blocks, key);
	add(r, e, what, number(r, &r->blocks, key, &r->out->blocks), size);
	r->out->live += size;
}

/* The release of a block that was never acquired makes no step. */
static void release(
    struct reading *r, const struct event *e, enum step_what what, uint64_t key, uint64_t size)
{
	const uint64_t *block = map_find(&r->blocks, key);

	if (!block)
		return;
	add(r, e, what, (uint32_t)*block - 1, size);
	r->out->all.items[r->out->all.count - 1].stack = 0;
	map_remove(&r->blocks, key);
	r->out->live = num_less(r->out->live, size);
}

static enum step_what what_of(uint8_t api)
{
	switch (api) {
	case TRACE_API_CALLOC:
		return STEP_CALLOC;
	case TRACE_API_ALIGNED:
		return STEP_ALIGNED;
	case TRACE_API_REALLOC:
		return STEP_REALLOC;
	case TRACE_API_MMAP:
	case TRACE_API_MREMAP:
		return STEP_MAP;
	default:
		return STEP_MALLOC;
	}
}

static void on_alloc(struct reading *r, const struct event *e)
{
	const uint64_t *old = e->old ? map_find(&r->blocks, ~e->old->address) : NULL;
	uint64_t block;

	if (!old) {
		acquire(r, e, e->api == TRACE_API_REALLOC ? STEP_MALLOC : what_of(e->api),
		    e->address, e->size);
		return;
	}
	block = *old;
	map_remove(&r->blocks, ~e->old->address);
	add(r, e, STEP_REALLOC, (uint32_t)block - 1, e->size);
	*map_put(&r->blocks, e->address) = block;
	r->out->live += e->size;
}

static uint64_t block_size(const struct event *e)
{
	return e->block ? e->block->size : e->size;
}

/* The releasing half of a realloc: the block has another key until the realloc returns. */
static void set_aside(struct reading *r, const struct event *e)
{
	const uint64_t *at = map_find(&r->blocks, e->address);
	uint64_t block = at ? *at : 0, *aside;

	if (!block)
		return;
	map_remove(&r->blocks, e->address);
	aside = map_put(&r->blocks, ~e->address);
	if (!aside)
		r->rc = -ENOMEM;
	else
		*aside = block;
	r->out->live = num_less(r->out->live, block_size(e));
}

static void put_back(struct reading *r, const struct event *e)
{
	const uint64_t *at = map_find(&r->blocks, ~e->address);
	uint64_t block = at ? *at : 0, *back;

	if (!block)
		return;
	map_remove(&r->blocks, ~e->address);
	back = map_put(&r->blocks, e->address);
	if (!back)
		r->rc = -ENOMEM;
	else
		*back = block;
	r->out->live += block_size(e);
}

static bool is_own_memory(const struct event *e)
{
	return e->u.map.backing == TRACE_BACKING_ANON &&
	       !(e->u.map.flags & (TRACE_MAP_SHARED | TRACE_MAP_STACK | TRACE_MAP_ALLOCATOR));
}

static void host_step(struct reading *r, const struct event *e)
{
	switch (e->kind) {
	case EV_ALLOC:
		on_alloc(r, e);
		break;
	case EV_FREE:
		if (e->flags & EVENT_REALLOC)
			set_aside(r, e);
		else
			release(r, e, STEP_FREE, e->address, block_size(e));
		break;
	case EV_UNFREE:
		put_back(r, e);
		break;
	case EV_MAP:
		if (is_own_memory(e))
			acquire(r, e, e->u.map.prot ? STEP_MAP : STEP_RESERVE, e->address | HANDLES,
			    e->size);
		break;
	case EV_UNMAP:
		release(r, e, STEP_UNMAP, e->address | HANDLES, e->size);
		break;
	default:
		break;
	}
}

static bool is_driver(const struct reading *r, const struct event *e)
{
	const char *name = e->space && r->feed.space ? r->feed.space(r->feed.self, e->space) : NULL;

	return name && (!strncmp(name, "cuda:", 5) || !strncmp(name, "pool:", 5));
}

static void device_step(struct reading *r, const struct event *e)
{
	const uint64_t *at;

	if (e->kind == EV_SPACE_ALLOC && is_driver(r, e) &&
	    !(e->u.space.flags & TRACE_SPACE_REFERENCE))
		acquire(r, e, STEP_DEVICE, e->address, e->size);
	if (e->kind != EV_SPACE_FREE || (e->space && !is_driver(r, e)))
		return;
	at = map_find(&r->blocks, e->address);
	if (!at)
		return;
	for (size_t i = r->out->all.count; i-- > 0;)
		if (r->out->all.items[i].what == STEP_DEVICE &&
		    r->out->all.items[i].block == *at - 1) {
			release(r, e, STEP_DEVICE_FREE, e->address, r->out->all.items[i].size);
			break;
		}
}

static void refused(struct reading *r, const struct event *e)
{
	const struct failure_view *f = &r->verdict->failure;
	const uint64_t *old = map_find(&r->blocks, e->u.failed.old_address);

	r->out->last =
	    (struct program_step){.what = r->out->device		       ? STEP_DEVICE
					  : old && e->api == TRACE_API_REALLOC ? STEP_REALLOC
					  : e->api == TRACE_API_REALLOC	       ? STEP_MALLOC
									       : what_of(e->api),
		.thread = thread_of(r, e),
		.block = old ? (uint32_t)*old - 1 : r->out->blocks++,
		.size = e->size,
		.stack = e->stack};
	r->out->room = num_less(f->limit_bytes, f->usage_bytes);
}

static bool is_end(const struct reading *r, const struct event *e)
{
	const struct failure_view *f = &r->verdict->failure;

	if (failure_is_kill(f->kind))
		return e->time_ns > r->verdict->callsites->moment_ns;
	return e->kind == EV_FAILED && e->time_ns >= f->time_ns &&
	       (r->out->device ? e->space != TRACE_SPACE_HOST : e->space == TRACE_SPACE_HOST);
}

/* PyTorch's own refusal follows the driver's; these are the requests to the driver. */
static void find_segment(struct reading *r)
{
	const struct device_report *d = r->verdict->devices.first;

	if (!r->out->device || !d)
		return;
	if (d->segment)
		r->out->last.size = d->segment;
	r->out->room = d->free_known ? d->free : 0;
}

static void find_resident(struct reading *r)
{
	const struct model *m = r->verdict->model;
	uint64_t live = r->out->live;
	struct resident resident;

	r->out->touched = 1;
	if (failure_resident(m, &m->measured.levels, (struct lived){.all = live}, &resident) &&
	    resident.anonymous < live && live)
		r->out->touched = (double)resident.anonymous / (double)live;
	r->out->resident = (uint64_t)((double)live * r->out->touched);
}

/* Returns whether row b is row a after `n` repetitions. */
static bool follows(const struct program_step *a, const struct program_step *b, int64_t n,
    int64_t block, int64_t size)
{
	return a->what == b->what && a->thread == b->thread && a->stack == b->stack &&
	       (int64_t)b->block - (int64_t)a->block == block * n &&
	       (int64_t)b->size - (int64_t)a->size == size * n;
}

static uint32_t repeats(const struct program_step *at, size_t left, uint32_t period)
{
	uint32_t n = 1;

	for (; (n + 1) * (size_t)period <= left; n++)
		for (uint32_t q = 0; q < period; q++) {
			const struct program_step *first = &at[q], *second = &at[period + q];

			if (!follows(first, &at[(size_t)n * period + q], n,
				(int64_t)second->block - (int64_t)first->block,
				(int64_t)second->size - (int64_t)first->size))
				return n;
		}
	return n;
}

static int fold(struct reading *r)
{
	size_t at = 0;
	int rc = 0;

	while (at < r->out->all.count && !rc) {
		const struct program_step *first = &r->out->all.items[at];
		uint32_t best = 1, times = 1;

		for (uint32_t period = 1; period <= PERIOD; period++) {
			uint32_t n = repeats(first, r->out->all.count - at, period);

			if (n > 1 && (n - 1) * (uint64_t)period > (times - 1) * (uint64_t)best) {
				best = period;
				times = n;
			}
		}
		for (uint32_t q = 0; q < best && !rc; q++) {
			struct program_step s = first[q];

			s.rows = q ? 0 : best;
			s.times = q ? 0 : times;
			if (times > 1) {
				s.block_step = (int64_t)first[best + q].block - (int64_t)s.block;
				s.size_step = (int64_t)first[best + q].size - (int64_t)s.size;
			}
			rc = vec_push(&r->out->rows, s);
		}
		at += (size_t)best * times;
	}
	return rc;
}

static int read_all(struct reading *r, struct err *err)
{
	struct event e;
	uint64_t events = 0;
	int rc = r->feed.rewind(r->feed.self, err);

	feed_progress(&r->feed, "reading its requests");
	while (!rc && (rc = r->feed.next(r->feed.self, &e, err)) == 1) {
		rc = 0;
		if (is_end(r, &e)) {
			if (e.kind == EV_FAILED)
				refused(r, &e);
			break;
		}
		if (r->out->device)
			device_step(r, &e);
		else
			host_step(r, &e);
		rc = r->rc;
		feed_passed(&r->feed, ++events);
	}
	progress_end();
	return rc;
}

int steps_read(const struct verdict_result *verdict, struct program *out, struct err *err)
{
	struct reading r = {.out = out, .verdict = verdict, .feed = verdict->model->feed};
	int rc;

	memset(out, 0, sizeof(*out));
	map_seed();
	out->device = verdict->failure.kind == FAILURE_CUDA_OOM;
	rc = read_all(&r, err);
	if (!rc) {
		out->count = out->all.count;
		find_segment(&r);
		if (!out->last.size)
			find_resident(&r);
		rc = fold(&r);
	}
	if (rc == -ENOMEM)
		err_set(err, rc, "no memory for the program's steps");
	if (!rc && !out->rows.count && !out->last.size)
		rc = err_set(err, -ENODATA,
		    "the process made no request of its own: there is no program to write");
	map_free(&r.blocks);
	map_free(&r.threads);
	return rc;
}

void steps_fini(struct program *s)
{
	vec_free(&s->rows);
	vec_free(&s->all);
}

void steps_join(struct program *s)
{
	for (size_t i = 0; i < s->rows.count; i++)
		s->rows.items[i].thread = 0;
	s->last.thread = 0;
	s->threads = 1;
	s->joined = true;
}

struct sum {
	enum step_what what;
	uint32_t stack, count;
	uint64_t bytes;
};
typedef VEC(struct sum) sums_t;

static int add_to(sums_t *sums, const struct program_step *s)
{
	enum step_what what = s->what == STEP_REALLOC ? STEP_MALLOC : s->what;

	for (size_t i = 0; i < sums->count; i++)
		if (sums->items[i].stack == s->stack && sums->items[i].what == what) {
			sums->items[i].count++;
			sums->items[i].bytes += s->size;
			return 0;
		}
	return vec_push(sums, (struct sum){what, s->stack, 1, s->size});
}

static int write_sums(struct program *s, const sums_t *sums)
{
	uint32_t block = s->last.what == STEP_REALLOC ? 1 : 0;
	int rc = 0;

	for (size_t i = 0; i < sums->count && !rc; i++) {
		const struct sum *u = &sums->items[i];

		rc = vec_push(&s->rows, (struct program_step){.rows = 1,
					    .times = u->count,
					    .what = u->what,
					    .block = block,
					    .block_step = 1,
					    .size = u->bytes / u->count,
					    .stack = u->stack});
		block += u->count;
	}
	s->blocks = block + 1;
	if (s->last.what != STEP_REALLOC)
		s->last.block = block;
	return rc;
}

int steps_sum(struct program *s)
{
	const struct program_step **live = calloc(s->blocks + 1u, sizeof(*live));
	bool moved = s->last.what == STEP_REALLOC && s->last.block < s->blocks;
	sums_t sums = {0};
	int rc = live ? 0 : -ENOMEM;

	for (size_t i = 0; live && i < s->all.count; i++)
		live[s->all.items[i].block] =
		    step_is_release(s->all.items[i].what) ? NULL : &s->all.items[i];
	s->rows.count = 0;
	/* The block that the refused realloc was to enlarge comes first. */
	if (!rc && moved && live[s->last.block]) {
		rc = vec_push(&s->rows, (struct program_step){.rows = 1,
					    .times = 1,
					    .what = STEP_MALLOC,
					    .size = live[s->last.block]->size,
					    .stack = live[s->last.block]->stack});
		live[s->last.block] = NULL;
		s->last.block = 0;
	}
	for (uint32_t b = 0; !rc && b < s->blocks; b++)
		if (live[b])
			rc = add_to(&sums, live[b]);
	if (!rc)
		rc = write_sums(s, &sums);
	s->summed = true;
	vec_free(&sums);
	free(live);
	return rc;
}
