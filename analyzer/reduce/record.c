/*
 * record.c - see record.h. Blocks are found by their address, mappings by ranges, a handle's memory
 * by the handle.
 */
#include "reduce/record.h"

#include <errno.h>
#include <string.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/ranges.h"
#include "verdict/framework/framework_frames.h"

#define PROGRESS_EVENTS 65536u
#define HANDLES (1ull << 63) /* keys of handles, unlike all addresses */

struct loader {
	struct record *r;
	const struct verdict_result *verdict;
	struct map blocks; /* address: the ALLOC, plus 1 */
	struct map space_blocks; /* address or handle: the SPACE_ALLOC, plus 1 */
	struct map marks; /* open requests and ranges: id to unit */
	struct map arenas; /* stacks of the interpreter's arenas */
	struct ranges ranges; /* serial: unit */
	struct ranges device; /* the driver's memory, likewise */
	struct map last_unmap; /* thread: unit */
	VEC(struct range) undo; /* the ranges of the last unmapping */
	uint64_t cut; /* bytes of the last unmapping */
	uint32_t hit; /* the unit that it hit; 0: none */
	struct requests *requests;
	uint64_t moment_ns;
	int rc;
};

static int no_memory(struct err *err)
{
	return err_set(
	    err, -ENOMEM, "no memory for the events: reduce the trace on a larger machine");
}

/* Returns the unit that stands for `unit`. */
static uint32_t unit_of(struct record *r, uint32_t unit)
{
	struct record_unit *units = r->units.items;

	while (units[unit].same != unit) {
		units[unit].same = units[units[unit].same].same;
		unit = units[unit].same;
	}
	return unit;
}

/* Joins two units: they are left out together. Returns the joint unit. */
static uint32_t join(struct record *r, uint32_t a, uint32_t b)
{
	a = unit_of(r, a);
	b = unit_of(r, b);
	if (a == b)
		return a;
	if (b < a) {
		uint32_t c = a;

		a = b;
		b = c;
	}
	r->units.items[b].same = a;
	return a;
}

static uint32_t unit_new(struct loader *l, enum record_unit_kind kind, const struct event *e)
{
	struct record *r = l->r;
	uint32_t id = (uint32_t)r->units.count;
	const struct lane *lane = requests_lane(l->requests, e->thread, e->task);
	const struct request_run *run = lane ? requests_of_lane(l->requests, lane) : NULL;

	if (vec_push(&r->units, (struct record_unit){.kind = (uint8_t)kind,
				    .leaves = true,
				    .stack = e->stack,
				    .first = (uint32_t)r->events.count,
				    .request = run ? run->serial : 0,
				    .same = id})) {
		l->rc = -ENOMEM;
		return 0;
	}
	return id;
}

static void put(struct map *map, uint64_t key, uint64_t value, struct loader *l)
{
	uint64_t *at = map_put(map, key);

	if (at)
		*at = value;
	else
		l->rc = -ENOMEM;
}

static void gather(void *arg, const struct range *piece, int whole, int split)
{
	struct loader *l = arg;

	(void)whole;
	(void)split;
	l->hit = l->hit ? join(l->r, l->hit, (uint32_t)piece->serial) : (uint32_t)piece->serial;
	l->cut += piece->end - piece->start;
	if (vec_push(&l->undo, *piece))
		l->rc = -ENOMEM;
}

static void cut(struct loader *l, const struct event *e)
{
	l->undo.count = 0;
	l->cut = 0;
	l->hit = 0;
	if (ranges_cut(&l->ranges, e->address, e->address + e->size, gather, l))
		l->rc = -ENOMEM;
}

static void find(void *arg, const struct range *range)
{
	struct loader *l = arg;

	l->hit = l->hit ? join(l->r, l->hit, (uint32_t)range->serial) : (uint32_t)range->serial;
}

static enum record_class class_of_map(struct loader *l, const struct event *e)
{
	if (e->u.map.backing != TRACE_BACKING_ANON || !e->u.map.prot ||
	    (e->u.map.flags & (TRACE_MAP_SHARED | TRACE_MAP_STACK | TRACE_MAP_ALLOCATOR)))
		return RECORD_ADDRESS;
	return map_find(&l->arenas, e->stack) ? RECORD_ARENA : RECORD_MAPPING;
}

static void on_map(struct loader *l, const struct event *e, struct record_event *to)
{
	const uint64_t *moved = NULL;
	uint32_t unit = unit_new(l, UNIT_BLOCK, e), before;

	if (e->u.map.flags & TRACE_MAP_REMAP)
		moved = map_find(&l->last_unmap, e->thread);
	cut(l, e);
	before = l->hit;
	to->class = (uint8_t)class_of_map(l, e);
	to->bytes = (int64_t)e->size;
	if (moved && *moved)
		unit = join(l->r, unit, (uint32_t)*moved);
	if (before) {
		/* A mapping is one unit with what it replaces. */
		unit = join(l->r, unit, before);
		to->bytes -= (int64_t)l->cut;
	}
	to->unit = unit;
	l->r->units.items[unit].stack = e->stack;
	if (ranges_add(&l->ranges, &(struct range){.start = e->address,
				       .end = e->address + e->size,
				       .serial = unit,
				       .kind = to->class}))
		l->rc = -ENOMEM;
}

/* False: nothing known is unmapped. */
static bool on_unmap(struct loader *l, const struct event *e, struct record_event *to)
{
	cut(l, e);
	put(&l->last_unmap, e->thread, l->hit, l);
	if (!l->hit)
		return false;
	to->unit = l->hit;
	to->class = (uint8_t)l->undo.items[0].kind;
	to->bytes = -(int64_t)l->cut;
	return true;
}

static bool on_ununmap(struct loader *l, const struct event *e, struct record_event *to)
{
	const uint64_t *unit = map_find(&l->last_unmap, e->thread);

	if (!unit || !*unit || !l->undo.count || l->hit != *unit)
		return false;
	to->unit = (uint32_t)*unit;
	to->class = (uint8_t)l->undo.items[0].kind;
	to->bytes = (int64_t)l->cut;
	for (size_t i = 0; i < l->undo.count; i++)
		if (ranges_add(&l->ranges, &l->undo.items[i]))
			l->rc = -ENOMEM;
	l->undo.count = 0;
	return true;
}

/* Returns the unit of the block that the event, or its step, belongs to. */
static uint32_t chain_of(struct record *r, uint32_t event)
{
	uint32_t unit = unit_of(r, r->events.items[event].unit);

	return r->units.items[unit].kind == UNIT_STEP ? r->units.items[unit].chain : unit;
}

#define STEP_EVENTS 256u /* of other threads, while one thread is in realloc() */

/* A realloc is a release, which came just before, and this acquisition. Returns its unit. */
static uint32_t step_of(struct loader *l, const struct event *e, uint32_t old)
{
	struct record *r = l->r;
	uint32_t chain = chain_of(r, old), step;
	size_t i = r->events.count, least = i > STEP_EVENTS ? i - STEP_EVENTS : 0;

	r->units.items[chain].stack = e->stack;
	while (i-- > least) {
		struct record_event *release = &r->events.items[i];

		if (release->kind != EV_FREE || release->partner != old)
			continue;
		step = unit_new(l, UNIT_STEP, e);
		r->units.items[step].chain = chain;
		release->unit = step;
		return step;
	}
	return chain;
}

static bool on_block(struct loader *l, const struct event *e, struct record_event *to)
{
	struct record *r = l->r;
	uint64_t *alloc = map_find(&l->blocks, e->address);
	uint32_t index = (uint32_t)r->events.count;

	if (e->kind == EV_ALLOC) {
		const uint64_t *old = e->old ? map_find(&l->blocks, ~e->old->address) : NULL;

		to->partner = old ? (uint32_t)*old : 0;
		to->unit =
		    to->partner ? step_of(l, e, to->partner - 1) : unit_new(l, UNIT_BLOCK, e);
		put(&l->blocks, e->address, index + 1, l);
	} else {
		/* A released block stays under ~address, for the realloc or the undoing that
		 * follows. */
		if (e->kind == EV_UNFREE)
			alloc = map_find(&l->blocks, ~e->address);
		if (!alloc || !*alloc)
			return false;
		to->partner = (uint32_t)*alloc - 1;
		to->unit = chain_of(r, to->partner);
		if (e->kind == EV_UNFREE) {
			put(&l->blocks, e->address, to->partner + 1u, l);
		} else {
			map_remove(&l->blocks, e->address);
			put(&l->blocks, ~e->address, to->partner + 1u, l);
		}
	}
	/* A release has the size of its block. */
	if (e->kind != EV_ALLOC)
		to->size = r->events.items[to->partner].size;
	to->class = to->size >= RECORD_LARGE_BYTES ? RECORD_LARGE : RECORD_HEAP;
	to->bytes = e->kind == EV_FREE ? -(int64_t)to->size : (int64_t)to->size;
	return true;
}

static uint64_t space_key(const struct loader *l, const struct event *e)
{
	const char *name = e->space ? l->r->feed.space(l->r->feed.self, e->space) : NULL;

	if (e->u.space.flags & TRACE_SPACE_HANDLE)
		return map_hash(e->address) | HANDLES;
	/* Addresses of these two spaces may equal those of others. */
	if (name && (!strncmp(name, "torch:", 6) || !strcmp(name, "va")))
		return map_hash(e->address ^ (uint64_t)(e->space + 1) << 56) & ~HANDLES;
	return e->address & ~HANDLES;
}

static uint8_t class_of_space(uint32_t space)
{
	return (uint8_t)(RECORD_SPACES + (space < RECORD_SPACES_MAX ? space : 0));
}

static bool is_torch(const struct loader *l, uint32_t space)
{
	const char *name = space ? l->r->feed.space(l->r->feed.self, space) : NULL;

	return name && !strncmp(name, "torch:", 6);
}

static void lies(struct loader *l, uint64_t address, uint64_t size, uint32_t unit)
{
	struct range range = {.start = address, .end = address + size, .serial = unit};

	if (ranges_cut(&l->device, range.start, range.end, NULL, NULL) ||
	    (unit && ranges_add(&l->device, &range)))
		l->rc = -ENOMEM;
}

/* Notes where the driver's memory lies, and which of it a block of PyTorch's lies in. */
static void note_callsite(struct loader *l, const struct event *e, uint32_t unit)
{
	const struct range *segment;

	if (e->u.space.flags & TRACE_SPACE_HANDLE)
		return;
	if (!is_torch(l, e->space)) {
		lies(l, e->address, e->size, unit);
		return;
	}
	segment = ranges_find(&l->device, e->address);
	if (!segment || !segment->serial)
		return;
	l->r->units.items[unit].inside = (uint32_t)segment->serial;
	l->r->units.items[segment->serial].holds = true;
}

static bool on_space_block(struct loader *l, const struct event *e, struct record_event *to)
{
	struct record *r = l->r;
	uint64_t key = space_key(l, e);
	const uint64_t *alloc = map_find(&l->space_blocks, key);
	uint32_t index = (uint32_t)r->events.count;

	if (e->kind == EV_SPACE_ALLOC) {
		bool again = alloc && e->u.space.flags & TRACE_SPACE_REFERENCE;

		to->unit =
		    again ? r->events.items[*alloc - 1].unit : unit_new(l, UNIT_SPACE_BLOCK, e);
		to->class = class_of_space(e->space);
		to->bytes = again ? 0 : (int64_t)e->size;
		if (!again) {
			put(&l->space_blocks, key, index + 1, l);
			note_callsite(l, e, to->unit);
		}
		return true;
	}
	if (!alloc)
		return false;
	to->partner = (uint32_t)*alloc - 1;
	to->unit = r->events.items[to->partner].unit;
	to->class = r->events.items[to->partner].class;
	to->bytes = e->kind == EV_SPACE_FREE ? -(int64_t)r->events.items[to->partner].size
					     : (int64_t)r->events.items[to->partner].size;
	return true;
}

/* A mapping of a handle's memory belongs to the handle; its unmapping is found by address. */
static bool on_space_map(struct loader *l, const struct event *e, struct record_event *to)
{
	const uint64_t *at;

	if (e->kind == EV_SPACE_MAP) {
		at = map_find(&l->space_blocks, map_hash(e->u.space.handle) | HANDLES);
		if (at)
			to->unit = l->r->events.items[*at - 1].unit;
		put(&l->marks, e->address | HANDLES, to->unit, l);
		lies(l, e->address, e->size, to->unit);
		return true;
	}
	at = map_find(&l->marks, e->address | HANDLES);
	to->unit = at ? (uint32_t)*at : 0;
	return true;
}

static void on_mark(struct loader *l, const struct event *e, struct record_event *to)
{
	uint64_t key = (map_hash(e->u.mark.id) ^ e->u.mark.what) & ~HANDLES;
	const uint64_t *unit = e->u.mark.id ? map_find(&l->marks, key) : NULL;

	to->unit = unit ? (uint32_t)*unit : unit_new(l, UNIT_MARK, e);
	if (e->u.mark.id && e->u.mark.phase == TRACE_MARK_BEGIN)
		put(&l->marks, key, to->unit, l);
	if (e->u.mark.phase == TRACE_MARK_END)
		map_remove(&l->marks, key);
}

/* False: the event concerns nothing known, and is left out. */
static bool callsite(struct loader *l, const struct event *e, struct record_event *to)
{
	switch (e->kind) {
	case EV_ALLOC:
	case EV_FREE:
	case EV_UNFREE:
		return on_block(l, e, to);
	case EV_MAP:
		on_map(l, e, to);
		return true;
	case EV_UNMAP:
		return on_unmap(l, e, to);
	case EV_UNUNMAP:
		return on_ununmap(l, e, to);
	case EV_ADVISE:
		l->hit = 0;
		ranges_within(&l->ranges, e->address, e->address + e->size, find, l);
		to->unit = l->hit;
		return true;
	case EV_SPACE_ALLOC:
	case EV_SPACE_FREE:
	case EV_SPACE_UNFREE:
		return on_space_block(l, e, to);
	case EV_SPACE_MAP:
	case EV_SPACE_UNMAP:
	case EV_SPACE_UNUNMAP:
		return on_space_map(l, e, to);
	case EV_MARK:
		on_mark(l, e, to);
		return true;
	case EV_LEVEL:
		to->unit = unit_new(l, UNIT_LEVEL, e);
		return true;
	case EV_FAILED:
		if (e->time_ns != l->moment_ns)
			to->unit = unit_new(l, UNIT_FAILURE, e);
		return true;
	case EV_FORK:
	case EV_NOTICE:
	case EV_THREAD_EXIT:
	case EV_TASK_END:
		to->unit = unit_new(l, UNIT_OTHER, e);
		return true;
	case EV_OUTSIDE:
		return false;
	default:
		return true;
	}
}

static const struct event_level *keep_levels(struct record *r, const struct event *e)
{
	size_t bytes = e->level_count * sizeof(*e->levels);

	/* An arena's copy is aligned to 8. */
	return bytes ? (const struct event_level *)(void *)arena_copy(&r->arena, e->levels, bytes)
		     : NULL;
}

static int add(struct loader *l, const struct event *e)
{
	struct record *r = l->r;
	struct record_event to = {.time_ns = e->time_ns,
	    .address = e->address,
	    .size = e->size,
	    .thread = e->thread,
	    .task = e->task,
	    .stack = e->stack,
	    .kind = (uint8_t)e->kind,
	    .api = e->api,
	    .flags = (uint8_t)e->flags};
	int rc;

	if (r->events.count == UINT32_MAX - 1)
		return -EOVERFLOW;
	if (!callsite(l, e, &to))
		return l->rc;
	if (!record_is_block(e->kind)) {
		struct event copy = *e;

		copy.levels = keep_levels(r, e);
		if (e->level_count && !copy.levels)
			return -ENOMEM;
		if (vec_push(&r->rich, copy))
			return -ENOMEM;
		to.rich = (uint32_t)r->rich.count;
	}
	rc = vec_push(&r->events, to);
	return rc ? rc : l->rc;
}

static int find_arenas(struct loader *l)
{
	const struct callsites *p = l->verdict->callsites;

	for (uint32_t i = 0; p && i < p->count; i++)
		if (p->list[i].arena_share.any)
			put(&l->arenas, p->list[i].stack, 1, l);
	return l->rc;
}

static bool in_request(void *arg, uint32_t stack)
{
	const struct verdict_result *v = arg;

	return v->frameworks.frames &&
	       framework_stack(v->frameworks.frames, &v->model->feed, stack).in_request;
}

static int read_process(struct loader *l, struct err *err)
{
	struct record *r = l->r;
	struct feed *feed = &r->feed;
	uint64_t moment = l->moment_ns;
	struct event e;
	int rc = feed->rewind(feed->self, err);

	progress_begin("reading what can be left out", feed->facts(feed->self)->event_bytes);
	while (!rc && (rc = feed->next(feed->self, &e, err)) == 1) {
		bool refusal = e.kind == EV_FAILED && e.time_ns == moment;

		if (!r->moment && (refusal || e.time_ns > moment)) {
			r->moment = (uint32_t)r->events.count;
			r->refused = refusal;
		}
		rc = requests_apply(l->requests, &e);
		if (!rc)
			rc = add(l, &e);
		if (rc == -EOVERFLOW)
			err_set(err, rc, "the trace has more than %u events, too many to reduce",
			    UINT32_MAX);
		else if (rc)
			no_memory(err);
		if (r->events.count % PROGRESS_EVENTS == 0 && feed->bytes_read)
			progress_step(feed->bytes_read(feed->self));
	}
	progress_end();
	if (!r->moment)
		r->moment = (uint32_t)r->events.count;
	return rc;
}

/* A refused realloc is of the last size before the moment, so a block's last step stays. */
static int keep_last_steps(struct record *r)
{
	struct map last = {0}; /* by chain; the release of a refused realloc is no step */
	int rc = 0;

	for (uint32_t i = 0; i < r->moment && !rc; i++) {
		const struct record_event *e = &r->events.items[i];
		const struct record_unit *u = &r->units.items[e->unit];
		uint32_t chain = u->kind == UNIT_STEP ? u->chain : e->unit;
		uint64_t *step;

		if (u->kind == UNIT_STEP && e->kind == EV_ALLOC) {
			step = map_put(&last, chain);
			rc = step ? 0 : -ENOMEM;
			if (step)
				*step = e->unit;
		} else if (e->kind == EV_FREE && u->kind == UNIT_BLOCK &&
			   !(e->flags & EVENT_REALLOC)) {
			map_remove(&last, chain);
		}
	}
	for (uint32_t i = 0; i < r->units.count && !rc; i++) {
		const struct record_unit *u = &r->units.items[i];
		const uint64_t *step = u->kind == UNIT_STEP ? map_find(&last, u->chain) : NULL;

		if (step && *step == i)
			r->units.items[i].leaves = false;
	}
	map_free(&last);
	return rc;
}

/* Gives joined units their events, and sums what each unit holds at the moment. */
static void settle(struct record *r)
{
	for (size_t i = 0; i < r->events.count; i++) {
		struct record_event *e = &r->events.items[i];
		struct record_unit *u;

		e->unit = unit_of(r, e->unit);
		u = &r->units.items[e->unit];
		u->events++;
		if (i < r->moment)
			u->held += e->bytes;
	}
}

static int read_outside(struct loader *l, const struct trace_set *set, struct err *err)
{
	struct record *r = l->r;
	struct event e;
	int64_t shift;
	int rc;

	if (!set->supervisor)
		return 0;
	r->supervised = true;
	r->supervisor = feed_of_trace(set->supervisor);
	shift = (int64_t)(trace_facts(set->supervisor)->start_mono_ns -
			  r->feed.facts(r->feed.self)->start_mono_ns);
	rc = r->supervisor.rewind(r->supervisor.self, err);
	while (!rc && (rc = r->supervisor.next(r->supervisor.self, &e, err)) == 1) {
		struct record_outside o = {.e = e};
		int64_t at = (int64_t)e.time_ns + shift;

		o.time_ns = at > 0 ? (uint64_t)at : 0;
		o.e.levels = keep_levels(r, &e);
		rc = 0;
		if (e.kind == EV_LEVEL) {
			o.unit = (uint32_t)r->units.count;
			rc = vec_push(&r->units,
			    (struct record_unit){
				.kind = UNIT_LEVEL, .leaves = true, .events = 1, .same = o.unit});
		}
		rc = rc ? rc : vec_push(&r->outside, o);
		if (rc || (e.level_count && !o.e.levels))
			rc = no_memory(err);
	}
	return rc;
}

const char *record_info(const struct record *r, const char *key)
{
	for (uint32_t i = 0; i < r->info_count; i++)
		if (!strcmp(r->infos[i].key, key))
			return r->infos[i].value;
	return r->feed.info(r->feed.self, key);
}

int record_load(const struct trace_set *set, const struct verdict_result *verdict,
    struct record *out, struct err *err)
{
	struct loader l = {.r = out,
	    .verdict = verdict,
	    .moment_ns = failure_is_kill(verdict->failure.kind) ? verdict->callsites->moment_ns
								: verdict->failure.time_ns,
	    .requests = requests_new(in_request, (void *)verdict)};
	int rc = l.requests ? 0 : no_memory(err);

	memset(out, 0, sizeof(*out));
	out->feed = verdict->model->feed;
	ranges_init(&l.ranges);
	ranges_init(&l.device);
	map_seed();
	if (!rc && vec_push(&out->units, (struct record_unit){.kind = UNIT_OTHER}))
		rc = no_memory(err);
	if (!rc && find_arenas(&l))
		rc = no_memory(err);
	if (!rc)
		rc = read_process(&l, err);
	if (!rc)
		settle(out);
	if (!rc && keep_last_steps(out))
		rc = no_memory(err);
	if (!rc && out->refused &&
	    (verdict->failure.limit == LIMIT_AS || verdict->failure.limit == LIMIT_DATA)) {
		out->requested = verdict->failure.requested_bytes;
		out->room = num_less(verdict->failure.limit_bytes, verdict->failure.usage_bytes);
	}
	if (!rc)
		rc = read_outside(&l, set, err);
	map_free(&l.blocks);
	map_free(&l.space_blocks);
	map_free(&l.marks);
	map_free(&l.arenas);
	map_free(&l.last_unmap);
	vec_free(&l.undo);
	ranges_fini(&l.ranges);
	ranges_fini(&l.device);
	requests_free(l.requests);
	return rc;
}

void record_fini(struct record *r)
{
	vec_free(&r->events);
	vec_free(&r->rich);
	vec_free(&r->units);
	vec_free(&r->outside);
	arena_free(&r->arena);
}
