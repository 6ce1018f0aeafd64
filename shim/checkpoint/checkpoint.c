/*
 * checkpoint.c - see checkpoint.h. In this order, so that a process may be killed at any moment:
 * which chunks are full; then the time T, up to which the checkpoint stands for everything; then
 * what lived at T; its parts, sealed; the header's slot, from where on it counts; and only then are
 * the old chunks given back.
 */
#include "checkpoint/checkpoint.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/merge_sort.h"
#include "base/options.h"
#include "base/scratch.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/varint.h"
#include "base/xxh64.h"
#include "checkpoint/event_log.h"
#include "checkpoint/freed_stats.h"
#include "checkpoint/live_blocks.h"
#include "checkpoint/resample.h"
#include "sampling/sampler.h"
#include "trace/trace_file.h"

#define EXACT_BYTES 24u /* of a block on disk, about */
#define SAMPLED_BYTES 32u
#define WENT_BYTES 48u
#define RECORD_MORE 48u /* of a kept event: kind, length, times, threads */
#define RANGES_MAX 4096u
#define SUMS (TRACE_CHECKPOINT_PERIODS * (1 + FREED_STATS_STACKS))
#define RESIDENT (512u << 10) /* of the memory that is held: what a small one takes */

struct period {
	uint64_t begin, end; /* ticks */
	uint64_t replaced; /* bytes of the trace */
	uint64_t acquired, acquired_bytes, released, released_bytes, most_bytes;
	uint64_t left_out;
	uint32_t thread, tid;
};

/* Of this process's file; only who has the lock changes it. */
static struct {
	int lock;
	uint32_t number; /* of the last one */
	uint32_t periods;
	uint64_t left_out; /* up to the last one */
	uint64_t begin; /* ticks, where the present period began; 0: with the file */
	uint64_t not_before; /* ticks: there was no memory for one just now */
	bool tight; /* the last one found no room in the budget: fewer blocks are to be in it */
	struct hold hold; /* all that making one takes */
	struct period period[TRACE_CHECKPOINT_PERIODS];
} made;

struct range {
	uint64_t offset, bytes;
};

/* What one is made of; arrays are in made.hold. */
struct making {
	int fd;
	struct range *ranges; /* what is replaced */
	uint32_t ranges_count;
	uint64_t replaced;
	uint64_t ticks; /* T */
	struct live_blocks_totals totals; /* as of T */
	struct resample_block *blocks;
	uint64_t blocks_count, blocks_room;
	uint64_t blocks_left_out;
	struct resampling resampling;
	struct order *order, *scratch;
	uint64_t order_count, order_room;
};

/* Where it is written. */
struct writer {
	struct file_chunk chunk;
	uint8_t *pos, *end;
	uint64_t ticks, address;
	uint32_t thread; /* whose the next event is, as far as the part has said */
	uint32_t number, parts;
	struct range part[256];
};

enum { BLOCK, RECORD, PERIOD, WENT }; /* order.value: which, in the low two bits */

/* Bytes on disk of one of so many blocks, and of what is kept besides. */
static uint64_t room_of(uint64_t exact, uint64_t sampled)
{
	uint64_t chunk = trace_file_chunk_bytes();
	uint64_t bytes = exact * EXACT_BYTES + sampled * SAMPLED_BYTES + event_log_bytes() + chunk +
			 (uint64_t)made.periods * freed_stats_most() * WENT_BYTES;

	return (bytes + chunk - 1) / chunk * chunk;
}

uint64_t checkpoint_room(void)
{
	struct live_blocks_totals now;

	if (!sampler.by_table)
		return 0;
	now = live_blocks_period(false);
	return room_of(now.live - now.live_sampled, now.live_sampled);
}

/* Bytes that this one may take at most: with as much kept free for the next one, and what is not
 * replaced, an eighth of the budget is to be left, beside that which is for large blocks. */
static uint64_t most_room(const struct making *m)
{
	uint64_t stays = trace_file_held() - m->replaced, limit = trace_file_limit();
	uint64_t all = limit - limit / 4;

	return all > stays ? (all - stays) / 2 : 0;
}

/* How many blocks there is room for where so many live: more may come meanwhile. */
static uint64_t blocks_room(uint64_t live)
{
	return live + live / 8 + 1024;
}

/* Bytes of made.hold that one takes, of so many blocks and kept events. */
static size_t work_bytes(uint64_t blocks, uint64_t records)
{
	uint64_t order = blocks + records + SUMS;

	return scratch_piece(sizeof(struct writer)) +
	       scratch_piece(RANGES_MAX * sizeof(struct range)) +
	       scratch_piece(blocks * sizeof(struct resample_block)) +
	       2 * scratch_piece(order * sizeof(struct order));
}

static bool take_lock(void)
{
	return !__atomic_exchange_n(&made.lock, 1, __ATOMIC_ACQUIRE);
}

static void free_lock(void)
{
	__atomic_store_n(&made.lock, 0, __ATOMIC_RELEASE);
}

void checkpoint_prepare(void)
{
	uint64_t live, records, wanted;

	if (!sampler.by_table || trace_file_held() < trace_file_limit() / 2)
		return;
	/* as many as there will be by the next chunk, if most of what it has lives on */
	live = live_blocks_period(false).live + trace_file_chunk_bytes() / 16;
	records = event_log_bytes() / EVENT_LOG_UNIT + 1024;
	wanted = work_bytes(blocks_room(live), records);
	live_blocks_prepare();
	event_log_prepare();
	if (!take_lock())
		return;
	if (made.hold.bytes < wanted || made.hold.bytes > 4 * wanted)
		scratch_ready(
		    &made.hold, work_bytes(blocks_room(live + live / 2), records * 2), RESIDENT);
	free_lock();
}

/* The chunks that are full: nothing is written to them any more. */
static void find_full(struct making *m)
{
	uint64_t end = __atomic_load_n(&trace_file_header->file_bytes, __ATOMIC_RELAXED);

	for (uint64_t at = TRACE_SLOT_BYTES; at < end && m->ranges_count < RANGES_MAX;) {
		struct range *last = m->ranges_count ? &m->ranges[m->ranges_count - 1] : NULL;
		struct trace_chunk c;

		if (!trace_file_read(m->fd, at, &c, sizeof(c)))
			return;
		if (c.magic != TRACE_CHUNK_MAGIC || !c.bytes || c.bytes % TRACE_SLOT_BYTES) {
			at += TRACE_SLOT_BYTES;
			continue;
		}
		if (c.sealed == 1 && c.type != TRACE_CHUNK_DEFINITIONS) {
			if (last && last->offset + last->bytes == at)
				last->bytes += c.bytes;
			else
				m->ranges[m->ranges_count++] = (struct range){at, c.bytes};
			m->replaced += c.bytes;
		}
		at += c.bytes;
	}
}

static bool add_block(void *arg, uint64_t address, const struct live_block *how)
{
	struct making *m = arg;

	if (m->blocks_count == m->blocks_room) {
		m->blocks_left_out++;
		return true;
	}
	m->blocks[m->blocks_count++] = (struct resample_block){address, *how};
	return true;
}

static void add_order(struct making *m, uint64_t ticks, uint64_t what, uint64_t which)
{
	if (m->order_count < m->order_room)
		m->order[m->order_count++] = (struct order){ticks, which << 2 | what};
}

/* Neighbours become one where there are too many. */
static void merge_periods(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < made.periods; i += 2) {
		struct period p = made.period[i], *q = &made.period[i + 1];

		p.end = q->end;
		p.replaced += q->replaced;
		p.acquired += q->acquired;
		p.acquired_bytes += q->acquired_bytes;
		p.released += q->released;
		p.released_bytes += q->released_bytes;
		p.most_bytes = p.most_bytes > q->most_bytes ? p.most_bytes : q->most_bytes;
		p.left_out += q->left_out;
		freed_stats_merge(i, i + 1, n);
		made.period[n++] = p;
	}
	made.periods = n;
}

static void add_period(struct making *m, const struct checkpoint_caller *caller)
{
	const struct live_blocks_totals *totals = &m->totals;
	uint64_t left_out = event_log_left_out() + m->blocks_left_out;

	if (made.periods == TRACE_CHECKPOINT_PERIODS)
		merge_periods();
	freed_stats_period_commit(made.periods, m->ticks);
	made.period[made.periods++] = (struct period){
	    .begin = made.begin ? made.begin : trace_file_header->start_ticks,
	    .end = m->ticks,
	    .replaced = m->replaced,
	    .acquired = totals->acquired,
	    .acquired_bytes = totals->acquired_bytes,
	    .released = totals->released,
	    .released_bytes = totals->released_bytes,
	    .most_bytes = totals->most_bytes,
	    .left_out = left_out > made.left_out ? left_out - made.left_out : 0,
	    .thread = caller->serial,
	    .tid = caller->tid,
	};
	live_blocks_period_commit(totals);
	made.left_out = left_out;
	made.begin = m->ticks;
}

/* What is known of a period; of what came and went in it at the time of the largest. */
static void add_period_order(struct making *m, uint32_t period)
{
	uint32_t count;
	const struct gone *g = freed_stats_of(period, &count);

	for (uint32_t i = 0; i < count; i++)
		add_order(m, g[i].birth, WENT, (uint64_t)period * FREED_STATS_STACKS + i);
	add_order(m, made.period[period].end, PERIOD, period);
}

/* What lived at T, in the order of time. What is kept is held, and stays so. */
static enum checkpoint_result gather(struct making *m, const struct checkpoint_caller *caller)
{
	uint64_t records = 0;

	m->blocks_room = blocks_room(live_blocks_period(false).live);
	m->blocks = scratch_take(&made.hold, m->blocks_room * sizeof(*m->blocks));
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		records++;
	m->order_room = m->blocks_room + records + SUMS;
	m->order = scratch_take(&made.hold, m->order_room * sizeof(*m->order));
	m->scratch = scratch_take(&made.hold, m->order_room * sizeof(*m->scratch));
	if (made.hold.refused)
		return CHECKPOINT_FAILED;
	live_blocks_each(m->ticks, add_block, m);
	if (!resample_fit(
		&m->resampling, m->blocks, m->blocks_count, most_room(m), made.tight, room_of))
		return CHECKPOINT_NOT_WORTH;
	add_period(m, caller);
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		if (r->ticks <= m->ticks)
			add_order(m, r->ticks, RECORD, (uintptr_t)r);
	for (uint64_t i = 0; i < m->blocks_count; i++)
		if (m->blocks[i].how.mean != RESAMPLE_GONE)
			add_order(m, m->blocks[i].how.birth, BLOCK, i);
	for (uint32_t i = 0; i < made.periods; i++)
		add_period_order(m, i);
	merge_sort(m->order, m->scratch, m->order_count);
	return CHECKPOINT_MADE;
}

static void seal_part(struct writer *w)
{
	if (!w->chunk.chunk)
		return;
	__atomic_store_n(&w->chunk.chunk->committed,
	    (uint32_t)(w->pos - (uint8_t *)w->chunk.chunk - sizeof(struct trace_chunk)),
	    __ATOMIC_RELEASE);
	trace_file_seal(&w->chunk);
}

static bool claim_part(struct writer *w, uint32_t bytes, enum trace_drop *why)
{
	return trace_file_claim(
	    &w->chunk, TRACE_CHUNK_CHECKPOINT, bytes, 0, w->number, w->parts, true, why);
}

/* In the present part or the next; false: the file has no room for it. */
static bool room(struct writer *w, uint32_t need)
{
	enum trace_drop why;

	if (w->chunk.chunk && w->pos + need <= w->end)
		return true;
	seal_part(w);
	if (w->parts == sizeof(w->part) / sizeof(w->part[0]))
		return false;
	if (!claim_part(w, trace_file_chunk_bytes(), &why) &&
	    (why != TRACE_DROP_NO_MEMORY || !claim_part(w, TRACE_FIRST_CHUNK_BYTES, &why))) {
		/* where it is the bound of all together, others may make room */
		made.tight = why == TRACE_DROP_BUDGET &&
			     !trace_file_bound_is_shared(TRACE_FIRST_CHUNK_BYTES);
		return false;
	}
	w->part[w->parts++] = (struct range){w->chunk.offset, w->chunk.bytes};
	w->chunk.chunk->ticks = trace_file_header->start_ticks;
	w->chunk.chunk->mono_ns = trace_file_header->start_mono_ns;
	w->pos = (uint8_t *)(w->chunk.chunk + 1);
	w->end = (uint8_t *)w->chunk.chunk + w->chunk.bytes;
	w->ticks = trace_file_header->start_ticks;
	w->address = 0;
	w->thread = 0;
	return true;
}

/* The time since the event before. */
static uint64_t pass(struct writer *w, uint64_t ticks)
{
	uint64_t dt = ticks > w->ticks ? ticks - w->ticks : 0;

	w->ticks += dt;
	return dt;
}

static void extended(struct writer *w, unsigned kind, const uint8_t *body, size_t bytes)
{
	*w->pos++ = TRACE_EXTENDED;
	w->pos = varint_put(w->pos, kind);
	w->pos = varint_put_bytes(w->pos, body, bytes);
}

static void switch_thread(struct writer *w, uint32_t thread, uint32_t tid, uint64_t ticks)
{
	uint8_t body[32], *b = body;

	if (thread == w->thread)
		return;
	b = varint_put(b, pass(w, ticks));
	b = varint_put(b, thread);
	b = varint_put(b, tid);
	extended(w, TRACE_SHARED_THREAD, body, (size_t)(b - body));
	w->thread = thread;
}

static bool write_block(struct writer *w, const struct resample_block *block)
{
	const struct live_block *how = &block->how;
	uint8_t body[80], *b = body;

	if (!room(w, 160))
		return false;
	switch_thread(w, how->thread, how->tid, how->birth);
	if (!how->mean && !(block->address & 7)) {
		*w->pos++ = (uint8_t)(TRACE_ALLOC | how->api << TRACE_ALLOC_API_SHIFT);
		w->pos = varint_put(w->pos, pass(w, how->birth));
		w->pos = varint_put_signed(w->pos, (int64_t)(block->address - w->address) >> 3);
		w->pos = varint_put(w->pos, how->size);
		w->pos = varint_put(w->pos, how->stack);
		w->address = block->address;
		return true;
	}
	b = varint_put(b, pass(w, how->birth));
	b = varint_put(b, block->address);
	b = varint_put(b, how->size);
	if (how->mean)
		b = varint_put(b, how->mean);
	b = varint_put(b, how->stack);
	b = varint_put(b, how->api);
	extended(w, how->mean ? TRACE_SAMPLED_ALLOC : TRACE_ALLOC_WIDE, body, (size_t)(b - body));
	return true;
}

static bool write_record(struct writer *w, const struct event_log_record *r)
{
	uint8_t dt[VARINT_BYTES_MAX];
	size_t n;

	if (!room(w, r->length + 2 * RECORD_MORE))
		return false;
	switch_thread(w, r->thread, r->tid, r->ticks);
	n = (size_t)(varint_put(dt, pass(w, r->ticks)) - dt);
	*w->pos++ = TRACE_EXTENDED;
	w->pos = varint_put(w->pos, r->kind);
	w->pos = varint_put(w->pos, n + r->length);
	memcpy(w->pos, dt, n);
	memcpy(w->pos + n, r->body, r->length);
	w->pos += n + r->length;
	return true;
}

static bool write_period(struct writer *w, const struct period *p)
{
	uint8_t body[9 * VARINT_BYTES_MAX], *b = body;

	if (!room(w, 256))
		return false;
	switch_thread(w, p->thread, p->tid, p->end);
	b = varint_put(b, pass(w, p->end));
	b = varint_put(b, p->begin);
	b = varint_put(b, p->replaced);
	b = varint_put(b, p->acquired);
	b = varint_put(b, p->acquired_bytes);
	b = varint_put(b, p->released);
	b = varint_put(b, p->released_bytes);
	b = varint_put(b, p->most_bytes);
	b = varint_put(b, p->left_out);
	extended(w, TRACE_CHECKPOINT, body, (size_t)(b - body));
	return true;
}

static bool write_went(struct writer *w, uint64_t which)
{
	const struct period *p = &made.period[which / FREED_STATS_STACKS];
	uint8_t body[8 * VARINT_BYTES_MAX], *b = body;
	uint32_t count;
	const struct gone *g =
	    &freed_stats_of(which / FREED_STATS_STACKS, &count)[which % FREED_STATS_STACKS];

	if (!room(w, 256))
		return false;
	switch_thread(w, p->thread, p->tid, g->birth);
	b = varint_put(b, pass(w, g->birth));
	b = varint_put(b, g->who >> 32);
	b = varint_put(b, (uint32_t)g->who);
	b = varint_put(b, g->blocks);
	b = varint_put(b, g->bytes);
	b = varint_put(b, g->largest);
	b = varint_put(b, g->life / g->blocks * 1024);
	b = varint_put(b, g->longest);
	extended(w, TRACE_WENT, body, (size_t)(b - body));
	return true;
}

static bool write_all(struct writer *w, const struct making *m)
{
	for (uint64_t i = 0; i < m->order_count; i++) {
		uint64_t which = m->order[i].value >> 2;
		bool ok = false;

		switch (m->order[i].value & 3) {
		case BLOCK:
			ok = write_block(w, &m->blocks[which]);
			break;
		case RECORD:
			ok = write_record(w, (const struct event_log_record *)(uintptr_t)which);
			break;
		case PERIOD:
			ok = write_period(w, &made.period[which]);
			break;
		case WENT:
			ok = write_went(w, which);
			break;
		}
		if (!ok)
			return false;
	}
	seal_part(w);
	return true;
}

/* From here on it counts. */
static void commit(const struct writer *w, uint64_t ticks)
{
	uint32_t which = w->number % TRACE_CHECKPOINT_SLOTS;
	struct trace_checkpoint *slot = &trace_file_header->checkpoint[which], checked;

	__atomic_store_n(&slot->number, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->ticks, ticks, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->parts, w->parts, __ATOMIC_RELEASE);
	checked = (struct trace_checkpoint){w->number, w->parts, ticks};
	__atomic_store_n(&trace_file_header->checkpoint_check[which],
	    xxh64(&checked, sizeof(checked)), __ATOMIC_RELEASE);
	__atomic_store_n(&slot->number, w->number, __ATOMIC_RELEASE);
}

static void give_back(int fd, const struct range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		trace_file_punch(fd, ranges[i].offset, ranges[i].bytes);
}

/* What is kept is held. */
static enum checkpoint_result write_down(struct making *m, struct writer *w)
{
	w->number = made.number + 1;
	if (!write_all(w, m)) {
		/* numbers are not used again, as these parts might be seen */
		made.number++;
		seal_part(w);
		give_back(m->fd, w->part, w->parts);
		return CHECKPOINT_FAILED;
	}
	made.number = w->number;
	made.tight = false;
	commit(w, m->ticks);
	give_back(m->fd, m->ranges, m->ranges_count);
	resample_live_blocks(&m->resampling, m->blocks, m->blocks_count);
	return CHECKPOINT_MADE;
}

static enum checkpoint_result make(
    struct making *m, struct writer *w, const struct checkpoint_caller *caller)
{
	enum checkpoint_result result;
	struct live_blocks_totals now = live_blocks_period(false);

	find_full(m);
	if (room_of(now.live - now.live_sampled, 0) > most_room(m))
		return CHECKPOINT_NOT_WORTH;
	freed_stats_period_begin();
	m->ticks = clock_ticks();
	m->totals = live_blocks_period(true);
	caller->settle(m->ticks);
	if (!event_log_begin()) {
		live_blocks_period_abort(&m->totals);
		freed_stats_period_abort();
		return CHECKPOINT_FAILED;
	}
	result = gather(m, caller);
	if (result == CHECKPOINT_MADE) {
		result = write_down(m, w);
	} else {
		live_blocks_period_abort(&m->totals);
		freed_stats_period_abort();
	}
	event_log_end();
	return result;
}

enum checkpoint_result checkpoint_make(const struct checkpoint_caller *caller)
{
	enum checkpoint_result result = CHECKPOINT_FAILED;
	struct making m = {.fd = -1};
	struct writer *w;

	if (shim.sandboxed)
		return CHECKPOINT_NOT_WORTH;
	if (clock_ticks() < __atomic_load_n(&made.not_before, __ATOMIC_RELAXED))
		return CHECKPOINT_FAILED;
	if (!take_lock())
		return CHECKPOINT_BUSY;
	w = scratch_take(&made.hold, sizeof(*w));
	m.ranges = scratch_take(&made.hold, RANGES_MAX * sizeof(*m.ranges));
	m.fd = trace_file_open();
	if (w && m.ranges && m.fd >= 0)
		result = trace_file_can_punch(m.fd) ? make(&m, w, caller) : CHECKPOINT_NOT_WORTH;
	if (m.fd >= 0)
		trace_file_close(m.fd);
	if (made.hold.refused) /* tried at each event, it would be all that the process does */
		__atomic_store_n(&made.not_before, clock_ticks() + 10 * tick_clock.ticks_100ms,
		    __ATOMIC_RELAXED);
	scratch_end(&made.hold);
	free_lock();
	return result;
}

void checkpoint_wait(void)
{
	uint64_t until = clock_ticks() + tick_clock.ticks_100ms;

	while (__atomic_load_n(&made.lock, __ATOMIC_ACQUIRE) && clock_ticks() < until)
		sys_yield();
}

void checkpoint_forked(uint64_t start)
{
	scratch_forget(&made.hold);
	memset(&made, 0, sizeof(made));
	live_blocks_forked(start);
	resample_forked();
	freed_stats_forked();
	event_log_forked();
}
