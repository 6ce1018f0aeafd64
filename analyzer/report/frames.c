/* frames.c - see frames.h. */
#include "report/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/blame.h"

/* How a frame is shown. */
enum mark {
	MARK_SHOWN,
	MARK_INTERNAL, /* not: the interpreter's, its modules' in C, or libc's around main() */
	MARK_PASSES_ON, /* not at first: it stands between the callers that matter */
};

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static bool is_module(const struct symbol *s, const char *const *prefixes, size_t count)
{
	const char *base = s->python ? NULL : base_name(s->module);

	for (size_t i = 0; base && i < count; i++)
		if (strncmp(base, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Returns whether the frame runs before main() or before a thread's function. */
static bool starts_up(const struct symbol *s)
{
	static const char *const names[] = {"_start", "__libc_start_main", "__libc_start_main_impl",
	    "__libc_start_call_main", "generic_start_main", "start_thread", "clone", "clone3",
	    "__clone", "__clone3", "thread_start"};
	static const char *const libraries[] = {
	    "libc.so", "libc-2", "libpthread", "ld-linux", "ld-2"};

	if (s->python)
		return false;
	for (size_t i = 0; s->function && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(s->function, names[i]) == 0)
			return true;
	return (!s->function || !s->known) &&
	       is_module(s, libraries, sizeof(libraries) / sizeof(*libraries));
}

void frames_find_internal(const struct stack_view *v, bool *internal)
{
	static const char *const pythons[] = {"libpython", "python2", "python3"};
	const char *interpreter = NULL;
	bool python = false;
	size_t at = 0;

	while (at < v->count && starts_up(&v->symbols[at]))
		internal[at++] = true;
	/* A stack of such frames alone is better than none. */
	if (at == v->count)
		memset(internal, 0, v->count * sizeof(*internal));
	for (size_t i = 0; i < v->count; i++) {
		python |= v->symbols[i].python;
		if (v->symbols[i].interpreter)
			interpreter = v->symbols[i].module;
	}
	for (size_t i = 0; python && i < v->count; i++) {
		const struct symbol *s = &v->symbols[i];

		if (!s->python &&
		    (s->interpreter ||
			(s->module && interpreter && strcmp(s->module, interpreter) == 0) ||
			(s->module && strstr(s->module, "/lib-dynload/")) ||
			is_module(s, pythons, sizeof(pythons) / sizeof(*pythons))))
			internal[i] = true;
	}
}

static enum owner owner_of(const struct symbol *s)
{
	static const struct blame_context nothing_known;

	return blame_owner(&nothing_known, s);
}

/* Two library frames are of one library if the folders below site-packages are the same. */
static bool same_package(const struct symbol *a, const struct symbol *b)
{
	static const char packages[] = "-packages/";
	const char *left = strstr(a->file, packages), *right = strstr(b->file, packages);
	size_t bytes = left ? strcspn(left + sizeof(packages) - 1, "/") + sizeof(packages) : 0;

	return left && right && strncmp(left, right, bytes) == 0;
}

static bool is_library(const struct symbol *s)
{
	return s->file && owner_of(s) == OWNER_LIBRARY;
}

static bool same_file(const struct symbol *a, const struct symbol *b)
{
	return a->file && b->file && strcmp(a->file, b->file) == 0;
}

static size_t caller_of(const struct stack_view *v, size_t at)
{
	while (at-- > 0)
		if (v->symbols[at].python)
			return at;
	return v->count;
}

static void mark_python(const struct stack_view *v, enum mark *marks, size_t inner, size_t outer)
{
	for (size_t i = outer + 1; i < inner; i++)
		if (v->symbols[i].python)
			marks[i] = MARK_PASSES_ON;
}

/* If the user's code calls a library that calls it again, the line of the call says what lies
 * between. */
static void mark_between_users(const struct stack_view *v, enum mark *marks, size_t from)
{
	size_t user = v->count;

	for (size_t i = from; i < v->count; i = caller_of(v, i)) {
		const struct symbol *s = &v->symbols[i];

		if (!s->python || owner_of(s) != OWNER_USER)
			continue;
		if (user < v->count)
			mark_python(v, marks, user, i);
		user = i;
	}
}

/* The same for a framework's code: several frames of one file, between two of another package. */
static void mark_between_frameworks(const struct stack_view *v, enum mark *marks, size_t from)
{
	const struct symbol *s = v->symbols;
	size_t inner = from, first, last, outer;

	for (; s[inner].python && (first = caller_of(v, inner)) < v->count; inner = last) {
		last = first;
		outer = caller_of(v, first);
		while (outer < v->count && same_file(&s[outer], &s[first])) {
			last = outer;
			outer = caller_of(v, outer);
		}
		if (outer < v->count && last != first && is_library(&s[inner]) &&
		    is_library(&s[first]) && is_library(&s[outer]) &&
		    same_package(&s[inner], &s[outer]) && !same_package(&s[inner], &s[first]))
			mark_python(v, marks, inner, outer);
	}
}

/* Returns the mark of each frame, for free(). NULL: nothing is skipped, or no memory. */
static enum mark *marks_of(const struct stack_view *v, const struct report_style *st, size_t from)
{
	enum mark *marks = st->native ? NULL : calloc(v->count, sizeof(*marks));
	bool *internal = marks ? calloc(v->count, sizeof(*internal)) : NULL;

	if (!internal) {
		free(marks);
		return NULL;
	}
	frames_find_internal(v, internal);
	for (size_t i = 0; i < v->count; i++)
		marks[i] = internal[i] ? MARK_INTERNAL : MARK_SHOWN;
	free(internal);
	if (!st->verbose) {
		mark_between_users(v, marks, from);
		mark_between_frameworks(v, marks, from);
	}
	/* The caller chose this frame: it is shown whatever it is. */
	marks[from] = MARK_SHOWN;
	return marks;
}

/* Returns the native function that a Python frame, or a comprehension in it, calls; `from`: none
 * known. */
static size_t native_callee(const struct stack_view *v, const enum mark *marks, size_t from)
{
	for (size_t i = from + 1; v->symbols[from].python && i < v->count; i++) {
		const struct symbol *s = &v->symbols[i];

		if (s->python && !blame_is_comprehension(s))
			break;
		if (!s->python && !marks[i] && s->known && s->function &&
		    owner_of(s) != OWNER_RUNTIME)
			return i;
	}
	return from;
}

static void function_of(struct str *to, const struct report_style *st, const struct symbol *s)
{
	if (s->python)
		str_puts(to, s->function);
	else
		style_function(to, st, s->function);
}

/* The frames to write, and their layout. */
struct writing {
	const struct report_style *st;
	const struct stack_view *v;
	const enum mark *marks; /* NULL: all are shown */
	size_t from;
	unsigned indent, name; /* name: columns of the function */
};

static bool is_shown(const struct writing *w, size_t i)
{
	return w->v->symbols[i].function && (!w->marks || w->marks[i] == MARK_SHOWN);
}

static unsigned function_columns(const struct writing *w, const struct symbol *s)
{
	struct str text = {0};
	unsigned n;

	function_of(&text, w->st, s);
	n = term_columns(str_text(&text));
	str_free(&text);
	return n;
}

/* Returns the columns for names, so that source positions are aligned if there is room. */
static unsigned name_columns(const struct writing *w, size_t callee, unsigned most)
{
	unsigned columns = w->st->columns, indent = w->indent;
	unsigned room = columns > indent + 30 ? (columns - indent - 8) * 5 / 8 : 14;
	unsigned widest = 0;

	for (size_t i = callee + 1; i-- > 0 && most;) {
		unsigned n;

		if ((i > w->from && i < callee) || !is_shown(w, i))
			continue;
		n = function_columns(w, &w->v->symbols[i]);
		/* One very long name does not move the others. */
		if (n > widest && n <= room)
			widest = n;
		else if (n > room && widest < room / 2)
			widest = room / 2;
		most--;
	}
	return widest ? widest : 1;
}

/* If a native name is too long, its scopes are cut first: the end names the function. */
static void name_cell(struct str *out, const struct writing *w, const char *name, bool python)
{
	const char *dots = w->st->unicode ? "\xe2\x80\xa6" : "..", *tail = name;
	struct str text = {0};

	if (!python && term_columns(name) > w->name)
		for (const char *at = name; (at = strstr(at, "::"));) {
			tail = at += 2;
			if (term_columns(dots) + term_columns(tail) <= w->name)
				break;
		}
	str_printf(&text, "%s%s", tail > name ? dots : "", tail);
	style_cell(out, w->st, str_text(&text), w->name, false);
	str_free(&text);
}

static void one(struct str *out, const struct writing *w, const struct symbol *s, bool first)
{
	const struct report_style *st = w->st;
	unsigned indent = w->indent, name = w->name, columns, left;
	char buffer[512], head[32];
	const char *where =
	    style_where(buffer, sizeof(buffer), s->file, s->line, s->python ? NULL : s->module);
	struct str function = {0};

	function_of(&function, st, s);
	columns = term_columns(str_text(&function));
	left = st->columns > indent + 6 ? st->columns - indent - 6 : 10;
	snprintf(head, sizeof(head), "%*s%s", (int)(indent < 20 ? indent : 20), "",
	    first ? "  in  " : "from  ");
	if (!*where) {
		str_puts(out, head);
		style_cell(out, st, str_text(&function), columns < left ? columns : left, false);
		style_end(out);
	} else if (columns > name && (st->verbose || columns + 2 + term_columns(where) <= left)) {
		/* Not cut: on a line of its own, or on several. */
		str_printf(&function, "  %s", where);
		style_item(out, st, head, indent + 6, "%s", str_text(&function));
	} else {
		str_puts(out, head);
		name_cell(out, w, str_text(&function), s->python);
		str_puts(out, "  ");
		style_place(out, st, where, left > name + 2 ? left - name - 2 : 8);
		style_end(out);
	}
	str_free(&function);
}

/* Appends how many frames were not shown, and the option that shows them. */
static void hidden(struct str *out, const struct writing *w, unsigned left, unsigned native)
{
	struct str text = {0};

	if (left)
		str_printf(&text, "+ %u more frame%s: --verbose", left, left == 1 ? "" : "s");
	if (native)
		str_printf(&text, "%s%u native frame%s: --native", left ? ", " : "+ ", native,
		    native == 1 ? "" : "s");
	if (text.length) {
		str_puts(out, term_style(w->st->colour, TERM_DIM));
		style_item(out, w->st, "", w->indent + 6, "%s", str_text(&text));
		str_puts(out, term_style(w->st->colour, TERM_PLAIN));
	}
	str_free(&text);
}

void frames_write(struct str *out, const struct report_style *st, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent)
{
	struct writing w = {.st = st, .v = v, .from = from, .indent = indent};
	unsigned shown = 0, native = 0, left = 0;
	enum mark *marks;
	size_t callee;

	if (!v->count)
		return;
	if (from >= v->count)
		w.from = v->count - 1;
	marks = marks_of(v, st, w.from);
	w.marks = marks;
	callee = marks && !st->verbose ? native_callee(v, marks, w.from) : w.from;
	w.name = name_columns(&w, callee, most);
	if (callee != w.from && most > 1)
		one(out, &w, &v->symbols[callee], !shown++);
	for (size_t i = w.from + 1; i-- > 0;) {
		if (!v->symbols[i].function)
			continue;
		if (marks && marks[i] == MARK_INTERNAL)
			native++;
		else if (is_shown(&w, i) && shown < most)
			one(out, &w, &v->symbols[i], !shown++);
		else
			left++;
	}
	hidden(out, &w, left, native);
	free(marks);
}

void report_stack_json(struct json *j, const char *key, const struct stack_view *v)
{
	json_array(j, key);
	for (size_t i = v->count; i-- > 0;) {
		const struct symbol *s = &v->symbols[i];

		json_object(j, NULL);
		json_string(j, "function", s->function ? s->function : "?");
		json_string(j, "file", s->file ? s->file : s->module);
		json_u64_or_null(j, "line", s->line, s->line);
		json_object_end(j);
	}
	json_array_end(j);
}
