/*
 * unwind_plain.h - the frames that need nothing but a cached row, which are nearly all: how they
 * are left, what is kept of them, and how what was kept is compared. For unwind.c alone; all of it
 * becomes one function there. See docs/unwinding.md.
 */
#ifndef SHIM_UNWIND_PLAIN_H
#define SHIM_UNWIND_PLAIN_H

#include "modules.h"
#include "unwind.h"
#include "whyoom/trace.h"

/*
 * What is known of a fresh frame: its tag in the lower half, and what the step out of it does with
 * the frame pointer.
 */
#define FRESH_PLAIN (UINT64_C(1) << 32) /* left by walk_plain(): lists no checks */
#define FRESH_READS_FP (UINT64_C(1) << 63) /* needs it as it is in the frame */
#define FRESH_SETS_FP (UINT64_C(1) << 34) /* the outer one is from elsewhere; all checks stay */
#define FRESH_SAVED                                                                                \
	(UINT64_C(1) << 35) /* the outer one is in memory: that word is the last check */
/* Of plain frames, in words: where that is, from the CFA, and the CFA, from the stack pointer, or
 * with FRESH_READS_FP from the frame pointer. */
#define FRESH_FP_SHIFT 36
#define FRESH_FP_BITS 12
#define FRESH_CFA_SHIFT 48
#define FRESH_CFA_BITS 15

/* How far below the CFA a call puts the return address. */
#if defined(__x86_64__)
#define LINK_RA 8
#endif

static inline struct near_row *near_place(struct unwind *u, uintptr_t pc)
{
	return u->near[(uint32_t)pc * UINT32_C(0x9e3779b9) >> (32 - NEAR_BITS)];
}

/* Of a plain frame with FRESH_SAVED, whose CFA this is. */
static inline const uintptr_t *saved_fp(uint64_t info, uintptr_t cfa)
{
	int64_t words =
	    (int64_t)(info << (64 - FRESH_FP_SHIFT - FRESH_FP_BITS)) >> (64 - FRESH_FP_BITS);

	return (const uintptr_t *)(cfa + (uintptr_t)(words * 8));
}

/*
 * The frame pointer register outside of the frames from..to-1, which are plain, where it was `fp`
 * in the first of them; `cfa` is the last one's. Few rows need it, so it is not followed from frame
 * to frame.
 */
static inline uintptr_t fp_outside(
    const struct fresh *from, const struct fresh *to, uintptr_t cfa, uintptr_t fp)
{
	while (to > from) {
		to--;
		if (to->info & FRESH_SAVED)
			return *saved_fp(to->info, cfa);
		cfa = to->link.sp;
	}
	return fp;
}

/* Is a return address no more where this frame's link has it? */
static inline bool link_changed(const struct link *l)
{
#if defined(__x86_64__)
	return *(const uintptr_t *)(l->sp - LINK_RA) != l->pc;
#else
	return *(const uintptr_t *)l->ra_at != l->ra;
#endif
}

/* The same as a check. */
static inline struct check link_check(const struct link *l)
{
#if defined(__x86_64__)
	return (struct check){(const uintptr_t *)(l->sp - LINK_RA), l->pc};
#else
	return (struct check){(const uintptr_t *)l->ra_at, l->ra};
#endif
}

/* The words from c - 1 down to `first`: the index of the one that is another, or -1. */
static inline int64_t check_changed(const struct check *first, const struct check *c)
{
	while (c > first) {
		c--;
		if (__builtin_expect(*c->at != c->value, 0))
			return c - first;
	}
	return -1;
}

/*
 * The frame of index j is here again. Whether the outer ones are, too: each word that led from one
 * to the next is compared, inwards to outwards, so that every address read is one that a walk
 * would read now. Returns the index of the frame whose words differ, or -1.
 */
static inline __attribute__((always_inline)) int64_t first_changed(
    const struct unwind *u, uint32_t j)
{
	for (int64_t i = j; i >= 0;) {
		const struct frame *f = &u->frames[i];
		const uint32_t first = f->run & RUN_FIRST;
		if (__builtin_expect(f->run & RUN_CHECKS, 0)) {
			uint32_t start = first ? u->frames[first - 1].checks_end : 0;
			int64_t at = check_changed(u->checks + start, u->checks + f->checks_end);
			if (__builtin_expect(at >= 0, 0)) {
				while (i && u->frames[i - 1].checks_end > start + at)
					i--;
				return i;
			}
		} else {
			const struct link *l = u->links + i, *const end = u->links + first;
			/* Eight at a time, one after the other all the same: a word may be read
			 * only when those before it were as expected. */
#define DIFFERS(k) __builtin_expect(link_changed(l - (k)), 0)
			for (; l - end >= 8; l -= 8) {
				if (DIFFERS(1) || DIFFERS(2) || DIFFERS(3) || DIFFERS(4) ||
				    DIFFERS(5) || DIFFERS(6) || DIFFERS(7) || DIFFERS(8))
					break;
			}
			while (l >= end && !DIFFERS(1))
				l--;
#undef DIFFERS
			if (l >= end)
				return l - u->links;
		}
		i = (int64_t)first - 1;
	}
	return -1;
}

/* Where a walk is. */
struct cursor {
	struct unwind_place at; /* but for the frame pointer, see fp_from */
#if defined(__aarch64__)
	uintptr_t ra_at, ra; /* as in struct link, where a plain frame led here */
#endif
	int64_t j; /* the kept frame that it may be; -1: none */
	uint32_t n; /* how much has been written */
	uint32_t fp_from; /* at.fp is what it was in this fresh frame */
	bool rare; /* some frame reads the frame pointer, or lists checks */
};

static inline struct link cursor_link(const struct cursor *c)
{
	return (struct link)
	{
		.sp = c->at.sp, .pc = c->at.pc,
#if defined(__aarch64__)
		.ra_at = c->ra_at, .ra = c->ra,
#endif
	};
}

static inline uintptr_t fp_now(const struct unwind *u, const struct cursor *c)
{
	return fp_outside(u->fresh + c->fp_from, u->fresh + c->n, c->at.sp, c->at.fp);
}

/* The compiler is not to know that this is a value that it has elsewhere. */
#define APART(v) __asm__("" : "+r"(v))

/*
 * The frames that need nothing but a cached row: all but few. Goes on until there is one that needs
 * more, or that is where a kept one was: then it returns true, and cursor->j is that one.
 *
 * From a frame to the next one leads a chain of loads: return address, row, CFA, return address. It
 * is long, and nothing else takes as much time in a recording. So the next frame is expected to
 * begin where a frame began in the last walk; where that is right, as the processor learns to
 * guess, the next return address is read from there without waiting for the row.
 */
static inline __attribute__((always_inline)) bool walk_plain(
    struct unwind *u, struct cursor *cursor)
{
	bool met = true;
	uintptr_t pc = cursor->at.pc, sp = cursor->at.sp;
	if (cursor->at.exact || sp - u->memory.lo >= u->memory.span || sp & 7)
		return false;
	const uintptr_t hi = u->memory.lo + u->memory.span;
	const struct link *old = u->links + cursor->j;
	uintptr_t old_sp = old->sp;
	struct fresh *f = u->fresh + cursor->n;
	const struct fresh *const f_end =
	    u->fresh + (u->fresh_room < UNWIND_FRAMES_MAX ? u->fresh_room : UNWIND_FRAMES_MAX);
#if defined(__aarch64__)
	uintptr_t ra_at = cursor->ra_at, ra = cursor->ra;
#endif

	while (old_sp < sp)
		old_sp = (--old)->sp;
	if (old_sp == sp) {
		if (old->pc == pc)
			goto out;
		old_sp = (--old)->sp;
	}
	while (f < f_end) {
		const struct near_row *e = near_place(u, pc);
		if (__builtin_expect(e->pc != pc, 0) && (++e)->pc != pc && (++e)->pc != pc &&
		    (++e)->pc != pc)
			break;
		const uint64_t info = e->info;
		uintptr_t cfa = sp + (uintptr_t)(info >> FRESH_CFA_SHIFT) * 8;
		if (__builtin_expect(info & FRESH_READS_FP, 0)) {
			uintptr_t fp = fp_outside(u->fresh + cursor->fp_from, f, sp, cursor->at.fp);
			cursor->at.fp = fp;
			cursor->fp_from = (uint32_t)(f - u->fresh);
			cfa = fp + (cfa - sp) % ((uintptr_t)8 << FRESH_CFA_BITS);
			/* The stack only ever gets shorter. */
			if (cfa <= sp || (uintptr_t)saved_fp(info, cfa) < sp || cfa & 7)
				break;
			cursor->rare = true;
		}
		if (__builtin_expect(cfa > hi, 0))
			break;
		f->link.sp = sp;
		f->link.pc = pc;
		f->info = info;
#if defined(__aarch64__)
		f->link.ra_at = ra_at;
		f->link.ra = ra;
		ra_at = cfa + (uintptr_t)e->ra;
#endif
		f++;
		if (__builtin_expect(cfa == old_sp, 1)) {
			uintptr_t expected = old_sp;
			APART(expected);
			sp = expected;
#if defined(__x86_64__)
			pc = *(const uintptr_t *)(expected - LINK_RA);
#else
			ra = *(const uintptr_t *)(expected + (uintptr_t)e->ra);
			pc = unwind_strip(ra);
#endif
		} else {
			sp = cfa;
#if defined(__x86_64__)
			pc = *(const uintptr_t *)(cfa - LINK_RA);
#else
			ra = *(const uintptr_t *)ra_at;
			pc = unwind_strip(ra);
#endif
			while (old_sp < sp)
				old_sp = (--old)->sp;
			if (old_sp != sp)
				continue;
		}
		if (__builtin_expect(old->pc == pc, 0))
			goto out;
		old_sp = (--old)->sp;
	}
	met = false;
out:
	cursor->at.pc = pc;
	cursor->at.sp = sp;
	cursor->j = old - u->links;
	cursor->n = (uint32_t)(f - u->fresh);
#if defined(__aarch64__)
	cursor->ra_at = ra_at;
	cursor->ra = ra;
#endif
	return met;
}

/* Where kept frames are written, and what the next one goes on from. */
struct keep {
	struct frame *out;
	struct link *link;
	struct stack_hash hash, of_tag;
	uint32_t tag, run, checks_end, ours;
};

/* What a tag says of frames; the shim's own are not in the hash. */
static inline bool keep_tag(struct keep *k, uint32_t tag)
{
	k->tag = tag;
	k->of_tag = stack_hash_tag(tag);
	return (tag & ~FRAME_EXACT) != (modules_self << 3 | TRACE_FRAME_NATIVE) || !modules_self;
}

static inline __attribute__((always_inline)) void keep_one(
    struct keep *k, const struct fresh *f, bool counts)
{
	if (counts)
		k->hash = stack_hash_next(k->hash, f->link.pc, k->of_tag);
	else
		k->ours++;
	*k->link++ = f->link;
	k->out->hash = k->hash;
	k->out->run = k->run;
	k->out->checks_end = k->checks_end;
	k->out->ours = k->ours;
	k->out->tag = k->tag;
	k->out++;
}

/*
 * Fresh frames become kept ones, outermost first, after the `kept` that stay. These are the plain
 * ones, of which no check but that of the links needs to be kept.
 */
static inline __attribute__((always_inline)) void keep_plain(
    struct unwind *u, uint32_t kept, uint32_t n)
{
	const struct frame *outer = u->frames + kept - 1;
	struct keep k = {.out = u->frames + kept,
	    .link = u->links + kept,
	    .hash = outer->hash,
	    .run = outer->run & RUN_CHECKS ? kept : outer->run,
	    .checks_end = outer->checks_end,
	    .ours = outer->ours};
	const struct fresh *const first = u->fresh;
	bool counts = keep_tag(&k, outer->tag);

	for (const struct fresh *f = first + n; f-- > first;) {
		if (__builtin_expect((uint32_t)f->info != k.tag || !counts, 0)) {
			counts = keep_tag(&k, (uint32_t)f->info);
			if (!counts) {
				keep_one(&k, f, false);
				continue;
			}
		}
		keep_one(&k, f, true);
	}
	u->count = kept + n;
}

/* The kept frame at the cursor's place is the same one. */
static inline bool same_frame(const struct unwind *u, const struct cursor *c)
{
	const struct frame *f = &u->frames[c->j];
	return !(f->tag & FRAME_EXACT) == !c->at.exact &&
	       (__builtin_expect(!(f->run & RUN_FP_USED), 1) || f->fp == fp_now(u, c));
}

#endif
