/*
 * planner_maps.c - the program's own private mappings as operations: made, unmapped in pieces,
 * moved and given back by advice.
 */
#include <errno.h>
#include <sys/mman.h>

#include "replay/plan/planner_parts.h"
#include "util/num.h"

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
		planner_released(p, r->class, size);
	if (!r->left)
		planner_is_gone(p, slot);
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
		planner_acquired(p, p->regions.items[slot].class, size);
		planner_is_young(p, slot, size);
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

int planner_on_map(struct planner *p, const struct event *e, uint32_t lane)
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

int planner_on_unmap(struct planner *p, const struct event *e)
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

int planner_on_advise(struct planner *p, const struct event *e)
{
	struct advising a = {p, e};

	if (!e->size || e->address > UINT64_MAX - e->size || !is_harmless(e->u.advise.advice))
		return 0;
	p->error = 0;
	ranges_within(&p->mappings, e->address, e->address + e->size, advise, &a);
	return p->error;
}
