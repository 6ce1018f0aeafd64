/*
 * symbols.c - puts stacks into words: native frames by symbols and DWARF, Python frames by line
 * tables. The interpreter's own frames are left out where Python's frames stand for them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"
#include "trace/symbols/objfile.h"
#include "trace/symbols/pylines.h"
#include "trace/symbols/symcache.h"

/* The symbols of one frame, from symbols.items[first - 1] on; first is 0 until the lookup. */
struct frame_words {
	uint32_t first, count;
	/* The frame is the function that runs Python code; or that runs one instruction. */
	bool evaluates, instruction;
};

struct stack_words {
	size_t count;
	struct symbol symbols[];
};

/* A frame on a path, and the state before it. */
struct path_step {
	uint32_t node, count;
	uint32_t frame; /* the frame's number */
	uint32_t interpreter; /* module id; 0: none yet */
};

struct symbols {
	struct intern names;
	VEC(struct objfile *) files; /* by module id - 1; NULL: not opened yet */
	struct symcache_store *store; /* NULL: answers are not kept */
	VEC(struct pylines) lines; /* by code object's id - 1 */
	VEC(struct symbol) symbols;
	VEC(struct frame_words) frames; /* by the stacks' frame numbers */
	bool passing; /* words are used at once and not kept */
	bool folded;
	char text[400]; /* name of a nameless frame */
	struct map stacks; /* by stack id: a struct stack_words, which does not move */
	struct arena arena;
	struct stack_path path; /* the latest path that is kept */
};

void trace_symbols_fini(struct trace *t)
{
	struct symbols *s = t->symbols;

	if (!s)
		return;
	for (size_t i = 0; i < s->files.count; i++)
		objfile_close(s->files.items[i]);
	vec_free(&s->files);
	for (size_t i = 0; i < s->lines.count; i++)
		vec_free(&s->lines.items[i]);
	vec_free(&s->lines);
	intern_free(&s->names);
	vec_free(&s->symbols);
	vec_free(&s->frames);
	map_free(&s->stacks);
	trace_path_fini(&s->path);
	arena_free(&s->arena);
	symcache_store_close(s->store);
	free(s);
	t->symbols = NULL;
}

/* Make t->symbols, unless it is there, with room for all modules and code objects, which become
 * more while a running process is followed. False: no memory. */
static bool has_symbols(struct trace *t)
{
	struct symbols *s = t->symbols;

	if (!s) {
		s = t->symbols = calloc(1, sizeof(*s));
		if (!s)
			return false;
		map_seed();
		s->store = symcache_store_open();
	}
	return !vec_reach(&s->files, t->defs.modules.count) &&
	       !vec_reach(&s->lines, t->defs.codes.count);
}

static const char *keep(struct symbols *s, const char *text)
{
	uint32_t id;

	if (s->passing)
		return text;
	id = text ? intern_add(&s->names, text, strlen(text)) : 0;
	return intern_text(&s->names, id);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static struct objfile *file_of(struct trace *t, uint32_t module)
{
	struct symbols *s = t->symbols;

	if (!s->files.items[module - 1])
		s->files.items[module - 1] =
		    objfile_open(&t->defs.modules.items[module - 1], s->store);
	return s->files.items[module - 1];
}

static void push_native(struct trace *t, const struct frame *frame)
{
	struct symbols *s = t->symbols;
	uint64_t address = frame->address - (frame->exact || !frame->address ? 0 : 1);
	struct objfile_frame found[OBJFILE_FRAMES_MAX];
	const struct def_module *m = frame->module && frame->module <= t->defs.modules.count
					 ? &t->defs.modules.items[frame->module - 1]
					 : NULL;
	struct objfile *file = m ? file_of(t, frame->module) : NULL;
	size_t n = file ? objfile_lookup(file, address, found) : 0;

	for (size_t i = 0; i < n; i++) {
		struct symbol symbol = {
		    .module = m->path, .known = true, .inlined = found[i].inlined};

		symbol.function = keep(s, found[i].function);
		symbol.file = keep(s, found[i].file);
		symbol.line = symbol.file ? found[i].line : 0;
		if (symbol.function)
			(void)vec_push(&s->symbols, symbol);
		else
			n = i; /* nameless: named by its offset below */
	}
	if (n)
		return;
	struct symbol unknown = {.module = m ? m->path : NULL, .address = address};
	if (m)
		snprintf(s->text, sizeof(s->text), "%.300s+0x%llx", base_name(m->path),
		    (unsigned long long)address);
	else
		snprintf(s->text, sizeof(s->text), "0x%llx", (unsigned long long)address);
	unknown.function = keep(s, s->text);
	if (unknown.function)
		(void)vec_push(&s->symbols, unknown);
}

static void push_python(struct trace *t, const struct frame *frame)
{
	struct symbols *s = t->symbols;
	struct symbol symbol = {.python = true, .function = "<python>"};

	if (frame->module && frame->module <= t->defs.codes.count) {
		const struct def_code *code = &t->defs.codes.items[frame->module - 1];

		symbol.known = true;
		symbol.function = code->name;
		symbol.file = *code->file ? code->file : NULL;
		symbol.line =
		    pylines_line(code->version, code->first_line, code->lines, code->line_bytes,
			frame->address > INT64_MAX ? INT64_MAX : (int64_t)frame->address - 1,
			&s->lines.items[frame->module - 1]);
	}
	(void)vec_push(&s->symbols, symbol);
}

static void push_mark(struct trace *t, const struct frame *frame)
{
	struct symbols *s = t->symbols;
	struct symbol symbol = {.cut = frame->kind == FRAME_CUT};

	if (frame->kind == FRAME_CUT && !frame->module)
		snprintf(s->text, sizeof(s->text), "[frames left out]");
	else if (frame->kind == FRAME_CUT)
		snprintf(s->text, sizeof(s->text), "[%u frames left out]", frame->module);
	else if (frame->module == TRACE_FRAME_END_NO_CFI)
		snprintf(
		    s->text, sizeof(s->text), "[callers unknown: code without unwind information]");
	else
		snprintf(s->text, sizeof(s->text), "[callers unknown]");
	symbol.function = keep(s, s->text);
	if (symbol.function)
		(void)vec_push(&s->symbols, symbol);
}

/* For unknown names, believe the recorder. */
static void see_interpreter(const struct symbols *s, struct frame_words *w)
{
	const struct symbol *outer = w->count ? &s->symbols.items[w->first - 1] : NULL;

	w->instruction = outer && outer->known && strstr(outer->function, "_TAIL_CALL_");
	w->evaluates = !outer || !outer->known || w->instruction ||
		       strstr(outer->function, "PyEval_EvalFrame");
}

static struct frame_words push_words(struct trace *t, uint32_t number)
{
	struct symbols *s = t->symbols;
	uint32_t before = (uint32_t)s->symbols.count;
	const struct frame *frame = &t->defs.stacks.frames.items[number];
	struct frame_words words = {.first = before + 1};

	switch (frame->kind) {
	case FRAME_NATIVE:
		push_native(t, frame);
		break;
	case FRAME_PYTHON:
		push_python(t, frame);
		break;
	case FRAME_CUT:
	case FRAME_END:
		push_mark(t, frame);
		break;
	}
	words.count = (uint32_t)s->symbols.count - before;
	see_interpreter(s, &words);
	return words;
}

static const struct frame_words *find_words(struct trace *t, uint32_t number)
{
	struct symbols *s = t->symbols;
	struct frame_words *words;

	if (vec_reach(&s->frames, t->defs.stacks.frames.count))
		return NULL;
	words = &s->frames.items[number];
	if (words->first)
		return words;
	*words = push_words(t, number);
	for (uint32_t k = words->first - 1; k < s->symbols.count; k++)
		s->symbols.items[k].id = 2 * k + 1; /* plus 1 if it is the interpreter's */
	return words;
}

/* Return a frame's words; the first call looks them up. NULL: no memory. */
static inline const struct frame_words *words_of(struct trace *t, uint32_t number)
{
	const struct symbols *s = t->symbols;

	if (number < s->frames.count && s->frames.items[number].first)
		return &s->frames.items[number];
	return find_words(t, number);
}

/* Turn the path to the stack that ends at `at`. Returns how many outermost frames are unchanged. */
static size_t turn(const struct stacks *stacks, struct stack_path *path, struct stack_at at)
{
	const struct stack_run *run = &stacks->runs.items[at.run];
	size_t depth = stacks_depth(stacks, at), i = depth;

	for (; i > 0; i--) {
		if (i <= path->depth && path->steps.items[i - 1].node == at.node)
			break;
		path->steps.items[i - 1].node = at.node;
		path->steps.items[i - 1].frame = stacks_number(stacks, at);
		if (at.node != run->first) {
			at.node--;
		} else {
			at = stacks_run_parent(stacks, at.run);
			run = &stacks->runs.items[at.run];
		}
	}
	path->depth = depth;
	return i;
}

/* Put the words of the frame at `at` behind the first `*n`. */
static int put_words(struct trace *t, struct stack_path *path, size_t at, size_t *n)
{
	struct symbols *s = t->symbols;
	const struct stacks *stacks = &t->defs.stacks;
	const struct frame *frames = stacks->frames.items, *next = NULL;
	const struct frame *frame = &frames[path->steps.items[at].frame];
	const struct frame_words *w = words_of(t, path->steps.items[at].frame);
	bool native = frame->kind == FRAME_NATIVE;
	uint32_t interpreter = path->steps.items[at].interpreter;

	if (!w || vec_reserve(&path->words, *n + w->count))
		return -ENOMEM;
	if (at + 1 < path->depth)
		next = &frames[path->steps.items[at + 1].frame];
	if (native && next && next->kind == FRAME_PYTHON && w->evaluates) {
		path->steps.items[at + 1].interpreter = frame->module;
		return 0;
	}
	if (next)
		path->steps.items[at + 1].interpreter = interpreter;
	/* 3.14's interpreter runs each instruction in a function of its own, on top. */
	if (native && w->instruction && at &&
	    frames[path->steps.items[at - 1].frame].kind == FRAME_PYTHON)
		return 0;
	for (uint32_t k = 0; k < w->count; k++) {
		path->words.items[*n] = s->symbols.items[w->first - 1 + k];
		if (native && interpreter && frame->module == interpreter) {
			path->words.items[*n].interpreter = true;
			path->words.items[*n].id++;
		}
		++*n;
	}
	return 0;
}

int trace_path(struct trace *t, uint32_t stack, struct stack_path *path)
{
	const struct stacks *stacks = &t->defs.stacks;
	struct stack_at end = stacks_end(stacks, stack < stacks->ends.count ? stack : 0);
	size_t depth = stacks_depth(stacks, end), at, n = 0;

	path->count = path->same = 0;
	if (!has_symbols(t))
		return -ENOMEM;
	if (vec_reserve(&path->steps, depth))
		return -ENOMEM;
	at = turn(stacks, path, end);
	/* The frame behind it decides whether the last common frame is shown. */
	if (at)
		n = path->steps.items[--at].count;
	else if (depth)
		path->steps.items[0].interpreter = 0;
	path->same = n;
	for (; at < depth && (!path->most || n < path->most); at++) {
		path->steps.items[at].count = (uint32_t)n;
		if (put_words(t, path, at, &n)) {
			path->depth = path->same = 0;
			return -ENOMEM;
		}
	}
	path->depth = at;
	path->symbols = path->words.items;
	path->count = n;
	return 0;
}

/* Flags of a distinct frame. */
#define FOLD_MARKED 1u
#define FOLD_PLAIN 2u /* marked, and shown on each stack */
#define FOLD_INSTRUCTION 4u /* as in struct frame_words */

/* Marks of the distinct frames, and of the frames shown above each node. */
struct folding {
	const struct trace_fold *fold;
	uint16_t *marks, *above;
	uint8_t *seen; /* FOLD_* */
};

/* Mark a frame. Its words are not kept: for most frames nobody asks again. */
static void mark_frame(struct trace *t, struct folding *f, uint32_t number)
{
	const struct frame *frame = &t->defs.stacks.frames.items[number];
	struct symbols *s = t->symbols;
	size_t had = s->symbols.count;
	struct frame_words w;

	if (number < s->frames.count && s->frames.items[number].first) {
		w = s->frames.items[number];
	} else {
		s->passing = true;
		w = push_words(t, number);
		s->passing = false;
	}
	f->seen[number] = FOLD_MARKED |
			  (frame->kind != FRAME_NATIVE || !w.evaluates ? FOLD_PLAIN : 0) |
			  (w.instruction ? FOLD_INSTRUCTION : 0);
	if (w.count)
		f->marks[number] =
		    f->fold->mark(f->fold->arg, &s->symbols.items[w.first - 1], w.count);
	s->symbols.count = had;
}

static inline uint16_t joined(const struct folding *f, struct stack_at at, uint32_t number)
{
	uint16_t above = f->above[at.node];

	return f->marks[number] ? f->fold->join(above, f->marks[number]) : above;
}

/* Fold a node and all above it, as they are shown when `next` follows, or nothing. */
static void fold_to(
    struct trace *t, struct folding *f, struct stack_at at, const struct frame *next, uint16_t *out)
{
	const struct stacks *stacks = &t->defs.stacks;
	uint32_t number = stacks_number(stacks, at);
	struct stack_at parent;

	if (!f->seen[number])
		mark_frame(t, f, number);
	*out = f->above[at.node];
	/* Leave frames out as put_words() does. */
	if (!(f->seen[number] & FOLD_PLAIN)) {
		if (next && next->kind == FRAME_PYTHON)
			return;
		parent = stacks_parent(stacks, at);
		if (f->seen[number] & FOLD_INSTRUCTION && parent.node &&
		    stacks_frame(stacks, parent)->kind == FRAME_PYTHON)
			return;
	}
	*out = joined(f, at, number);
}

/* The same for a plain frame, as nearly all are; false: it is not plain. */
static inline bool fold_plain(
    const struct folding *f, const struct stacks *s, struct stack_at at, uint16_t *out)
{
	uint32_t number = stacks_number(s, at);

	if (!(f->seen[number] & FOLD_PLAIN))
		return false;
	*out = joined(f, at, number);
	return true;
}

/* Fold all nodes; a node comes after its parent. */
static void fold_nodes(struct trace *t, struct folding *f)
{
	const struct stacks *s = &t->defs.stacks;

	for (uint32_t run = 1; run < s->runs.count; run++) {
		struct stack_at at = stacks_run_parent(s, run);
		uint32_t end = stacks_run_end(s, run);

		for (uint32_t n = s->runs.items[run].first; n < end; n++) {
			if (at.node && !fold_plain(f, s, at, &f->above[n]))
				fold_to(t, f, at, stacks_frame(s, (struct stack_at){n, run}),
				    &f->above[n]);
			at = (struct stack_at){n, run};
		}
	}
}

bool trace_has_folded(const struct trace *t)
{
	return t->symbols && t->symbols->folded;
}

/* Unload a file with its answers on disk: the few later lookups read it again. */
static void leave_file(struct symbols *s, size_t module)
{
	if (!s->files.items[module] || !objfile_is_kept(s->files.items[module]))
		return;
	objfile_close(s->files.items[module]);
	s->files.items[module] = NULL;
}

/* Mark the native frames file by file, so that only one file is loaded at a time. */
static int mark_by_file(struct trace *t, struct folding *f)
{
	const struct frame *frames = t->defs.stacks.frames.items;
	size_t modules = t->defs.modules.count, count = t->defs.stacks.frames.count;
	uint32_t *first = calloc(modules + 1, sizeof(*first)); /* first frame of each file */
	uint32_t *next = calloc(count + 1, sizeof(*next)); /* next frame of the same file */

	if (!first || !next) {
		free(first);
		free(next);
		return -ENOMEM;
	}
	for (uint32_t i = (uint32_t)count; i-- > 1;) {
		uint32_t module = frames[i].kind == FRAME_NATIVE ? frames[i].module : 0;

		if (!module || module > modules)
			continue;
		next[i] = first[module];
		first[module] = i;
	}
	for (size_t m = 1; m <= modules; m++) {
		for (uint32_t i = first[m]; i; i = next[i])
			mark_frame(t, f, i);
		leave_file(t->symbols, m - 1);
	}
	free(first);
	free(next);
	return 0;
}

int trace_fold_stacks(struct trace *t, const struct trace_fold *fold, uint16_t *out)
{
	const struct stacks *s = &t->defs.stacks;
	struct folding f = {.fold = fold};
	int r = -ENOMEM;

	f.marks = calloc(s->frames.count + 1, sizeof(*f.marks));
	f.seen = calloc(s->frames.count + 1, sizeof(*f.seen));
	f.above = calloc(s->nodes + 1, sizeof(*f.above));
	if (!has_symbols(t) || !f.marks || !f.seen || !f.above || mark_by_file(t, &f))
		goto out;
	fold_nodes(t, &f);
	out[0] = 0;
	for (uint32_t i = 1; i < s->ends.count; i++) {
		struct stack_at end = stacks_end(s, i);

		if (!fold_plain(&f, s, end, &out[i]))
			fold_to(t, &f, end, NULL, &out[i]);
	}
	t->symbols->folded = true;
	r = 0;
out:
	free(f.marks);
	free(f.seen);
	free(f.above);
	return r;
}

int trace_stack_order(struct trace *t, const uint32_t **order, size_t *count)
{
	return stacks_order(&t->defs.stacks, order, count);
}

void trace_path_fini(struct stack_path *path)
{
	vec_free(&path->words);
	vec_free(&path->steps);
	*path = (struct stack_path){0};
}

size_t trace_symbols(struct trace *t, uint32_t stack, const struct symbol **out)
{
	const struct stack_path *path;
	struct stack_words *words;
	uint64_t *kept;

	*out = NULL;
	if (!has_symbols(t) || !stack || stack >= trace_stack_limit(t))
		return 0;
	kept = map_find(&t->symbols->stacks, stack);
	if (!kept) {
		path = &t->symbols->path;
		if (trace_path(t, stack, &t->symbols->path))
			return 0;
		words = arena_alloc(
		    &t->symbols->arena, sizeof(*words) + path->count * sizeof(words->symbols[0]));
		kept = words ? map_put(&t->symbols->stacks, stack) : NULL;
		if (!kept)
			return 0;
		words->count = path->count;
		if (path->count)
			memcpy(
			    words->symbols, path->symbols, path->count * sizeof(words->symbols[0]));
		*kept = (uint64_t)(uintptr_t)words;
	}
	words = (struct stack_words *)(uintptr_t)*kept;
	*out = words->symbols;
	return words->count;
}
