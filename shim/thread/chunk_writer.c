/*
 * chunk_writer.c - chunks and the threads that own them. A thread begins in a shared chunk of 64
 * KiB; a later thread continues it where this one stops, so a hundred thousand short threads fill a
 * few chunks. A thread that writes more gets chunks of its own.
 */
#include "thread/chunk_writer.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/record_fields.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/varint.h"
#include "base/xxh64.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/event_log.h"
#include "checkpoint/resample.h"
#include "sampling/rate.h"
#include "sampling/sampler.h"
#include "thread/thread.h"

/* Shared chunks whose thread has ended. The first ones stay mapped, the others are only on disk. */
#define PARKED_MAX 4096u
#define PARKED_MAPPED 16u

struct parked {
	struct file_chunk mapped;
	uint64_t ticks, address;
	uint32_t stack, side;
};

static struct {
	int lock; /* taken with signals blocked */
	uint32_t count;
	uint32_t created; /* shared chunks created so far */
	struct parked *chunks;
} parking;

void chunk_writer_meter(struct thread *t)
{
	if (!t->chunk || t->pos <= t->metered)
		return;
	rate_add((uint64_t)(t->pos - t->metered));
	t->metered = t->pos;
}

void chunk_writer_commit_extended(struct thread *t, uint8_t *pos)
{
	const uint8_t *event = t->pos, *end = pos;
	uint64_t sum = 0, word;

	for (unsigned words = 0; words < 2 || end > event; words++, end -= TRACE_WORD) {
		memcpy(&word, end - TRACE_WORD, TRACE_WORD);
		sum += word;
	}
	chunk_writer_set_committed(t, pos);
	t->chunk->checksum += sum;
}

void chunk_writer_forked(void)
{
	/* these mappings belong to the parent's file */
	for (uint32_t i = 0; parking.chunks && i < parking.count; i++)
		trace_file_unmap(&parking.chunks[i].mapped);
	parking.lock = 0;
	parking.count = 0;
	parking.created = 0;
}

static uint8_t *ordinary_end(const struct thread *t)
{
	return t->end - CHUNK_WRITER_RESERVE - CHUNK_WRITER_EVENT_MAX;
}

/* Forget what was expected: at the start of a chunk, and in a short-lived thread always. */
static void expect_nothing(struct thread *t)
{
	struct thread_slot *slot = t->slot;
	const size_t bytes = TRACE_EXPECTED_PLACES * sizeof(struct expected);

	t->expected = NULL;
	if (t->shared)
		return;
	if (!slot->expected)
		slot->expected = sys_pages(bytes);
	else
		memset(slot->expected, 0, bytes);
	t->expected = slot->expected;
}

void chunk_writer_expected_free(struct thread_slot *slot)
{
	struct expected *old = slot->expected;

	slot->expected = NULL;
	sys_pages_free(old, TRACE_EXPECTED_PLACES * sizeof(struct expected));
}

/* A chunk is resident only this much at a time: an idle thread keeps no more. */
#define WINDOW TRACE_FIRST_CHUNK_BYTES

static void set_limit(struct thread *t)
{
	uint8_t *end = ordinary_end(t);

	t->limit = t->vfork ? NULL : t->window < end ? t->window : end;
}

/* Drop the pages before `from`, except one: an event's sum reads bytes before the event, and a
 * fault there makes the kernel map the neighbourhood again. Where pages are larger, drop the whole
 * part. */
static void let_go_before(uint8_t *start, uint8_t *from)
{
	enum { DONTNEED = 4, PAGE = 4096 };
	uint8_t *begin = from - WINDOW > start ? from - WINDOW - PAGE : start;

	if (sys_call(SYS_madvise, (long)begin, from - PAGE - begin, DONTNEED, 0, 0, 0) < 0)
		sys_call(SYS_madvise, (long)(from - WINDOW), WINDOW, DONTNEED, 0, 0, 0);
}

/* Populate the part of the chunk that is written next. Earlier pages stay in the page cache.
 * Kernels before 5.14 populate page by page at each write. */
static void next_window(struct thread *t)
{
	enum { POPULATE_WRITE = 23 };
	uint8_t *start = (uint8_t *)t->chunk, *end = start + t->mapped.bytes;
	uint8_t *from = start + (size_t)(t->pos - start) / WINDOW * WINDOW;

	chunk_writer_meter(t);
	t->window = end - from > WINDOW ? from + WINDOW : end;
	if (t->mapped.bytes > WINDOW && !shim.sandboxed) {
		if (from > start)
			let_go_before(start, from);
		sys_call(SYS_madvise, (long)from, t->window - from, POPULATE_WRITE, 0, 0, 0);
	}
	set_limit(t);
}

static void use_chunk(struct thread *t, const struct file_chunk *c, uint32_t committed)
{
	uint8_t *start = (uint8_t *)c->chunk;

	chunk_writer_meter(t); /* of the previous chunk */
	t->mapped = *c;
	t->chunk = c->chunk;
	t->pos = t->begun = t->metered = start + sizeof(struct trace_chunk) + committed;
	t->end = start + c->bytes - TRACE_SIDE_MAX * sizeof(struct trace_side);
	next_window(t);
	t->side_claimed = c->chunk->side_count;
	t->shared = c->chunk->type == TRACE_CHUNK_SHARED;
	expect_nothing(t);
	thread_chunk_changed(t);
}

static void use_new_chunk(struct thread *t, const struct file_chunk *c)
{
	use_chunk(t, c, 0);
	t->ticks = c->chunk->ticks;
	t->address = 0;
	t->stack = 0;
}

/* Start the body of a record with the time since the thread's last one. */
static uint8_t *put_dt(struct thread *t, uint8_t *body)
{
	uint64_t now = clock_ticks(), dt = now > t->ticks ? now - t->ticks : 0;

	t->ticks += dt;
	return varint_put(body, dt);
}

/* Write a record into a chunk that was just found, which has room. */
static void commit_record(
    struct thread *t, enum trace_event_kind kind, const uint8_t *body, const uint8_t *end)
{
	uint8_t *p = t->pos;

	*p++ = TRACE_EXTENDED;
	p = varint_put(p, kind);
	p = varint_put_bytes(p, body, (size_t)(end - body));
	chunk_writer_commit_extended(t, p);
}

/* Record in a shared chunk which thread the following records belong to. */
static void note_owner(struct thread *t)
{
	uint8_t body[4 * VARINT_BYTES_MAX], *b = put_dt(t, body);

	b = FIELDS_PUT(b, SHARED_THREAD, NULL, .serial = t->serial, .tid = t->tid);
	commit_record(t, TRACE_SHARED_THREAD, body, b);
}

bool chunk_writer_open(struct thread *t, enum trace_drop *why)
{
	struct parked p;
	struct file_chunk c;
	bool found = false;
	uint32_t sequence;

	sys_lock(&parking.lock);
	if (parking.count) {
		p = parking.chunks[--parking.count];
		found = true;
	}
	sequence = parking.created;
	sys_unlock(&parking.lock);
	if (found && (p.mapped.chunk || trace_file_map(&p.mapped))) {
		use_chunk(t, &p.mapped, p.mapped.chunk->committed);
		t->ticks = p.ticks;
		t->address = p.address;
		t->stack = p.stack;
		note_owner(t);
		return true;
	}
	if (!trace_file_claim(
		&c, TRACE_CHUNK_SHARED, TRACE_FIRST_CHUNK_BYTES, 0, 0, sequence, false, why))
		return false;
	__atomic_fetch_add(&parking.created, 1, __ATOMIC_RELAXED);
	use_new_chunk(t, &c);
	note_owner(t);
	return true;
}

static void leave_chunk(struct thread *t)
{
	t->chunk = NULL;
	t->mapped.chunk = NULL;
	t->pos = t->limit = t->end = NULL;
	thread_chunk_changed(t);
}

/* Give the unused slots of a thread's own chunk to other chunks. */
static void shorten(struct file_chunk *c, const uint8_t *pos)
{
	struct trace_chunk *chunk = c->chunk;
	uint32_t side = chunk->side_count * (uint32_t)sizeof(struct trace_side);
	uint32_t used = (uint32_t)(pos - (uint8_t *)chunk) +
			TRACE_SIDE_MAX * (uint32_t)sizeof(struct trace_side);
	uint32_t bytes = (used + TRACE_SLOT_BYTES - 1) & ~(TRACE_SLOT_BYTES - 1);
	struct file_chunk rest = {
	    (struct trace_chunk *)(void *)((uint8_t *)chunk + bytes), 0, c->bytes - bytes};

	if (bytes >= c->bytes)
		return;
	/* side records lie at the end: copy them to the new end before moving it */
	memcpy((uint8_t *)chunk + bytes - side, (uint8_t *)chunk + chunk->bytes - side, side);
	trace_file_count(&trace_file_header->chunk_bytes, -(uint64_t)(c->bytes - bytes));
	__atomic_store_n(&chunk->bytes, bytes, __ATOMIC_RELEASE);
	memset((uint8_t *)chunk + c->bytes - side, 0, side); /* a gap is all zeros */
	trace_file_unmap(&rest);
	trace_file_add_gap(c->offset + bytes, c->bytes - bytes);
	c->bytes = bytes;
}

void chunk_writer_close(struct thread *t)
{
	struct parked p = {t->mapped, t->ticks, t->address, t->stack, 0};
	bool parked = false;

	if (!t->chunk)
		return;
	chunk_writer_meter(t);
	thread_chunk_leaves(t);
	if (t->shared && t->pos < ordinary_end(t)) {
		sys_lock(&parking.lock);
		if (!parking.chunks)
			parking.chunks = sys_pages(PARKED_MAX * sizeof(struct parked));
		if (parking.chunks && parking.count < PARKED_MAX) {
			if (parking.count >= PARKED_MAPPED)
				trace_file_unmap(&p.mapped);
			parking.chunks[parking.count] = p;
			__atomic_store_n(&parking.count, parking.count + 1, __ATOMIC_RELEASE);
			parked = true;
		}
		sys_unlock(&parking.lock);
	}
	if (!parked) {
		if (!t->shared)
			shorten(&t->mapped, t->pos);
		trace_file_seal(&t->mapped);
	}
	leave_chunk(t);
}

/* Record a change of the recording itself; a checkpoint keeps it. */
static void notice(struct thread *t, const struct trace_NOTICE *f)
{
	uint8_t body[5 * VARINT_BYTES_MAX], *b = fields_put_notice(put_dt(t, body), f);

	if (sampler.by_table)
		event_log_add(
		    t->serial, t->tid, TRACE_NOTICE, t->ticks, body, (uint32_t)(b - body));
	commit_record(t, TRACE_NOTICE, body, b);
}

/* Record how many events were lost before recording continued. */
static void note_lost(struct thread *t)
{
	notice(t, &(struct trace_NOTICE){.what = TRACE_NOTICE_LOST, .value = t->lost});
	t->lost = 0;
}

static void note_budget(struct thread *t)
{
	notice(t, &(struct trace_NOTICE){
		      .what = TRACE_NOTICE_BUDGET, .value = trace_file_header->file_bytes});
}

static void note_thinned(struct thread *t)
{
	struct resample_notice how;

	if (resample_notice_take(&how))
		notice(t, &(struct trace_NOTICE){.what = TRACE_NOTICE_THINNED,
			      .value = how.blocks,
			      .mean = how.mean,
			      .exact_from = how.exact_from});
}

static bool claim_own(
    struct thread *t, struct file_chunk *c, uint32_t bytes, bool last, enum trace_drop *why)
{
	return trace_file_claim(
		   c, TRACE_CHUNK_EVENTS, bytes, t->serial, t->tid, t->sequence, last, why) ||
	       (bytes != TRACE_FIRST_CHUNK_BYTES &&
		   trace_file_claim(c, TRACE_CHUNK_EVENTS, TRACE_FIRST_CHUNK_BYTES, t->serial,
		       t->tid, t->sequence, false, why));
}

/* How to claim the next chunk. */
struct claim {
	uint32_t bytes;
	bool last; /* may use the share that is reserved for large blocks */
	bool first_over_budget; /* the budget has just been used up: record that */
};

/* Where no ordinary chunk fits any more, a checkpoint makes room, or small blocks stop being
 * recorded. */
static void look_at_budget(struct thread *t, struct claim *how)
{
	const struct checkpoint_caller caller = {t->serial, t->tid, thread_settle};
	enum checkpoint_result result;

	how->bytes = trace_file_chunk_bytes();
	/* Other processes have made room. Blocks missed meanwhile are not in the table, so none is
	 * taken for live. */
	if (shim.budget && shim.budget_shared && sampler.by_table &&
	    trace_file_under_budget(how->bytes))
		shim.budget = false;
	how->last = shim.budget;
	if (!shim.budget) {
		trace_file_set_aside(checkpoint_bytes_needed());
		checkpoint_reserve();
		if (trace_file_under_budget(how->bytes))
			return;
		result = sampler.by_table ? checkpoint_make(&caller) : CHECKPOINT_NOT_WORTH;
		how->last = result == CHECKPOINT_BUSY || result == CHECKPOINT_NOT_WORTH;
		if (result == CHECKPOINT_NOT_WORTH) {
			trace_file_set_aside(0);
			shim.budget_shared = trace_file_bound_is_shared(how->bytes);
			how->first_over_budget =
			    !__atomic_exchange_n(&shim.budget, true, __ATOMIC_RELAXED);
			trace_file_flag(
			    TRACE_FLAG_BUDGET | (shim.budget_shared ? TRACE_FLAG_DISK : 0));
		}
	}
	if (how->last)
		how->bytes = TRACE_FIRST_CHUNK_BYTES;
}

/* Another thread's checkpoint is worth a short wait. */
static bool claim_patiently(
    struct thread *t, struct file_chunk *c, struct claim *how, enum trace_drop *why)
{
	for (int tries = 0; tries < 4; tries++) {
		if (claim_own(t, c, how->bytes, how->last, why))
			return true;
		if (*why != TRACE_DROP_BUDGET || shim.budget || !sampler.by_table)
			return false;
		checkpoint_wait();
		look_at_budget(t, how);
	}
	return false;
}

/* Move to the next chunk. The old one is let go only when the new one is in place. */
static bool next_chunk(struct thread *t, enum trace_drop *why)
{
	struct file_chunk c, old = t->mapped;
	struct claim how = {.first_over_budget = false};
	const uint8_t *pos = t->pos;
	bool had = t->chunk;

	look_at_budget(t, &how);
	/* A thread that has not filled a shared chunk may be short-lived: no large chunk yet. */
	if (!shim.budget &&
	    (had ? t->shared && t->pos - t->begun < TRACE_FIRST_CHUNK_BYTES / 2 : !t->sequence) &&
	    chunk_writer_open(t, why)) {
		if (had)
			trace_file_seal(&old);
		return true;
	}
	if (!claim_patiently(t, &c, &how, why)) {
		/* The only address space left is the full chunk's own. */
		if (*why != TRACE_DROP_NO_MEMORY || !had)
			return false;
		thread_chunk_leaves(t);
		if (!trace_file_seal_for_next(&old)) {
			thread_chunk_changed(t);
			return false;
		}
		had = false;
		leave_chunk(t);
		if (!claim_own(t, &c, how.bytes, how.last, why))
			return false;
	}
	t->sequence++;
	use_new_chunk(t, &c);
	if (had) {
		shorten(&old, pos); /* a chunk that ended for its side area has room left */
		trace_file_seal(&old);
	}
	if (how.first_over_budget)
		note_budget(t);
	return true;
}

static bool drop(struct thread *t, enum trace_drop why, uint64_t size)
{
	t->lost++;
	trace_file_dropped(why, 1, size);
	return false;
}

/* Stay in the present chunk if it has room. */
static bool stay(struct thread *t, uint32_t need)
{
	if (!t->chunk || t->pos + need > ordinary_end(t))
		return false;
	if (t->pos >= t->window)
		next_window(t);
	return true;
}

/* With more than half of the side area used, it may not last until the window ends. */
static bool side_is_short(const struct thread *t)
{
	return t->chunk && !t->shared && t->pos >= t->window &&
	       __atomic_load_n(&t->side_claimed, __ATOMIC_RELAXED) > TRACE_SIDE_MAX / 2;
}

/* Take the next chunk from the room that rights.h reserved, without a system call. */
static bool next_from_room(struct thread *t)
{
	enum { PIECE = 4 * TRACE_SLOT_BYTES };
	struct trace_chunk *old = t->chunk;
	struct file_chunk c;
	enum trace_drop why;

	if (!trace_file_claim(
		&c, TRACE_CHUNK_EVENTS, PIECE, t->serial, t->tid, t->sequence, false, &why))
		return false;
	/* a handler that comes in between finds no chunk */
	leave_chunk(t);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (old)
		trace_file_seal_here(old);
	t->sequence++;
	use_new_chunk(t, &c);
	if (t->lost)
		note_lost(t);
	return true;
}

bool chunk_writer_make_room(struct thread *t, uint32_t need, bool important, uint64_t size)
{
	enum trace_drop why = TRACE_DROP_NO_SPACE;
	uint64_t now, signals;
	bool room;

	if (shim.mode == SHIM_DORMANT)
		return false; /* detached */
	if (shim.sandboxed && t->serial) {
		/* without a system call, or not at all */
		if (!t->vfork &&
		    ((t->chunk && t->pos + need <= ordinary_end(t)) || next_from_room(t) ||
			(important && t->chunk && t->pos + need <= t->end)))
			return true;
		trace_file_dropped(t->vfork ? TRACE_DROP_VFORK : TRACE_DROP_RIGHTS, 1, size);
		return false;
	}
	if (!t->serial) {
		/* zeroed by a fork: this is the child */
		signals = sys_block_signals();
		room = thread_lifecycle.forked(t);
		sys_restore_signals(signals);
		if (!room)
			return false;
	}
	if (t->vfork) {
		if (sys_getpid() != shim.pid) {
			trace_file_dropped(TRACE_DROP_VFORK, 1, size);
			return false;
		}
		if (t->vfork == THREAD_BORROWED) {
			t->vfork = THREAD_OWN;
			if (t->chunk)
				set_limit(t);
		}
	}
	if (!side_is_short(t) && stay(t, need))
		return true;
	now = clock_ticks();
	if (!t->retry_ticks || now >= t->retry_ticks) {
		signals = sys_block_signals();
		__atomic_store_n(&t->untimed, true, __ATOMIC_RELEASE);
		room = next_chunk(t, &why);
		__atomic_store_n(&t->untimed, false, __ATOMIC_RELEASE);
		sys_restore_signals(signals);
		if (room) {
			t->retry_ticks = 0;
			t->retry_shift = 0;
			if (t->lost)
				note_lost(t);
			note_thinned(t);
			return true;
		}
		if (t->retry_shift < 10)
			t->retry_shift++;
		t->retry_ticks = now + ((tick_clock.ticks_100ms / 100) << t->retry_shift);
		t->lost_why = why;
	}
	if (stay(t, need))
		return true;
	if (important && t->chunk && t->pos + need <= t->end)
		return true;
	return drop(t, t->lost_why, size);
}

void chunk_writer_side(struct thread *t, const struct trace_side *record)
{
	struct trace_side *place;
	uint32_t n;

	if (!t->chunk || (t->vfork && (shim.sandboxed || sys_getpid() != shim.pid))) {
		trace_file_dropped(TRACE_DROP_SIGNAL, 1, record->size);
		return;
	}
	n = __atomic_fetch_add(&t->side_claimed, 1, __ATOMIC_RELAXED);
	if (n >= TRACE_SIDE_MAX) {
		__atomic_fetch_sub(&t->side_claimed, 1, __ATOMIC_RELAXED);
		trace_file_dropped(TRACE_DROP_SIGNAL, 1, record->size);
		return;
	}
	/* A handler may interrupt a handler: only the outermost publishes the count. */
	__atomic_fetch_add(&t->side_open, 1, __ATOMIC_RELAXED);
	place = (struct trace_side *)(void *)((uint8_t *)t->chunk + t->mapped.bytes) - (n + 1);
	*place = *record;
	place->check = (uint16_t)xxh64(place, offsetof(struct trace_side, check));
	if (__atomic_sub_fetch(&t->side_open, 1, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&t->chunk->side_count,
		    __atomic_load_n(&t->side_claimed, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
}
