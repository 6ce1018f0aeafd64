#include "model/torch/torch_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MOST (1ull << 56) /* larger fits no device: damage */
#define MEMORY_MOST (1ull << 42)
#define OUT_OF_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation */

void torch_record_init(struct torch_record *r, struct feed feed, uint32_t device)
{
	memset(r, 0, sizeof(*r));
	r->feed = feed;
	snprintf(r->cuda_name, sizeof(r->cuda_name), "cuda:%u", device);
	snprintf(r->torch_name, sizeof(r->torch_name), "torch:%u", device);
	ranges_init(&r->layout);
}

void torch_record_fini(struct torch_record *r)
{
	ranges_fini(&r->layout);
	vec_free(&r->segments);
	vec_free(&r->calls);
	vec_free(&r->died);
	map_free(&r->handles);
}

static void learn_space(struct torch_record *r, uint32_t id)
{
	const char *name;

	if (!id || !r->feed.space || id == r->cuda || id == r->torch || id == r->va)
		return;
	if (r->cuda && r->torch && r->va)
		return;
	name = r->feed.space(r->feed.self, id);
	if (!name)
		return;
	if (strcmp(name, r->cuda_name) == 0)
		r->cuda = id;
	else if (strcmp(name, r->torch_name) == 0)
		r->torch = id;
	else if (strcmp(name, "va") == 0)
		r->va = id;
}

/* --- levels --- */

static void take_levels(struct torch_record *r, const struct event *e)
{
	uint64_t free_bytes, total, used;

	if (e->space == r->torch && event_level(e, TRACE_LEVEL_RESERVED, &r->reserved))
		r->reserved_known = true;
	if (!event_level(e, TRACE_LEVEL_DEV_FREE, &free_bytes) ||
	    !event_level(e, TRACE_LEVEL_DEV_TOTAL, &total) || free_bytes > total ||
	    total > MEMORY_MOST)
		return;
	used = total - free_bytes;
	r->memory = total;
	r->unexplained = used > r->driver_bytes ? used - r->driver_bytes : 0;
}

uint64_t torch_record_room(const struct torch_record *r, uint64_t memory, uint64_t given_back)
{
	uint64_t used = r->unexplained;

	used -= given_back < used ? given_back : used;
	if (r->driver_bytes > r->torch_bytes)
		used += r->driver_bytes - r->torch_bytes;
	return used < memory ? memory - used : 0;
}

uint64_t torch_record_least(const struct caching_settings *s, uint64_t size)
{
	return s->expandable || size <= CACHING_SMALL + CACHING_SMALL ? size : size - CACHING_SMALL;
}

/* A cached block that may not be split serves only requests of such a size. A new segment may be
 * such a block for a slightly smaller request, rest included. */
void torch_record_ask(
    const struct torch_record *r, const struct caching_settings *s, struct torch_step *step)
{
	step->asked = step->block.size;
	if (step->block.size < s->max_split ||
	    torch_record_least(s, step->block.size) >= s->max_split)
		return;
	for (size_t i = 0; i < r->calls.count; i++)
		if (r->calls.items[i].kind == TORCH_TAKE &&
		    r->calls.items[i].segment == step->segment)
			step->asked = s->max_split - 512;
}

/* --- the device's calls --- */

static int add_call(struct torch_record *r, const struct event *e, enum torch_call_kind kind,
    uint64_t address, uint64_t size, uint32_t segment)
{
	return vec_push(&r->calls, (struct torch_call){.kind = kind,
				       .thread = e->thread,
				       .segment = segment,
				       .address = address,
				       .size = size});
}

static void forget(void *arg, const struct range *piece, int whole, int split)
{
	struct torch_record *r = arg;
	struct torch_segment *s = &r->segments.items[piece->serial];

	(void)whole, (void)split;
	if (!s->live)
		return;
	s->live = false;
	if (!r->error)
		r->error = vec_push(&r->died, (uint32_t)piece->serial);
	if (!s->range)
		r->driver_bytes -= s->size;
	if (s->torch)
		r->torch_bytes -= s->range ? s->mapped : s->size;
}

static int drop_segment(struct torch_record *r, const struct torch_segment *s)
{
	return ranges_cut(&r->layout, s->address, s->address + s->size, forget, r);
}

static int new_segment(struct torch_record *r, const struct event *e, bool range)
{
	struct range at = {
	    .start = e->address, .end = e->address + e->size, .serial = r->segments.count};
	int rc;

	if (!e->size || e->size > SIZE_MOST || e->address > UINT64_MAX - e->size ||
	    r->segments.count >= TORCH_NO_SEGMENT)
		return 0;
	rc = ranges_cut(&r->layout, at.start, at.end, forget, r);
	if (!rc)
		rc = ranges_add(&r->layout, &at);
	if (!rc)
		rc = vec_push(&r->segments,
		    (struct torch_segment){
			.address = e->address, .size = e->size, .range = range, .live = true});
	if (rc)
		return rc;
	if (!range)
		r->driver_bytes += e->size;
	return add_call(
	    r, e, range ? TORCH_RESERVE : TORCH_TAKE, e->address, e->size, (uint32_t)at.serial);
}

static int on_handle(struct torch_record *r, const struct event *e, bool acquired)
{
	uint64_t *bytes;

	if (acquired) {
		if (e->u.space.flags & (TRACE_SPACE_REFERENCE | TRACE_SPACE_MULTICAST))
			return 0;
		bytes = map_put(&r->handles, e->address);
		if (!bytes)
			return -ENOMEM;
		r->driver_bytes += e->size - *bytes;
		*bytes = e->size;
		return 0;
	}
	bytes = map_find(&r->handles, e->address);
	if (bytes) {
		r->driver_bytes -= *bytes;
		map_remove(&r->handles, e->address);
	}
	return 0;
}

static struct torch_segment *segment_at(struct torch_record *r, uint64_t address, uint32_t *index)
{
	const struct range *at = ranges_find(&r->layout, address);

	*index = at ? (uint32_t)at->serial : TORCH_NO_SEGMENT;
	return at ? &r->segments.items[at->serial] : NULL;
}

static int on_driver_free(struct torch_record *r, const struct event *e)
{
	struct torch_segment *s;
	uint32_t index;
	int rc = 0;

	if (e->u.space.flags & TRACE_SPACE_HANDLE)
		return on_handle(r, e, false);
	s = segment_at(r, e->address, &index);
	if (!s || s->address != e->address)
		return 0;
	if (s->torch && !s->range)
		rc = add_call(r, e, TORCH_GIVE, s->address, s->size, index);
	return rc ? rc : drop_segment(r, s);
}

static int on_mapping(struct torch_record *r, const struct event *e, bool mapped)
{
	uint32_t index;
	struct torch_segment *s = segment_at(r, e->address, &index);

	if (!s || !s->range)
		return 0;
	if (!mapped && e->size > s->mapped)
		return 0;
	s->mapped += mapped ? e->size : -e->size;
	if (s->torch)
		r->torch_bytes += mapped ? e->size : -e->size;
	if (!mapped && !s->torch)
		return 0;
	return add_call(r, e, mapped ? TORCH_MAP : TORCH_UNMAP, e->address, e->size, index);
}

/* --- PyTorch's blocks --- */

static void on_request(struct torch_record *r, const struct event *e, struct torch_step *step)
{
	bool refused = e->kind == EV_FAILED;
	struct torch_segment *s;

	if (!e->size || e->size > SIZE_MOST || e->address > UINT64_MAX - e->size)
		return;
	*step = (struct torch_step){.kind = TORCH_REQUEST,
	    .segment = TORCH_NO_SEGMENT,
	    .block = {.serial = ++r->requests,
		.time_ns = e->time_ns,
		.address = refused ? 0 : e->address,
		.size = e->size,
		.stack = e->stack,
		.thread = e->thread,
		.refused = refused}};
	if (refused)
		return;
	s = segment_at(r, e->address, &step->segment);
	if (!s || s->torch)
		return;
	s->torch = true;
	s->small = e->size <= CACHING_SMALL;
	r->torch_bytes += s->range ? s->mapped : s->size;
}

static int on_driver(struct torch_record *r, const struct event *e)
{
	if (e->space == r->va && r->va)
		return e->kind == EV_SPACE_ALLOC  ? new_segment(r, e, true)
		       : e->kind == EV_SPACE_FREE ? on_driver_free(r, e)
						  : 0;
	switch (e->kind) {
	case EV_SPACE_ALLOC:
		if (e->space != r->cuda)
			return 0;
		return e->u.space.flags & TRACE_SPACE_HANDLE ? on_handle(r, e, true)
							     : new_segment(r, e, false);
	case EV_SPACE_FREE:
		return on_driver_free(r, e);
	case EV_SPACE_MAP:
	case EV_SPACE_UNMAP:
		return on_mapping(r, e, e->kind == EV_SPACE_MAP);
	case EV_FAILED:
		if (e->space == r->cuda && e->u.failed.result == OUT_OF_MEMORY)
			return add_call(r, e, TORCH_REFUSE, 0, e->size, TORCH_NO_SEGMENT);
		return 0;
	default:
		return 0;
	}
}

int torch_record_event(struct torch_record *r, const struct event *e, struct torch_step *step)
{
	uint64_t reserved = r->reserved;
	bool known = r->reserved_known;

	step->kind = TORCH_NOTHING;
	if (e->kind < EV_SPACE_ALLOC && e->kind != EV_FAILED && e->kind != EV_LEVEL)
		return 0;
	if ((e->kind == EV_FAILED || e->kind == EV_LEVEL) && e->space == TRACE_SPACE_HOST)
		return 0;
	learn_space(r, e->space);
	if (r->stale) {
		r->calls.count = r->died.count = 0;
		r->stale = false;
	}
	if (e->level_count && (e->space == r->cuda || e->space == r->torch))
		take_levels(r, e);
	if (e->space != r->torch || !r->torch) {
		int rc = on_driver(r, e);

		return rc ? rc : r->error;
	}
	if (e->kind == EV_SPACE_ALLOC || e->kind == EV_FAILED)
		on_request(r, e, step);
	else if (e->kind == EV_SPACE_FREE)
		*step = (struct torch_step){.kind = TORCH_RELEASE,
		    .block = {.time_ns = e->time_ns, .address = e->address, .thread = e->thread}};
	step->reserved = reserved;
	step->reserved_known = known;
	r->stale = step->kind != TORCH_NOTHING;
	return 0;
}
