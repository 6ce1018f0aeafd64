/*
 * stack.c - see stack.h. Merges native and Python frames into one list, hashes it from the root
 * inwards, and writes a definition the first time a stack is seen. Owns the table of ids and the
 * walkers. Must not touch the host's heap and takes no lock.
 */
#include "stack/stack.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/sys.h"
#include "base/varint.h"
#include "python/python.h"
#include "python/python_task.h"
#include "stack/cfi_cache.h"
#include "stack/modules.h"
#include "stack/stack_hash.h"
#include "stack/stack_ids.h"
#include "stack/unwind.h"
#include "stack/unwind_plain.h"
#include "stack/unwind_system.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"

#define STACK_HALF 2048u /* frames; a stack deeper than two halves loses its middle */
#define FIRST_ITEMS 128u
#define INTERPRETERS 4
#define NEXT_SLOTS 1024u /* a power of two */
/* Frames of an abbreviated stack: the innermost, then only Python's, then the outermost. */
static const struct brief {
	uint32_t inner, python, outer;
} briefs[] = {{12, 8, 4}, {6, 2, 2}};
#define BRIEF_MAX (2 * (12 + 8 + 4)) /* with a mark for each gap */

/* A frame as the trace will have it, and the hash of the stack up to it from the root. */
struct item {
	uint64_t value; /* native: pc; Python: instruction + 1 */
	uint32_t tag; /* the varint that starts the frame in the trace */
	struct stack_hash hash;
};

enum merge { MERGE_NATIVE, MERGE_PYTHON, MERGE_PYTHON_FIRST };

/* How many items and runs the list has up to a native frame; only under MERGE_PYTHON. */
struct position {
	uint32_t items_end, runs_end;
};

struct walker {
	struct unwind unwind;
	struct position *positions; /* one for each native frame */
	uint32_t positions_room;
	struct python_walk *python;
	struct item *items; /* outermost first; native stacks have none */
	uint32_t count, room;
	uint32_t last_id; /* of the last stack; 0: it has none in this trace */
	uint32_t last_keep; /* outermost frames that its definition holds unabridged */
	/* the stack that was defined last, and is not in the table of ids yet; 0: none */
	uint32_t newest_id;
	struct stack_hash newest;
	enum merge merge;
	uint8_t *body;
	size_t body_room, accounted;
	/* Functions that run Python frames; valid for `generation`. */
	struct {
		uintptr_t lo, hi;
	} interpreters[INTERPRETERS];
	uint32_t next_interpreter;
	uint64_t generation;
	struct item brief[BRIEF_MAX];
	/* By the id of a stack: the entry of the stack that followed it last time, which mostly
	 * spares a look-up in the large table, whose entries are rarely in a cache. */
	struct {
		uint64_t a, value;
	} next_cache[NEXT_SLOTS];
};

static _Atomic uint32_t next_id = 1;
static _Atomic size_t walker_bytes;

/* --- walkers --- */

static struct walker *walker_new(void)
{
	struct walker *w = sys_pages(sizeof(*w));

	if (w) {
		w->accounted = sizeof(*w);
		atomic_fetch_add(&walker_bytes, w->accounted);
	}
	return w;
}

static __attribute__((noinline)) void update_walker_bytes(struct walker *w)
{
	size_t now = sizeof(*w) + unwind_bytes(&w->unwind) + w->room * sizeof(*w->items) +
		     w->body_room + w->positions_room * sizeof(*w->positions);

	atomic_fetch_add(&walker_bytes, now - w->accounted);
	w->accounted = now;
	w->unwind.grown = false;
}

/* Grows an array to `want` elements of `size`; the first `used` keep their contents. */
static __attribute__((noinline)) bool grow(
    struct walker *w, void **array, uint32_t *room, uint32_t want, uint32_t used, size_t size)
{
	uint32_t n = *room ? *room : FIRST_ITEMS;

	while (n < want)
		n *= 2;
	if (!sys_pages_replace(array, *room * size, *array ? used * size : 0, n * size))
		return false;
	*room = n;
	w->unwind.grown = true;
	return true;
}

static bool reserve_items(struct walker *w, uint32_t want)
{
	return want <= w->room ||
	       grow(w, (void **)&w->items, &w->room, want, w->count, sizeof(*w->items));
}

static bool reserve_positions(struct walker *w, uint32_t want)
{
	return want <= w->positions_room || grow(w, (void **)&w->positions, &w->positions_room,
						want, w->positions_room, sizeof(*w->positions));
}

/* --- the list of items --- */

/* A list of items that is written over the last one; equal items are only counted. */
struct list {
	struct walker *w;
	uint32_t n, old; /* items so far; items that the old list had */
	uint32_t same; /* items that the two lists share, from the root */
};

static inline __attribute__((always_inline)) bool append(
    struct list *l, uint64_t value, uint32_t tag)
{
	struct walker *w = l->w;
	const uint32_t n = l->n;
	struct stack_hash h;
	struct item *it;

	if (__builtin_expect(n == w->room, 0)) {
		w->count = n > l->old ? n : l->old;
		if (!reserve_items(w, n + 1))
			return false;
	}
	it = &w->items[n];
	l->n = n + 1;
	if (l->same == n && n < l->old && it->value == value && it->tag == tag) {
		l->same = n + 1;
		return true;
	}
	h = n ? it[-1].hash : STACK_HASH_ROOT;
	*it = (struct item){value, tag, stack_hash_next(h, value, stack_hash_tag(tag))};
	return true;
}

/* A wrapper of the shim in the middle of the host's stack. */
static inline bool is_shim_frame(uint32_t tag)
{
	return tag >> 3 == modules_self && (tag & 3) == TRACE_FRAME_NATIVE;
}

/* Inlined by force: GCC leaves it out of the loop over a stack's frames otherwise. */
static inline __attribute__((always_inline)) bool append_native(
    struct list *l, uintptr_t pc, uint32_t tag)
{
	return __builtin_expect(is_shim_frame(tag), 0) || append(l, pc, tag);
}

/* `old`: the number of items here that were Python frames in the last list, from the same first
 * frame on. */
static bool append_run(
    struct list *l, const struct python_view *view, const struct python_run *run, uint32_t old)
{
	uint32_t skip = view->same > run->first ? view->same - run->first : 0;

	skip = skip < run->count ? skip : run->count;
	skip = skip < old ? skip : old;
	l->n += skip;
	l->same += skip;
	for (uint32_t i = run->first + skip; i < run->first + run->count; i++) {
		const struct python_frame *f = &view->frames[i];

		if (!append(l, (uint64_t)(f->lasti + 1), f->code << 2 | TRACE_FRAME_PYTHON))
			return false;
	}
	return true;
}

/* Says whether this native frame runs the Python run. */
static inline bool runs_in_frame(const struct link *links, uint32_t i, const struct python_run *run)
{
	const struct link *f = &links[i];

	if (!run->anchor)
		return python_is_eval(f->pc);
	/* the anchor is a local variable of that frame */
	return run->anchor >= f->sp && (i == 0 || run->anchor < f[-1].sp);
}

/*
 * Appends the interpreter's own frame by its function's start instead of its pc. Readers leave the
 * frame out, and the pc changes with each bytecode, which would make all frames inside it new.
 */
static bool append_interpreter(struct list *l, uint32_t at)
{
	struct walker *w = l->w;
	uint64_t generation = modules_generation();
	const struct frame *f = &w->unwind.frames[at];
	uintptr_t pc = w->unwind.links[at].pc - !(f->tag & FRAME_EXACT);
	const struct module *m;
	struct cfi_entry entry;
	uint32_t tag;
	unsigned i;

	if (w->generation != generation) {
		memset(w->interpreters, 0, sizeof(w->interpreters));
		w->generation = generation;
	}
	tag = f->tag | FRAME_EXACT;
	for (i = 0; i < INTERPRETERS; i++)
		if (pc >= w->interpreters[i].lo && pc < w->interpreters[i].hi)
			return append(l, w->interpreters[i].lo, tag);
	m = module_by_id(f->tag >> 3);
	if (!m || cfi_find(m, pc, &entry))
		return append_native(l, w->unwind.links[at].pc, f->tag);
	i = w->next_interpreter++ % INTERPRETERS;
	w->interpreters[i].lo = entry.lo;
	w->interpreters[i].hi = entry.hi;
	return append(l, entry.lo, tag);
}

/*
 * Puts each run behind the native frame that runs it. Native frames before `from` are unchanged.
 * Returns 0; 1 if a run has no native frame; or negative errno.
 */
static int merge_runs_in_place(
    struct list *l, const struct python_view *view, uint32_t from, uint32_t kept)
{
	/* copies, as the compiler would load them again after each item */
	const struct unwind *u = &l->w->unwind;
	const struct frame *frames = u->frames;
	const struct link *links = u->links;
	struct position *positions = l->w->positions;
	const uint32_t count = u->count;
	uint32_t r = from ? positions[from - 1].runs_end : 0;

	/* without anchors frames and runs pair up one to one, or not at all */
	bool by_name = !view->runs[0].anchor;
	if (by_name && view->cut)
		return 1;
	for (uint32_t i = from; i < count; i++) {
		const uint32_t tag = frames[i].tag;
		bool native = (tag & 3) == TRACE_FRAME_NATIVE;
		bool here =
		    native && r < view->run_count && runs_in_frame(links, i, &view->runs[r]);

		if (!(here ? append_interpreter(l, i) : append_native(l, links[i].pc, tag)))
			return -ENOMEM;
		if (native) {
			/* more frames of the interpreter than runs */
			if (by_name && r == view->run_count && python_is_eval(links[i].pc))
				return 1;
			while (here) {
				/* an unchanged frame in a list that is equal so far: in the last
				 * list the Python frames from this one on followed it */
				uint32_t end = positions[i].items_end;
				uint32_t old =
				    i < kept && l->same == l->n && end > l->n ? end - l->n : 0;
				if (!append_run(l, view, &view->runs[r], old))
					return -ENOMEM;
				r++;
				/* without anchors each native frame runs one */
				here = r < view->run_count && !by_name &&
				       runs_in_frame(links, i, &view->runs[r]);
			}
		}
		positions[i] = (struct position){l->n, r};
	}
	return r < view->run_count;
}

/* The runs cannot be assigned: puts all Python frames first and all native frames after them, so
 * that nothing is lost. */
static bool merge_python_first(struct list *l, const struct python_view *view)
{
	struct unwind *u = &l->w->unwind;
	uint32_t i = 0;

	for (; i < u->count && (u->frames[i].tag & 3) != TRACE_FRAME_NATIVE; i++)
		if (!append_native(l, u->links[i].pc, u->frames[i].tag))
			return false;
	for (uint32_t r = 0; r < view->run_count; r++)
		if (!append_run(l, view, &view->runs[r], 0))
			return false;
	for (; i < u->count; i++)
		if (!append_native(l, u->links[i].pc, u->frames[i].tag))
			return false;
	return true;
}

static bool build_list(struct list *l, const struct python_view *view, uint32_t kept)
{
	struct walker *w = l->w;
	int rc;
	bool python_before;
	uint32_t from;

	if (!reserve_positions(w, w->unwind.count))
		return false;
	/* positions stay as far as neither the frames nor the runs up to them have changed */
	python_before = w->merge == MERGE_PYTHON;
	from = python_before ? kept : 0;
	while (from && w->positions[from - 1].runs_end > view->same_runs)
		from--;
	l->n = l->same = from ? w->positions[from - 1].items_end : 0;
	w->merge = MERGE_PYTHON;
	rc = merge_runs_in_place(l, view, from, python_before ? kept : 0);
	if (rc <= 0)
		return rc == 0;
	w->merge = MERGE_PYTHON_FIRST;
	l->old = l->same; /* the rest of the old list is overwritten by now */
	l->n = l->same = 0;
	return merge_python_first(l, view);
}

/* Fills in the items of a native stack from `keep` on. */
static bool fill_native_items(struct walker *w, uint32_t keep)
{
	struct unwind *u = &w->unwind;
	uint32_t i = u->count;

	w->count = 0; /* nothing is worth copying */
	if (!reserve_items(w, unwind_listed(u, i - 1)))
		return false;
	for (uint32_t n; i-- > 0 && (n = unwind_listed(u, i)) > keep;) {
		const struct frame *f = &u->frames[i];

		/* a frame of the shim has the number of its outer frame, which overwrites it */
		w->items[n - 1] = (struct item){u->links[i].pc, f->tag, f->hash};
	}
	return true;
}

/* --- definitions --- */

static uint8_t *encode_frames(uint8_t *p, const struct item *it, uint32_t n, uint64_t *address)
{
	for (; n; n--, it++) {
		p = varint_put(p, it->tag);
		if ((it->tag & 3) == TRACE_FRAME_NATIVE) {
			const struct module *m = module_by_id(it->tag >> 3);
			uint64_t at = it->value - (m ? m->bias : 0);

			p = varint_put_signed(p, (int64_t)(at - *address));
			*address = at;
		} else if ((it->tag & 3) == TRACE_FRAME_PYTHON) {
			p = varint_put(p, it->value);
		}
	}
	return p;
}

static bool define_modules(const struct item *it, uint32_t n)
{
	for (; n; n--, it++)
		if ((it->tag & 3) == TRACE_FRAME_NATIVE && it->tag >> 3 &&
		    !module_define(it->tag >> 3))
			return false;
	return true;
}

/* Makes room in the body for the definition of a stack. */
static bool reserve_body(struct walker *w, uint32_t frames)
{
	size_t room = (size_t)(frames + 4) * 2 * VARINT_BYTES_MAX;

	if (room <= w->body_room)
		return true;
	room = (room + 4095) & ~(size_t)4095;
	if (!sys_pages_replace((void **)&w->body, w->body_room, 0, room))
		return false;
	w->body_room = room;
	w->unwind.grown = true;
	return true;
}

/* Writes the definition of a stack of n items that shares its first `keep` with the last stack.
 * `cut`: how many frames the middle leaves out. */
static bool define_stack(struct walker *w, uint32_t id, uint32_t keep, uint32_t n, uint64_t cut)
{
	uint32_t head = cut ? STACK_HALF : n, tail = cut ? n - STACK_HALF : n;
	uint32_t m = head - keep + (cut ? 1 + STACK_HALF : 0);
	uint64_t address;
	uint8_t *p;

	if (!reserve_body(w, m))
		return false;
	if (!define_modules(w->items + keep, head - keep) ||
	    !define_modules(w->items + tail, n - tail))
		return false;
	address = 0;
	p = varint_put(w->body, id);
	p = varint_put(p, keep ? w->last_id : 0);
	p = varint_put(p, keep);
	p = varint_put(p, m);
	p = encode_frames(p, w->items + keep, head - keep, &address);
	if (cut) {
		p = varint_put(p, cut << 2 | TRACE_FRAME_CUT);
		p = encode_frames(p, w->items + tail, n - tail, &address);
	}
	return definitions_write(TRACE_DEF_STACK, w->body, (size_t)(p - w->body));
}

static inline uint32_t next_slot(const struct walker *w)
{
	return w->last_id * UINT32_C(2654435761) >> 22;
}

static inline uint32_t found(struct walker *w, uint32_t place, struct stack_hash h, uint64_t value)
{
	if (value) {
		w->next_cache[place].a = h.a;
		w->next_cache[place].value = value;
	}
	return (uint32_t)value;
}

/*
 * Returns the id of a stack after one that was new, as this one then often is, too; 0: it has none.
 * First remembers the one before it: its place in the table, which was asked for at that time, has
 * arrived.
 */
static __attribute__((noinline)) uint32_t find_after_new(struct walker *w, struct stack_hash h)
{
	/* where checkpoints replace old chunks, but never definitions, none is written twice */
	stack_ids_put(w->newest, w->newest_id, !trace_file_expects_checkpoints());
	w->newest_id = 0;
	return found(w, next_slot(w), h, stack_ids_find(&h, true));
}

/* Returns the id of a stack; 0: it has none yet. */
static inline uint32_t ids_find(struct walker *w, struct stack_hash *h)
{
	uint32_t place = next_slot(w);

	h->a += !h->a;
	if (w->next_cache[place].a == h->a && w->next_cache[place].value >> 32 == h->b >> 32)
		return (uint32_t)w->next_cache[place].value;
	if (__builtin_expect(w->newest_id, 0))
		return find_after_new(w, *h);
	return found(w, place, *h, stack_ids_find(h, false));
}

static inline void remember_later(struct walker *w, struct stack_hash h, uint32_t id)
{
	stack_ids_prefetch(h);
	w->newest = h;
	w->newest_id = id;
}

/* Gives w->items a new id and defines it. `same` and `cut` as in intern() and define_stack(). */
static uint32_t intern_new(
    struct walker *w, uint32_t n, uint32_t same, uint64_t cut, struct stack_hash h)
{
	uint32_t keep = w->last_id ? same : 0, id;

	if (keep > w->last_keep)
		keep = w->last_keep;
	if (cut && keep > STACK_HALF)
		keep = STACK_HALF;
	if (!stack_ids_ready())
		return 0;
	if (w->merge == MERGE_NATIVE && !fill_native_items(w, keep))
		return 0;
	id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	if (!id || !define_stack(w, id, keep, n, cut))
		return 0;
	remember_later(w, h, id);
	return id;
}

/* Copies the most telling of n items to w->brief, with a mark for each gap. Returns their number.
 */
static uint32_t choose_brief(struct walker *w, uint32_t n, const struct brief *of)
{
	uint32_t chosen[BRIEF_MAX / 2], count = 0, python = 0, i = n;
	uint32_t out, next;

	while (i && count < of->inner)
		chosen[count++] = --i;
	for (; i > of->outer && python < of->python; i--)
		if ((w->items[i - 1].tag & 3) == TRACE_FRAME_PYTHON) {
			chosen[count++] = i - 1;
			python++;
		}
	for (i = i < of->outer ? i : of->outer; i; i--)
		chosen[count++] = i - 1;
	out = 0;
	next = 0;
	while (count--) {
		if (chosen[count] != next)
			w->brief[out++] = (struct item){.tag = TRACE_FRAME_CUT};
		w->brief[out++] = w->items[chosen[count]];
		next = chosen[count] + 1;
	}
	return out;
}

/* Defines the n items of w->brief. */
static uint32_t define_brief(struct walker *w, uint32_t n, struct stack_hash h)
{
	uint64_t address;
	uint32_t id;
	uint8_t *p;

	if (!reserve_body(w, n) || !define_modules(w->brief, n))
		return 0;
	address = 0;
	id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	p = varint_put(w->body, id);
	p = varint_put(p, 0);
	p = varint_put(p, 0);
	p = varint_put(p, n);
	p = encode_frames(p, w->brief, n, &address);
	if (!id || !definitions_write(TRACE_DEF_STACK, w->body, (size_t)(p - w->body)))
		return 0;
	definitions_count_brief();
	remember_later(w, h, id);
	return id;
}

/* Returns the id of the abbreviated stack, which other stacks may share. For stacks without an id,
 * once definitions have used their share of the budget. */
static uint32_t intern_brief(struct walker *w, uint32_t n, enum definitions_room room)
{
	if (w->merge == MERGE_NATIVE && !fill_native_items(w, 0))
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t count = choose_brief(w, n, &briefs[i]);
		struct stack_hash h = STACK_HASH_ROOT;
		uint32_t id;

		for (uint32_t k = 0; k < count; k++)
			h = stack_hash_next(h, w->brief[k].value, stack_hash_tag(w->brief[k].tag));
		id = ids_find(w, &h);
		if (!id && room == (i ? DEFINITIONS_BRIEFEST : DEFINITIONS_BRIEF))
			return define_brief(w, count, h);
		if (id)
			return id;
	}
	definitions_count_untold();
	return 0;
}

/* Returns the id of a stack of n items that shares its first `same` with the last stack. */
static uint32_t intern(struct walker *w, uint32_t n, uint32_t same, struct stack_hash h)
{
	uint64_t cut = 0;
	uint32_t id, keep;

	if (!n)
		return 0;
	if (__builtin_expect(n > 2 * STACK_HALF, 0)) {
		if (w->merge == MERGE_NATIVE && !fill_native_items(w, STACK_HALF - 1))
			return 0;
		cut = (uint64_t)n - 2 * STACK_HALF + w->unwind.left_out;
		h = w->items[STACK_HALF - 1].hash;
		h = stack_hash_next(h, cut, stack_hash_tag(TRACE_FRAME_CUT));
		for (uint32_t i = n - STACK_HALF; i < n; i++)
			h = stack_hash_next(h, w->items[i].value, stack_hash_tag(w->items[i].tag));
	}
	id = ids_find(w, &h);
	keep = cut ? STACK_HALF : UINT32_MAX;
	if (__builtin_expect(!id, 0)) {
		enum definitions_room room = definitions_room(); /* AMPLE is 0 */

		id = room ? intern_brief(w, n, room) : intern_new(w, n, same, cut, h);
		keep = room ? 0 : keep;
	}
	if (id)
		w->last_keep = keep;
	return id;
}

/* --- the interface --- */

/* Without an interpreter the native frames are the list; they carry their hashes. */
static inline uint32_t capture_native(struct walker *w, uint32_t kept)
{
	const struct unwind *u = &w->unwind;
	uint32_t same = kept && w->merge == MERGE_NATIVE ? unwind_listed(u, kept - 1) : 0;
	uint32_t inner;

	w->merge = MERGE_NATIVE;
	w->count = 0;
	if (!u->count)
		return w->last_id = 0;
	inner = u->count - 1;
	return w->last_id = intern(w, unwind_listed(u, inner), same, u->frames[inner].hash);
}

static __attribute__((noinline)) uint32_t capture_merged(
    struct walker *w, const struct python_view *view, uint32_t kept)
{
	struct list list = {.w = w, .old = w->count};
	uint32_t old = w->count;
	bool built = build_list(&list, view, kept);

	if (!built) {
		w->count = 0;
		w->last_id = 0;
		w->unwind.count = 0;
		return 0;
	}
	w->count = list.n;
	if (list.same < list.n || list.n != old || !w->last_id)
		w->last_id = intern(
		    w, list.n, list.same, list.n ? w->items[list.n - 1].hash : STACK_HASH_ROOT);
	return w->last_id;
}

/* No turn of the interpreter's, which counts from 0. */
#define TURN_UNSEEN UINT32_MAX

static inline void task_update(struct stack_task *task, const struct python_view *view)
{
	if (__builtin_expect(view->task->turn == task->seen, 1))
		return;
	task->seen = view->task->turn;
	task->key = view->task->key;
	task->turn++;
}

static inline void task_clear(struct stack_task *task)
{
	if (__builtin_expect(!task->key, 1))
		return;
	task->seen = TURN_UNSEEN;
	task->key = 0;
	task->turn++;
}

uint32_t stack_capture(
    struct walker **walker, const struct stack_start *start, bool python, struct stack_task *task)
{
	struct walker *w = *walker;
	uint32_t id, kept, before;
	struct python_view view;
	bool with;

	if (__builtin_expect(!w, 0)) {
		w = *walker = walker_new();
		if (!w)
			return 0;
	}
	before = w->unwind.count;
	/* the end of the capture needs it */
	__builtin_prefetch(&w->next_cache[next_slot(w)]);
	if (__builtin_expect(!unwind_walk_quick(&w->unwind, start, &kept), 0)) {
		w->unwind.count = 0;
		w->count = 0;
		w->last_id = 0;
		return 0;
	}
	with = python && python_active() && python_walk_now(&w->python, &view) && view.run_count;
	if (with)
		task_update(task, &view);
	else if (python)
		task_clear(task);
	if (with)
		id = capture_merged(w, &view, kept);
	else if (kept == before && kept == w->unwind.count && w->merge == MERGE_NATIVE &&
		 w->last_id)
		id = w->last_id;
	else
		id = capture_native(w, kept);
	if (__builtin_expect(w->unwind.grown, 0))
		update_walker_bytes(w);
	return id;
}

bool stack_interrupted(const struct walker *w)
{
	const struct unwind *u = w ? &w->unwind : NULL;

	if (!u || !u->count || u->left_out)
		return true;
	for (uint32_t i = 0; i < u->count; i++)
		if (u->frames[i].tag & FRAME_EXACT || (u->frames[i].tag & 3) != TRACE_FRAME_NATIVE)
			return true;
	return false;
}

int stack_init(void)
{
	int rc = modules_init();

	if (!rc)
		rc = cfi_cache_init();
	return rc ? rc : stack_ids_init();
}

void stack_code_at(uintptr_t pc, uintptr_t function[2], uintptr_t module[2])
{
	const struct module *m = module_find(pc);
	struct cfi_entry entry;

	if (!m)
		return;
	module[0] = m->start;
	module[1] = m->end;
	if (cfi_find(m, pc, &entry) == CFI_OK) {
		function[0] = entry.lo;
		function[1] = entry.hi;
	}
}

void stack_memory_unmapped(void)
{
	readable_forget();
}

void stack_fork_child(struct walker *own)
{
	stack_ids_fork_child();
	atomic_store(&next_id, 1);
	modules_fork_child();
	cfi_cache_fork_child();
	if (!own)
		return;
	own->last_id = own->newest_id = 0;
	memset(own->next_cache, 0, sizeof(own->next_cache));
	/* items of Python frames hold code ids, which are void in the child */
	own->merge = MERGE_NATIVE;
	own->count = 0;
	own->unwind.count = 0;
	if (own->python)
		python_fork_child(own->python);
}

void stack_thread_end(struct walker **walker)
{
	struct walker *w = *walker;

	*walker = NULL;
	if (!w)
		return;
	python_thread_end(&w->python);
	unwind_free(&w->unwind);
	sys_pages_free(w->items, w->room * sizeof(*w->items));
	sys_pages_free(w->positions, w->positions_room * sizeof(*w->positions));
	sys_pages_free(w->body, w->body_room);
	atomic_fetch_sub(&walker_bytes, w->accounted);
	sys_pages_free(w, sizeof(*w));
}

uint64_t stack_own_bytes(void)
{
	return atomic_load(&walker_bytes) + cfi_cache_bytes() + modules_bytes() + stack_ids_bytes();
}
