/*
 * unwind_plain.h - the fast path of unwinding, for frames that need only a cached row (nearly all):
 * walking them, keeping them, and comparing kept ones with the stack. For unwind.c, and for
 * stack.c, where all of it is inlined into one function. See docs/unwinding.md.
 */
#ifndef SHIM_UNWIND_PLAIN_H
#define SHIM_UNWIND_PLAIN_H

#include "stack/modules.h"
#include "stack/unwind.h"
#include "whyoom/trace.h"

/*
 * fresh.info: the frame's tag in the lower half; above, what the step out of it does with the frame
 * pointer.
 */
#define FRESH_PLAIN (UINT64_C(1) << 32) /* left by walk_plain(): lists no checks */
#define FRESH_READS_FP (UINT64_C(1) << 63) /* needs the frame's own value; the sign bit */
#define FRESH_SETS_FP (UINT64_C(1) << 33) /* sets it otherwise; all checks stay */
#define FRESH_SAVED (UINT64_C(1) << 34) /* loads it from memory: that word is the last check */
/* Plain frames: where that word is, in words from the CFA; and the CFA, in bytes from the stack
 * pointer, or with FRESH_READS_FP from the frame pointer. */
#define FRESH_FP_SHIFT 35
#define FRESH_FP_BITS 10
#define FRESH_CFA_SHIFT 45
#define FRESH_CFA_BITS 18

/* The return address lies this far below the CFA. */
#if defined(__x86_64__)
#define LINK_RA 8
#endif

/* Uses the bits that take the fewest instructions where a set has 64 bytes. */
static inline struct near_row *near_set(struct unwind *u, uintptr_t pc)
{
	size_t at = (uint32_t)pc * UINT32_C(0x9e3779b9) >> (32 - NEAR_BITS - 6) & -(size_t)64;

	return (struct near_row *)((char *)u->near + at / 64 * sizeof(u->near[0]));
}

/* Where a plain frame with FRESH_SAVED and this CFA saved the frame pointer. */
static inline const uintptr_t *saved_fp(uint64_t info, uintptr_t cfa)
{
	int64_t words =
	    (int64_t)(info << (64 - FRESH_FP_SHIFT - FRESH_FP_BITS)) >> (64 - FRESH_FP_BITS);

	return (const uintptr_t *)(cfa + (uintptr_t)(words * 8));
}

/*
 * Works out the frame pointer register outside the plain frames from..to-1, given its value `fp` in
 * the first of them and the CFA of the last. Few rows need it, so walks do not follow it.
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

/* Says whether the word at the link's place is no longer its return address. */
static inline bool link_changed(const struct link *l)
{
#if defined(__x86_64__)
	return *(const uintptr_t *)(l->sp - LINK_RA) != l->pc;
#else
	return *(const uintptr_t *)l->ra_at != l->ra;
#endif
}

/* The link's return address as a check. */
static inline struct check link_check(const struct link *l)
{
#if defined(__x86_64__)
	return (struct check){(const uintptr_t *)(l->sp - LINK_RA), l->pc};
#else
	return (struct check){(const uintptr_t *)l->ra_at, l->ra};
#endif
}

/* Compares the words from c - 1 down to `first`; returns the index of the first changed one, or -1.
 */
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
 * Pre: frame j is unchanged. Checks whether the outer frames are, too: compares each word that led
 * from one to the next, going outwards, so that it reads only addresses that a walk would read now.
 * Returns the index of the frame whose words differ, or -1.
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

			/* unrolled, but still in sequence: a word may be read only if all before it
			 * were as expected */
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

/* The position of a walk. */
struct cursor {
	struct unwind_state at; /* its frame pointer: see fp_from */
#if defined(__aarch64__)
	uintptr_t ra_at, ra; /* as in struct link, where a plain frame led here */
#endif
	int64_t j; /* the kept frame that may be here; -1: none */
	uint32_t n; /* fresh frames so far */
	uint32_t fp_from; /* the fresh frame in which the frame pointer was at.fp */
	bool rare; /* a fresh frame reads the frame pointer or lists checks */
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

/* Hides from the compiler that it has this value elsewhere. */
#define APART(v) __asm__("" : "+r"(v))

/*
 * Walks over plain frames until one is not plain (returns false) or lies where a kept frame lay
 * (returns true; cursor->j is that frame).
 *
 * A chain of dependent loads leads from frame to frame: return address, row, CFA, return address.
 * Nothing else takes as much time in a recording. So the loop predicts that the next frame begins
 * where a frame of the last walk began. When the processor predicts that branch well, it reads the
 * next return address without waiting for the row.
 */
static inline __attribute__((always_inline)) bool walk_plain(
    struct unwind *u, struct cursor *cursor)
{
	bool met = true;
	uintptr_t pc = cursor->at.pc, sp = cursor->at.sp, hi, old_sp;
	const struct fresh *f_end;
	const struct link *old;
	struct fresh *f;
#if defined(__aarch64__)
	uintptr_t ra_at = cursor->ra_at, ra = cursor->ra;
#endif

	if (cursor->at.exact || sp - u->memory.lo >= u->memory.span || sp & 7)
		return false;
	hi = u->memory.lo + u->memory.span;
	old = u->links + cursor->j;
	old_sp = old->sp;
	f = u->fresh + cursor->n;
	f_end = u->fresh + (u->fresh_room < UNWIND_FRAMES_MAX ? u->fresh_room : UNWIND_FRAMES_MAX);

	while (old_sp < sp)
		old_sp = (--old)->sp;
	if (old_sp == sp) {
		if (old->pc == pc)
			goto out;
		old_sp = (--old)->sp;
	}
	while (f < f_end) {
		const struct near_row *e = near_set(u, pc);
		uintptr_t expected, cfa;
		uint64_t info;
		int64_t offset;

		if (__builtin_expect(e->pc != pc, 0) && (++e)->pc != pc && (++e)->pc != pc &&
		    (++e)->pc != pc)
			break;
		info = e->info;
		offset = (int64_t)info >> FRESH_CFA_SHIFT;
		cfa = sp + (uintptr_t)offset;
		if (__builtin_expect(offset < 0, 0)) { /* FRESH_READS_FP */
			uintptr_t fp = fp_outside(u->fresh + cursor->fp_from, f, sp, cursor->at.fp);
			cursor->at.fp = fp;
			cursor->fp_from = (uint32_t)(f - u->fresh);
			cfa = fp + (uintptr_t)offset % ((uintptr_t)1 << FRESH_CFA_BITS);
			/* the stack must get shorter */
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
		expected = old_sp;
		APART(expected); /* before the comparison, which would make the two one value */
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
			/* It is the kept frame unless its caller changed, which one more word
			 * mostly tells. That word is read only within the stack (an END frame is at
			 * 0). */
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

/* Says whether frames with this tag are part of the stack; the shim's own are not. */
static inline bool tag_counts(uint32_t tag)
{
	return (tag & ~FRAME_EXACT) != (modules_self << 3 | TRACE_FRAME_NATIVE) || !modules_self;
}

/*
 * Appends n fresh plain frames to the `kept` ones, outermost first. Plain frames need no check but
 * their links, so beside link and hash all frames of a tag have the same words, written by one
 * store.
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
	uint32_t shim_frames = outer->shim_frames;

	while (f > first) {
		const uint32_t tag = (uint32_t)f[-1].info;
		struct stack_hash of_tag;
		frame_words words;

		if (__builtin_expect(!tag_counts(tag), 0)) {
			*link++ = (--f)->link;
			out->hash = hash;
			out++->words = (frame_words){run, checks_end, ++shim_frames, tag};
			continue;
		}
		of_tag = stack_hash_tag(tag);
		words = (frame_words){run, checks_end, shim_frames, tag};
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

/* Pre: the kept frame c->j has the cursor's pc and sp. Says whether the rest agrees, too. */
static inline bool same_frame(const struct unwind *u, const struct cursor *c)
{
	const struct frame *f = &u->frames[c->j];

	return !(f->tag & FRAME_EXACT) == !c->at.exact &&
	       (__builtin_expect(!(f->run & RUN_FP_USED), 1) || f->fp == fp_now(u, c));
}

/* Joins `kept` frames of the last walk with n fresh ones. */
static inline void link_inner(struct unwind *u, const struct cursor *c, uint32_t kept, uint32_t n)
{
#if defined(__aarch64__)
	/* the inner frame decides how far below the CFA the word lies */
	if (kept && u->fresh[n - 1].info & FRESH_PLAIN) {
		u->links[kept - 1].ra_at = c->ra_at;
		u->links[kept - 1].ra = c->ra;
	}
#else
	(void)u, (void)c, (void)kept, (void)n;
#endif
}

/* Finishes a walk that has reached `c`; `met`: the last walk's frames continue from there. */
bool unwind_walk_on(struct unwind *u, const struct stack_start *start, uint32_t *kept,
    struct cursor c, bool met, bool unstable, uint64_t generation);

/* unwind_walk() inlined, for the capture of each event. */
static inline __attribute__((always_inline)) bool unwind_walk_quick(
    struct unwind *u, const struct stack_start *start, uint32_t *kept)
{
	const uint64_t generation = modules_generation();
	uint32_t same;
	const struct link *inner;
	struct cursor c;
	bool met;

	/* a walk that completed in this generation has left links and near rows */
	if (__builtin_expect(modules_unstable() || generation != u->generation, 0))
		return unwind_walk(u, start, kept);
	c = (struct cursor){.at = {unwind_strip(start->pc), start->sp, start->fp, false},
	    .j = (int64_t)u->count - 1};
	met = false;

	readable_start(&u->memory, c.at.sp);
	/* an unchanged stack needs no walk */
	inner = &u->links[c.j];
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
		/* frames from there on may have moved or changed */
		c.j = changed - 1;
	}
	same = (uint32_t)(c.j + 1);
	if (__builtin_expect(!met, 0) ||
	    (c.n && (c.rare || u->frames[c.j].run & RUN_FP_USED || same + c.n >= u->links_room ||
			same + c.n > u->frames_room)))
		return unwind_walk_on(u, start, kept, c, met, false, generation);
	*kept = same;
	/* inner frames may have returned */
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
