/*
 * note.c - turns facts into records in the calling thread's chunk; defines shim.h and record.h.
 * Knows the encoding of docs/trace-format.md, section 5. Must not allocate, lock or call the host.
 */
#include "shim.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/record_fields.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/varint.h"
#include "checkpoint/event_log.h"
#include "checkpoint/live_blocks.h"
#include "levels/before.h"
#include "levels/levels.h"
#include "levels/levels_malloc.h"
#include "levels/levels_python.h"
#include "loaded/symbols.h"
#include "record.h"
#include "sampling/control.h"
#include "sampling/rate.h"
#include "sampling/sampler.h"
#include "thread/chunk_writer.h"

/* Blocks of this size and more are recorded even when the budget is used up. */
#define LARGE_BLOCK 65536u
#define LEVELS_ALL                                                                                 \
	(LEVELS_MAX + LEVELS_MALLOC_MAX + LEVELS_PYTHON_MAX + LEVELS_REFUSED + BEFORE_LEVELS_MAX)

static uint64_t levels_due; /* ticks; the next LEVEL event */
/* The pause until the LEVEL event after that, ticks: an eighth longer each time, up to 100 ms, so
 * that a process that lives for a fraction of a second has some, too. */
static uint64_t levels_pause;
static void (*poll_libraries)(void);
static uint64_t failed_levels_due; /* ticks; the next FAILED event with levels */
/* How the block in thread.released was acquired. */
static __thread struct live_block released_block __attribute__((tls_model("initial-exec")));

/* Record the levels if they are due. `stack` was captured just before, for a call of the malloc
 * family; 0: another call, and the allocator is not asked. */
static void note_levels(struct note n, uint32_t stack, uint64_t now, bool all);

static __attribute__((noinline)) void write_side(
    struct note n, unsigned kind, unsigned flags, const void *block, uint64_t size, uint64_t ticks)
{
	chunk_writer_side(n.thread, &(struct trace_side){
					.ticks = ticks,
					.address = (uintptr_t)block,
					.size = size,
					.kind = (uint8_t)kind,
					.flags = (uint8_t)flags,
				    });
}

#define LENGTH_BYTES 2 /* of a body under 16 KiB, as a padded varint */
#define TASK_BYTES 24 /* tag, kind, length, dt, an address */

bool extended_begin(struct thread *t, struct extended *x, enum trace_event_kind kind, uint32_t need,
    bool important, uint64_t size)
{
	uint8_t *p;

	if (t->pos >= t->limit || t->pos + need > t->limit + CHUNK_WRITER_EVENT_MAX)
		if (!chunk_writer_make_room(t, need, important, size))
			return false;
	x->start = p = t->pos;
	*p++ = TRACE_EXTENDED;
	*p++ = (uint8_t)kind; /* all kinds are below 128 */
	x->body = p + LENGTH_BYTES;
	x->now = record_ticks(t);
	return true;
}

uint8_t *extended_dt(struct thread *t, struct extended *x)
{
	return varint_put(x->body, x->now - t->ticks);
}

void extended_end(struct thread *t, struct extended *x, uint8_t *end)
{
	uint32_t n = (uint32_t)(end - x->body);

	x->start[2] = (uint8_t)(n | 0x80);
	x->start[3] = (uint8_t)(n >> 7);
	t->ticks = x->now;
	if (SHIM_UNLIKELY(sampler.by_table))
		event_log_add(
		    t->serial, t->tid, (enum trace_event_kind)x->start[1], x->now, x->body, n);
	chunk_writer_commit_extended(t, end);
}

/* With the budget used up only large blocks are recorded, so only their releases matter. */
static bool is_small(const void *block)
{
	return real.malloc_usable_size && real.malloc_usable_size((void *)block) < LARGE_BLOCK;
}

static void free_wide(struct thread *t, const void *block, unsigned flags)
{
	struct extended x;
	uint8_t *p;

	if (!extended_begin(t, &x, TRACE_FREE_WIDE, CHUNK_WRITER_EVENT_MAX, false, 0))
		return;
	p = extended_dt(t, &x);
	p = FIELDS_PUT(p, FREE_WIDE, NULL, .address = (uintptr_t)block, .flags = flags >> 4);
	extended_end(t, &x, p);
}

/* FREE and UNFREE have the same form. */
static inline __attribute__((always_inline)) void release(
    struct note n, const void *block, unsigned tag)
{
	struct thread *t = n.thread;
	uint64_t now, address = (uintptr_t)block;
	uint8_t *p;

	if (SHIM_UNLIKELY(n.how != NOTE_PLAIN)) {
		if (n.how == NOTE_SIDE)
			write_side(n, tag & TRACE_TAG_KIND, tag & 0xf0, block, 0, clock_ticks());
		return;
	}
	record_begin(t);
	if (SHIM_UNLIKELY(shim.budget) && !sampler.by_table && !(tag & NOTE_FREE_FOREIGN) &&
	    is_small(block))
		goto out;
	if (SHIM_UNLIKELY(address & 7)) {
		if ((tag & TRACE_TAG_KIND) == TRACE_UNFREE)
			trace_file_dropped(TRACE_DROP_NO_SPACE, 1, 0);
		else
			free_wide(t, block, tag & 0xf0);
		goto out;
	}
	if (SHIM_UNLIKELY(!chunk_writer_room(t, 0)))
		goto out;
	now = record_ticks(t);
	p = t->pos;
	*p++ = (uint8_t)tag;
	p = varint_put_short(p, now - t->ticks);
	p = varint_put_signed_in_room(p, (int64_t)(address - t->address) >> 3);
	t->ticks = now;
	t->address = address;
	chunk_writer_commit(t, p);
out:
	record_end(t);
}

static bool is_inside(struct note n)
{
	return n.how == NOTE_INSIDE || n.how == NOTE_SIDE_INSIDE;
}

/* Where not all releases are recorded: is this one? */
static __attribute__((noinline)) bool release_is_recorded(
    struct note n, const void *block, unsigned flags)
{
	bool known;

	if (SHIM_UNLIKELY(shim.mode != SHIM_RECORDING))
		return false;
	if (sampler.before) {
		if (!is_inside(n) && before_released(block, flags & NOTE_FREE_FOREIGN))
			return false;
		return true;
	}
	known =
	    !is_inside(n) && live_blocks_take(block, n.how == NOTE_PLAIN ? &released_block : NULL);

	if (n.how == NOTE_PLAIN)
		n.thread->released = known ? block : NULL;
	return known;
}

void note_free(struct note n, const void *block, unsigned flags)
{
	if (SHIM_LIKELY(!sampler.checks) || release_is_recorded(n, block, flags))
		release(n, block, TRACE_FREE | flags);
}

void note_free_idle(struct thread *t, const void *block)
{
	if (SHIM_LIKELY(!sampler.checks) || release_is_recorded(note_of_idle(t), block, 0))
		release(note_of_idle(t), block, TRACE_FREE);
}

/* Where not all releases are recorded: was this one? Then it did not happen. */
static __attribute__((noinline)) bool unfree_is_recorded(struct note n, const void *block)
{
	if (SHIM_UNLIKELY(shim.mode != SHIM_RECORDING))
		return false;
	if (sampler.before)
		return !is_inside(n) && !before_unreleased(block);
	return n.how == NOTE_PLAIN && n.thread->released == block &&
	       live_blocks_add(block, &released_block);
}

void note_unfree(struct note n, const void *block)
{
	if (SHIM_UNLIKELY(sampler.checks) && !unfree_is_recorded(n, block))
		return;
	release(n, block, TRACE_UNFREE);
}

/* The long form, for an odd address, or with mean > 0 for a block that stands for others
 * (sampler.h). Where there was room for a compact event, there is room for this one and a TASK:
 * CHUNK_WRITER_RESERVE bytes follow the end for ordinary events. */
static void alloc_long(struct thread *t, enum trace_api api, const void *block, uint64_t size,
    uint64_t mean, uint32_t stack, uint64_t now)
{
	struct extended x = {.start = t->pos, .body = t->pos + 2 + LENGTH_BYTES, .now = now};
	uint8_t *p;

	x.start[0] = TRACE_EXTENDED;
	x.start[1] = mean ? TRACE_SAMPLED_ALLOC : TRACE_ALLOC_WIDE;
	p = extended_dt(t, &x);
	if (mean)
		p = FIELDS_PUT(p, SAMPLED_ALLOC, NULL, .address = (uintptr_t)block, .size = size,
		    .mean = mean, .stack = stack, .api = api);
	else
		p = FIELDS_PUT(p, ALLOC_WIDE, NULL, .address = (uintptr_t)block, .size = size,
		    .stack = stack, .api = api);
	extended_end(t, &x, p);
}

/* Write size and stack unless they equal what followed the chunk's last stack the last time. Takes
 * no branch on them: the stack id may still be on its way from a table. */
static inline uint8_t *alloc_end(
    struct thread *t, uint8_t *p, uint8_t *tag, enum trace_api api, uint64_t size, uint32_t stack)
{
	bool same = stack == t->stack, expected = false, size_too = false;
	uint8_t *sized = varint_put_short(p, size), *end;

	if (SHIM_LIKELY(t->expected)) {
		struct expected *e = &t->expected[TRACE_EXPECTED_PLACE(t->stack)];
		uint32_t kept = size < EXPECTED_LARGE ? (uint32_t)size : EXPECTED_LARGE;

		expected = e->stack == stack;
		size_too = expected & (e->size == kept) & (kept != EXPECTED_LARGE);
		sized = size_too ? p : sized;
		*e = (struct expected){stack, kept};
	}
	end = varint_put_in_room(sized, stack);
	end = (expected | same) ? sized : end;
	*tag = (uint8_t)((expected ? TRACE_ALLOC_EXPECTED : TRACE_ALLOC) |
			 (unsigned)api << TRACE_ALLOC_API_SHIFT |
			 (expected ? size_too : same) * TRACE_ALLOC_SAME_STACK);
	t->stack = stack;
	return end;
}

static void notice(struct thread *t, const struct trace_NOTICE *f)
{
	struct extended x;

	if (extended_begin(t, &x, TRACE_NOTICE, 96, true, 0))
		extended_end(t, &x, fields_put_notice(extended_dt(t, &x), f));
}

/* In a record: obey the pending command and record the change. */
static __attribute__((noinline)) void obey_control(struct thread *t)
{
	bool paused = control_paused();

	if (!control_follow())
		return;
	if (paused != control_paused())
		notice(t, &(struct trace_NOTICE){.what = TRACE_NOTICE_PAUSE, .value = !paused});
	if (!control_paused())
		notice(t, &(struct trace_NOTICE){.what = TRACE_NOTICE_MODE,
			      .value = sampler.on ? TRACE_MODE_SAMPLED : TRACE_MODE_FULL,
			      .mean = sampler.on ? sampler.mean : 0,
			      .exact_from = sampler.on ? sampler.exact_from : 0});
}

/* The same outside a record. */
static __attribute__((noinline)) void obey_control_outside(struct note n)
{
	if (n.how != NOTE_PLAIN || !chunk_writer_room(n.thread, 0))
		return;
	record_begin(n.thread);
	obey_control(n.thread);
	record_end(n.thread);
}

static inline __attribute__((always_inline)) void alloc_compact(struct thread *t,
    enum trace_api api, const void *block, uint64_t size, uint32_t stack, uint64_t now)
{
	uint64_t address = (uintptr_t)block;
	uint8_t *p, *tag;

	p = tag = t->pos;
	p = varint_put_short(p + 1, now - t->ticks);
	p = varint_put_signed_in_room(p, (int64_t)(address - t->address) >> 3);
	p = alloc_end(t, p, tag, api, size, stack);
	t->ticks = now;
	t->address = address;
	chunk_writer_commit(t, p);
}

/* Begin a record. The caller ends it whatever this returns. False: the block is not recorded. */
static inline __attribute__((always_inline)) bool alloc_begin(
    struct note n, uint64_t size, const struct stack_start *start, uint32_t *stack)
{
	struct thread *t = n.thread;

	record_begin(t);
	if (SHIM_UNLIKELY(shim.budget) && size < LARGE_BLOCK) {
		trace_file_dropped(TRACE_DROP_BUDGET, 1, size);
		return false;
	}
	/* room first: in the wrong process nothing more may happen */
	if (SHIM_UNLIKELY(!chunk_writer_room(t, size)))
		return false;
	/* needed after the walk, which evicts much of the cache */
	__builtin_prefetch(&t->expected[TRACE_EXPECTED_PLACE(t->stack)], 1);
	*stack = record_stack(n, start);
	return true;
}

static struct live_block live_block_of(
    struct thread *t, enum trace_api api, uint64_t size, uint64_t mean, uint32_t stack)
{
	return (struct live_block){
	    .birth = record_ticks(t),
	    .size = size,
	    .mean = mean,
	    .stack = stack,
	    .thread = t->serial,
	    .tid = t->tid,
	    .api = api,
	};
}

/* Where not every block is recorded: decide on this one and record it. */
static __attribute__((noinline)) void alloc_chosen(struct note n, enum trace_api api,
    const void *block, uint64_t size, const struct stack_start *start)
{
	struct thread *t = n.thread;
	struct live_block how;
	enum sampler_take take;
	uint32_t stack;

	if (n.how != NOTE_PLAIN && n.how != NOTE_SIDE)
		return;
	if (control_asked())
		obey_control_outside(n);
	if (!sampler.on) {
		note_alloc(n, api, block, size, start);
		return;
	}
	take = sampler_take(size);
	if (take == SAMPLER_PASS)
		return;
	if (n.how == NOTE_SIDE) {
		/* side records have no room for a weight */
		how = live_block_of(t, api, size, 0, 0);
		if (take == SAMPLER_CHOSEN || (sampler.by_table && !live_blocks_add(block, &how)))
			trace_file_dropped(TRACE_DROP_SIGNAL, 1, size);
		else
			write_side(
			    n, TRACE_ALLOC, api << TRACE_ALLOC_API_SHIFT, block, size, how.birth);
		return;
	}
	if (!alloc_begin(n, size, start, &stack))
		goto out;
	how = live_block_of(t, api, size, take == SAMPLER_CHOSEN ? sampler_self.mean : 0, stack);
	/* first the table, so that a checkpoint finds the block there if it misses the record */
	if (sampler.by_table && !live_blocks_add(block, &how)) {
		trace_file_dropped(TRACE_DROP_NO_MEMORY, 1, size);
		goto out;
	}
	if (how.mean || SHIM_UNLIKELY((uintptr_t)block & 7))
		alloc_long(t, api, block, size, how.mean, stack, how.birth);
	else
		alloc_compact(t, api, block, size, stack, how.birth);
	if (t->ticks >= __atomic_load_n(&levels_due, __ATOMIC_RELAXED))
		note_levels(n, api <= TRACE_API_ALIGNED ? stack : 0, t->ticks, false);
out:
	record_end(t);
}

/* Where acquisitions are not simply recorded: is this one? */
static __attribute__((noinline)) bool acquisition_is_recorded(struct note n, const void *block)
{
	/* A call that began before the recording is not recorded, nor is the block's release. */
	if (SHIM_UNLIKELY(shim.mode != SHIM_RECORDING || n.how == NOTE_NOT))
		return false;
	if (sampler.before && !is_inside(n))
		before_acquired(block);
	return true;
}

static inline __attribute__((always_inline)) void acquire(struct note n, enum trace_api api,
    const void *block, uint64_t size, const struct stack_start *start)
{
	struct thread *t = n.thread;
	uint32_t stack;
	uint64_t now;

	if (SHIM_UNLIKELY(sampler.looks)) {
		if (!acquisition_is_recorded(n, block))
			return;
		if (sampler.on) {
			alloc_chosen(n, api, block, size, start);
			return;
		}
	}
	if (SHIM_UNLIKELY(n.how != NOTE_PLAIN)) {
		if (n.how == NOTE_SIDE)
			write_side(n, TRACE_ALLOC, api << TRACE_ALLOC_API_SHIFT, block, size,
			    clock_ticks());
		return;
	}
	if (!alloc_begin(n, size, start, &stack))
		goto out;
	if (SHIM_UNLIKELY((uintptr_t)block & 7)) {
		alloc_long(t, api, block, size, 0, stack, record_ticks(t));
		goto out;
	}
	now = record_ticks(t);
	alloc_compact(t, api, block, size, stack, now);
	if (SHIM_UNLIKELY(now >= __atomic_load_n(&levels_due, __ATOMIC_RELAXED)))
		note_levels(n, api <= TRACE_API_ALIGNED ? stack : 0, now, false);
out:
	record_end(t);
}

void note_alloc(struct note n, enum trace_api api, const void *block, uint64_t size,
    const struct stack_start *start)
{
	acquire(n, api, block, size, start);
}

void note_alloc_idle(struct thread *t, enum trace_api api, const void *block, uint64_t size,
    const struct stack_start *start)
{
	acquire(note_of_idle(t), api, block, size, start);
}

#define LEVEL_BYTES 12u /* at most: two varints */

/* May the allocator be asked what it holds? See levels_malloc.h. `stack`: as for note_levels(). */
static bool may_ask_allocator(struct note n, uint32_t stack)
{
	return stack && n.before == THREAD_IDLE && !shim.sandboxed &&
	       !(__atomic_load_n(&trace_file_header->flags, __ATOMIC_RELAXED) &
		   TRACE_FLAG_FORKED) &&
	       !stack_interrupted(n.thread->slot->walker);
}

/* Ask the allocator, in a record. Meanwhile the thread leaves the record: as in a real call, what
 * the allocator does is its own. Returns the number filled in. */
static unsigned ask_allocator(struct note n, uint64_t resident, struct level *out)
{
	unsigned count;

	record_end(n.thread);
	count = levels_malloc_read(out, resident);
	record_begin(n.thread);
	return count;
}

/* The same for Python's allocator, whose answer takes no lock. */
static unsigned ask_python(struct note n, uint64_t now, uint64_t resident, struct level *out)
{
	if (n.before != THREAD_IDLE || shim.sandboxed || !levels_python_due(now, resident))
		return 0;
	return levels_python_read(out);
}

static uint64_t next_pause(uint64_t last)
{
	uint64_t longest = tick_clock.ticks_100ms, next = last ? last + last / 8 : longest / 20;

	return next < longest ? next : longest;
}

static __attribute__((noinline)) void note_levels(
    struct note n, uint32_t stack, uint64_t now, bool all)
{
	uint64_t due = __atomic_load_n(&levels_due, __ATOMIC_RELAXED), resident;
	uint64_t pause = next_pause(__atomic_load_n(&levels_pause, __ATOMIC_RELAXED));
	struct level levels[LEVELS_ALL];
	struct thread *t = n.thread;
	struct extended x;
	uint64_t grown;
	unsigned count;

	/* one thread takes it */
	if (now < due || shim.sandboxed ||
	    !__atomic_compare_exchange_n(
		&levels_due, &due, now + pause, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&levels_pause, pause, __ATOMIC_RELAXED);
	if (control_asked())
		obey_control(t);
	chunk_writer_meter(t);
	if (rate_adjust(now, &grown))
		notice(t, &(struct trace_NOTICE){.what = TRACE_NOTICE_RATE,
			      .value = grown,
			      .mean = sampler.mean,
			      .exact_from = sampler.exact_from});
	if (poll_libraries)
		poll_libraries();
	count = levels_read(levels, all);
	resident = count && levels[0].key == TRACE_LEVEL_RSS ? levels[0].value : 0;
	if (resident && may_ask_allocator(n, stack) && levels_malloc_grown(now, resident))
		count += ask_allocator(n, resident, levels + count);
	if (resident)
		count += ask_python(n, now, resident, levels + count);
	if (sampler.before)
		count += before_levels(levels + count);
	if (!extended_begin(t, &x, TRACE_LEVEL, 32 + count * LEVEL_BYTES, true, 0))
		return;
	extended_end(t, &x,
	    FIELDS_PUT(
		extended_dt(t, &x), LEVEL, levels, .space = TRACE_SPACE_HOST, .levels = count));
}

bool record_is_plain(struct note n)
{
	if (n.how == NOTE_SIDE || n.how == NOTE_SIDE_INSIDE)
		trace_file_dropped(TRACE_DROP_SIGNAL, 1, 0);
	return n.how == NOTE_PLAIN;
}

/* A program that tries again and again gets levels for its first failure, then every 10 ms: reading
 * them takes a hundred times as long as the failed call. */
static bool failed_levels_are_due(uint64_t now)
{
	uint64_t due = __atomic_load_n(&failed_levels_due, __ATOMIC_RELAXED);

	return now >= due && !shim.sandboxed &&
	       __atomic_compare_exchange_n(&failed_levels_due, &due,
		   now + tick_clock.ticks_100ms / 10, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void note_failed(struct note n, const struct note_failure *f, const struct stack_start *start)
{
	struct thread *t = n.thread;
	struct level levels[LEVELS_ALL];
	unsigned heap = 0, count = 0;
	struct extended x;
	uint32_t stack;
	uint8_t *p;

	if ((f->error != ENOMEM && f->error != EAGAIN && f->api != TRACE_API_FALLOCATE) ||
	    !record_is_plain(n))
		return;
	/* `whyoom run` reads this when the program ends well, before it reads all events. */
	if (!(__atomic_load_n(&trace_file_header->flags, __ATOMIC_RELAXED) & TRACE_FLAG_FAILED))
		trace_file_flag(TRACE_FLAG_FAILED);
	record_begin(t);
	if (!chunk_writer_make_room(t, 1024, true, 0))
		goto out;
	stack = record_stack(n, start);
	if (may_ask_allocator(
		n, f->api <= TRACE_API_ALIGNED && f->size <= PTRDIFF_MAX ? stack : 0) &&
	    levels_malloc_due(clock_ticks()))
		heap = ask_allocator(n, 0, levels);
	heap += ask_python(n, clock_ticks(), 0, levels + heap);
	count = heap;
	if (failed_levels_are_due(clock_ticks()) || heap)
		count += levels_read(levels + heap, true);
	if (count > heap)
		count += levels_refused(levels + count);
	if (count && sampler.before)
		count += before_levels(levels + count);
	if (!extended_begin(t, &x, TRACE_FAILED, 1024, true, 0))
		goto out;
	p = FIELDS_PUT_BEFORE(extended_dt(t, &x), FAILED, call, levels, .space = TRACE_SPACE_HOST,
	    .api = f->api, .why = TRACE_FAIL_ERRNO, .result = (uint64_t)f->error, .size = f->size,
	    .alignment = f->alignment, .old_address = f->old, .stack = stack, .levels = count);
	extended_end(t, &x, p);
out:
	record_end(t);
}

static uint64_t page_round(uint64_t bytes)
{
	uint64_t mask = shim.page_size - 1;

	return bytes + mask < bytes ? bytes : (bytes + mask) & ~mask;
}

void note_map(struct note n, const struct note_mapping *m, const struct stack_start *start)
{
	struct thread *t = n.thread;
	unsigned flags = m->flags;
	struct extended x;
	uint32_t stack;
	uint8_t *p;

	if (n.how == NOTE_INSIDE) {
		flags |= TRACE_MAP_ALLOCATOR;
		n.how = NOTE_PLAIN;
	}
	if (!record_is_plain(n))
		return;
	record_begin(t);
	if (!chunk_writer_room(t, m->length))
		goto out;
	stack = record_stack(n, start);
	if (!extended_begin(t, &x, TRACE_MAP, m->level_count ? 256 : 128, true, m->length))
		goto out;
	p = fields_put_MAP(extended_dt(t, &x),
	    &(struct trace_MAP){.address = m->address,
		.length = page_round(m->length),
		.prot = (uint64_t)m->prot,
		.api = m->api,
		.flags = flags,
		.backing = m->backing,
		.name = m->name,
		.offset = m->offset,
		.stack = stack,
		.levels = m->level_count},
	    m->levels, TRACE_FIELDS_BEFORE(MAP, levels) + (m->level_count > 0));
	extended_end(t, &x, p);
	if (x.now >= __atomic_load_n(&levels_due, __ATOMIC_RELAXED))
		note_levels(n, 0, x.now, false);
out:
	record_end(t);
}

/* An event without a stack of its own, whose fields are all there. */
static void write_numbers(
    struct note n, enum trace_event_kind kind, const uint64_t *fields, size_t count)
{
	struct thread *t = n.thread;
	struct extended x;
	uint8_t *p;

	if (n.how == NOTE_INSIDE)
		n.how = NOTE_PLAIN;
	if (!record_is_plain(n))
		return;
	record_begin(t);
	if (extended_begin(t, &x, kind, 96, true, 0)) {
		p = extended_dt(t, &x);
		for (size_t i = 0; i < count; i++)
			p = varint_put(p, fields[i]);
		extended_end(t, &x, p);
	}
	record_end(t);
}
#define SIMPLE(n, NAME, ...)                                                                       \
	write_numbers(n, TRACE_##NAME, (const uint64_t *)&(struct trace_##NAME){__VA_ARGS__},      \
	    sizeof(struct trace_##NAME) / sizeof(uint64_t))

void note_unmap(
    struct note n, enum trace_api api, uintptr_t address, uint64_t length, unsigned flags)
{
	if (n.how == NOTE_INSIDE)
		flags |= TRACE_UNMAP_ALLOCATOR;
	SIMPLE(
	    n, UNMAP, .address = address, .length = page_round(length), .api = api, .flags = flags);
}

void note_ununmap(struct note n, uintptr_t address, uint64_t length)
{
	SIMPLE(n, UNUNMAP, .address = address, .length = page_round(length));
}

void note_advise(struct note n, uintptr_t address, uint64_t length, int advice)
{
	SIMPLE(n, ADVISE, .address = address, .length = page_round(length),
	    .advice = (uint64_t)advice);
}

void note_brk(struct note n, uintptr_t before, uintptr_t after, const struct stack_start *start)
{
	uint32_t stack;

	if (n.how == NOTE_INSIDE)
		n.how = NOTE_PLAIN;
	if (!record_is_plain(n))
		return;
	record_begin(n.thread);
	stack = chunk_writer_room(n.thread, 0) ? record_stack(n, start) : 0;
	SIMPLE(n, BRK, .old_end = before, .new_end = after, .stack = stack);
	record_end(n.thread);
}

void record_task(struct thread *t)
{
	const struct stack_task *task = &t->slot->task;
	struct extended x;

	/* Together with the compact event that follows it fits into one event's room. */
	if (!extended_begin(t, &x, TRACE_TASK, TASK_BYTES, true, 0))
		return;
	extended_end(t, &x, FIELDS_PUT(extended_dt(t, &x), TASK, NULL, .key = task->key));
	t->task_turn = task->turn;
}

void note_task_end(struct note n, uint64_t key)
{
	SIMPLE(n, TASK_END, .key = key);
}

void note_fork(struct note n, int child)
{
	SIMPLE(n, FORK, .child = (uint64_t)child);
}

void note_signal(struct note n, int number)
{
	SIMPLE(n, SIGNAL, .signal = (uint64_t)number);
}

void note_end(int how, int status)
{
	struct note n = note_enter(NULL);

	if (n.how == NOTE_PLAIN && how != TRACE_END_SIGNAL) {
		levels_due = 0;
		record_begin(n.thread);
		/* No hook sees what libc or the loader are refused inside: the levels at the end
		 * may show how close to its limits the process was. */
		if (chunk_writer_make_room(n.thread, 1024, true, 0))
			note_levels(n, 0, clock_ticks(), true);
		record_end(n.thread);
		SIMPLE(n, EXIT, .how = (uint64_t)how, .status = (uint32_t)status);
	}
	note_leave(n);
}

/* The levels at an attach, read before anything is recorded. */
static struct level base[LEVELS_ALL];
static unsigned base_count;

void note_attach(void)
{
	levels_due = UINT64_MAX; /* until the base is there */
	base_count = levels_read(base, true);
	base_count += levels_malloc_read(base + base_count, 0);
	base_count += levels_refused(base + base_count);
	if (sampler.before)
		base_count += before_levels(base + base_count);
}

void note_base(void)
{
	struct note n = note_enter(NULL);
	struct extended x;

	if (n.how == NOTE_PLAIN) {
		record_begin(n.thread);
		if (chunk_writer_make_room(n.thread, 1024, true, 0) &&
		    extended_begin(n.thread, &x, TRACE_LEVEL, 1024, true, 0))
			extended_end(n.thread, &x,
			    FIELDS_PUT(extended_dt(n.thread, &x), LEVEL, base,
				.space = TRACE_SPACE_HOST, .levels = base_count));
		record_end(n.thread);
	}
	note_leave(n);
	__atomic_store_n(&levels_due, 0, __ATOMIC_RELAXED);
}

void note_poll_with(void (*poll)(void))
{
	poll_libraries = poll;
}

void note_forked(void)
{
	levels_due = 0;
	levels_pause = 0;
	failed_levels_due = 0;
}
