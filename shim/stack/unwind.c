/*
 * unwind.c - walks by cached rows and reuses the last walk where its words are unchanged. Reads the
 * host's stack by plain loads once readable.h allows it; writes nothing. See docs/unwinding.md.
 */
#include "stack/unwind.h"

#include <string.h>

#include "base/sys.h"
#include "stack/cfi_cache.h"
#include "stack/modules.h"
#include "stack/unwind_plain.h"
#include "whyoom/trace.h"

#define FIRST_FRAMES 128u
#define FIRST_CHECKS 256u
#define SIGNALS_MAX 64 /* signal frames of a walk; each lets the stack pointer jump anywhere */

/* The word of a check that always fails, for steps whose reads are not listed. */
static const uintptr_t never_equal = 1;

/* Makes room for `want` elements of `size`, with the old contents. */
static __attribute__((noinline)) bool grow(
    struct unwind *u, void **array, uint32_t *room, uint32_t want, uint32_t first, size_t size)
{
	uint32_t n;

	if (want <= *room)
		return true;
	n = *room ? *room : first;
	while (n < want)
		n *= 2;
	if (!sys_pages_replace(array, *room * size, *room * size, n * size))
		return false;
	*room = n;
	u->grown = true;
	return true;
}

static inline bool reserve_fresh(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(frames <= u->fresh_room && checks <= u->fresh_checks_room, 1))
		return true;
	return grow(u, (void **)&u->fresh, &u->fresh_room, frames, FIRST_FRAMES,
		   sizeof(*u->fresh)) &&
	       grow(u, (void **)&u->fresh_checks, &u->fresh_checks_room, checks, FIRST_CHECKS,
		   sizeof(*u->fresh_checks));
}

/* links_room includes the sentinel. */
static __attribute__((noinline)) bool grow_frames(struct unwind *u, uint32_t frames)
{
	if (!grow(u, (void **)&u->all_links, &u->links_room, frames + 1, FIRST_FRAMES,
		sizeof(*u->links)))
		return false;
	u->all_links->sp = UINTPTR_MAX;
	u->links = u->all_links + 1;
	return grow(
	    u, (void **)&u->frames, &u->frames_room, frames, FIRST_FRAMES, sizeof(*u->frames));
}

static inline bool reserve_kept(struct unwind *u, uint32_t frames, uint32_t checks)
{
	if (__builtin_expect(
		frames < u->links_room && frames <= u->frames_room && checks <= u->checks_room, 1))
		return true;
	return grow_frames(u, frames) && grow(u, (void **)&u->checks, &u->checks_room, checks,
					     FIRST_CHECKS, sizeof(*u->checks));
}

void unwind_free(struct unwind *u)
{
	sys_pages_free(u->all_links, u->links_room * sizeof(*u->links));
	sys_pages_free(u->frames, u->frames_room * sizeof(*u->frames));
	sys_pages_free(u->checks, u->checks_room * sizeof(*u->checks));
	sys_pages_free(u->fresh, u->fresh_room * sizeof(*u->fresh));
	sys_pages_free(u->fresh_checks, u->fresh_checks_room * sizeof(*u->fresh_checks));
}

size_t unwind_bytes(const struct unwind *u)
{
	return u->links_room * sizeof(*u->links) + u->frames_room * sizeof(*u->frames) +
	       u->checks_room * sizeof(*u->checks) + u->fresh_room * sizeof(*u->fresh) +
	       u->fresh_checks_room * sizeof(*u->fresh_checks);
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

/* Steps out by a rare kind of row, out of line. *added: the number of checks. */
static __attribute__((noinline)) enum unwind_step step_rare(
    struct unwind *u, uint64_t row, struct unwind_state *at, struct check *checks, uint32_t *added)
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
		    (struct unwind_state){checks[0].value, checks[1].value, checks[2].value, true};
		return STEP_OK;
	case ROW_FULL:
		*checks = (struct check){&never_equal, 0};
		*added = 1;
		return unwind_full_step(u, at);
	default:
		return STEP_NO_CFI;
	}
}

static __attribute__((noinline)) uint64_t row_make(struct unwind *u, uintptr_t pc, uint32_t *module)
{
	return cfi_cache_make(pc, &u->cfi, &u->expr, module);
}

/*
 * Puts the row of this return address into the near cache if walk_plain() can use it: its words
 * must lie below the CFA and within the frame, the frame pointer lowest, so that a use needs few
 * comparisons. False: it cannot, or the row is there already.
 */
static __attribute__((noinline)) bool near_fill(struct unwind *u, uintptr_t pc)
{
	struct near_row *e = near_set(u, pc);
	uint32_t module = 0;
	int64_t cfa, ra, fp;
	uint64_t row;

	for (unsigned i = 0; i < NEAR_WAYS; i++)
		if (e[i].pc == pc)
			return false;
	row = cfi_cache_find(pc - 1, &module);
	if (!row)
		row = row_make(u, pc - 1, &module);
	cfa = row_cfa_offset(row);
	ra = row_ra_offset(row);
	fp = row_fp_offset(row);
	if (!row_plain(row) || !module || ra >= 0 || fp > ra ||
	    fp < -8 * (INT64_C(1) << (FRESH_FP_BITS - 1)) || cfa < 0 || cfa % 8 ||
	    cfa >= INT64_C(1) << FRESH_CFA_BITS)
		return false;
	if (row_kind(row) == ROW_SP && (!cfa || fp < -cfa))
		return false;
#if defined(__x86_64__)
	if (ra != -LINK_RA)
		return false;
#endif
	/* replace the oldest */
	for (unsigned i = NEAR_WAYS; --i;)
		e[i] = e[i - 1];
	e->pc = pc;
	e->info = module << 3 | FRESH_PLAIN | (row_kind(row) == ROW_FP ? FRESH_READS_FP : 0) |
		  (row_fp(row) != ROW_FP_SAME ? FRESH_SAVED : 0) |
		  (uint64_t)cfa << FRESH_CFA_SHIFT |
		  ((uint64_t)(fp / 8) & ((1u << FRESH_FP_BITS) - 1)) << FRESH_FP_SHIFT;
#if defined(__aarch64__)
	e->ra = ra;
#endif
	return true;
}

/* Steps out of the frame at `at` and sets its tag. Adds at most three checks. Functions that are
 * not inlined get copies of *at, so that it stays in registers. */
static inline __attribute__((always_inline)) enum unwind_step step(
    struct unwind *u, struct unwind_state *at, struct check **next, uint64_t *tag, bool unstable)
{
	uintptr_t pc = at->pc - !at->exact, cfa;
	struct check *check = *next;
	uint32_t module = 0;
	uint64_t row = cfi_cache_find(pc, &module);
	unsigned kind, saved;

	if (__builtin_expect(!row || (unstable && module && !module_verify(module, pc)), 0)) {
		uint32_t made;

		row = row_make(u, pc, &made);
		module = made;
	}
	*tag = module << 3 | (at->exact ? FRAME_EXACT : 0);

	kind = row_kind(row);
	cfa = kind == ROW_SP ? at->sp : at->fp;
	if (kind == ROW_FP || kind == ROW_AT_FP || row_fp(row) == ROW_FP_AT_FP)
		*tag |= FRESH_READS_FP;
	if (__builtin_expect(kind > ROW_FP, 0)) {
		if (kind != ROW_AT_FP) {
			struct unwind_state place = *at;
			uint32_t added;
			enum unwind_step rc;

			*tag |= FRESH_SETS_FP;
			rc = step_rare(u, row, &place, check, &added);
			*next = check + added;
			*at = place;
			return rc;
		}
		if (!load(u, at->fp + (uintptr_t)row_cfa_offset(row), check))
			return STEP_BAD;
		cfa = check++->value - (uintptr_t)row_cfa_offset(row);
	}
	cfa += (uintptr_t)row_cfa_offset(row);
	/* each step must shorten the stack, so that no walk goes in circles */
	if (__builtin_expect(cfa <= at->sp, 0))
		return STEP_BAD;
	if (!load(u, cfa + (uintptr_t)row_ra_offset(row), check))
		return STEP_BAD;
	at->pc = unwind_strip(check++->value);
	saved = row_fp(row);
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

/* A walk beyond UNWIND_FRAMES_MAX keeps its innermost half; the other half becomes a ring. */
struct ring {
	uint32_t at, left_out;
};

static struct fresh *fresh_frame(struct unwind *u, uint32_t *n, struct ring *ring)
{
	struct fresh *f;

	if (__builtin_expect(*n < UNWIND_FRAMES_MAX, 1))
		return &u->fresh[(*n)++];
	f = &u->fresh[UNWIND_FRAMES_MAX / 2 + ring->at];
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

/*
 * Like keep_plain(), for any kind of frames. Keeps a check of a saved frame pointer only if the
 * outer frames depend on it: most functions use the register for other values, which change all the
 * time.
 */
static __attribute__((noinline)) void keep_fresh(
    struct unwind *u, uint32_t kept, uint32_t n, const struct link *at, uintptr_t fp)
{
	const struct frame *outer = kept ? u->frames + kept - 1 : NULL;
	struct frame now = {.hash = STACK_HASH_ROOT, .run = RUN_CHECKS};
	struct frame *out = u->frames + kept;
	struct link *link = u->links + kept;
	struct check *c;
	bool fp_used;

	if (outer)
		now = *outer;
	c = u->checks + now.checks_end;
	fp_used = now.run & RUN_FP_USED;

	/* work out the frame pointers, which walk_plain() does not follow */
	for (struct fresh *f = u->fresh; f < u->fresh + n; f++) {
		if (f == u->fresh)
			f->fp = fp;
		else if (f->info & f[-1].info & FRESH_PLAIN)
			f->fp =
			    f[-1].info & FRESH_SAVED ? *saved_fp(f[-1].info, f->link.sp) : f[-1].fp;
	}
	for (uint32_t i = n; i-- > 0;) {
		const struct fresh *f = u->fresh + i;
		const struct link *l = i == n - 1 ? at : &f[1].link;
		const struct check *const before = c;
		uint32_t first;
		bool listed;

		if (f->info & FRESH_PLAIN) {
			bool saved = fp_used && f->info & FRESH_SAVED;

			/* the outermost frame has no outer link */
			if (saved || out == u->frames)
				*c++ = link_check(l);
			if (saved)
				*c++ = (struct check){
				    saved_fp(f->info, l->sp), *saved_fp(f->info, l->sp)};
			if (f->info & FRESH_SAVED)
				fp_used = false;
		} else {
			const struct check *to = u->fresh_checks + f->checks_end;
			const struct check *from = to - f->checks;

			if (f->info & FRESH_SAVED && !fp_used)
				to--;
			while (to > from)
				*c++ = *--to;
			if (f->info & (FRESH_SAVED | FRESH_SETS_FP))
				fp_used = false;
		}
		if (f->info & FRESH_READS_FP)
			fp_used = true;
		now.checks_end = (uint32_t)(c - u->checks);
		listed = !(f->info & FRESH_PLAIN) || c > before;
		first = !(now.run & RUN_CHECKS) == !listed ? now.run & RUN_FIRST : kept + n - 1 - i;
		now.run = first | (listed ? RUN_CHECKS : 0) | (fp_used ? RUN_FP_USED : 0);
		now.tag = (uint32_t)f->info;
		if (tag_counts(now.tag))
			now.hash = stack_hash_next(now.hash, f->link.pc, stack_hash_tag(now.tag));
		else
			now.shim_frames++;
		now.fp = f->fp;
		*link++ = f->link;
		*out++ = now;
	}
	u->count = kept + n;
}

static __attribute__((noinline)) void near_forget(struct unwind *u, uint64_t generation)
{
	if (u->near_generation) /* else the pages are untouched */
		memset(u->near, 0, sizeof(u->near));
	/* 0 is no return address: nothing may match it */
	for (unsigned i = 0; i < NEAR_WAYS; i++)
		near_set(u, 0)[i].pc = 1;
	u->near_generation = generation;
}

/* Steps out of the frame at the cursor, which walk_plain() cannot. */
static enum unwind_step walk_step(
    struct unwind *u, struct cursor *c, struct ring *ring, uint32_t *checks, bool unstable)
{
	struct unwind_state at = c->at;
	uint32_t before;
	struct fresh *f;
	struct check *next;
	uint64_t info;
	enum unwind_step end;

	at.fp = fp_now(u, c);
	f = fresh_frame(u, &c->n, ring);
	*f = (struct fresh){.link = cursor_link(c), .fp = at.fp};
	before = *checks;
	next = u->fresh_checks + before;
	end = step(u, &at, &next, &info, unstable);
	if (!ring->left_out)
		*checks = (uint32_t)(next - u->fresh_checks);
	/* a step that failed half-way has no checks */
	if (__builtin_expect(end == STEP_BAD || ring->left_out, 0))
		info &= ~FRESH_SAVED;
	f->info = info;
	f->checks = *checks - before;
	f->checks_end = *checks;
	c->at = at;
	c->fp_from = c->n;
	c->rare = true;
	if (c->n < u->fresh_room)
		u->fresh[c->n].fp = at.fp;
	return end;
}

static inline bool same_position(const struct unwind *u, const struct cursor *c)
{
	const struct link *l = &u->links[c->j];

	return l->sp == c->at.sp && l->pc == c->at.pc && same_frame(u, c);
}

bool unwind_walk_on(struct unwind *u, const struct stack_start *start, uint32_t *kept,
    struct cursor c, bool met, bool unstable, uint64_t generation)
{
	uint32_t checks = 0;
	struct ring ring = {0, 0};
	unsigned signals = 0;
	enum unwind_step end = STEP_OK;
	uint32_t most, n;

	while (!met) {
		if (__builtin_expect(!unstable && !ring.left_out, 1)) {
			walk_plain(u, &c);
			if (__builtin_expect(!c.at.pc, 0)) {
				c.j = -1;
				break;
			}
		}
		while (c.j >= 0 && u->links[c.j].sp < c.at.sp)
			c.j--;
		if (c.j >= 0 && same_position(u, &c)) {
			int64_t changed = first_changed(u, (uint32_t)c.j);

			if (changed < 0)
				break;
			/* frames from there on may have moved or changed */
			c.j = changed - 1;
			continue;
		}
		if (!unstable && !ring.left_out && !c.at.exact && near_fill(u, c.at.pc))
			continue;
		if (!reserve_fresh(
			u, c.n + 2 < UNWIND_FRAMES_MAX ? c.n + 2 : UNWIND_FRAMES_MAX, checks + 8))
			return false;
		end = walk_step(u, &c, &ring, &checks, unstable);
		if (ring.left_out)
			c.j = -1;
		if (__builtin_expect(end != STEP_OK, 0)) {
			c.j = -1;
			break;
		}
		if (__builtin_expect(c.at.exact, 0) && ++signals > SIGNALS_MAX) {
			end = STEP_BAD;
			c.j = -1;
			break;
		}
	}
	if (end == STEP_NO_CFI || end == STEP_BAD) {
		uint32_t why;

		if (!reserve_fresh(
			u, c.n + 1 < UNWIND_FRAMES_MAX ? c.n + 1 : UNWIND_FRAMES_MAX, checks + 8))
			return false;
		why = end == STEP_BAD ? TRACE_FRAME_END_BAD : TRACE_FRAME_END_NO_CFI;
		*fresh_frame(u, &c.n, &ring) =
		    (struct fresh){.info = why << 2 | TRACE_FRAME_END, .checks_end = checks};
	}

	n = c.n;
	*kept = (uint32_t)(c.j + 1);
	if (n == 0) {
		u->count = *kept;
		u->generation = generation;
		return true;
	}
	if (*kept + n > UNWIND_FRAMES_MAX) {
		/* too many to keep both: walk the whole stack, which is rare */
		u->count = 0;
		u->generation = 0;
		return unwind_walk(u, start, kept);
	}
	most = checks + 2 * n;
	if (!reserve_kept(u, *kept + n, (*kept ? u->frames[*kept - 1].checks_end : 0) + most))
		return false;
	link_inner(u, &c, *kept, n);
	if (ring.left_out) {
		/* turn the ring so that its oldest is first, then reverse it to outermost first */
		struct fresh *half = u->fresh + UNWIND_FRAMES_MAX / 2;
		reverse(half, ring.at);
		reverse(half + ring.at, UNWIND_FRAMES_MAX / 2 - ring.at);
		reverse(half, UNWIND_FRAMES_MAX / 2);
	}
	if (!c.rare && *kept && !(u->frames[*kept - 1].run & RUN_FP_USED)) {
		keep_plain(u, *kept, n);
	} else {
		struct link at = cursor_link(&c);

		keep_fresh(u, *kept, n, &at, start->fp);
	}
	u->left_out = ring.left_out;
	u->generation = ring.left_out || unstable ? 0 : generation;
	return true;
}

bool unwind_walk(struct unwind *u, const struct stack_start *start, uint32_t *kept)
{
	uint64_t generation = modules_generation();
	bool unstable = modules_doubtful();
	struct cursor c = {.at = {unwind_strip(start->pc), start->sp, start->fp, false},
	    .j = generation == u->generation && !unstable ? (int64_t)u->count - 1 : -1};

	u->generation = 0; /* until this walk is complete */
	if (__builtin_expect(generation != u->near_generation, 0))
		near_forget(u, generation);
	readable_start(&u->memory, c.at.sp);
	if (__builtin_expect(!u->links, 0) && !grow_frames(u, 1))
		return false;
	return unwind_walk_on(u, start, kept, c, false, unstable, generation);
}
