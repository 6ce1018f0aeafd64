/*
 * unwind.c - walking by cached rows, with validated reuse. Reads the host's stack by plain loads,
 * after readable.h has said that it may; changes nothing. See docs/unwinding.md.
 */
#include "unwind.h"

#include <string.h>

#include "rows.h"
#include "sys.h"
#include "whyoom/trace.h"

#define FIRST_FRAMES 128u
#define FIRST_CHECKS 256u
#define SIGNALS_MAX 64 /* nested handlers; each lets the stack pointer go anywhere */

/* A check that never holds, for steps whose reads are not listed. */
static const uintptr_t never = 1;

/* Room for `want` elements of `size`; the old ones are kept. */
static __attribute__((noinline)) bool grow(
    void **array, uint32_t *room, uint32_t want, uint32_t first, size_t size)
{
	if (want <= *room)
		return true;
	uint32_t n = *room ? *room : first;
	while (n < want)
		n *= 2;
	void *fresh = sys_pages(n * size);
	if (!fresh)
		return false;
	if (*array) {
		memcpy(fresh, *array, *room * size);
		sys_pages_free(*array, *room * size);
	}
	*array = fresh;
	*room = n;
	return true;
}

static inline bool room_fresh(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(frames <= u->fresh_room && checks <= u->fresh_checks_room, 1))
		return true;
	return grow((void **)&u->fresh, &u->fresh_room, frames, FIRST_FRAMES, sizeof(*u->fresh)) &&
	       grow((void **)&u->fresh_checks, &u->fresh_checks_room, checks, FIRST_CHECKS,
		   sizeof(*u->fresh_checks));
}

static inline bool room_kept(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(frames <= u->frames_room && checks <= u->checks_room, 1))
		return true;
	return grow((void **)&u->frames, &u->frames_room, frames, FIRST_FRAMES,
		   sizeof(*u->frames)) &&
	       grow((void **)&u->checks, &u->checks_room, checks, FIRST_CHECKS, sizeof(*u->checks));
}

void unwind_free(struct unwind *u)
{
	sys_pages_free(u->frames, u->frames_room * sizeof(*u->frames));
	sys_pages_free(u->checks, u->checks_room * sizeof(*u->checks));
	sys_pages_free(u->fresh, u->fresh_room * sizeof(*u->fresh));
	sys_pages_free(u->fresh_checks, u->fresh_checks_room * sizeof(*u->fresh_checks));
}

size_t unwind_bytes(const struct unwind *u)
{
	return u->frames_room * sizeof(*u->frames) + u->checks_room * sizeof(*u->checks) +
	       u->fresh_room * sizeof(*u->fresh) + u->fresh_checks_room * sizeof(*u->fresh_checks);
}

static inline __attribute__((always_inline)) bool load(
    struct unwind *u, uintptr_t at, struct check *check)
{
	if (!readable_word(&u->memory, at))
		return false;
	check->at = (const uintptr_t *)at;
	check->value = *(const uintptr_t *)at;
	return true;
}

/* The kinds that are rare, out of the way of the others. *checks: how many were added. */
static __attribute__((noinline)) enum unwind_step step_rare(
    struct unwind *u, uint64_t row, struct unwind_place *at, struct check *checks, uint32_t *added)
{
	*added = 0;
	switch (row_kind(row)) {
	case ROW_ROOT:
		return STEP_ROOT;
	case ROW_SIGNAL:
		if (!load(u, at->sp + SIGNAL_PC, checks) || !load(u, at->sp + SIGNAL_SP, checks + 1) ||
		    !load(u, at->sp + SIGNAL_FP, checks + 2))
			return STEP_BAD;
		*added = 3;
		*at = (struct unwind_place){checks[0].value, checks[1].value, checks[2].value, true};
		return STEP_OK;
	case ROW_FULL:
		*checks = (struct check){&never, 0};
		*added = 1;
		return unwind_full_step(u, at);
	default:
		return STEP_NO_CFI;
	}
}

static __attribute__((noinline)) uint64_t make_row(struct unwind *u, uintptr_t pc, uint32_t *module)
{
	return rows_make(pc, &u->cfi, &u->expr, module);
}

/* Out of the frame at `at`, whose tag becomes known. At most three checks are added. What is
 * handed to functions that are not inlined are copies: the place itself stays in registers. */
static inline __attribute__((always_inline)) enum unwind_step step(
    struct unwind *u, struct unwind_place *at, struct check **next, uint32_t *tag, bool unstable)
{
	uintptr_t pc = at->pc - !at->exact;
	uint32_t module = 0;
	uint64_t row = rows_find(pc, &module);
	if (__builtin_expect(!row || (unstable && module && !module_verify(module, pc)), 0)) {
		uint32_t made;
		row = make_row(u, pc, &made);
		module = made;
	}
	*tag = module << 3 | (at->exact ? FRAME_EXACT : 0);

	unsigned kind = row_kind(row);
	uintptr_t cfa = kind == ROW_SP ? at->sp : at->fp;
	struct check *check = *next;
	if (__builtin_expect(kind > ROW_FP, 0)) {
		if (kind != ROW_AT_FP) {
			struct unwind_place place = *at;
			uint32_t added;
			enum unwind_step rc = step_rare(u, row, &place, check, &added);
			*next = check + added;
			*at = place;
			return rc;
		}
		if (!load(u, at->fp + (uintptr_t)row_cfa_offset(row), check))
			return STEP_BAD;
		cfa = check++->value - (uintptr_t)row_cfa_offset(row);
	}
	cfa += (uintptr_t)row_cfa_offset(row);
	/* The stack only ever gets shorter: no walk goes in circles. */
	if (__builtin_expect(cfa <= at->sp, 0))
		return STEP_BAD;
	if (!load(u, cfa + (uintptr_t)row_ra_offset(row), check))
		return STEP_BAD;
	at->pc = unwind_strip(check++->value);
	/* Half of all functions save the frame pointer: no branch could be predicted. Those that do
	 * not read the return address a second time, and nothing comes of it. */
	unsigned saved = row_fp(row);
	uintptr_t base = saved == ROW_FP_AT_FP ? at->fp : cfa;
	uintptr_t slot = base + (uintptr_t)row_fp_offset(row);
	uintptr_t again = cfa + (uintptr_t)row_ra_offset(row);
	slot = saved == ROW_FP_SAME ? again : slot;
	if (!load(u, slot, check))
		return STEP_BAD;
	at->fp = saved == ROW_FP_SAME ? at->fp : check->value;
	*next = check + (saved != ROW_FP_SAME);
	at->sp = cfa;
	at->exact = false;
	return at->pc ? STEP_OK : STEP_ROOT;
}

/*
 * The frame frames[j] is here again. Whether the outer ones are, too: each word that led from one
 * to the next is compared, inwards to outwards, so that every address read is one that a walk
 * would read now. Returns the index of the frame whose words differ, or -1.
 */
static int64_t first_changed(const struct unwind *u, uint32_t j)
{
	const struct check *first = u->checks, *c = first + u->frames[j].checks_end;
	/* Eight at a time, one after the other all the same: a word may be read only when those
	 * before it were as expected. */
#define DIFFERS(k) __builtin_expect(*c[-(k)].at != c[-(k)].value, 0)
	for (; c - first >= 8; c -= 8) {
		if (DIFFERS(1) || DIFFERS(2) || DIFFERS(3) || DIFFERS(4) || DIFFERS(5) ||
		    DIFFERS(6) || DIFFERS(7) || DIFFERS(8))
			break;
	}
	while (c > first && !DIFFERS(1))
		c--;
#undef DIFFERS
	if (c == first)
		return -1;
	c--;
	uint32_t at = (uint32_t)(c - u->checks);
	while (j && u->frames[j - 1].checks_end > at)
		j--;
	return j;
}

/* The walk so far is all there is room for: its innermost half stays, the rest becomes a ring. */
struct ring {
	uint32_t at;
	uint32_t left_out;
};

static struct frame *fresh_frame(struct unwind *u, uint32_t *n, struct ring *ring)
{
	if (__builtin_expect(*n < UNWIND_FRAMES_MAX, 1))
		return &u->fresh[(*n)++];
	struct frame *f = &u->fresh[UNWIND_FRAMES_MAX / 2 + ring->at];
	ring->at = (ring->at + 1) % (UNWIND_FRAMES_MAX / 2);
	ring->left_out++;
	return f;
}

static void reverse(struct frame *f, uint32_t n)
{
	for (uint32_t i = 0, j = n; i + 1 < j; i++) {
		struct frame t = f[i];
		f[i] = f[--j];
		f[j] = t;
	}
}

/* Where a walk is: the frame to come, the kept frame that it may be (-1: none), and how much has
 * been written. */
struct cursor {
	struct unwind_place at;
	int64_t j;
	uint32_t n, checks;
};

/*
 * The frames that need nothing but a cached row of a live module: all but few. Goes on until there
 * is one that needs more, or that may be a kept one, which it leaves to unwind_walk(). This is
 * where most time of a recording is spent: no branch but those that nearly always go one way, no
 * value in memory from frame to frame.
 */
static void walk_plain(struct unwind *u, struct cursor *cursor)
{
	struct map_table *table = atomic_load_explicit(&rows_map.table, memory_order_acquire);
	if (!table || cursor->at.exact)
		return;
	const struct map_entry *entries = table->entries;
	const uint64_t mask = table->mask;
	const uintptr_t lo = u->memory.lo, span = u->memory.span;
	const struct frame *const oldest = u->frames;
	const struct frame *old = cursor->j < 0 ? oldest : oldest + cursor->j;
	uintptr_t old_sp = cursor->j < 0 ? UINTPTR_MAX : old->sp;
	struct frame *f = u->fresh + cursor->n;
	const struct frame *const f_end =
	    u->fresh + (u->fresh_room < UNWIND_FRAMES_MAX ? u->fresh_room : UNWIND_FRAMES_MAX);
	struct check *c = u->fresh_checks + cursor->checks;
	const struct check *const c_end = u->fresh_checks + u->fresh_checks_room;
	uintptr_t pc = cursor->at.pc, sp = cursor->at.sp, fp = cursor->at.fp;

	while (f_end - f >= 2 && c_end - c >= 8) {
		while (old_sp < sp)
			old_sp = old > oldest ? (--old)->sp : UINTPTR_MAX;
		if (__builtin_expect(old_sp == sp, 0) && old->pc == pc)
			break;
		const struct map_entry *e = &entries[rows_hash_plain(pc - 1) & mask];
		uint64_t key = atomic_load_explicit(&e->key, memory_order_acquire);
		uint64_t row = atomic_load_explicit(&e->value, memory_order_acquire);
		if (__builtin_expect((key & ROW_PC_MASK) != pc - 1, 0) ||
		    __builtin_expect(!row_plain(row), 0) ||
		    __builtin_expect(!module_live((uint32_t)(key >> 48)), 0))
			break;
		uintptr_t cfa = (row_kind(row) == ROW_FP ? fp : sp) + (uintptr_t)row_cfa_offset(row);
		uintptr_t ra_at = cfa + (uintptr_t)row_ra_offset(row);
		/* The return address again where the frame pointer is not saved. */
		uintptr_t fp_at = cfa + (uintptr_t)row_fp_offset(row);
		if (__builtin_expect(cfa <= sp || ra_at - lo >= span || fp_at - lo >= span ||
					 ((ra_at | fp_at) & 7),
			0))
			break;
		uintptr_t ra = *(const uintptr_t *)ra_at, saved = *(const uintptr_t *)fp_at;
		uintptr_t outer = unwind_strip(ra);
		if (__builtin_expect(!outer, 0))
			break;
		*f = (struct frame){.pc = pc, .sp = sp, .fp = fp, .tag = (uint32_t)(key >> 48) << 3};
		c[0] = (struct check){(const uintptr_t *)ra_at, ra};
		c[1] = (struct check){(const uintptr_t *)fp_at, saved};
		c += 1 + row_fp(row);
		f->checks_end = (uint32_t)(c - u->fresh_checks);
		f++;
		fp = row_fp(row) ? saved : fp;
		pc = outer;
		sp = cfa;
	}
	cursor->at = (struct unwind_place){pc, sp, fp, false};
	cursor->j = old_sp == UINTPTR_MAX ? -1 : old - oldest;
	cursor->n = (uint32_t)(f - u->fresh);
	cursor->checks = (uint32_t)(c - u->fresh_checks);
}

bool unwind_walk(struct unwind *u, const struct stack_start *start, uint32_t *kept)
{
	uint64_t generation = modules_generation();
	bool unstable = modules_unstable();
	int64_t j = generation == u->generation && !unstable ? (int64_t)u->count - 1 : -1;
	struct unwind_place at = {unwind_strip(start->pc), start->sp, start->fp, false};
	uint32_t n = 0, checks = 0, tag = 0;
	struct ring ring = {0, 0};
	unsigned signals = 0;
	enum unwind_step end = STEP_OK;

	u->generation = 0; /* until this walk is complete */
	readable_start(&u->memory, at.sp);
	for (;;) {
		if (__builtin_expect(!unstable && !ring.left_out, 1)) {
			struct cursor cursor = {at, j, n, checks};
			walk_plain(u, &cursor);
			at = cursor.at;
			j = cursor.j;
			n = cursor.n;
			checks = cursor.checks;
		}
		while (j >= 0 && u->frames[j].sp < at.sp)
			j--;
		const struct frame *old = &u->frames[j];
		bool again = j >= 0 && old->sp == at.sp && old->pc == at.pc && old->fp == at.fp &&
			     !(old->tag & FRAME_EXACT) == !at.exact;
		int64_t changed = -1;
		if (again) {
			changed = first_changed(u, (uint32_t)j);
			if (changed < 0)
				break;
		}
		uint32_t more = again ? (uint32_t)(j - changed) : 0;
		if (!room_fresh(u,
			n + more + 2 < UNWIND_FRAMES_MAX ? n + more + 2 : UNWIND_FRAMES_MAX,
			checks + more * 3 + 8))
			return false;
		/* Frames up to the one that changed are as they were. */
		for (; more && n < UNWIND_FRAMES_MAX - 1; j--, more--) {
			uint32_t first = j ? u->frames[j - 1].checks_end : 0;
			for (uint32_t c = u->frames[j].checks_end; c > first; c--)
				u->fresh_checks[checks++] = u->checks[c - 1];
			u->fresh[n] = u->frames[j];
			u->fresh[n++].checks_end = checks;
			at = (struct unwind_place){u->frames[j - 1].pc, u->frames[j - 1].sp,
			    u->frames[j - 1].fp, u->frames[j - 1].tag & FRAME_EXACT};
		}
		if (again)
			j--;

		struct frame *f = fresh_frame(u, &n, &ring);
		*f = (struct frame){.pc = at.pc, .sp = at.sp, .fp = at.fp};
		struct check *next = u->fresh_checks + checks;
		end = step(u, &at, &next, &tag, unstable);
		if (ring.left_out) {
			j = -1;
		} else {
			checks = (uint32_t)(next - u->fresh_checks);
		}
		f->tag = tag;
		f->checks_end = checks;
		if (__builtin_expect(end != STEP_OK, 0)) {
			j = -1;
			break;
		}
		if (__builtin_expect(at.exact, 0) && ++signals > SIGNALS_MAX) {
			end = STEP_BAD;
			j = -1;
			break;
		}
	}
	if (end == STEP_NO_CFI || end == STEP_BAD) {
		if (!room_fresh(
			u, n + 1 < UNWIND_FRAMES_MAX ? n + 1 : UNWIND_FRAMES_MAX, checks + 8))
			return false;
		uint32_t why = end == STEP_BAD ? TRACE_FRAME_END_BAD : TRACE_FRAME_END_NO_CFI;
		*fresh_frame(u, &n, &ring) =
		    (struct frame){.tag = why << 2 | TRACE_FRAME_END, .checks_end = checks};
	}

	*kept = (uint32_t)(j + 1);
	if (n == 0) {
		/* Nothing changed but that inner frames may have returned. */
		u->count = *kept;
		u->generation = generation;
		return true;
	}
	uint32_t base = *kept ? u->frames[*kept - 1].checks_end : 0;
	if (*kept + n > UNWIND_FRAMES_MAX) {
		/* Too deep to keep both: walk it all, once. Rare, and still right. */
		u->count = 0;
		u->generation = 0;
		return unwind_walk(u, start, kept);
	}
	if (!room_kept(u, *kept + n, base + checks))
		return false;
	if (ring.left_out) {
		/* The ring's oldest first, then all outermost first. */
		struct frame *half = u->fresh + UNWIND_FRAMES_MAX / 2;
		reverse(half, ring.at);
		reverse(half + ring.at, UNWIND_FRAMES_MAX / 2 - ring.at);
		reverse(half, UNWIND_FRAMES_MAX / 2);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct frame *f = &u->frames[*kept + i];
		*f = u->fresh[n - 1 - i];
		uint32_t before = n - 1 - i ? u->fresh[n - 2 - i].checks_end : 0;
		f->checks_end = base + checks - before;
	}
	for (uint32_t i = 0; i < checks; i++)
		u->checks[base + i] = u->fresh_checks[checks - 1 - i];
	u->count = *kept + n;
	u->left_out = ring.left_out;
	u->generation = ring.left_out || unstable ? 0 : generation;
	return true;
}
