/*
 * driver.c - writes a program's requests to a device's driver as a stream for the device's player
 * (device_player_main.c): memory, handles of physical memory, blocks of stream-ordered pools; and
 * each recorded level of free memory, by which the player holds what others held.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "replay/replay.h"
#include "util/map.h"
#include "util/num.h"
#include "util/ranges.h"
#include "verdict/device/device.h"

enum { KIND_MEMORY, KIND_HANDLE, KIND_POOL }; /* in the stream */

/* A handle's memory lives while the handle is held or mapped. */
struct handle {
	uint64_t serial, mapped;
	bool held;
};

struct writer {
	const struct feed *feed;
	const struct device_failure *last;
	struct through_stream stream;
	uint32_t cuda, pool; /* ids of the device's spaces, 0: not met yet */
	const char *cuda_name;
	char pool_name[32];
	struct map blocks; /* address to serial */
	struct map handles; /* handle to 1 + index in list */
	VEC(struct handle) list;
	struct ranges mappings; /* serial: index in list */
	uint64_t serial, live, peak_live;
	struct map sizes; /* serial to size */
	uint64_t more; /* bytes that the device has beyond the recorded one; may wrap */
	bool ended;
	struct event failed;
};

static void learn(struct writer *w, uint32_t id)
{
	const char *name;

	if (!id || id == w->cuda || id == w->pool || (w->cuda && w->pool) || !w->feed->space)
		return;
	name = w->feed->space(w->feed->self, id);
	if (name && strcmp(name, w->cuda_name) == 0)
		w->cuda = id;
	else if (name && strcmp(name, w->pool_name) == 0)
		w->pool = id;
}

static void write_free(struct writer *w, uint64_t serial)
{
	const uint64_t *size = map_find(&w->sizes, serial);

	fprintf(w->stream.file, "f %" PRIu64 "\n", serial);
	if (size)
		w->live -= *size;
	map_remove(&w->sizes, serial);
}

static int write_request(struct writer *w, const struct event *e, int kind, bool granted)
{
	uint64_t *size;

	fprintf(w->stream.file, "a %" PRIu64 " %" PRIu64 " %d %d\n", ++w->serial, e->size, kind,
	    granted);
	if (!granted)
		return 0;
	size = map_put(&w->sizes, w->serial);
	if (!size)
		return -ENOMEM;
	*size = e->size;
	w->live += e->size;
	if (w->live > w->peak_live)
		w->peak_live = w->live;
	return 0;
}

/* A recorded level of free memory says how much lies beside. */
static void write_levels(struct writer *w, const struct event *e)
{
	uint64_t free_bytes, total;

	if ((e->space != w->cuda && e->space != w->pool) || !w->cuda ||
	    !event_level(e, TRACE_LEVEL_DEV_FREE, &free_bytes))
		return;
	if (event_level(e, TRACE_LEVEL_DEV_TOTAL, &total) && free_bytes > total)
		return;
	/* May be less than nothing: the device is smaller by more than was free. */
	free_bytes += w->more;
	fprintf(w->stream.file, "r %" PRId64 "\n", (int64_t)free_bytes);
}

static struct handle *handle_of(struct writer *w, uint64_t handle)
{
	const uint64_t *at = map_find(&w->handles, handle);

	return at ? &w->list.items[*at - 1] : NULL;
}

static void drop_unused(struct writer *w, struct handle *h)
{
	if (!h->serial || h->held || h->mapped)
		return;
	write_free(w, h->serial);
	h->serial = 0;
}

static int on_handle(struct writer *w, const struct event *e)
{
	uint64_t *at;
	int rc;

	if (e->u.space.flags & (TRACE_SPACE_REFERENCE | TRACE_SPACE_MULTICAST))
		return 0;
	rc = write_request(w, e, KIND_HANDLE, true);
	if (!rc)
		rc = vec_push(&w->list, (struct handle){.serial = w->serial, .held = true});
	at = rc ? NULL : map_put(&w->handles, e->address);
	if (!at)
		return -ENOMEM;
	*at = w->list.count;
	return 0;
}

static void unmapped(void *arg, const struct range *piece, int whole, int split)
{
	struct writer *w = arg;
	struct handle *h = &w->list.items[piece->serial];

	(void)whole, (void)split;
	h->mapped -= num_least(h->mapped, piece->end - piece->start);
	drop_unused(w, h);
}

static int on_mapping(struct writer *w, const struct event *e)
{
	const uint64_t *at = map_find(&w->handles, e->u.space.handle);
	struct range range = {
	    .start = e->address, .end = e->address + e->size, .serial = at ? *at - 1 : 0};
	int rc;

	if (range.end < range.start)
		return 0;
	rc = ranges_cut(&w->mappings, range.start, range.end, unmapped, w);
	if (rc || e->kind == EV_SPACE_UNMAP || !at)
		return rc;
	w->list.items[*at - 1].mapped += e->size;
	return ranges_add(&w->mappings, &range);
}

static int on_free(struct writer *w, const struct event *e)
{
	const uint64_t *serial;
	struct handle *h;

	if (e->u.space.flags & TRACE_SPACE_HANDLE) {
		h = handle_of(w, e->address);
		if (h) {
			h->held = false;
			drop_unused(w, h);
		}
		return 0;
	}
	serial = map_find(&w->blocks, e->address);
	if (!serial)
		return 0;
	write_free(w, *serial);
	map_remove(&w->blocks, e->address);
	return 0;
}

static int on_alloc(struct writer *w, const struct event *e)
{
	uint64_t *slot;
	int rc;

	if (e->u.space.flags & TRACE_SPACE_HANDLE)
		return on_handle(w, e);
	if (e->u.space.flags & (TRACE_SPACE_REGISTERED | TRACE_SPACE_CAPTURED))
		return 0;
	rc = write_request(w, e, e->space == w->pool && w->pool ? KIND_POOL : KIND_MEMORY, true);
	slot = rc ? NULL : map_put(&w->blocks, e->address);
	if (!slot)
		return -ENOMEM;
	if (*slot) /* its release was not recorded */
		write_free(w, *slot);
	*slot = w->serial;
	return 0;
}

static int on_event(struct writer *w, const struct event *e)
{
	bool own;
	int rc = 0;

	learn(w, e->space);
	own = e->space && (e->space == w->cuda || e->space == w->pool);
	if (e->kind == EV_FAILED && own && e->time_ns == w->last->time_ns) {
		write_levels(w, e);
		w->ended = true;
		w->failed = *e;
		return write_request(w, e,
		    e->space == w->pool			  ? KIND_POOL
		    : w->last->flags & TRACE_SPACE_HANDLE ? KIND_HANDLE
							  : KIND_MEMORY,
		    false);
	}
	if (e->kind == EV_SPACE_ALLOC && own)
		rc = on_alloc(w, e);
	else if (e->kind == EV_SPACE_FREE)
		rc = on_free(w, e);
	else if (e->kind == EV_SPACE_MAP || e->kind == EV_SPACE_UNMAP)
		rc = on_mapping(w, e);
	if (e->level_count)
		write_levels(w, e);
	return rc;
}

static int write_stream(struct writer *w, struct err *err)
{
	struct event e;
	int rc = feed_rewind_spaces(w->feed, err), more = 1;

	while (!rc && !w->ended && (more = w->feed->next(w->feed->self, &e, err)) == 1) {
		rc = on_event(w, &e);
		if (rc)
			err_set(err, rc, "no memory for the replay");
	}
	return rc ? rc : more < 0 ? more : 0;
}

/* Finds the event of a request, for its words. */
static int find_event(struct writer *w, uint64_t serial, struct event *out, struct err *err)
{
	uint64_t n = 0;
	struct event e;
	int rc = feed_rewind_spaces(w->feed, err), more;

	while (!rc && (more = w->feed->next(w->feed->self, &e, err)) == 1) {
		bool own = e.space && (e.space == w->cuda || e.space == w->pool);
		bool counts =
		    e.kind == EV_SPACE_ALLOC && own &&
		    !(e.u.space.flags & (e.u.space.flags & TRACE_SPACE_HANDLE
						? TRACE_SPACE_REFERENCE | TRACE_SPACE_MULTICAST
						: TRACE_SPACE_REGISTERED | TRACE_SPACE_CAPTURED));

		*out = e;
		if (counts && ++n == serial)
			return 0;
	}
	return rc;
}

static int take_answer(struct writer *w, const struct through_answer *a, struct feed feed,
    const struct verdict_result *v, struct replay_result *out, struct err *err)
{
	struct event e = w->failed;
	int rc = 0;

	out->driver = *a;
	out->asked_driver = true;
	out->peak_live = w->peak_live;
	out->original.event = w->serial;
	out->headroom = (int64_t)a->free;
	if (!a->refused.serial)
		return 0;
	out->headroom -= (int64_t)a->refused.size;
	if (a->refused.serial != w->serial)
		rc = find_event(w, a->refused.serial, &e, err);
	if (!rc)
		replay_set_replayed(out, feed, v->devices.first->space,
		    &(struct replay_point){.requested = a->refused.size,
			.time_ns = e.time_ns,
			.event = a->refused.serial,
			.stack = e.stack});
	return rc;
}

int replay_driver(const struct verdict_result *v, struct feed feed,
    const struct replay_request *request, struct replay_result *out, struct err *err)
{
	struct writer w = {.feed = &feed,
	    .last = spaces_failure(v->model->spaces),
	    .cuda_name = v->devices.first->device};
	struct through_request to = {
	    .program = request->device_player, .simgpu = request->simgpu, .allowed = UINT64_MAX};
	struct through_answer answer;
	uint64_t total = w.last ? w.last->total : 0;
	int rc;

	to.memory = request->memory ? request->memory : total;
	if (!w.last || !to.memory)
		return err_set(err, -EINVAL,
		    "the trace does not say how large the device was: give its size, as --memory "
		    "24GiB");
	w.more = total ? to.memory - total : 0;
	snprintf(w.pool_name, sizeof(w.pool_name), "pool:%u", (unsigned)v->devices.first->number);
	ranges_init(&w.mappings);
	rc = through_stream_open(&w.stream, err);
	if (!rc)
		rc = write_stream(&w, err);
	if (!rc)
		rc = through_run("the driver", &to, &w.stream, &answer, err);
	if (!rc)
		rc = take_answer(&w, &answer, feed, v, out, err);
	through_stream_close(&w.stream);
	map_free(&w.blocks);
	map_free(&w.handles);
	map_free(&w.sizes);
	vec_free(&w.list);
	ranges_fini(&w.mappings);
	return rc;
}
