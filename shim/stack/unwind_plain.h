/*
 * unwind_plain.h - the frames that need nothing but a cached row, which are nearly all: how they
 * are left, what is kept of them, and how what was kept is compared. For unwind.c, and for stack.c,
 * where all of it becomes one function. See docs/unwinding.md.
 */
#ifndef SHIM_UNWIND_PLAIN_H
#define SHIM_UNWIND_PLAIN_H

#include "stack/modules.h"
#include "stack/unwind.h"
#include "whyoom/trace.h"

/*
 * What is known of a fresh frame: its tag in the lower half, and what the step out of it does with
 * the frame pointer.
 */
#define FRESH_PLAIN (UINT64_C(1) << 32) /* left by walk_plain(): lists no checks */
#define FRESH_READS_FP (UINT64_C(1) << 63) /* needs it as it is in the frame: the sign */
#define FRESH_SETS_FP (UINT64_C(1) << 33) /* the outer one is from elsewhere; all checks stay */
#define FRESH_SAVED                                                                                \
	(UINT64_C(1) << 34) /* the outer one is in memory: that word is the last check */
/* Of plain frames: where that is, in words from the CFA, and the CFA, in bytes from the stack
 * pointer, or with FRESH_READS_FP from the frame pointer. */
#define FRESH_FP_SHIFT 35
#define FRESH_FP_BITS 10
#define FRESH_CFA_SHIFT 45
#define FRESH_CFA_BITS 18

/* How far below the CFA a call puts the return address. */
#if defined(__x86_64__)
#define LINK_RA 8
#endif

/* By the bits that make the fewest instructions of it where the places are 64 bytes. */
static inline struct near_row *near_place(struct unwind *u, uintptr_t pc)
{
	size_t at = (uint32_t)pc * UINT32_C(0x9e3779b9) >> (32 - NEAR_BITS - 6) & -(size_t)64;

	return (struct near_row *)((char *)u->near + at / 64 * sizeof(u->near[0]));
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
		const int64_t offset = (int64_t)info >> FRESH_CFA_SHIFT;
		uintptr_t cfa = sp + (uintptr_t)offset;
		if (__builtin_expect(offset < 0, 0)) { /* FRESH_READS_FP */
			uintptr_t fp = fp_outside(u->fresh + cursor->fp_from, f, sp, cursor->at.fp);
			cursor->at.fp = fp;
			cursor->fp_from = (uint32_t)(f - u->fresh);
			cfa = fp + (uintptr_t)offset % ((uintptr_t)1 << FRESH_CFA_BITS);
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
		uintptr_t expected = old_sp;
		APART(expected); /* before it is compared: else either is taken */
		if (__builtin_expect(cfa == old_sp, 1)) {
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
		if (__builtin_expect(old->pc == pc, 0)) {
#if defined(__x86_64__)
			/* Not if what called it is another one: that is often enough known by one
			 * more word, which is looked at where the frame can only lie (an END frame
			 * is at 0). */
			const struct link *outer = old - 1;
			if (outer->sp < sp + LINK_RA || outer->sp > hi || !link_changed(outer))
				goto out;
#else
			goto out;
#endif
		}
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

/* What a tag says of frames; the shim's own are not in the hash. */
static inline bool tag_counts(uint32_t tag)
{
	return (tag & ~FRAME_EXACT) != (modules_self << 3 | TRACE_FRAME_NATIVE) || !modules_self;
}

/*
 * Fresh frames become kept ones, outermost first, after the `kept` that stay. These are the plain
 * ones, of which no check but that of the links needs to be kept: what is known of a frame beside
 * place and hash is known of all that have its tag, and is written at once.
 */
static inline __attribute__((always_inline)) void keep_plain(
    struct unwind *u, uint32_t kept, uint32_t n)
{
	const struct frame *outer = u->frames + kept - 1;
	const struct fresh *const first = u->fresh, *f = first + n;
	struct frame *out = u->frames + kept;
	struct link *link = u->links + kept;
	struct stack_hash hash = outer->hash;
	const uint32_t run = outer->run & RUN_CHECKS ? kept : outer->run;
	const uint32_t checks_end = outer->checks_end;
	uint32_t ours = outer->ours;

	while (f > first) {
		const uint32_t tag = (uint32_t)f[-1].info;
		if (__builtin_expect(!tag_counts(tag), 0)) {
			*link++ = (--f)->link;
			out->hash = hash;
			out++->words = (frame_words){run, checks_end, ++ours, tag};
			continue;
		}
		const struct stack_hash of_tag = stack_hash_tag(tag);
		const frame_words words = {run, checks_end, ours, tag};
		do {
			f--;
			hash = stack_hash_next(hash, f->link.pc, of_tag);
			*link++ = f->link;
			out->hash = hash;
			out++->words = words;
		} while (f > first && (uint32_t)f[-1].info == tag);
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

/* Of the walk that is `kept` frames of the last one and `n` fresh ones. */
static inline void link_inner(struct unwind *u, const struct cursor *c, uint32_t kept, uint32_t n)
{
#if defined(__aarch64__)
	/* How far below the CFA the word lies is the inner frame's business. */
	if (kept && u->fresh[n - 1].info & FRESH_PLAIN) {
		u->links[kept - 1].ra_at = c->ra_at;
		u->links[kept - 1].ra = c->ra;
	}
#else
	(void)u, (void)c, (void)kept, (void)n;
#endif
}

/* What unwind_walk_quick() leaves: it has come to `c`, which with `met` is where the last walk's
 * frames go on. In unwind.c. */
bool unwind_walk_on(struct unwind *u, const struct stack_start *start, uint32_t *kept,
    struct cursor c, bool met, bool unstable, uint64_t generation);

/* unwind_walk(), for where it is called for each event. */
static inline __attribute__((always_inline)) bool unwind_walk_quick(
    struct unwind *u, const struct stack_start *start, uint32_t *kept)
{
	const uint64_t generation = modules_generation();
	/* Has a walk been completed in this generation? Then there are links, and rows of it. */
	if (__builtin_expect(modules_unstable() || generation != u->generation, 0))
		return unwind_walk(u, start, kept);
	struct cursor c = {.at = {unwind_strip(start->pc), start->sp, start->fp, false},
	    .j = (int64_t)u->count - 1};
	bool met = false;

	readable_start(&u->memory, c.at.sp);
	/* With a stack that is as it was there is no need to set out. */
	const struct link *inner = &u->links[c.j];
	if (inner->sp == c.at.sp && inner->pc == c.at.pc && same_frame(u, &c)) {
		int64_t changed = first_changed(u, (uint32_t)c.j);
		if (changed < 0) {
			*kept = u->count;
			return true;
		}
		c.j = changed - 1;
	}
	u->generation = 0; /* until this walk is complete */
	while (walk_plain(u, &c) && same_frame(u, &c)) {
		int64_t changed = first_changed(u, (uint32_t)c.j);
		met = changed < 0;
		if (met)
			break;
		/* Frames from there on may be elsewhere, or others. */
		c.j = changed - 1;
	}
	const uint32_t same = (uint32_t)(c.j + 1);
	if (__builtin_expect(!met, 0) ||
	    (c.n && (c.rare || u->frames[c.j].run & RUN_FP_USED || same + c.n >= u->links_room ||
			same + c.n > u->frames_room)))
		return unwind_walk_on(u, start, kept, c, met, false, generation);
	*kept = same;
	/* Where nothing has changed, inner frames may have returned. */
	u->count = same;
	if (c.n) {
		link_inner(u, &c, same, c.n);
		keep_plain(u, same, c.n);
		u->left_out = 0;
	}
	u->generation = generation;
	return true;
}

#endif
