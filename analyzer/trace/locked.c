/*
 * locked.c - presents page-locked memory from a driver as memory of the process. It is a shared
 * mapping in the address space, resident from the start, and charged as such (RssShmem, a cgroup's
 * shmem). If the mapping call was not recorded, a mapping is added beside the driver's block, and
 * removed with it. A request that the driver refused becomes one of the host's.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "trace/integrity/repair.h"
#include "trace/reader.h"
#include "whyoom/trace.h"

enum { SEEN, TOLD }; /* recorded, or added here; an added range's serial is its context */

static bool is_space(const char *name)
{
	return name && strcmp(name, "pinned") == 0;
}

/* False: the trace has no page-locked memory. */
static bool has_space(const struct trace *t)
{
	for (size_t i = 0; i < t->defs.spaces.count; i++)
		if (is_space(t->defs.spaces.items[i]))
			return true;
	return false;
}

void locked_rewind(struct trace *t)
{
	struct locked *l = &t->locked;

	ranges_fini(&l->known);
	ranges_init(&l->known);
	vec_free(&l->waiting);
	l->at = 0;
	l->gone = (struct range){0};
	l->look_credit = LOOK_FIRST;
	l->any = has_space(t);
}

void locked_fini(struct trace *t)
{
	ranges_fini(&t->locked.known);
	vec_free(&t->locked.waiting);
}

static int later(
    struct locked *l, const struct event *of, enum event_kind kind, uint64_t address, uint64_t size)
{
	struct event e = {.kind = kind,
	    .api = kind == EV_MAP ? TRACE_API_MMAP : TRACE_API_MUNMAP,
	    .thread = of->thread,
	    .stack = of->stack,
	    .space = TRACE_SPACE_HOST,
	    .task = of->task,
	    .time_ns = of->time_ns,
	    .address = address,
	    .size = size};

	if (kind == EV_MAP) {
		e.u.map.prot = PROT_READ | PROT_WRITE;
		e.u.map.flags = TRACE_MAP_SHARED;
		e.u.map.backing = TRACE_BACKING_ANON;
	}
	return vec_push(&l->waiting, e);
}

/* Put the range in place of all ranges that it overlaps. */
static int put(struct locked *l, const struct range *r)
{
	int rc = ranges_cut(&l->known, r->start, r->end, NULL, NULL);

	return rc ? rc : ranges_add(&l->known, r);
}

static struct range range_of(const struct event *e, uint32_t kind)
{
	uint64_t room = UINT64_MAX - e->address;

	return (struct range){.start = e->address,
	    .end = e->address + (e->size < room ? e->size : room),
	    .kind = kind};
}

/* Apply a recorded mapping: of memory, of bare addresses, or of a device. */
static int on_map(struct locked *l, const struct event *e)
{
	struct range r = range_of(e, SEEN);
	bool memory = e->u.map.flags & TRACE_MAP_REMAP ||
		      (e->u.map.prot && e->u.map.backing != TRACE_BACKING_DEVICE);

	return memory ? put(l, &r) : ranges_cut(&l->known, r.start, r.end, NULL, NULL);
}

static int on_alloc(struct trace *t, const struct event *e)
{
	const uint32_t elsewhere =
	    TRACE_SPACE_HANDLE | TRACE_SPACE_REFERENCE | TRACE_SPACE_REGISTERED;
	struct range r = range_of(e, TOLD);
	int rc;

	if (!is_space(trace_space(t, e->space)) || e->u.space.flags & elsewhere ||
	    ranges_find(&t->locked.known, e->address))
		return 0;
	r.serial = e->u.space.context;
	rc = put(&t->locked, &r);
	return rc ? rc : later(&t->locked, e, EV_MAP, r.start, r.end - r.start);
}

static int on_free(struct locked *l, const struct event *e)
{
	const struct range *r = ranges_find(&l->known, e->address);
	int rc;

	l->gone = (struct range){0};
	if (!r || r->kind != TOLD || r->start != e->address)
		return 0;
	l->gone = *r;
	rc = ranges_cut(&l->known, l->gone.start, l->gone.end, NULL, NULL);
	return rc ? rc : later(l, e, EV_UNMAP, l->gone.start, l->gone.end - l->gone.start);
}

static int on_unfree(struct locked *l, const struct event *e)
{
	struct range r = l->gone;
	int rc;

	if (r.start != e->address || r.start == r.end)
		return 0;
	l->gone = (struct range){0};
	rc = put(l, &r);
	return rc ? rc : later(l, e, EV_UNUNMAP, r.start, r.end - r.start);
}

struct clearing {
	struct locked *l;
	const struct event *e;
	int error;
};

static void clear(void *arg, const struct range *r)
{
	struct clearing *c = arg;
	bool gone = r->kind == TOLD &&
		    (c->e->u.space.what == TRACE_CLEAR_DEVICE || r->serial == c->e->u.space.handle);

	if (gone && !c->error)
		c->error = later(c->l, c->e, EV_UNMAP, r->start, r->end - r->start);
}

/* A context's end releases its memory. A device's contexts are unknown here, so a reset of one of
 * several counts for all. */
static int on_clear(struct locked *l, const struct event *e)
{
	struct clearing c = {l, e, 0};

	if (e->u.space.what != TRACE_CLEAR_CONTEXT && e->u.space.what != TRACE_CLEAR_DEVICE)
		return 0;
	/* Contexts that end all the time are damage. */
	if (l->look_credit < (int64_t)l->known.count)
		return 0;
	l->look_credit -= (int64_t)l->known.count;
	ranges_each(&l->known, clear, &c);
	for (size_t i = 0; i < l->waiting.count && !c.error; i++)
		c.error = ranges_cut(&l->known, l->waiting.items[i].address,
		    l->waiting.items[i].address + l->waiting.items[i].size, NULL, NULL);
	return c.error;
}

/* Turn a driver's refusal into a refusal of host memory, whatever the driver calls it. Registering
 * existing memory takes none. */
static void on_failed(const struct trace *t, struct event *e)
{
	const char *call = e->u.failed.api;

	if (e->u.failed.why != TRACE_FAIL_DEVICE || e->u.failed.result != EVENT_DEVICE_NO_MEMORY ||
	    !is_space(trace_space(t, e->space)) ||
	    (call && strncmp(call, "cuMemHostRegister", 17) == 0))
		return;
	e->space = TRACE_SPACE_HOST;
	e->api = TRACE_API_MMAP;
	e->u.failed.why = TRACE_FAIL_ERRNO;
	e->u.failed.result = ENOMEM;
	e->u.failed.api = e->u.failed.label = NULL;
	e->u.failed.retry = e->u.failed.flags = 0;
}

int locked_see(struct trace *t, struct event *e)
{
	struct locked *l = &t->locked;
	struct range r;

	if (l->look_credit < LOOK_MAX)
		l->look_credit += LOOK_GAIN;
	switch (e->kind) {
	case EV_MAP:
		return on_map(l, e);
	case EV_UNMAP:
		r = range_of(e, SEEN);
		return ranges_cut(&l->known, r.start, r.end, NULL, NULL);
	case EV_UNUNMAP:
		r = range_of(e, SEEN);
		return put(l, &r);
	case EV_SPACE_ALLOC:
		return on_alloc(t, e);
	case EV_SPACE_FREE:
		return on_free(l, e);
	case EV_SPACE_UNFREE:
		return on_unfree(l, e);
	case EV_SPACE_CLEAR:
		return on_clear(l, e);
	case EV_FAILED:
		on_failed(t, e);
		return 0;
	default:
		return 0;
	}
}

bool locked_next(struct trace *t, struct event *out)
{
	struct locked *l = &t->locked;

	if (l->at == l->waiting.count) {
		l->at = l->waiting.count = 0;
		return false;
	}
	*out = l->waiting.items[l->at++];
	return true;
}
