/*
 * unwind.c - walking by cached rows, with validated reuse. Reads the host's stack by plain loads,
 * after readable.h has said that it may; changes nothing. See docs/unwinding.md.
 */
#include "unwind.h"

#include <string.h>

#include "modules.h"
#include "rows.h"
#include "sys.h"
#include "whyoom/trace.h"

#define FIRST_FRAMES 128u
#define FIRST_CHECKS 256u
#define SIGNALS_MAX 64 /* nested handlers; each lets the stack pointer go anywhere */

/* A check that never holds, for steps whose reads are not listed. */
static const uintptr_t never = 1;

/* Above a fresh frame's tag: what the step out of it does with the frame pointer. */
#define FRESH_READS_FP (1u << 27) /* needs it as it is in the frame */
#define FRESH_SETS_FP (1u << 28) /* the outer one is from elsewhere; its checks all stay */
#define FRESH_SAVED (1u << 29) /* the outer one is in memory: that word is the last check */
#define TAG_BITS ((1u << 27) - 1)

/* Room for `want` elements of `size`; the old ones are kept. */
static __attribute__((noinline)) bool grow(
    struct unwind *u, void **array, uint32_t *room, uint32_t want, uint32_t first, size_t size)
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
	u->grown = true;
	return true;
}

static inline bool room_fresh(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(frames <= u->fresh_room && checks <= u->fresh_checks_room, 1))
		return true;
	return grow(u, (void **)&u->fresh, &u->fresh_room, frames, FIRST_FRAMES,
		   sizeof(*u->fresh)) &&
	       grow(u, (void **)&u->fresh_checks, &u->fresh_checks_room, checks, FIRST_CHECKS,
		   sizeof(*u->fresh_checks));
}

/* frames_room counts the one in front, too. */
static __attribute__((noinline)) bool grow_frames(struct unwind *u, uint32_t frames)
{
	struct frame *all = u->frames ? u->frames - 1 : NULL;
	if (!grow(u, (void **)&all, &u->frames_room, frames + 1, FIRST_FRAMES, sizeof(*all)))
		return false;
	all->sp = UINTPTR_MAX;
	u->frames = all + 1;
	return true;
}

static inline bool room_kept(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(frames < u->frames_room && checks <= u->checks_room, 1))
		return true;
	return grow_frames(u, frames) && grow(u, (void **)&u->checks, &u->checks_room, checks,
					     FIRST_CHECKS, sizeof(*u->checks));
}

void unwind_free(struct unwind *u)
{
	if (u->frames)
		sys_pages_free(u->frames - 1, u->frames_room * sizeof(*u->frames));
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
		if (!load(u, at->sp + SIGNAL_PC, checks) ||
		    !load(u, at->sp + SIGNAL_SP, checks + 1) ||
		    !load(u, at->sp + SIGNAL_FP, checks + 2))
			return STEP_BAD;
		*added = 3;
		*at =
		    (struct unwind_place){checks[0].value, checks[1].value, checks[2].value, true};
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

static inline struct near_row *near_place(struct unwind *u, uintptr_t pc)
{
	return &u->near[pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - NEAR_BITS)];
}

/* Where walk_plain() takes the return address to be. */
static inline int64_t near_ra_offset(uint64_t row)
{
#if defined(__x86_64__)
	return -8; /* where the call puts it: nothing has to wait for the row */
#else
	return row_ra_offset(row);
#endif
}

/* Rows whose words lie below the CFA, the frame pointer lowest: one comparison is enough to know
 * that both are in the frame. */
static inline void near_keep(struct unwind *u, uintptr_t pc, uint32_t module, uint64_t row)
{
	if (row_plain(row) && module && pc <= ROW_PC_MASK && row_ra_offset(row) < 0 &&
	    row_ra_offset(row) == near_ra_offset(row) && row_fp_offset(row) <= row_ra_offset(row))
		*near_place(u, pc) = (struct near_row){pc | (uint64_t)module << 48, row};
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
	if (!unstable)
		near_keep(u, pc, module, row);
	*tag = module << 3 | (at->exact ? FRAME_EXACT : 0);

	unsigned kind = row_kind(row);
	uintptr_t cfa = kind == ROW_SP ? at->sp : at->fp;
	struct check *check = *next;
	if (kind == ROW_FP || kind == ROW_AT_FP || row_fp(row) == ROW_FP_AT_FP)
		*tag |= FRESH_READS_FP;
	if (__builtin_expect(kind > ROW_FP, 0)) {
		if (kind != ROW_AT_FP) {
			struct unwind_place place = *at;
			uint32_t added;
			*tag |= FRESH_SETS_FP;
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
	unsigned saved = row_fp(row);
	if (saved != ROW_FP_SAME) {
		uintptr_t base = saved == ROW_FP_AT_FP ? at->fp : cfa;
		if (!load(u, base + (uintptr_t)row_fp_offset(row), check))
			return STEP_BAD;
		at->fp = check++->value;
		*tag |= FRESH_SAVED;
	}
	*next = check;
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

static struct fresh *fresh_frame(struct unwind *u, uint32_t *n, struct ring *ring)
{
	if (__builtin_expect(*n < UNWIND_FRAMES_MAX, 1))
		return &u->fresh[(*n)++];
	struct fresh *f = &u->fresh[UNWIND_FRAMES_MAX / 2 + ring->at];
	ring->at = (ring->at + 1) % (UNWIND_FRAMES_MAX / 2);
	ring->left_out++;
	return f;
}

static void reverse(struct fresh *f, uint32_t n)
{
	for (uint32_t i = 0, j = n; i + 1 < j; i++) {
		struct fresh t = f[i];
		f[i] = f[--j];
		f[j] = t;
	}
}

/* Where a walk is: the frame to come, the kept frame that it may be (-1: none), and how much has
 * been written. */
struct cursor {
	struct unwind_place at;
	int64_t j;
	uint32_t n;
};

/* The compiler is not to know that this is a value that it has elsewhere. */
#define APART(v) __asm__("" : "+r"(v))
/* ... is not to be made a conditional move. */
#define A_BRANCH() __asm__ volatile("")

/*
 * The frames that need nothing but a cached row: all but few. Goes on until there is one that needs
 * more, or that may be a kept one, which it leaves to unwind_walk().
 *
 * From a frame to the next one leads a chain of loads: return address, row, CFA, return address. It
 * is long, and nothing else takes as much time in a recording. So the next frame is expected to
 * begin where a frame began in the last walk; where that is right, as the processor learns to
 * guess, the next return address is read from there without waiting for the row.
 */
static inline __attribute__((always_inline)) void walk_plain(
    struct unwind *u, struct cursor *cursor)
{
	uintptr_t pc = cursor->at.pc, sp = cursor->at.sp, fp = cursor->at.fp;
	if (cursor->at.exact || sp - u->memory.lo >= u->memory.span)
		return;
	const uintptr_t hi = u->memory.lo + u->memory.span;
	const struct frame *old = u->frames + cursor->j;
	uintptr_t old_sp = old->sp;
	struct fresh *f = u->fresh + cursor->n;
	const struct fresh *const f_end =
	    u->fresh + (u->fresh_room < UNWIND_FRAMES_MAX ? u->fresh_room : UNWIND_FRAMES_MAX);

	while (old_sp < sp)
		old_sp = (--old)->sp;
	if (old_sp == sp) {
		if (old->pc == pc)
			goto out;
		old_sp = (--old)->sp;
	}
	while (f < f_end) {
		const struct near_row *e = near_place(u, pc - 1);
		const uint64_t key = e->key, row = e->row;
		if (__builtin_expect((key ^ (pc - 1)) << 16 != 0, 0))
			break;
		uintptr_t cfa = sp;
		if (__builtin_expect(row & ROW_FP, 0)) { /* the only other kind here */
			A_BRANCH(); /* few functions, or nearly all */
			cfa = fp;
		}
		cfa += (uintptr_t)row_cfa_offset(row);
		/* Where the frame pointer is not saved, that of the return address. */
		uintptr_t fp_at = cfa + (uintptr_t)row_fp_offset(row);
		if (__builtin_expect(fp_at < sp || cfa > hi || (cfa & 7), 0))
			break;
		uintptr_t saved = *(const uintptr_t *)fp_at, expected = old_sp, ra;
		f->pc = pc;
		f->sp = sp;
		f->fp = fp;
		f->tag = (uint32_t)(key >> 48) << 3;
		f->row = row;
		fp = row_fp(row) ? saved : fp;
		APART(expected);
		if (cfa == old_sp) {
			ra = *(const uintptr_t *)(expected + (uintptr_t)near_ra_offset(row));
			sp = expected;
		} else {
			ra = *(const uintptr_t *)(cfa + (uintptr_t)near_ra_offset(row));
			sp = cfa;
			while (old_sp < sp)
				old_sp = (--old)->sp;
		}
		pc = unwind_strip(ra);
#if defined(__aarch64__)
		f->ra = ra;
#endif
		f++;
		if (old_sp == sp) {
			if (__builtin_expect(old->pc == pc, 0))
				break;
			old_sp = (--old)->sp;
		}
	}
out:
	cursor->at = (struct unwind_place){pc, sp, fp, false};
	cursor->j = old - u->frames;
	cursor->n = (uint32_t)(f - u->fresh);
}

/*
 * Fresh frames become kept ones, outermost first, after the `kept` that stay; `at` is where the
 * walk came to. Of the saved frame pointers only those are kept to be compared that the way
 * outwards depends on: most functions use the register for something else, and what they saved
 * there changes all the time.
 */
static void keep_fresh(struct unwind *u, uint32_t kept, uint32_t n, const struct unwind_place *at)
{
	struct frame *out = u->frames + kept;
	struct stack_hash h = kept ? out[-1].hash : STACK_HASH_ROOT;
	struct check *c = u->checks + (kept ? out[-1].checks_end : 0);
	const struct check *const c_start = u->checks;
	uint32_t listed = kept ? out[-1].listed : 0, fp_used = kept ? out[-1].fp_used : 0;
	uint32_t tag = 0;
	struct stack_hash of_tag = stack_hash_tag(tag);
	const uint32_t ours = modules_self << 3 | TRACE_FRAME_NATIVE;
	bool lists = ours != 0;
	const struct fresh *const first = u->fresh;
	uintptr_t pc = at->pc, sp = at->sp, fp = at->fp;

	for (const struct fresh *f = first + n; f-- > first; out++) {
		const uint64_t row = f->row;
		if (__builtin_expect(row != 0, 1)) {
#if defined(__aarch64__)
			pc = f->ra;
#endif
			*c++ = (struct check){
			    (const uintptr_t *)(sp + (uintptr_t)near_ra_offset(row)), pc};
			if (__builtin_expect(fp_used && row_fp(row), 0))
				*c++ = (struct check){
				    (const uintptr_t *)(sp + (uintptr_t)row_fp_offset(row)), fp};
			/* of a plain row these are single bits */
			fp_used = (uint32_t)((row & ROW_FP) | (fp_used & ~(row >> ROW_FP_SHIFT)));
		} else {
			const struct check *to = u->fresh_checks + f->checks_end;
			const struct check *from = to - f->checks;
			if (f->tag & FRESH_SAVED && !fp_used)
				to--;
			while (to > from)
				*c++ = *--to;
			if (f->tag & (FRESH_SAVED | FRESH_SETS_FP))
				fp_used = 0;
			if (f->tag & FRESH_READS_FP)
				fp_used = 1;
		}
		pc = f->pc;
		sp = f->sp;
		fp = f->fp;
		if (__builtin_expect((f->tag & TAG_BITS) != tag, 0)) {
			tag = f->tag & TAG_BITS;
			of_tag = stack_hash_tag(tag);
			lists = (tag & ~FRAME_EXACT) != ours;
		}
		if (__builtin_expect(lists, 1)) {
			h = stack_hash_next(h, pc, of_tag);
			listed++;
		}
		out->pc = pc;
		out->sp = sp;
		out->fp = fp;
		out->hash = h;
		out->listed = listed;
		out->tag = tag;
		out->checks_end = (uint32_t)(c - c_start);
		out->fp_used = fp_used;
	}
	u->count = kept + n;
}

static inline bool same_place(const struct frame *old, const struct unwind_place *at)
{
	return old->sp == at->sp && old->pc == at->pc && (old->fp == at->fp || !old->fp_used) &&
	       !(old->tag & FRAME_EXACT) == !at->exact;
}

static __attribute__((noinline)) void near_forget(struct unwind *u, uint64_t generation)
{
	memset(u->near, 0, sizeof(u->near));
	u->near_generation = generation;
}

bool unwind_walk(struct unwind *u, const struct stack_start *start, uint32_t *kept)
{
	uint64_t generation = modules_generation();
	bool unstable = modules_doubtful();
	int64_t j = generation == u->generation && !unstable ? (int64_t)u->count - 1 : -1;
	struct unwind_place at = {unwind_strip(start->pc), start->sp, start->fp, false};
	uint32_t n = 0, checks = 0, tag = 0;
	struct ring ring = {0, 0};
	unsigned signals = 0;
	enum unwind_step end = STEP_OK;

	u->generation = 0; /* until this walk is complete */
	if (__builtin_expect(generation != u->near_generation, 0))
		near_forget(u, generation);
	readable_start(&u->memory, at.sp);
	if (__builtin_expect(!u->frames, 0) && !grow_frames(u, 1))
		return false;
	for (;;) {
		if (__builtin_expect(!unstable && !ring.left_out, 1)) {
			struct cursor cursor = {at, j, n};
			walk_plain(u, &cursor);
			at = cursor.at;
			j = cursor.j;
			n = cursor.n;
			if (__builtin_expect(!at.pc, 0)) {
				j = -1;
				break;
			}
		}
		while (j >= 0 && u->frames[j].sp < at.sp)
			j--;
		if (j >= 0 && same_place(&u->frames[j], &at)) {
			int64_t changed = first_changed(u, (uint32_t)j);
			if (changed < 0)
				break;
			/* Frames from there on may be elsewhere, or others. */
			j = changed - 1;
		}
		if (!room_fresh(
			u, n + 2 < UNWIND_FRAMES_MAX ? n + 2 : UNWIND_FRAMES_MAX, checks + 8))
			return false;

		struct fresh *f = fresh_frame(u, &n, &ring);
		*f = (struct fresh){.pc = at.pc, .sp = at.sp, .fp = at.fp};
		const uint32_t before = checks;
		struct check *next = u->fresh_checks + checks;
		end = step(u, &at, &next, &tag, unstable);
		if (ring.left_out) {
			j = -1;
		} else {
			checks = (uint32_t)(next - u->fresh_checks);
		}
		/* Where the step went wrong half-way there are no checks. */
		if (__builtin_expect(end == STEP_BAD || ring.left_out, 0))
			tag &= ~FRESH_SAVED;
		f->tag = tag;
		f->checks = checks - before;
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
		    (struct fresh){.tag = why << 2 | TRACE_FRAME_END, .checks_end = checks};
	}

	*kept = (uint32_t)(j + 1);
	if (n == 0) {
		/* Nothing changed but that inner frames may have returned. */
		u->count = *kept;
		u->generation = generation;
		return true;
	}
	if (*kept + n > UNWIND_FRAMES_MAX) {
		/* Too deep to keep both: walk it all, once. Rare, and still right. */
		u->count = 0;
		u->generation = 0;
		return unwind_walk(u, start, kept);
	}
	uint32_t most = checks + 2 * n;
	if (!room_kept(u, *kept + n, (*kept ? u->frames[*kept - 1].checks_end : 0) + most))
		return false;
	if (ring.left_out) {
		/* The ring's oldest first, then all outermost first. */
		struct fresh *half = u->fresh + UNWIND_FRAMES_MAX / 2;
		reverse(half, ring.at);
		reverse(half + ring.at, UNWIND_FRAMES_MAX / 2 - ring.at);
		reverse(half, UNWIND_FRAMES_MAX / 2);
	}
	keep_fresh(u, *kept, n, &at);
	u->left_out = ring.left_out;
	u->generation = ring.left_out || unstable ? 0 : generation;
	return true;
}
