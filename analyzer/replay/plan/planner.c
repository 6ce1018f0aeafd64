/* planner.c - see planner.h. */
#include "replay/plan/planner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/plan/planner_parts.h"
#include "util/progress.h"
#include "util/tuned.h"

TUNED(uint64_t, GRAIN_PARTS, 512,
    "as many points of the curve as a terminal or a plot has columns, by live bytes");
#define PROGRESS_EVENTS 65536u
TUNED(double, PACE_MIN, 1.0, "bytes written a ns: a slow machine with page faults does that");

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

void planner_is_young(struct planner *p, uint32_t slot, uint64_t size)
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

void planner_is_gone(struct planner *p, uint32_t slot)
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

void planner_acquired(struct planner *p, uint32_t class, uint64_t size)
{
	p->live[class] += size;
	p->all += size;
	if (p->peak_event == UINT64_MAX && !p->last_seen && p->all > p->facts->peak_live) {
		p->facts->peak_live = p->all;
		p->facts->peak_event = p->event;
	}
}

void planner_released(struct planner *p, uint32_t class, uint64_t size)
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
	planner_released(p, m->class, m->size);
	planner_is_gone(p, m->slot);
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
	planner_released(p, m->class, m->size);
	planner_acquired(p, h.class, e->size);
	if (e->size > m->size)
		planner_is_young(p, m->slot, e->size - m->size);
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
	planner_acquired(p, h.class, e->size);
	planner_is_young(p, h.slot, e->size);
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
		rc = planner_on_map(p, e, lane);
		break;
	case EV_UNMAP:
		rc = planner_on_unmap(p, e);
		break;
	case EV_ADVISE:
		rc = planner_on_advise(p, e);
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
