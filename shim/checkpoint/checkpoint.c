/*
 * checkpoint.c - see checkpoint.h. The order of steps lets the process be killed at any moment:
 * find the full chunks; take the time T up to which the checkpoint stands for everything; gather
 * what lived at T; write and seal its parts; store the header's slot, which commits it; only then
 * punch out the old chunks.
 */
#include "checkpoint/checkpoint.h"

#include <string.h>

#include "base/clock.h"
#include "base/merge_sort.h"
#include "base/options.h"
#include "base/record_fields.h"
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

#define EXACT_BYTES 24u /* an exact block takes about this on disk */
#define SAMPLED_BYTES 32u
#define FREED_BYTES 48u
#define RECORD_HEADER_MAX 48u /* of a logged event: kind, length, times, threads */
#define RANGES_MAX 4096u
#define SUMS_MAX (TRACE_CHECKPOINT_PERIODS * (1 + FREED_STATS_STACKS))
#define RESIDENT (512u << 10) /* bytes of memory with pages: enough for a small checkpoint */

struct period {
	uint64_t begin, end; /* ticks */
	uint64_t replaced; /* bytes of the trace */
	uint64_t acquired, acquired_bytes, released, released_bytes, peak_bytes;
	uint64_t left_out;
	uint32_t thread, tid;
};

/* The checkpoints of this process's file. Only the thread that holds the lock changes them. */
static struct {
	int lock;
	uint32_t number; /* of the last checkpoint */
	uint32_t periods;
	uint64_t left_out; /* events and blocks, up to the last checkpoint */
	uint64_t begin; /* ticks, where the present period began; 0: with the file */
	uint64_t retry_at; /* ticks; memory was refused just before */
	bool over_budget; /* the last attempt did not fit: the next must hold fewer blocks */
	struct scratch memory; /* of `struct build` and `struct writer` */
	struct period period[TRACE_CHECKPOINT_PERIODS];
} checkpoints;

struct range {
	uint64_t offset, bytes;
};

/* The content of a checkpoint; the arrays lie in checkpoints.memory. */
struct build {
	int fd;
	struct range *ranges; /* the chunks that are replaced */
	uint32_t ranges_count;
	uint64_t replaced;
	uint64_t ticks; /* T */
	struct live_blocks_totals totals; /* as of T */
	struct resample_block *blocks;
	uint64_t blocks_count, blocks_max; /* blocks_max: room in the array */
	uint64_t blocks_left_out;
	struct resampling resampling;
	struct sort_item *order, *scratch;
	uint64_t order_count, order_max;
};

/* Where the checkpoint is written. */
struct writer {
	struct file_chunk chunk;
	uint8_t *pos, *end;
	uint64_t ticks, address;
	uint32_t thread; /* the last one that the part named */
	uint32_t number, parts;
	struct range part[256];
};

enum { BLOCK, LOGGED, PERIOD, FREED }; /* in the low two bits of order.value; above: an index */

/* Bytes on disk of a checkpoint with that many blocks. */
static uint64_t estimate_bytes(uint64_t exact, uint64_t sampled)
{
	uint64_t chunk = trace_file_chunk_bytes();
	uint64_t bytes = exact * EXACT_BYTES + sampled * SAMPLED_BYTES + event_log_bytes() + chunk +
			 (uint64_t)checkpoints.periods * freed_stats_stacks_max() * FREED_BYTES;

	return (bytes + chunk - 1) / chunk * chunk;
}

uint64_t checkpoint_bytes_needed(void)
{
	struct live_blocks_totals now;

	if (!sampler.by_table)
		return 0;
	now = live_blocks_totals();
	return estimate_bytes(now.live - now.live_sampled, now.live_sampled);
}

/* The most bytes that this checkpoint may take. Half of the free room stays for the next one, and a
 * quarter of the limit for the records in between and for large blocks. */
static uint64_t available_bytes(const struct build *build)
{
	uint64_t stays = trace_file_disk_bytes() - build->replaced, limit = trace_file_limit();
	uint64_t all = limit - limit / 4;

	return all > stays ? (all - stays) / 2 : 0;
}

/* Room for blocks in the array; more may come than live now. */
static uint64_t block_capacity(uint64_t live)
{
	return live + live / 8 + 1024;
}

/* Bytes of checkpoints.memory that a checkpoint takes. */
static size_t work_bytes(uint64_t blocks, uint64_t records)
{
	uint64_t order = blocks + records + SUMS_MAX;

	return scratch_piece(sizeof(struct writer)) +
	       scratch_piece(RANGES_MAX * sizeof(struct range)) +
	       scratch_piece(blocks * sizeof(struct resample_block)) +
	       2 * scratch_piece(order * sizeof(struct sort_item));
}

void checkpoint_reserve(void)
{
	uint64_t live, records, wanted;

	if (!sampler.by_table || trace_file_disk_bytes() < trace_file_limit() / 2)
		return;
	/* with one more chunk of acquisitions, at 16 bytes each */
	live = live_blocks_totals().live + trace_file_chunk_bytes() / 16;
	records = event_log_bytes() / EVENT_LOG_UNIT + 1024;
	wanted = work_bytes(block_capacity(live), records);
	live_blocks_reserve();
	event_log_reserve();
	if (!sys_try_lock(&checkpoints.lock))
		return;
	if (checkpoints.memory.bytes < wanted || checkpoints.memory.bytes > 4 * wanted)
		scratch_ready(&checkpoints.memory,
		    work_bytes(block_capacity(live + live / 2), records * 2), RESIDENT);
	sys_unlock(&checkpoints.lock);
}

/* Full chunks are sealed: nobody writes to them any more. */
static void find_full_chunks(struct build *build)
{
	uint64_t end = __atomic_load_n(&trace_file_header->file_bytes, __ATOMIC_RELAXED);

	for (uint64_t at = TRACE_SLOT_BYTES; at < end && build->ranges_count < RANGES_MAX;) {
		struct range *last =
		    build->ranges_count ? &build->ranges[build->ranges_count - 1] : NULL;
		struct trace_chunk c;

		if (!trace_file_read(build->fd, at, &c, sizeof(c)))
			return;
		if (c.magic != TRACE_CHUNK_MAGIC || !c.bytes || c.bytes % TRACE_SLOT_BYTES) {
			at += TRACE_SLOT_BYTES;
			continue;
		}
		if (c.sealed == 1 && c.type != TRACE_CHUNK_DEFINITIONS) {
			if (last && last->offset + last->bytes == at)
				last->bytes += c.bytes;
			else
				build->ranges[build->ranges_count++] = (struct range){at, c.bytes};
			build->replaced += c.bytes;
		}
		at += c.bytes;
	}
}

static bool add_block(void *arg, uint64_t address, const struct live_block *info)
{
	struct build *build = arg;

	if (build->blocks_count == build->blocks_max) {
		build->blocks_left_out++;
		return true;
	}
	build->blocks[build->blocks_count++] = (struct resample_block){address, *info};
	return true;
}

static void order_add(struct build *build, uint64_t ticks, uint64_t what, uint64_t which)
{
	if (build->order_count < build->order_max)
		build->order[build->order_count++] = (struct sort_item){ticks, which << 2 | what};
}

/* Merges neighbouring periods by twos. */
static void merge_periods(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i + 1 < checkpoints.periods; i += 2) {
		struct period p = checkpoints.period[i], *q = &checkpoints.period[i + 1];

		p.end = q->end;
		p.replaced += q->replaced;
		p.acquired += q->acquired;
		p.acquired_bytes += q->acquired_bytes;
		p.released += q->released;
		p.released_bytes += q->released_bytes;
		p.peak_bytes = p.peak_bytes > q->peak_bytes ? p.peak_bytes : q->peak_bytes;
		p.left_out += q->left_out;
		freed_stats_merge(i, i + 1, n);
		checkpoints.period[n++] = p;
	}
	checkpoints.periods = n;
}

static void add_period(struct build *build, const struct checkpoint_caller *caller)
{
	const struct live_blocks_totals *totals = &build->totals;
	uint64_t left_out = event_log_left_out() + build->blocks_left_out;

	if (checkpoints.periods == TRACE_CHECKPOINT_PERIODS)
		merge_periods();
	freed_stats_period_commit(checkpoints.periods, build->ticks);
	checkpoints.period[checkpoints.periods++] = (struct period){
	    .begin = checkpoints.begin ? checkpoints.begin : trace_file_header->start_ticks,
	    .end = build->ticks,
	    .replaced = build->replaced,
	    .acquired = totals->acquired,
	    .acquired_bytes = totals->acquired_bytes,
	    .released = totals->released,
	    .released_bytes = totals->released_bytes,
	    .peak_bytes = totals->peak_bytes,
	    .left_out = left_out > checkpoints.left_out ? left_out - checkpoints.left_out : 0,
	    .thread = caller->serial,
	    .tid = caller->tid,
	};
	live_blocks_period_commit(totals);
	checkpoints.left_out = left_out;
	checkpoints.begin = build->ticks;
}

/* Freed blocks of a period are written at the time of the largest. */
static void order_period(struct build *build, uint32_t period)
{
	uint32_t count;
	const struct freed_stack *g = freed_stats_period(period, &count);

	for (uint32_t i = 0; i < count; i++)
		order_add(build, g[i].birth, FREED, (uint64_t)period * FREED_STATS_STACKS + i);
	order_add(build, checkpoints.period[period].end, PERIOD, period);
}

/* Collects what lived at T, in the order of time. Pre: the event log is frozen. */
static enum checkpoint_result gather_events(
    struct build *build, const struct checkpoint_caller *caller)
{
	struct resample_limit limit = {
	    available_bytes(build), checkpoints.over_budget, estimate_bytes};
	uint64_t records = 0;

	build->blocks_max = block_capacity(live_blocks_totals().live);
	build->blocks =
	    scratch_take(&checkpoints.memory, build->blocks_max * sizeof(*build->blocks));
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		records++;
	build->order_max = build->blocks_max + records + SUMS_MAX;
	build->order = scratch_take(&checkpoints.memory, build->order_max * sizeof(*build->order));
	build->scratch =
	    scratch_take(&checkpoints.memory, build->order_max * sizeof(*build->scratch));
	if (checkpoints.memory.refused)
		return CHECKPOINT_FAILED;
	live_blocks_each(build->ticks, add_block, build);
	if (!resample_fit(&build->resampling, build->blocks, build->blocks_count, &limit))
		return CHECKPOINT_NOT_WORTH;
	add_period(build, caller);
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		if (r->ticks <= build->ticks)
			order_add(build, r->ticks, LOGGED, (uintptr_t)r);
	for (uint64_t i = 0; i < build->blocks_count; i++)
		if (build->blocks[i].info.mean != RESAMPLE_DROPPED)
			order_add(build, build->blocks[i].info.birth, BLOCK, i);
	for (uint32_t i = 0; i < checkpoints.periods; i++)
		order_period(build, i);
	merge_sort(build->order, build->scratch, build->order_count);
	return CHECKPOINT_MADE;
}

static void part_seal(struct writer *w)
{
	if (!w->chunk.chunk)
		return;
	__atomic_store_n(&w->chunk.chunk->committed,
	    (uint32_t)(w->pos - (uint8_t *)w->chunk.chunk - sizeof(struct trace_chunk)),
	    __ATOMIC_RELEASE);
	trace_file_seal(&w->chunk);
}

static bool part_claim(struct writer *w, uint32_t bytes, enum trace_drop *why)
{
	return trace_file_claim(
	    &w->chunk, TRACE_CHUNK_CHECKPOINT, bytes, 0, w->number, w->parts, true, why);
}

/* Makes room in the present part or the next; false: the file has none. */
static bool reserve(struct writer *w, uint32_t need)
{
	enum trace_drop why;

	if (w->chunk.chunk && w->pos + need <= w->end)
		return true;
	part_seal(w);
	if (w->parts == sizeof(w->part) / sizeof(w->part[0]))
		return false;
	if (!part_claim(w, trace_file_chunk_bytes(), &why) &&
	    (why != TRACE_DROP_NO_MEMORY || !part_claim(w, TRACE_FIRST_CHUNK_BYTES, &why))) {
		/* under the bound of all traces together, others may make room */
		checkpoints.over_budget = why == TRACE_DROP_BUDGET &&
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

/* Moves to an event's time; returns the ticks since the event before. */
static uint64_t advance(struct writer *w, uint64_t ticks)
{
	uint64_t dt = ticks > w->ticks ? ticks - w->ticks : 0;

	w->ticks += dt;
	return dt;
}

static void write_extended(struct writer *w, unsigned kind, const uint8_t *body, size_t bytes)
{
	*w->pos++ = TRACE_EXTENDED;
	w->pos = varint_put(w->pos, kind);
	w->pos = varint_put_bytes(w->pos, body, bytes);
}

#define WRITE_EXTENDED(w, NAME, ticks, ...)                                                        \
	do {                                                                                       \
		uint8_t body[VARINT_BYTES_MAX +                                                    \
			     sizeof(struct trace_##NAME) / sizeof(uint64_t) * VARINT_BYTES_MAX];   \
		uint8_t *end = varint_put(body, advance(w, ticks));                                \
                                                                                                   \
		end = FIELDS_PUT(end, NAME, NULL, __VA_ARGS__);                                    \
		write_extended(w, TRACE_##NAME, body, (size_t)(end - body));                       \
	} while (0)

static void write_thread(struct writer *w, uint32_t thread, uint32_t tid, uint64_t ticks)
{
	if (thread == w->thread)
		return;
	WRITE_EXTENDED(w, SHARED_THREAD, ticks, .serial = thread, .tid = tid);
	w->thread = thread;
}

static bool write_block(struct writer *w, const struct resample_block *block)
{
	const struct live_block *info = &block->info;

	if (!reserve(w, 160))
		return false;
	write_thread(w, info->thread, info->tid, info->birth);
	if (!info->mean && !(block->address & 7)) {
		*w->pos++ = (uint8_t)(TRACE_ALLOC | info->api << TRACE_ALLOC_API_SHIFT);
		w->pos = varint_put(w->pos, advance(w, info->birth));
		w->pos = varint_put_signed(w->pos, (int64_t)(block->address - w->address) >> 3);
		w->pos = varint_put(w->pos, info->size);
		w->pos = varint_put(w->pos, info->stack);
		w->address = block->address;
		return true;
	}
	if (info->mean)
		WRITE_EXTENDED(w, SAMPLED_ALLOC, info->birth, .address = block->address,
		    .size = info->size, .mean = info->mean, .stack = info->stack, .api = info->api);
	else
		WRITE_EXTENDED(w, ALLOC_WIDE, info->birth, .address = block->address,
		    .size = info->size, .stack = info->stack, .api = info->api);
	return true;
}

static bool write_record(struct writer *w, const struct event_log_record *r)
{
	uint8_t dt[VARINT_BYTES_MAX];
	size_t n;

	if (!reserve(w, r->length + 2 * RECORD_HEADER_MAX))
		return false;
	write_thread(w, r->thread, r->tid, r->ticks);
	n = (size_t)(varint_put(dt, advance(w, r->ticks)) - dt);
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
	if (!reserve(w, 256))
		return false;
	write_thread(w, p->thread, p->tid, p->end);
	WRITE_EXTENDED(w, CHECKPOINT, p->end, .begin = p->begin, .trace_bytes = p->replaced,
	    .acquired = p->acquired, .acquired_bytes = p->acquired_bytes, .released = p->released,
	    .released_bytes = p->released_bytes, .most_bytes = p->peak_bytes,
	    .left_out = p->left_out);
	return true;
}

static bool write_freed(struct writer *w, uint64_t which)
{
	const struct period *p = &checkpoints.period[which / FREED_STATS_STACKS];
	uint32_t count;
	const struct freed_stack *g =
	    &freed_stats_period(which / FREED_STATS_STACKS, &count)[which % FREED_STATS_STACKS];

	if (!reserve(w, 256))
		return false;
	write_thread(w, p->thread, p->tid, g->birth);
	WRITE_EXTENDED(w, WENT, g->birth, .space = g->key >> 32, .stack = (uint32_t)g->key,
	    .blocks = g->blocks, .bytes = g->bytes, .largest = g->largest,
	    .life = g->lifetime / g->blocks * 1024, .longest = g->longest_lifetime);
	return true;
}

static bool write_all(struct writer *w, const struct build *build)
{
	for (uint64_t i = 0; i < build->order_count; i++) {
		uint64_t which = build->order[i].value >> 2;
		bool ok = false;

		switch (build->order[i].value & 3) {
		case BLOCK:
			ok = write_block(w, &build->blocks[which]);
			break;
		case LOGGED:
			ok = write_record(w, (const struct event_log_record *)(uintptr_t)which);
			break;
		case PERIOD:
			ok = write_period(w, &checkpoints.period[which]);
			break;
		case FREED:
			ok = write_freed(w, which);
			break;
		}
		if (!ok)
			return false;
	}
	part_seal(w);
	return true;
}

/* Stores the header's slot: from here on the checkpoint replaces the old chunks. */
static void commit_slot(const struct writer *w, uint64_t ticks)
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

static void punch_ranges(int fd, const struct range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		trace_file_punch(fd, ranges[i].offset, ranges[i].bytes);
}

/* Pre: the event log is frozen. */
static enum checkpoint_result write_and_commit(struct build *build, struct writer *w)
{
	w->number = checkpoints.number + 1;
	if (!write_all(w, build)) {
		/* readers may have seen these parts, so no other checkpoint has their number */
		checkpoints.number++;
		part_seal(w);
		punch_ranges(build->fd, w->part, w->parts);
		return CHECKPOINT_FAILED;
	}
	checkpoints.number = w->number;
	checkpoints.over_budget = false;
	commit_slot(w, build->ticks);
	punch_ranges(build->fd, build->ranges, build->ranges_count);
	resample_live_blocks(&build->resampling, build->blocks, build->blocks_count);
	return CHECKPOINT_MADE;
}

static enum checkpoint_result build_checkpoint(
    struct build *build, struct writer *w, const struct checkpoint_caller *caller)
{
	enum checkpoint_result result;
	struct live_blocks_totals now = live_blocks_totals();

	find_full_chunks(build);
	if (estimate_bytes(now.live - now.live_sampled, 0) > available_bytes(build))
		return CHECKPOINT_NOT_WORTH;
	freed_stats_period_begin();
	build->ticks = clock_ticks();
	build->totals = live_blocks_period_begin();
	caller->settle(build->ticks);
	if (!event_log_begin()) {
		live_blocks_period_abort(&build->totals);
		freed_stats_period_abort();
		return CHECKPOINT_FAILED;
	}
	result = gather_events(build, caller);
	if (result == CHECKPOINT_MADE) {
		result = write_and_commit(build, w);
	} else {
		live_blocks_period_abort(&build->totals);
		freed_stats_period_abort();
	}
	event_log_end();
	return result;
}

enum checkpoint_result checkpoint_make(const struct checkpoint_caller *caller)
{
	enum checkpoint_result result = CHECKPOINT_FAILED;
	struct build build = {.fd = -1};
	struct writer *w;

	if (shim.sandboxed)
		return CHECKPOINT_NOT_WORTH;
	if (clock_ticks() < __atomic_load_n(&checkpoints.retry_at, __ATOMIC_RELAXED))
		return CHECKPOINT_FAILED;
	if (!sys_try_lock(&checkpoints.lock))
		return CHECKPOINT_BUSY;
	w = scratch_take(&checkpoints.memory, sizeof(*w));
	build.ranges = scratch_take(&checkpoints.memory, RANGES_MAX * sizeof(*build.ranges));
	build.fd = trace_file_open();
	if (w && build.ranges && build.fd >= 0)
		result = trace_file_can_punch(build.fd) ? build_checkpoint(&build, w, caller)
							: CHECKPOINT_NOT_WORTH;
	if (build.fd >= 0)
		trace_file_close(build.fd);
	if (checkpoints.memory.refused) /* a retry at each event would stop the process */
		__atomic_store_n(&checkpoints.retry_at, clock_ticks() + 10 * tick_clock.ticks_100ms,
		    __ATOMIC_RELAXED);
	scratch_end(&checkpoints.memory);
	sys_unlock(&checkpoints.lock);
	return result;
}

void checkpoint_wait(void)
{
	uint64_t until = clock_ticks() + tick_clock.ticks_100ms;

	while (__atomic_load_n(&checkpoints.lock, __ATOMIC_ACQUIRE) && clock_ticks() < until)
		sys_yield();
}

void checkpoint_forked(uint64_t start)
{
	scratch_forget(&checkpoints.memory);
	memset(&checkpoints, 0, sizeof(checkpoints));
	live_blocks_forked(start);
	resample_forked();
	freed_stats_forked();
	event_log_forked();
}
