/*
 * maps.c - mappings are made, removed, split and moved. The program's own private anonymous
 * mappings count as acquired memory, and shared memory counts if the limit charges it. Malloc's own
 * mappings are only its arenas, since its blocks are counted.
 */
#include "model/heap/maps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "model/model.h"

void maps_init(struct maps *maps)
{
	memset(maps, 0, sizeof(*maps));
	ranges_init(&maps->ranges);
}

void maps_fini(struct maps *maps)
{
	vec_free(&maps->undo);
	ranges_fini(&maps->ranges);
}

static uint64_t *sum_of(struct model *m, const struct range *r)
{
	if (r->flags & TRACE_MAP_ALLOCATOR)
		return &m->maps.allocator_bytes;
	switch ((enum stack_stats_kind)r->kind) {
	case STACK_STATS_STACK:
		return &m->maps.stack_bytes;
	case STACK_STATS_SHARED:
		return m->maps.shared_counts ? &m->maps.bytes : &m->maps.shared_bytes;
	case STACK_STATS_FILE:
	case STACK_STATS_COPY:
		if (m->options.sums && model_has_callsites(m, (enum stack_stats_kind)r->kind))
			return &m->maps.bytes;
		return r->flags & TRACE_MAP_SHARED ? &m->maps.shared_bytes : &m->maps.file_bytes;
	case STACK_STATS_RESERVED:
		return &m->maps.reserved_bytes;
	case STACK_STATS_HEAP:
	case STACK_STATS_MAP:
	case STACK_STATS_KINDS:
		break;
	}
	return &m->maps.bytes;
}

/* Ask whether the limit that was in force at the start charges shared memory. */
static void ask_shared(struct model *m)
{
	uint64_t limit;

	m->maps.shared_asked = true;
	m->maps.shared_counts = !m->feed.info || !feed_number(&m->feed, "limit.data", &limit);
}

static void note_shared(struct model *m, const struct range *r, int64_t change, uint64_t time_ns)
{
	if (r->kind != STACK_STATS_SHARED)
		return;
	m->maps.charged_shared_bytes += (uint64_t)change;
	if (!m->options.sums)
		timeline_map(
		    &m->timeline, time_ns, m->blocks.bytes + m->maps.bytes, CAME_SHARED, change);
}

static void note_file(struct model *m, const struct range *r, int64_t change, uint64_t time_ns)
{
	if (!stack_stats_is_file((enum stack_stats_kind)r->kind) || m->options.sums)
		return;
	timeline_map(&m->timeline, time_ns, m->blocks.bytes + m->maps.bytes,
	    r->flags & TRACE_MAP_SHARED ? CAME_SHARED_FILE : CAME_FILE, change);
}

static bool has_stack_stats(const struct model *m, const struct range *r)
{
	return !m->options.sums && !(r->flags & TRACE_MAP_ALLOCATOR) &&
	       r->kind != STACK_STATS_STACK && r->kind != STACK_STATS_RESERVED;
}

static void on_cut(void *arg, const struct range *piece, int whole, int split)
{
	struct model *m = arg;
	uint64_t size = piece->end - piece->start, before = m->blocks.bytes + m->maps.bytes;
	uint64_t *sum = sum_of(m, piece);
	struct stack_stats *s;

	if (vec_push(&m->maps.undo, *piece))
		m->maps.cut_error = -ENOMEM;
	if (has_stack_stats(m, piece) &&
	    !stack_table_get(&m->stacks, piece->stack, piece->kind, &s)) {
		int rc = model_touch(m, s);
		if (rc)
			m->maps.cut_error = rc;
		stack_stats_release(
		    s, piece->serial, piece->birth_ns, m->maps.cut_ns, ALIKE_ONE(size), whole);
		if (split)
			stack_stats_split(s, piece->serial);
	}
	*sum -= size < *sum ? size : *sum;
	note_file(m, piece, -(int64_t)size, m->maps.cut_ns);
	shm_moved(&m->shm, piece->volume, -(int64_t)size);
	if (sum == &m->maps.bytes) {
		note_shared(m, piece, -(int64_t)size, m->maps.cut_ns);
		m->maps.count -= whole && m->maps.count ? 1 : 0;
		m->maps.count += split ? 1 : 0;
		model_released(m, m->maps.cut_ns, size, before);
		if (m->options.observer.arg)
			m->options.observer.released(m->options.observer.arg, piece->stack,
			    piece->kind, ALIKE_ONE(size), piece->birth_ns, m->maps.cut_ns);
	}
}

static int cut(struct model *m, uint64_t start, uint64_t end, uint64_t time_ns)
{
	int rc;

	m->maps.cut_ns = time_ns;
	m->maps.cut_error = 0;
	m->maps.undo.count = 0;
	rc = ranges_cut(&m->maps.ranges, start, end, on_cut, m);
	return rc ? rc : m->maps.cut_error;
}

static int add(struct model *m, const struct range *r, uint64_t time_ns)
{
	uint64_t size = r->end - r->start, before = m->blocks.bytes + m->maps.bytes;
	uint64_t *sum = sum_of(m, r);
	struct stack_stats *s;
	int rc = ranges_add(&m->maps.ranges, r);

	if (rc)
		return rc;
	if (has_stack_stats(m, r)) {
		if ((rc = stack_table_get(&m->stacks, r->stack, r->kind, &s)) ||
		    (rc = model_touch(m, s)) ||
		    (rc = stack_stats_acquire(s, r->serial, time_ns, ALIKE_ONE(size))))
			return rc;
	}
	*sum += size;
	note_file(m, r, (int64_t)size, time_ns);
	shm_moved(&m->shm, r->volume, (int64_t)size);
	if (sum == &m->maps.bytes) {
		m->maps.count++;
		note_shared(m, r, (int64_t)size, time_ns);
		model_acquired(m, time_ns, size, before);
		if (m->options.observer.arg)
			m->options.observer.acquired(
			    m->options.observer.arg, r->stack, r->kind, ALIKE_ONE(size), time_ns);
	}
	return 0;
}

static enum stack_stats_kind kind_of(const struct event *e)
{
	uint64_t device;

	if (e->u.map.flags & TRACE_MAP_STACK)
		return STACK_STATS_STACK;
	/* A file on a file system in memory is memory, wherever that is mounted. */
	if (event_level(e, TRACE_LEVEL_SHM_DEVICE, &device))
		return STACK_STATS_SHARED;
	if (e->api == TRACE_API_SHMAT || e->u.map.backing == TRACE_BACKING_SHM ||
	    e->u.map.backing == TRACE_BACKING_MEMFD)
		return STACK_STATS_SHARED;
	if (e->u.map.backing != TRACE_BACKING_ANON)
		return e->u.map.flags & TRACE_MAP_SHARED || !(e->u.map.prot & PROT_WRITE)
			   ? STACK_STATS_FILE
			   : STACK_STATS_COPY;
	if (e->u.map.flags & TRACE_MAP_SHARED)
		return STACK_STATS_SHARED;
	return e->u.map.prot ? STACK_STATS_MAP : STACK_STATS_RESERVED;
}

/* False for a range that no address space holds: damage. */
static bool end_of(const struct event *e, uint64_t *end)
{
	if (!e->size || e->size > 1ull << 57 || e->address > UINT64_MAX - e->size)
		return false;
	*end = e->address + e->size;
	return true;
}

int maps_on_map(struct model *m, const struct event *e)
{
	struct range r = {.start = e->address, .birth_ns = e->time_ns, .stack = e->stack};
	int rc;

	if (!end_of(e, &r.end))
		return 0;
	r.flags = e->u.map.flags;
	r.prot = e->u.map.prot;
	r.kind = kind_of(e);
	if (r.flags & TRACE_MAP_REMAP && m->maps.undo.count) {
		/* The moved mapping keeps its attributes. */
		const struct range *was = &m->maps.undo.items[0];
		r.kind = was->kind;
		r.flags |= was->flags & (TRACE_MAP_ALLOCATOR | TRACE_MAP_SHARED);
		r.prot = was->prot;
		r.volume = was->volume;
	}
	if (r.kind == STACK_STATS_SHARED && !m->maps.shared_asked)
		ask_shared(m);
	/* Anything that lies there is gone: the kernel gives an address only once, so an overlap is
	 * MAP_FIXED or an unmapping that was not seen. */
	rc = cut(m, r.start, r.end, e->time_ns);
	if (rc)
		return rc;
	m->maps.undo.count = 0;
	if (!r.volume && e->level_count)
		r.volume = shm_note(&m->shm, e);
	if (!r.volume && r.kind == STACK_STATS_SHARED && e->api == TRACE_API_MMAP &&
	    e->u.map.backing == TRACE_BACKING_SHM)
		m->shm.untold = true;
	/* Stacks of mappings hold no blocks, so their serials may be equal to a block's. */
	r.serial = ++m->run.serial;
	return add(m, &r, e->time_ns);
}

int maps_on_unmap(struct model *m, const struct event *e)
{
	uint64_t end;

	if (!end_of(e, &end))
		return 0;
	m->maps.undo_address = e->address;
	return cut(m, e->address, end, e->time_ns);
}

int maps_on_ununmap(struct model *m, const struct event *e)
{
	size_t count = m->maps.undo.count;

	if (e->address != m->maps.undo_address)
		return 0;
	m->maps.undo.count = 0;
	for (size_t i = 0; i < count; i++) {
		struct range r = m->maps.undo.items[i];
		int rc;

		r.serial = ++m->run.serial;
		rc = add(m, &r, e->time_ns);
		if (rc)
			return rc;
	}
	return 0;
}

void maps_on_brk(struct maps *maps, const struct event *e)
{
	if (e->u.brk.new_end >= e->u.brk.old_end)
		maps->break_bytes += e->u.brk.new_end - e->u.brk.old_end;
	else if (maps->break_bytes >= e->u.brk.old_end - e->u.brk.new_end)
		maps->break_bytes -= e->u.brk.old_end - e->u.brk.new_end;
}
