/*
 * python.c - see python.h. Keeps the frames between calls, so that an unchanged frame costs only a
 * comparison. docs/python-frames.md describes the layouts and rules.
 *
 * A walk follows the interpreter's links outwards. From the first frame that it knows it compares
 * link by link with the last walk, to the end: an address alone proves nothing, as the interpreter
 * reuses frames.
 *
 * Must not: take the GIL, call the interpreter except for read-only accessors, walk while memory is
 * released (a frame may be half torn down), use more than a little of the stack.
 */
#include "python/python.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"
#include "levels/levels_python.h"
#include "loaded/symbols.h"
#include "python/python_abi.h"
#include "python/python_code.h"
#include "python/python_task.h"
#include "trace/definitions.h"

#define FIRST_FRAMES 128u
#define MAP_SLOTS 1024u /* a power of two */
#define NO_LASTI INT32_MIN
/* special ids */
#define NO_ID UINT32_MAX /* to be looked up */
#define BOUNDARY_ID (UINT32_MAX - 1) /* between two evaluations, no Python code */

/* A frame of the chain, as every call compares it. `code` is the raw field; in 3.11 bit 0 is set
 * for the first frame of an evaluation. */
struct link {
	uintptr_t frame, code, instr;
};

/* What follows from a link. */
struct info {
	uint32_t id;
	int32_t lasti;
	uint32_t frames, runs; /* of the view, up to and including this one */
};

struct python_walk {
	struct link *links; /* outermost first; links[-1].frame is 0, the end of the chain */
	struct info *infos;
	uint32_t count, room;
	struct link *fresh; /* new in this walk, innermost first */
	struct info *fresh_infos;
	struct python_frame *frames;
	struct python_run *runs;
	uint32_t frame_count, run_count;
	uint32_t deaths; /* python_code_deaths when the ids were looked up */
	bool cut;
	struct python_task task;
	struct python_scratch scratch;
	size_t bytes; /* of this struct's pages */
	void *buffers; /* one mapping for all arrays */
	size_t buffer_bytes;
	uint32_t map[MAP_SLOTS]; /* hash of a frame's address -> its index, unless stale */
};

static struct {
	struct python_abi abi;
	const void *runtime;
	void *(*gilstate)(void);
	void *(*unchecked)(void);
	int (*finalizing)(void);
	uintptr_t eval, eval_end;
	_Atomic uint32_t found; /* 0: not yet, 1: a thread is setting it up, 2: done */
	const char *refused;
	char facts[160];
} python;

_Atomic bool python_active_;

static inline uintptr_t load(uintptr_t p, unsigned offset)
{
	uintptr_t v;

	memcpy(&v, (const void *)(p + offset), sizeof v);
	return v;
}

static inline uint32_t load32(uintptr_t p, unsigned offset)
{
	uint32_t v;

	memcpy(&v, (const void *)(p + offset), sizeof v);
	return v;
}

static inline bool plausible(uintptr_t p)
{
	return !(p & 7) && p > 65536 && p < (uintptr_t)1 << 48;
}

/* ---- the own thread state ---- */

/*
 * Up to 3.11 the accessor returns a thread's first state even while it runs a sub-interpreter.
 * Returns the state that holds the GIL if this thread created it. That state may be freed
 * meanwhile, hence process_vm_readv().
 */
static uintptr_t sub_interpreter_state(uintptr_t own, uintptr_t holder)
{
	uintptr_t head = load((uintptr_t)python.runtime, python.abi.interpreters), thread = 0;
	struct iovec to, from;
	long pid;

	if (!holder || !plausible(head) || !load(head, 0))
		return own;
	to = (struct iovec){&thread, sizeof thread};
	from = (struct iovec){(void *)(holder + python.abi.thread_id), sizeof thread};
	pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	if (sys_call(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1, 0) != sizeof thread)
		return own;
	return thread == load(own, python.abi.thread_id) ? holder : own;
}

/* Returns this thread's state; 0: it runs no Python now. */
static inline uintptr_t own_state(void)
{
	uintptr_t own, holder;

	if (python.abi.kind == PYTHON_SHIMS) {
		/* thread-local: the attached state, NULL without the GIL */
		own = (uintptr_t)python.unchecked();
		if (own)
			return own;
		/* while finalising another thread may be freeing states */
		return python.finalizing() ? 0 : (uintptr_t)python.gilstate();
	}
	own = (uintptr_t)python.gilstate();
	holder = (uintptr_t)python.unchecked(); /* of the whole process */
	if (!own || own == holder)
		return own;
	if (python.finalizing())
		return 0;
	return sub_interpreter_state(own, holder);
}

/* ---- memory ---- */

/* Copies an array to *next, which advances by `bytes`. */
static void *move_array(uint8_t **next, size_t bytes, const void *old, size_t old_bytes)
{
	void *p = *next;

	if (old_bytes)
		memcpy(p, old, old_bytes);
	*next += bytes;
	return p;
}

static bool reserve_frames(struct python_walk *w, uint32_t wanted)
{
	uint32_t room = w->room ? w->room : FIRST_FRAMES;
	void *old;
	size_t links, infos, frames, runs, bytes;
	uint32_t kept;
	uint8_t *p;

	while (room < wanted)
		room *= 2;
	links = room * sizeof(struct link);
	infos = room * sizeof(struct info);
	frames = room * sizeof(struct python_frame);
	runs = room * sizeof(struct python_run);
	bytes = sizeof(struct link) + 2 * links + 2 * infos + frames + runs;
	p = sys_pages(bytes);
	if (!p)
		return false;
	old = w->buffers;
	kept = old ? w->room : 0;
	w->buffers = p;
	p += sizeof(struct link);
	w->links = move_array(&p, links, w->links, kept * sizeof(struct link));
	w->fresh = move_array(&p, links, w->fresh, kept * sizeof(struct link));
	w->runs = move_array(&p, runs, w->runs, w->run_count * sizeof(struct python_run));
	w->frames = move_array(&p, frames, w->frames, w->frame_count * sizeof(struct python_frame));
	w->infos = move_array(&p, infos, w->infos, kept * sizeof(struct info));
	w->fresh_infos = move_array(&p, infos, w->fresh_infos, kept * sizeof(struct info));
	w->room = room;
	if (old)
		sys_pages_free(old, w->buffer_bytes);
	w->buffer_bytes = bytes;
	return true;
}

static struct python_walk *walk_new(void)
{
	struct python_walk *w = sys_pages(sizeof *w);

	if (!w)
		return NULL;
	w->bytes = sizeof *w;
	if (!reserve_frames(w, FIRST_FRAMES)) {
		sys_pages_free(w, w->bytes);
		return NULL;
	}
	return w;
}

/* ---- following the chain ---- */

static inline uint32_t map_slot(uintptr_t frame)
{
	return (uint32_t)((frame >> 3) * 0x9e3779b97f4a7c15ull >> 54) & (MAP_SLOTS - 1);
}

/* Local copies of offsets, as the compiler would load globals again after each store. */
struct layout {
	uint16_t previous, code, instr, owner;
};

static inline struct layout layout_now(void)
{
	return (struct layout){python.abi.frame_previous, python.abi.frame_code,
	    python.abi.frame_instr, python.abi.frame_owner};
}

static inline uintptr_t code_of(uintptr_t frame, struct layout l, enum python_kind kind)
{
	uintptr_t code = load(frame, l.code);

	if (kind == PYTHON_ENTRIES)
		code |= *(const uint8_t *)(frame + l.owner) != 0;
	return code;
}

static inline uintptr_t instr_of(uintptr_t frame, struct layout l, enum python_kind kind)
{
	return kind == PYTHON_OBJECTS ? load32(frame, l.instr) : load(frame, l.instr);
}

/* Strips the tags that 3.14 and we keep in the low bits. */
static inline uintptr_t code_address(uintptr_t code)
{
	return code & ~(uintptr_t)7;
}

static inline bool is_boundary(uintptr_t frame, struct layout l, enum python_kind kind)
{
	return kind == PYTHON_SHIMS && *(const uint8_t *)(frame + l.owner) >= PYTHON_OWNER_BOUNDARY;
}

/* Reads a known frame again; lowers *same if the view changes. */
static inline void refresh_frame(
    struct python_walk *w, uint32_t i, struct layout l, uint32_t *same, enum python_kind kind)
{
	struct link *link = &w->links[i];
	struct info *info = &w->infos[i];
	uintptr_t before = link->code;
	bool was = info->id == BOUNDARY_ID, is = is_boundary(link->frame, l, kind);

	link->code = code_of(link->frame, l, kind);
	link->instr = instr_of(link->frame, l, kind);
	if (was && is)
		return; /* the fields of a boundary frame mean nothing */
	if (was || is || before != link->code)
		info->id = is ? BOUNDARY_ID : NO_ID;
	info->lasti = NO_LASTI;
	*same = i;
}

/*
 * Compares links[*at] and all outer links with the interpreter's frames, and lowers *same to the
 * outermost one that changed. True: they are the rest of the chain. False: the chain follows them
 * up to links[*at] and then goes on with frame *next.
 */
static inline __attribute__((always_inline)) bool compare_known(
    struct python_walk *w, uint32_t *at, uint32_t *same, uintptr_t *next, enum python_kind kind)
{
	const struct layout l = layout_now();
	const struct link *links = w->links;

	for (uint32_t i = *at;; i--) {
		const struct link *k = &links[i];
		uintptr_t outer = load(k->frame, l.previous), code = code_of(k->frame, l, kind);
		uintptr_t instr = instr_of(k->frame, l, kind);

		if (__builtin_expect(
			((code ^ k->code) | (instr ^ k->instr) | (outer ^ k[-1].frame)) != 0, 0)) {
			if (code != k->code || instr != k->instr)
				refresh_frame(w, i, l, same, kind);
			if (outer != k[-1].frame) {
				*at = i;
				*next = outer;
				return false;
			}
		}
		if (i == 0)
			return true;
	}
}

/* Brings links up to date; *same: how many outermost ones did not change. False: there are no
 * frames, or no memory. */
static inline __attribute__((always_inline)) bool follow_chain(
    struct python_walk *w, uintptr_t innermost, uint32_t *same, enum python_kind kind)
{
	const struct layout l = layout_now();
	uint32_t limit = w->count, fresh = 0, keep = 0;
	uintptr_t frame = innermost;

	*same = w->count;
	w->cut = false;
	while (frame) {
		uint32_t at = limit && frame == w->links[limit - 1].frame ? limit - 1
									  : w->map[map_slot(frame)];

		if (at < limit && w->links[at].frame == frame) {
			uint32_t top = at;
			uint32_t n;

			if (compare_known(w, &at, same, &frame, kind)) {
				keep = top + 1;
				break;
			}
			/* links[at..top] belong to the chain, the outer ones do not */
			n = top - at + 1;
			if (fresh + n > w->room && !reserve_frames(w, fresh + n))
				goto no_memory;
			for (uint32_t i = top + 1; i-- > at; fresh++) {
				w->fresh[fresh] = w->links[i];
				w->fresh_infos[fresh] = w->infos[i];
			}
			limit = at;
			continue;
		}
		if (!plausible(frame))
			goto no_memory; /* not a frame */
		if (fresh >= PYTHON_FRAMES_MAX) {
			w->cut = true;
			break;
		}
		if (fresh + 1 > w->room && !reserve_frames(w, fresh + 1))
			goto no_memory;
		w->fresh[fresh] =
		    (struct link){frame, code_of(frame, l, kind), instr_of(frame, l, kind)};
		w->fresh_infos[fresh++] = (struct info){
		    .id = is_boundary(frame, l, kind) ? BOUNDARY_ID : NO_ID, .lasti = NO_LASTI};
		frame = load(frame, l.previous);
	}
	if (keep + fresh == 0)
		return false;
	if (keep + fresh > w->room && !reserve_frames(w, keep + fresh))
		goto no_memory;
	if (*same > keep)
		*same = keep;
	for (uint32_t i = keep, k = fresh; k-- > 0; i++) {
		w->links[i] = w->fresh[k];
		w->infos[i] = w->fresh_infos[k];
		w->map[map_slot(w->links[i].frame)] = i;
	}
	w->count = keep + fresh;
	return true;

no_memory:
	w->count = w->frame_count = w->run_count = 0;
	return false;
}

/* ---- the view ---- */

static int32_t lasti_of(uintptr_t code, uintptr_t instr)
{
	const struct python_abi *abi = &python.abi;
	intptr_t i;

	if (abi->kind == PYTHON_OBJECTS) {
		int32_t at = (int32_t)(uint32_t)instr;

		return at < 0 ? -1 : abi->minor == 10 ? at * 2 : at;
	}
	i = (intptr_t)(instr - (code + abi->code_instructions));
	if (i < 0 || i > INT32_MAX / 2)
		return -1;
	/* setting up cells and free variables precedes the first line */
	return i < 2 * (intptr_t)(int32_t)load32(code, abi->code_firsttraceable) ? -1 : (int32_t)i;
}

static inline bool starts_run(const struct python_walk *w, uint32_t i, enum python_kind kind)
{
	if (kind == PYTHON_OBJECTS || i == 0)
		return true;
	return kind == PYTHON_ENTRIES ? (w->links[i].code & 1) : w->infos[i - 1].id == BOUNDARY_ID;
}

/* Makes the frames and runs of links[from..] anew. */
static inline __attribute__((always_inline)) void rebuild_view(
    struct python_walk *w, uint32_t from, enum python_kind kind)
{
	uint32_t frames = from ? w->infos[from - 1].frames : 0;
	uint32_t runs = from ? w->infos[from - 1].runs : 0;

	if (runs)
		w->runs[runs - 1].count = frames - w->runs[runs - 1].first;
	for (uint32_t i = from; i < w->count; i++) {
		const struct link *link = &w->links[i];
		struct info *info = &w->infos[i];

		if (info->id != BOUNDARY_ID) {
			uintptr_t code = code_address(link->code);

			if (info->id == NO_ID)
				info->id = python_code_id(code, &w->scratch);
			if (info->lasti == NO_LASTI)
				info->lasti = info->id ? lasti_of(code, link->instr) : -1;
			if (starts_run(w, i, kind)) {
				bool anchored = kind == PYTHON_SHIMS && i;

				w->runs[runs++] = (struct python_run){
				    .anchor = anchored ? link[-1].frame : 0, .first = frames};
			}
			w->frames[frames++] = (struct python_frame){info->id, info->lasti};
			w->runs[runs - 1].count = frames - w->runs[runs - 1].first;
		}
		info->frames = frames;
		info->runs = runs;
	}
	w->frame_count = frames;
	w->run_count = runs;
}

/* Takes the anchors from the list of records that 3.10 and 3.11 keep on the C stack, one for each
 * evaluation, innermost first; the last lies in the thread state. Returns how many outermost runs
 * keep their anchors. */
static uint32_t set_anchors(struct python_walk *w, uintptr_t state)
{
	const unsigned previous = python.abi.cframe_previous;
	uintptr_t record = load(state, python.abi.thread_cframe);
	struct python_run *runs = w->runs;
	uint32_t same = w->run_count;

	for (uint32_t r = w->run_count; r-- > 0;) {
		uintptr_t outer;

		if (__builtin_expect(record && record == runs[r].anchor, 1)) {
			record = load(record, previous);
			continue;
		}
		outer = plausible(record) ? load(record, previous) : 0;
		runs[r].anchor = plausible(outer) ? record : 0;
		same = r;
		record = runs[r].anchor ? outer : 0;
	}
	return same;
}

/* Looks the ids up again after a code object was freed: an address may be another object's now. */
static void check_ids(struct python_walk *w, uint32_t *same)
{
	for (uint32_t i = w->count; i-- > 0;) {
		struct info *info = &w->infos[i];
		uint32_t id;

		if (info->id == BOUNDARY_ID || info->id == NO_ID)
			continue;
		id = python_code_id(code_address(w->links[i].code), &w->scratch);
		if (id == info->id)
			continue;
		info->id = id;
		info->lasti = NO_LASTI;
		if (*same > i)
			*same = i;
	}
}

/* Updates the task that the thread runs. */
static inline __attribute__((always_inline)) void update_task(
    struct python_walk *w, uintptr_t state)
{
	uint32_t now = atomic_load_explicit(&python_task_state, memory_order_relaxed);
	uintptr_t root = 0;

	if (__builtin_expect(now & PYTHON_TASK_GREEN, 0))
		root = w->cut ? w->task.root
			      : w->links[w->count > 1 && w->infos[0].id == BOUNDARY_ID].frame;
	python_task_now(&w->task, load(state, python.abi.thread_context), root, now);
}

static inline __attribute__((always_inline)) bool update_walk(struct python_walk *w,
    uintptr_t state, uintptr_t innermost, struct python_view *view, enum python_kind kind)
{
	uint32_t old_count = w->count, old_runs = w->run_count, same;
	uint32_t deaths = atomic_load_explicit(&python_code_deaths, memory_order_acquire);

	if (!follow_chain(w, innermost, &same, kind))
		return false;
	if (__builtin_expect(deaths != w->deaths || !python_code_watched(), 0)) {
		check_ids(w, &same);
		w->deaths = deaths;
	}
	view->same_runs = w->run_count;
	view->same = w->frame_count;
	if (same < w->count || w->count != old_count) {
		uint32_t runs = same ? w->infos[same - 1].runs : 0;
		uint32_t end;

		view->same = same ? w->infos[same - 1].frames : 0;
		/* the run around the first change is a different one, unless it ends there */
		end = runs ? w->runs[runs - 1].first + w->runs[runs - 1].count : 0;
		rebuild_view(w, same, kind);
		if (runs &&
		    (end > view->same || w->runs[runs - 1].first + w->runs[runs - 1].count != end))
			runs--;
		view->same_runs = runs;
	}
	if (python.abi.thread_cframe && kind != PYTHON_SHIMS) {
		uint32_t anchored = set_anchors(w, state);

		if (view->same_runs > anchored)
			view->same_runs = anchored;
	}
	if (view->same_runs > old_runs)
		view->same_runs = old_runs;
	view->frames = w->frames;
	view->count = w->frame_count;
	view->runs = w->runs;
	view->run_count = w->run_count;
	view->cut = w->cut;
	update_task(w, state);
	view->task = &w->task;
	return view->count != 0;
}

static bool __attribute__((noinline))
walk_objects(struct python_walk *w, uintptr_t state, struct python_view *view)
{
	return update_walk(w, state, load(state, python.abi.thread_frame), view, PYTHON_OBJECTS);
}

static bool __attribute__((noinline))
walk_entries(struct python_walk *w, uintptr_t state, struct python_view *view)
{
	uintptr_t record = load(state, python.abi.thread_cframe);

	if (!plausible(record))
		return false;
	return update_walk(w, state, load(record, python.abi.cframe_current), view, PYTHON_ENTRIES);
}

static bool __attribute__((noinline))
walk_shims(struct python_walk *w, uintptr_t state, struct python_view *view)
{
	uintptr_t innermost;

	if (python.abi.thread_cframe) {
		uintptr_t record = load(state, python.abi.thread_cframe);

		if (!plausible(record))
			return false;
		innermost = load(record, python.abi.cframe_current);
	} else {
		innermost = load(state, python.abi.thread_frame);
	}
	return update_walk(w, state, innermost, view, PYTHON_SHIMS);
}

bool python_walk_now(struct python_walk **walk, struct python_view *view)
{
	struct python_walk *w;
	uintptr_t state;

	if (!atomic_load_explicit(&python_active_, memory_order_acquire))
		return false;
	state = own_state();
	if (!plausible(state))
		return false;
	w = *walk;
	if (!w) {
		w = *walk = walk_new();
		if (!w)
			return false;
	}
	switch (python.abi.kind) {
	case PYTHON_OBJECTS:
		return walk_objects(w, state, view);
	case PYTHON_ENTRIES:
		return walk_entries(w, state, view);
	case PYTHON_SHIMS:
		return walk_shims(w, state, view);
	}
	return false;
}

/* ---- finding the interpreter ---- */

static void find_symbols(struct python_symbols *s)
{
	s->runtime = symbols_find("_PyRuntime");
	if (!s->runtime)
		return;
	s->code_type = symbols_find("PyCode_Type");
	s->context_type = symbols_find("PyContext_Type");
	s->version = symbols_find("Py_Version");
	s->get_version = (const char *(*)(void))symbols_find("Py_GetVersion");
	s->gilstate = (void *(*)(void))symbols_find("PyGILState_GetThisThreadState");
	s->unchecked = (void *(*)(void))symbols_find("_PyThreadState_UncheckedGet");
	if (!s->unchecked)
		s->unchecked = (void *(*)(void))symbols_find("PyThreadState_GetUnchecked");
	s->finalizing = (int (*)(void))symbols_find("_Py_IsFinalizing");
	if (!s->finalizing)
		s->finalizing = (int (*)(void))symbols_find("Py_IsFinalizing");
	s->eval = symbols_find("_PyEval_EvalFrameDefault");
	s->debug = symbols_find("_Py_RefTotal") || symbols_find("_Py_GetRefTotal") ||
		   symbols_find("_Py_INCREF_IncRefTotal");
}

/* Formats "3.11.2", or "3.15.0: why frames are not recorded". */
static void format_facts(void)
{
	char *p = python.facts, *end = p + sizeof python.facts;
	uint32_t v = python.abi.version;

	if (v) {
		p = text_append_number(p, end, v >> 24);
		p = text_append(p, end, ".");
		p = text_append_number(p, end, v >> 16 & 255);
		p = text_append(p, end, ".");
		p = text_append_number(p, end, v >> 8 & 255);
	} else {
		p = text_append(p, end, "unknown version");
	}
	if (python.refused) {
		p = text_append(p, end, ": ");
		text_append(p, end, python.refused);
	}
}

void python_write_info(void)
{
	if (atomic_load_explicit(&python.found, memory_order_acquire) == 2)
		definitions_info("python", python.facts);
	if (python_active())
		python_task_write_info();
}

static _Atomic bool visit_pending; /* a visit found a sign of Python that is not handled yet */

bool python_visit(const struct dl_phdr_info *info)
{
	static const char *const signs[] = {"_PyRuntime", "PyInit__greenlet", "PyInit_greenlet"};
	const uint32_t hashes[] = {
	    symbols_hash(signs[0]), symbols_hash(signs[1]), symbols_hash(signs[2])};
	void *found[3] = {NULL, NULL, NULL};

	if (symbols_defined(info, signs, hashes, found, 3))
		atomic_store_explicit(&visit_pending, true, memory_order_release);
	return true;
}

void python_after_visit(const struct python_services *services)
{
	struct python_symbols symbols = {0};
	uintptr_t eval[2] = {0}, module[2] = {0};
	uint32_t not_yet = 0;
	bool off, force;

	if (!atomic_load_explicit(&visit_pending, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&visit_pending, false, memory_order_acq_rel))
		return;
	if (python_active())
		python_task_find_greenlet();
	if (atomic_load_explicit(&python.found, memory_order_acquire) || !options.stacks ||
	    !atomic_compare_exchange_strong(&python.found, &not_yet, 1))
		return;
	find_symbols(&symbols);
	if (!symbols.runtime) {
		atomic_store(&python.found, 0); /* may be loaded later */
		return;
	}
	off = options.python && !strcmp(options.python, "off");
	force = options.python && !strcmp(options.python, "force");
	python.refused = python_abi_detect(&symbols, force, &python.abi);
	if (!python.refused && off)
		python.refused = "switched off";
	format_facts();
	if (!python.refused) {
		python.runtime = symbols.runtime;
		python.gilstate = symbols.gilstate;
		python.unchecked = symbols.unchecked;
		python.finalizing = symbols.finalizing;
		if (symbols.eval)
			services->code_at((uintptr_t)symbols.eval, eval, module);
		python.eval = eval[0];
		python.eval_end = eval[1];
		if (module[1])
			levels_python_found(python.abi.minor, module[0], module[1]);
		python_code_init(&python.abi, symbols.code_type, options.python_watch);
		python_task_init(&python.abi, symbols.context_type,
		    options.python_watch ? services->task_ended : NULL);
	}
	atomic_store(&python_active_, !python.refused);
	atomic_store_explicit(&python.found, 2, memory_order_release);
	python_write_info();
	if (python.refused && !off) {
		char line[240], *end = line + sizeof line;

		text_append(
		    text_append(text_append(line, end, "no Python frames: "), end, "Python "), end,
		    python.facts);
		sys_say(line);
	}
}

bool python_is_eval(uintptr_t pc)
{
	return pc - 1 >= python.eval && pc - 1 < python.eval_end;
}

/* ---- threads and processes ---- */

void python_fork_child(struct python_walk *own)
{
	uint32_t looking = 1;

	/* the thread that was setting it up is not in the child */
	if (atomic_compare_exchange_strong(&python.found, &looking, 0))
		atomic_store(&visit_pending, true);
	python_code_fork_child();
	if (own)
		own->count = own->frame_count = own->run_count = 0;
}

void python_thread_end(struct python_walk **walk)
{
	struct python_walk *w = *walk;

	*walk = NULL;
	if (!w)
		return;
	if (w->scratch.bytes)
		sys_pages_free(w->scratch.bytes, w->scratch.size);
	sys_pages_free(w->buffers, w->buffer_bytes);
	sys_pages_free(w, w->bytes);
}
