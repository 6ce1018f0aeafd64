/* frames.c - see frames.h. */
#include "report/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What runs before main() and before a thread's function, as far out as it goes. */
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

bool *frames_internal(const struct stack_view *v)
{
	static const char *const pythons[] = {"libpython", "python2", "python3"};
	bool *internal = calloc(v->count + 1, sizeof(*internal));
	const char *interpreter = NULL;
	bool python = false;
	size_t at = 0;

	if (!internal || !v->count) {
		free(internal);
		return NULL;
	}
	while (at < v->count && starts_up(&v->symbols[at]))
		internal[at++] = true;
	/* A stack of nothing else is better than none. */
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
			is_module(s, pythons, sizeof(pythons) / sizeof(*pythons))))
			internal[i] = true;
	}
	return internal;
}

/* Room for names, so that all places stand in one column where that leaves room for them. */
static unsigned name_columns(const struct report_style *st, const struct stack_view *v,
    const bool *internal, size_t from, unsigned most, unsigned indent)
{
	unsigned room = st->columns > indent + 30 ? (st->columns - indent - 8) * 5 / 8 : 14;
	unsigned widest = 0;

	for (size_t i = from + 1; i-- > 0 && most;) {
		unsigned n;

		if (!v->symbols[i].function || (internal && internal[i]))
			continue;
		n = term_columns(v->symbols[i].function);
		/* One very long name does not move the others. */
		if (n > widest && n <= room)
			widest = n;
		else if (n > room && widest < room / 2)
			widest = room / 2;
		most--;
	}
	return widest ? widest : 1;
}

static void one(struct str *out, const struct report_style *st, const struct symbol *s, bool first,
    unsigned name, unsigned indent)
{
	char buffer[512], head[32];
	const char *where =
	    style_where(buffer, sizeof(buffer), s->file, s->line, s->python ? NULL : s->module);
	unsigned function = term_columns(s->function), left;
	struct str text = {0};

	left = st->columns > indent + 6 ? st->columns - indent - 6 : 10;
	snprintf(head, sizeof(head), "%*s%s", (int)(indent < 20 ? indent : 20), "",
	    first ? "  in  " : "from  ");
	if (!*where) {
		str_puts(out, head);
		style_cell(out, st, s->function, function < left ? function : left, false);
	} else if (function > name && (st->verbose || function + 2 + term_columns(where) <= left)) {
		/* Whole: in its own line where it fits, otherwise on as many as it takes. */
		str_printf(&text, "%s  %s", s->function, where);
		style_item(out, st, head, indent + 6, str_text(&text));
		str_free(&text);
		return;
	} else {
		str_puts(out, head);
		style_cell(out, st, s->function, name, false);
		str_puts(out, "  ");
		style_place(out, st, where, left > name + 2 ? left - name - 2 : 8);
	}
	style_end(out);
}

void frames_write(struct str *out, const struct report_style *st, const struct stack_view *v,
    size_t from, unsigned most, unsigned indent)
{
	bool *internal = st->native ? NULL : frames_internal(v);
	unsigned name, shown = 0, hidden = 0, left = 0;
	struct str rest = {0};

	if (!v->count) {
		free(internal);
		return;
	}
	if (from >= v->count)
		from = v->count - 1;
	/* Where to begin is known better: that frame is shown whatever it is. */
	if (internal)
		internal[from] = false;
	name = name_columns(st, v, internal, from, most, indent);
	for (size_t i = from + 1; i-- > 0;) {
		if (!v->symbols[i].function)
			continue;
		if (internal && internal[i]) {
			hidden++;
		} else if (shown < most) {
			one(out, st, &v->symbols[i], !shown, name, indent);
			shown++;
		} else {
			left++;
		}
	}
	if (left)
		str_printf(&rest, "+ %u more frame%s: --verbose", left, left == 1 ? "" : "s");
	if (hidden)
		str_printf(&rest, "%s %u native frame%s: --native", left ? "," : "+", hidden,
		    hidden == 1 ? "" : "s");
	if (rest.length) {
		str_puts(out, term_style(st->colour, TERM_DIM));
		style_item(out, st, "", indent + 6, str_text(&rest));
		str_puts(out, term_style(st->colour, TERM_PLAIN));
	}
	str_free(&rest);
	free(internal);
}

void report_stack_json(struct json *j, const char *key, const struct stack_view *v)
{
	json_array(j, key);
	/* Innermost first, as a reader looks for it. */
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
