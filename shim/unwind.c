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

static inline bool load(struct unwind *u, uintptr_t at, struct check **next)
{
	if (!readable_word(&u->memory, at))
		return false;
	(*next)->at = (const uintptr_t *)at;
	(*next)->value = *(const uintptr_t *)at;
	(*next)++;
	return true;
}

static enum unwind_step step_signal(struct unwind *u, struct unwind_place *at, struct check **next)
{
	struct check *read = *next;
	if (!load(u, at->sp + SIGNAL_PC, next) || !load(u, at->sp + SIGNAL_SP, next) ||
	    !load(u, at->sp + SIGNAL_FP, next))
		return STEP_BAD;
	*at = (struct unwind_place){read[0].value, read[1].value, read[2].value, true};
	return STEP_OK;
}

/* Out of the frame at `at`, whose tag becomes known. At most three checks are added. */
static inline enum unwind_step step(
    struct unwind *u, struct unwind_place *at, struct check **next, uint32_t *tag, bool unstable)
{
	uintptr_t pc = at->pc - !at->exact;
	uint32_t module;
	uint64_t row = rows_find(pc, &module);
	if (__builtin_expect(!row || (unstable && module && !module_verify(module, pc)), 0))
		row = rows_make(pc, &u->cfi, &u->expr, &module);
	*tag = module << 3 | (at->exact ? FRAME_EXACT : 0);

	uintptr_t cfa;
	struct check *read;
	switch (row_kind(row)) {
	case ROW_SP:
		cfa = at->sp;
		break;
	case ROW_FP:
		cfa = at->fp;
		break;
	case ROW_AT_FP:
		read = *next;
		if (!load(u, at->fp + (uintptr_t)row_cfa_offset(row), next))
			return STEP_BAD;
		cfa = read->value - (uintptr_t)row_cfa_offset(row);
		break;
	case ROW_ROOT:
		return STEP_ROOT;
	case ROW_SIGNAL:
		return step_signal(u, at, next);
	case ROW_FULL:
		*(*next)++ = (struct check){&never, 0};
		return unwind_full_step(u, at);
	default:
		return STEP_NO_CFI;
	}
	cfa += (uintptr_t)row_cfa_offset(row);
	/* The stack only ever gets shorter: no walk goes in circles. */
	if (__builtin_expect(cfa <= at->sp, 0))
		return STEP_BAD;
	read = *next;
	if (!load(u, cfa + (uintptr_t)row_ra_offset(row), next))
		return STEP_BAD;
	at->pc = unwind_strip(read->value);
	if (row_fp(row) != ROW_FP_SAME) {
		uintptr_t base = row_fp(row) == ROW_FP_AT_CFA ? cfa : at->fp;
		read = *next;
		if (!load(u, base + (uintptr_t)row_fp_offset(row), next))
			return STEP_BAD;
		at->fp = read->value;
	}
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
