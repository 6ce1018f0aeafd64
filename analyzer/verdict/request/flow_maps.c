#include "verdict/request/flow_maps.h"

#include <errno.h>

void flow_maps_init(
    struct flow_maps *out, struct requests *requests, const struct callsites *callsites)
{
	*out = (struct flow_maps){.requests = requests, .callsites = callsites};
	ranges_init(&out->mapped);
}

void flow_maps_fini(struct flow_maps *f)
{
	ranges_fini(&f->mapped);
	vec_free(&f->blocks);
	vec_free(&f->undo);
}

/* True for memory that the program asked the kernel for. */
static bool is_own(const struct callsites *p, const struct event *e)
{
	uint32_t callsite = callsites_of_mapping(p, e->stack);

	return !(e->u.map.flags & (TRACE_MAP_ALLOCATOR | TRACE_MAP_STACK)) &&
	       callsite != CALLSITE_NONE && !p->list[callsite].arena_share.any;
}

/* A part of a mapping goes: what is left stays its request's. */
static void on_cut(void *arg, const struct range *piece, int whole, int split)
{
	struct flow_maps *f = arg;
	struct block *b = &f->blocks.items[piece->serial];
	struct block gone = *b;
	struct event e = {.kind = EV_FREE, .time_ns = f->time_ns, .block = &gone};

	(void)split;
	f->error = vec_push(&f->undo, *piece) ? -ENOMEM : f->error;
	gone.size = piece->end - piece->start < b->size ? piece->end - piece->start : b->size;
	b->size = whole ? 0 : b->size - gone.size;
	requests_apply(f->requests, &e);
}

static int cut(struct flow_maps *f, const struct event *e)
{
	int rc;

	f->time_ns = e->time_ns;
	f->undo.count = 0;
	f->undo_address = e->address;
	f->error = 0;
	if (e->address > UINT64_MAX - e->size)
		return 0;
	rc = ranges_cut(&f->mapped, e->address, e->address + e->size, on_cut, f);
	return rc ? rc : f->error;
}

/* The kernel refused the latest unmapping: its pieces are there as before. */
static int undo(struct flow_maps *f, const struct event *e)
{
	int rc = 0;

	for (size_t i = 0; e->address == f->undo_address && i < f->undo.count && !rc; i++) {
		const struct range *r = &f->undo.items[i];
		struct block back = f->blocks.items[r->serial];

		back.size = r->end - r->start;
		f->blocks.items[r->serial].size += back.size;
		rc = ranges_add(&f->mapped, r);
		if (!rc)
			rc = requests_acquired(f->requests, &back, e->time_ns);
	}
	f->undo.count = 0;
	return rc;
}

static int map(struct flow_maps *f, const struct event *e)
{
	struct range r = {.start = e->address, .end = e->address + e->size};
	struct block b = {.address = e->address,
	    .size = e->size,
	    .birth_ns = e->time_ns,
	    .stack = e->stack,
	    .thread = e->thread,
	    .task = e->task};
	int rc = cut(f, e);

	if (rc || !is_own(f->callsites, e) || r.end <= r.start)
		return rc;
	r.serial = f->blocks.count;
	if (vec_push(&f->blocks, b))
		return -ENOMEM;
	rc = ranges_add(&f->mapped, &r);
	return rc ? rc : requests_acquired(f->requests, &b, e->time_ns);
}

int flow_maps_apply(struct flow_maps *f, const struct event *e)
{
	switch (e->kind) {
	case EV_MAP:
		return map(f, e);
	case EV_UNMAP:
		return cut(f, e);
	case EV_UNUNMAP:
		return undo(f, e);
	default:
		return 0;
	}
}

int flow_maps_each(
    const struct flow_maps *f, int (*fn)(void *arg, const struct block *b), void *arg)
{
	int rc = 0;

	for (size_t i = 0; i < f->blocks.count && !rc; i++)
		if (f->blocks.items[i].size)
			rc = fn(arg, &f->blocks.items[i]);
	return rc;
}
