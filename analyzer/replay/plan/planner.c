/* planner.c - see planner.h. */
#include "replay/plan/planner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "replay/plan/plan_file.h"
#include "util/map.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/ranges.h"
#include "util/tuned.h"
#include "util/vec.h"

TUNED(uint64_t, GRAIN_PARTS, 512,
    "as many points of the curve as a terminal or a plot has columns, by live bytes");
#define PROGRESS_EVENTS 65536u
TUNED(double, PACE_MIN, 1.0, "bytes written a ns: a slow machine with page faults does that");

/* The releasing half of a realloc, which is one operation. */
struct moving {
	bool waits;
	uint32_t slot;
	uint64_t address, size;
	uint32_t class;
};

/* A block: where its pointer is, and how it counts. */
struct held {
	uint32_t slot;
	uint32_t class;
};

/* A mapping: all pieces that are left of it share a slot. */
struct region {
	uint64_t start, left;
	uint32_t class;
};

/* A large block that may still be written to for the first time. */
struct young {
	uint32_t slot;
	uint64_t born_ns, size;
};

struct planner {
	struct feed feed;
	struct plan_file file;
	const struct recorded *recorded;
	const struct plan_last *last;
	struct plan_facts *facts;

	struct map threads; /* serial to 1 + lane */
	VEC(struct moving) moving; /* by lane */
	uint32_t newest; /* lane of the latest event */
	struct map blocks; /* address to struct held */
	struct ranges mappings; /* serial: the region */
	VEC(struct region) regions; /* by slot */
	bool cut_any; /* the latest unmapping took something, which was: */
	enum plan_access cut_access;
	int error; /* in a callback */

	uint64_t event, live[PLAN_CLASSES], all;
	uint64_t now_ns;
	VEC(struct young) young;
	uint64_t written_ns; /* then those that are forgotten were done */
	VEC(uint64_t) born; /* by slot, ns; of what is not small, UINT64_MAX: nothing lives */
	uint64_t sampled_live, sampled_ns, grain; /* grain 0: only where levels were measured */
	uint64_t peak_event; /* UINT64_MAX: not known yet */
	uint32_t due; /* of the recorded samples */
	bool last_seen;

	/* plan_find()'s. */
	bool finding, found;
	uint32_t find_thread;
	uint64_t find_n;
};

static uint64_t held_value(struct held h)
{
	return (uint64_t)h.class << 32 | h.slot;
}

static struct held held_of(uint64_t value)
{
	return (struct held){.slot = (uint32_t)value, .class = (uint32_t)(value >> 32)};
}

/* --- lives --- */

/* Bytes a ns that are written to: as fast as the curve grew in its first half, but memory comes at
 * some speed on any machine. */
static double pace_of(const struct planner *p)
{
	return p->recorded->pace > PACE_MIN ? p->recorded->pace : PACE_MIN;
}

/* Note that the slot's block is new and still unwritten. Small blocks are not noted. */
static void is_young(struct planner *p, uint32_t slot, uint64_t size)
{
	struct young y = {.slot = slot, .born_ns = p->now_ns, .size = size};

	if (size < PLAN_LARGE)
		return;
	while (p->born.count <= slot)
		if (vec_push(&p->born, UINT64_MAX))
			return; /* without it a band is narrower than it should be */
	if (!vec_push(&p->young, y))
		p->born.items[slot] = p->now_ns;
}

static void is_gone(struct planner *p, uint32_t slot)
{
	if (slot < p->born.count)
		p->born.items[slot] = UINT64_MAX;
}

/* What was not written to as yet, when blocks are one after the other. What is done, or gone, is
 * forgotten. */
static uint64_t young_bytes(struct planner *p, uint64_t now_ns)
{
	double pace = pace_of(p);
	uint64_t sum = 0, done = p->written_ns, begun;
	size_t kept = 0;

	for (size_t i = 0; i < p->young.count; i++) {
		struct young y = p->young.items[i];

		if (p->born.items[y.slot] != y.born_ns)
			continue;
		begun = y.born_ns > done ? y.born_ns : done;
		/* a size that nothing has takes for ever: some centuries */
		done = begun + (uint64_t)fmin((double)y.size / pace, 0x1p62);
		if (done <= now_ns) {
			p->written_ns = done;
			continue;
		}
		sum += begun < now_ns ? (uint64_t)fmin((double)(done - now_ns) * pace, 0x1p62)
				      : y.size;
		p->young.items[kept++] = y;
	}
	p->young.count = kept;
	return sum;
}

/* What lives becomes more, or less. */
static void acquired(struct planner *p, uint32_t class, uint64_t size)
{
	p->live[class] += size;
	p->all += size;
	if (p->peak_event == UINT64_MAX && !p->last_seen && p->all > p->facts->peak_live) {
		p->facts->peak_live = p->all;
		p->facts->peak_event = p->event;
	}
}

static void released(struct planner *p, uint32_t class, uint64_t size)
{
	p->live[class] -= size;
	p->all -= size;
}

static uint32_t class_of(uint8_t api, uint64_t size)
{
	return plan_class(api == TRACE_API_CALLOC ? PLAN_ZEROED : PLAN_BLOCK, size);
}

/* --- threads and samples --- */

static int lane_of(struct planner *p, uint32_t serial, uint32_t *lane)
{
	uint64_t *known = map_find(&p->threads, serial);
	int rc = 0;

	if (!known) {
		/* The image's first thread is main()'s. Whoever did something just before another
		 * one appeared has most likely made it: making a thread takes memory. */
		bool ended = p->file.lanes.items[p->newest].ended;

		*lane = 0;
		if (serial != 1)
			rc = plan_file_spawn(&p->file, ended ? 0 : p->newest, lane);
		if (!rc && (*lane + 1 > p->moving.count))
			rc = vec_push(&p->moving, (struct moving){0});
		known = rc ? NULL : map_put(&p->threads, serial);
		if (!known)
			return -ENOMEM;
		*known = *lane + 1;
	}
	*lane = (uint32_t)*known - 1;
	p->newest = *lane;
	return 0;
}

static int add_sample(struct planner *p, uint64_t time_ns, uint32_t recorded, bool peak)
{
	struct plan_moment m = {
	    .time_ns = time_ns, .event = p->event, .recorded = recorded, .peak = peak};
	struct plan_op op = plan_op(PLAN_SAMPLE, (uint32_t)p->facts->moments.count, 0);

	memcpy(m.live, p->live, sizeof(m.live));
	m.young = young_bytes(p, time_ns);
	p->sampled_live = p->all;
	p->sampled_ns = time_ns;
	if (vec_push(&p->facts->moments, m))
		return -ENOMEM;
	op.shift = recorded != PLAN_NONE;
	return plan_file_alone(&p->file, 0, op);
}

/* Those that were taken before the event. */
static int samples_due(struct planner *p, uint64_t time_ns)
{
	int rc = 0;

	while (!rc && p->due < p->recorded->samples.count &&
	       p->recorded->samples.items[p->due].time_ns <= time_ns) {
		rc = add_sample(p, p->recorded->samples.items[p->due].time_ns, p->due, false);
		p->due++;
	}
	/* For what comes now to wait until it is due. */
	if (!rc && p->facts->pace_ns && time_ns != UINT64_MAX &&
	    time_ns > p->sampled_ns + p->facts->pace_ns)
		rc = add_sample(p, time_ns, PLAN_NONE, false);
	return rc;
}

static int samples_after(struct planner *p, const struct event *e)
{
	if (p->event == p->peak_event)
		return add_sample(p, e->time_ns, PLAN_NONE, true);
	if (p->grain && p->all > p->sampled_live + p->grain)
		return add_sample(p, e->time_ns, PLAN_NONE, false);
	return 0;
}

/* --- blocks --- */

static int flush_moving(struct planner *p, uint32_t lane)
{
	struct moving *m = &p->moving.items[lane];
	struct plan_op op = plan_op(PLAN_FREE, m->slot, 0);
	int rc;

	if (!m->waits)
		return 0;
	m->waits = false;
	released(p, m->class, m->size);
	is_gone(p, m->slot);
	op.shift = plan_kind(m->class);
	rc = plan_file_add(&p->file, lane, op, -(int64_t)m->size);
	return rc ? rc : plan_file_leave(&p->file, m->slot);
}

static int on_free(struct planner *p, const struct event *e, uint32_t lane)
{
	const uint64_t *known = map_find(&p->blocks, e->address);
	struct held h;
	int rc = flush_moving(p, lane);

	if (rc)
		return rc;
	if (!e->block || !known) {
		p->facts->unknown_releases++;
		return 0;
	}
	h = held_of(*known);
	map_remove(&p->blocks, e->address);
	p->moving.items[lane] = (struct moving){.waits = true,
	    .slot = h.slot,
	    .address = e->address,
	    .size = e->block->size,
	    .class = h.class};
	return e->flags & EVENT_REALLOC ? 0 : flush_moving(p, lane);
}

static int hold(struct planner *p, uint64_t address, struct held h)
{
	uint64_t *value = map_put(&p->blocks, address);

	if (!value)
		return -ENOMEM;
	*value = held_value(h);
	return 0;
}

/* A realloc whose old block is known. */
static int on_resize(struct planner *p, const struct event *e, uint32_t lane)
{
	struct moving *m = &p->moving.items[lane];
	struct held h = {.slot = m->slot, .class = class_of(TRACE_API_MALLOC, e->size)};
	struct plan_op op = plan_op(PLAN_REALLOC, m->slot, e->size);
	int rc;

	m->waits = false;
	op.shift = plan_kind(m->class);
	rc = plan_file_add(&p->file, lane, op, (int64_t)(e->size - m->size));
	released(p, m->class, m->size);
	acquired(p, h.class, e->size);
	if (e->size > m->size)
		is_young(p, m->slot, e->size - m->size);
	return rc ? rc : hold(p, e->address, h);
}

/* The address tells at least this alignment; what it has by chance is too much. */
static uint8_t shift_of(uint64_t address)
{
	unsigned shift = address ? (unsigned)__builtin_ctzll(address) : 0;

	return (uint8_t)(shift < 4 ? 4 : shift > 12 ? 12 : shift);
}

static struct plan_op call_of(struct planner *p, uint8_t api, uint64_t address, uint64_t size)
{
	struct plan_op op = plan_op(api == TRACE_API_CALLOC    ? PLAN_CALLOC
				    : api == TRACE_API_ALIGNED ? PLAN_ALIGNED
							       : PLAN_MALLOC,
	    0, size);

	if (api == TRACE_API_ALIGNED) {
		op.shift = shift_of(address);
		p->facts->aligned++;
	}
	return op;
}

static int on_alloc(struct planner *p, const struct event *e, uint32_t lane)
{
	struct held h = {.class = class_of(e->api, e->size)};
	struct plan_op op;
	int rc;

	if (e->flags & EVENT_REALLOC && e->old && p->moving.items[lane].waits)
		return on_resize(p, e, lane);
	rc = flush_moving(p, lane);
	if (!rc)
		rc = plan_file_take(&p->file, lane, &h.slot);
	if (rc)
		return rc;
	op = call_of(p, e->api, e->address, e->size);
	op.slot = h.slot;
	rc = plan_file_add(&p->file, lane, op, (int64_t)e->size);
	acquired(p, h.class, e->size);
	is_young(p, h.slot, e->size);
	return rc ? rc : hold(p, e->address, h);
}

/* The realloc failed: its block lives on. */
static int on_unfree(struct planner *p, const struct event *e, uint32_t lane)
{
	struct moving *m = &p->moving.items[lane];

	if (!m->waits || m->address != e->address)
		return 0;
	m->waits = false;
	return hold(p, e->address, (struct held){.slot = m->slot, .class = m->class});
}

/* --- mappings: the program's own private ones --- */

/* In the callback of a cut: the lane is the newest one's. */
static void on_cut(void *arg, const struct range *piece, int whole, int split)
{
	struct planner *p = arg;
	uint32_t slot = (uint32_t)piece->serial;
	struct region *r = &p->regions.items[slot];
	uint64_t size = piece->end - piece->start;
	int rc = plan_file_add_at(&p->file, p->newest, piece->start - r->start,
	    plan_op(PLAN_UNMAP, slot, size), -(int64_t)size);

	r->left -= size;
	p->cut_any = true;
	p->cut_access = (enum plan_access)piece->kind;
	if (p->cut_access == PLAN_MEMORY)
		released(p, r->class, size);
	if (!r->left)
		is_gone(p, slot);
	if (!rc && !r->left)
		rc = plan_file_leave(&p->file, slot);
	if (rc)
		p->error = rc;
}

static int cut(struct planner *p, uint64_t start, uint64_t end)
{
	int rc;

	p->error = 0;
	p->cut_any = false;
	rc = ranges_cut(&p->mappings, start, end, on_cut, p);
	return rc ? rc : p->error;
}

static int map_region(
    struct planner *p, uint32_t lane, uint64_t start, uint64_t size, enum plan_access access)
{
	struct range range = {.start = start, .end = start + size, .kind = access};
	struct plan_op op;
	uint32_t slot;
	int rc = plan_file_take(&p->file, lane, &slot);

	while (!rc && p->regions.count <= slot)
		rc = vec_push(&p->regions, (struct region){0});
	if (rc)
		return rc;
	p->regions.items[slot] =
	    (struct region){.start = start, .left = size, .class = plan_class(PLAN_MAPPING, size)};
	op = plan_op(PLAN_MAP, slot, size);
	op.shift = (uint8_t)access;
	range.serial = slot;
	if (access == PLAN_MEMORY) {
		acquired(p, p->regions.items[slot].class, size);
		is_young(p, slot, size);
	}
	rc = plan_file_add(&p->file, lane, op, (int64_t)size);
	return rc ? rc : ranges_add(&p->mappings, &range);
}

/* Private memory of the program's own. Files and what is shared are part of what lies beside it. */
static bool is_own(const struct event *e)
{
	const uint32_t others = TRACE_MAP_ALLOCATOR | TRACE_MAP_SHARED | TRACE_MAP_HUGETLB;

	return e->u.map.backing == TRACE_BACKING_ANON && !(e->u.map.flags & others) &&
	       e->api != TRACE_API_SHMAT;
}

static enum plan_access access_of(const struct event *e)
{
	if (e->u.map.flags & TRACE_MAP_STACK)
		return PLAN_STACK;
	return e->u.map.prot ? PLAN_MEMORY : PLAN_RESERVED;
}

static int on_map(struct planner *p, const struct event *e, uint32_t lane)
{
	bool moved = e->u.map.flags & TRACE_MAP_REMAP && p->cut_any;
	enum plan_access access = moved ? p->cut_access : access_of(e);
	int rc;

	if (!e->size || e->address > UINT64_MAX - e->size || e->size > PLAN_SIZE_MAX)
		return 0;
	rc = cut(p, e->address, e->address + e->size);
	p->cut_any = false;
	if (rc)
		return rc;
	if (!moved && (e->u.map.flags & TRACE_MAP_REMAP || !is_own(e))) {
		p->facts->other_mappings++;
		p->facts->other_bytes += e->size;
		return 0;
	}
	return map_region(p, lane, e->address, e->size, access);
}

static int on_unmap(struct planner *p, const struct event *e)
{
	if (!e->size || e->address > UINT64_MAX - e->size)
		return 0;
	return cut(p, e->address, e->address + e->size);
}

struct advising {
	struct planner *p;
	const struct event *e;
};

static void advise(void *arg, const struct range *range)
{
	const struct advising *a = arg;
	struct planner *p = a->p;
	uint64_t start = range->start > a->e->address ? range->start : a->e->address,
		 end = num_least(range->end, a->e->address + a->e->size);
	uint32_t slot = (uint32_t)range->serial;
	struct plan_op op = plan_op(PLAN_ADVISE, slot, end - start);
	int rc;

	op.shift = (uint8_t)a->e->u.advise.advice;
	rc = plan_file_add_at(&p->file, p->newest, start - p->regions.items[slot].start, op, 0);
	if (rc)
		p->error = rc;
}

/* Those that give memory back or change how it comes: a trace must not bring a replay to anything
 * else, as to poison pages where it may. */
static bool is_harmless(uint32_t advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
		return true;
	default:
		return false;
	}
}

static int on_advise(struct planner *p, const struct event *e)
{
	struct advising a = {p, e};

	if (!e->size || e->address > UINT64_MAX - e->size || !is_harmless(e->u.advise.advice))
		return 0;
	p->error = 0;
	ranges_within(&p->mappings, e->address, e->address + e->size, advise, &a);
	return p->error;
}

/* --- refusals --- */

static bool is_last(struct planner *p, const struct event *e)
{
	if (p->last_seen || !p->last->size || e->time_ns != p->last->time_ns ||
	    e->stack != p->last->stack)
		return false;
	p->last_seen = true;
	p->facts->last_event = p->event;
	return true;
}

static int on_failed(struct planner *p, const struct event *e, uint32_t lane)
{
	struct moving *m = &p->moving.items[lane];
	const uint64_t *old = map_find(&p->blocks, e->u.failed.old_address);
	struct plan_op op;

	if (e->api == TRACE_API_MMAP || e->api == TRACE_API_MREMAP) {
		op = plan_op(PLAN_MAP, 0, e->size);
	} else if (e->api == TRACE_API_REALLOC && e->u.failed.old_address &&
		   (old || (m->waits && m->address == e->u.failed.old_address))) {
		op = plan_op(PLAN_REALLOC, old ? held_of(*old).slot : m->slot, e->size);
	} else {
		op = call_of(p, e->api, e->u.failed.alignment, e->size);
	}
	op.what |= PLAN_REFUSED | (is_last(p, e) ? PLAN_LAST : 0);
	return plan_file_alone(&p->file, lane, op);
}

/* --- the pass --- */

static int apply(struct planner *p, const struct event *e)
{
	uint32_t lane;
	int rc = samples_due(p, e->time_ns);

	p->now_ns = e->time_ns;
	if (!rc)
		rc = lane_of(p, e->thread, &lane);
	if (rc)
		return rc;
	switch (e->kind) {
	case EV_ALLOC:
		rc = on_alloc(p, e, lane);
		break;
	case EV_FREE:
		rc = on_free(p, e, lane);
		break;
	case EV_UNFREE:
		rc = on_unfree(p, e, lane);
		break;
	case EV_MAP:
		rc = on_map(p, e, lane);
		break;
	case EV_UNMAP:
		rc = on_unmap(p, e);
		break;
	case EV_ADVISE:
		rc = on_advise(p, e);
		break;
	case EV_FAILED:
		rc = on_failed(p, e, lane);
		break;
	case EV_BRK:
		p->facts->breaks++;
		break;
	case EV_THREAD_EXIT:
		rc = lane ? plan_file_exit(&p->file, lane) : 0;
		break;
	default:
		return 0;
	}
	if (p->finding && !p->found && lane == p->find_thread &&
	    p->file.lanes.items[lane].total > p->find_n)
		p->found = true;
	if (!rc)
		rc = samples_after(p, e);
	p->event++;
	return rc;
}

static bool of_host(const struct event *e)
{
	return e->space == TRACE_SPACE_HOST && e->kind < EV_SPACE_ALLOC && e->kind != EV_LEVEL;
}

static void planner_fini(struct planner *p)
{
	plan_file_fini(&p->file);
	map_free(&p->threads);
	map_free(&p->blocks);
	vec_free(&p->moving);
	vec_free(&p->young);
	vec_free(&p->born);
	ranges_fini(&p->mappings);
	vec_free(&p->regions);
}

static int planner_init(struct planner *p, FILE *out)
{
	p->facts->last_event = UINT64_MAX;
	ranges_init(&p->mappings);
	return plan_file_init(&p->file, out) || vec_push(&p->moving, (struct moving){0}) ? -ENOMEM
											 : 0;
}

static int read_all(struct planner *p, struct event *found, struct err *err)
{
	struct event e;
	int rc = p->feed.rewind(p->feed.self, err);

	progress_begin("planning the replay", p->feed.facts(p->feed.self)->event_bytes);
	while (!rc && (rc = p->feed.next(p->feed.self, &e, err)) == 1) {
		rc = of_host(&e) ? apply(p, &e) : 0;
		if (p->found) {
			*found = e;
			p->event--;
			break;
		}
		if (p->event % PROGRESS_EVENTS == 0 && p->feed.bytes_read)
			progress_step(p->feed.bytes_read(p->feed.self));
		if (rc)
			err_set(err, rc, "cannot plan the replay: %s", strerror(-rc));
	}
	progress_end();
	return rc;
}

static uint64_t grain_of(const struct plan_facts *facts)
{
	return facts->peak_live / GRAIN_PARTS + 1;
}

int plan_make(const struct plan_source *source, uint64_t pace_ns, FILE *out,
    struct plan_facts *facts, struct err *err)
{
	uint64_t peak = UINT64_MAX;
	int rc = 0;

	memset(facts, 0, sizeof(*facts));
	for (int pass = 0; pass < 2 && !rc; pass++) {
		struct plan_facts before = *facts;
		struct planner p = {.feed = source->feed,
		    .recorded = source->recorded,
		    .last = source->last,
		    .facts = facts,
		    .peak_event = peak,
		    .grain = pass ? grain_of(&before) : 0};

		vec_free(&facts->moments);
		memset(facts, 0, sizeof(*facts));
		facts->pace_ns = pace_ns;
		facts->peak_live = before.peak_live;
		facts->peak_event = before.peak_event;
		if (pass && fseek(out, 4096, SEEK_SET))
			rc = err_set(err, -errno, "cannot write the plan of the replay: %s",
			    strerror(errno));
		if (!rc && planner_init(&p, pass ? out : NULL))
			rc = err_set(err, -ENOMEM, "no memory for the plan of the replay");
		if (!rc)
			rc = read_all(&p, NULL, err);
		if (!rc &&
		    (samples_due(&p, UINT64_MAX) || add_sample(&p, p.now_ns, PLAN_NONE, false)))
			rc = err_set(err, -ENOMEM, "no memory for the plan of the replay");
		if (!rc)
			rc = plan_file_finish(&p.file, (uint32_t)facts->moments.count, err);
		facts->events = p.event;
		facts->ops = p.file.ops;
		facts->threads = (uint32_t)p.file.lanes.count;
		peak = facts->peak_event;
		planner_fini(&p);
	}
	return rc;
}

void plan_facts_fini(struct plan_facts *facts)
{
	vec_free(&facts->moments);
}

int plan_find(const struct plan_source *source, const struct plan_facts *made,
    struct plan_origin *origin, struct err *err)
{
	struct plan_facts facts = {.pace_ns = made->pace_ns};
	struct planner p = {.feed = source->feed,
	    .recorded = source->recorded,
	    .last = source->last,
	    .facts = &facts,
	    .peak_event = made->peak_event,
	    .grain = grain_of(made),
	    .finding = true,
	    .find_thread = origin->thread,
	    .find_n = origin->n};
	int rc = planner_init(&p, NULL);

	if (rc)
		err_set(err, rc, "no memory to look for the event");
	else
		rc = read_all(&p, &origin->event, err);
	origin->index = p.event;
	rc = rc < 0 ? rc : p.found;
	planner_fini(&p);
	plan_facts_fini(&facts);
	return rc;
}
