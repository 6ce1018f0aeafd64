/* environment.c - see environment.h. */
#include "exec/environment.h"

#include <string.h>

#include "exec/program.h"

#define ASAN "ASAN_OPTIONS="
#define ASAN_KEY "verify_asan_link_order"
#define ASAN_ADDED "::" ASAN_KEY "=0" /* the empty option, which is skipped, marks it as ours */
#define VARIABLE "LD_PRELOAD="
#define VARIABLE_BYTES (sizeof(VARIABLE) - 1)
#define LIBRARY "libwhyoom"

/* Follows a runtime that environment_make() has put in front: the loader skips empty entries. */
#define MARK "::"

/* An entry of a list separated by blanks and colons. */
struct entry {
	const char *text;
	size_t length;
};

static bool is_separator(char c)
{
	return c == ':' || c == ' ';
}

/* Find the entry at or after `list`; false: none. */
static bool next_entry(const char *list, struct entry *out)
{
	while (is_separator(*list))
		list++;
	out->text = list;
	while (*list && !is_separator(*list))
		list++;
	out->length = (size_t)(list - out->text);
	return out->length;
}

/* Is it this library, or the simulated GPU's? */
static bool is_ours(const struct entry *e)
{
	size_t at = e->length;

	while (at && e->text[at - 1] != '/')
		at--;
	return e->length - at > sizeof(LIBRARY) - 1 &&
	       !strncmp(e->text + at, LIBRARY, sizeof(LIBRARY) - 1);
}

static bool names_us(const char *list)
{
	struct entry e;

	for (; next_entry(list, &e); list = e.text + e.length)
		if (is_ours(&e))
			return true;
	return false;
}

static bool is_asan(const char *line)
{
	return !strncmp(line, ASAN, sizeof(ASAN) - 1);
}

static const char *list_of(const char *line)
{
	return strncmp(line, VARIABLE, VARIABLE_BYTES) ? NULL : line + VARIABLE_BYTES;
}

static char *put(char *to, const char *text, size_t length)
{
	memcpy(to, text, length);
	to[length] = 0;
	return to + length;
}

/* Write the list without our entries; each goes with the separator after it, the last one with the
 * separator before it. */
static char *put_others(char *to, const char *list)
{
	char *start = to;
	struct entry e;

	while (next_entry(list, &e)) {
		const char *end = e.text + e.length;

		if (is_ours(&e)) {
			to = put(to, list, (size_t)(e.text - list));
			list = end + (*end ? 1 : 0);
			if (!*end && to > start && is_separator(to[-1]))
				*--to = 0;
		} else {
			to = put(to, list, (size_t)(end - list));
			list = end;
		}
	}
	return put(to, list, strlen(list));
}

/* Write only our entries, separated by colons. */
static char *put_ours(char *to, const char *list)
{
	const char *start = to;
	struct entry e;

	for (; next_entry(list, &e); list = e.text + e.length)
		if (is_ours(&e)) {
			if (to > start)
				to = put(to, ":", 1);
			to = put(to, e.text, e.length);
		}
	return to;
}

/* Write the list with our entries behind the runtime; false: not possible. */
static bool put_behind(char *to, const char *list, const char *runtime)
{
	struct entry first;
	char *start = to;

	to = put_others(to, list);
	if (next_entry(start, &first)) {
		if (!program_is_runtime(first.text, (unsigned)first.length))
			return false;
		to = put(to, ":", 1);
	} else {
		to = put(start, runtime, strlen(runtime));
		to = put(to, MARK, sizeof(MARK) - 1);
	}
	put_ours(to, list);
	return true;
}

size_t environment_bytes(char *const *environment, const char *runtime)
{
	size_t lines = 0, text = 0;
	const char *list;
	bool found = false;

	for (; environment && *environment; environment++, lines++) {
		list = list_of(*environment);
		if (list && names_us(list)) {
			found = true;
			text += VARIABLE_BYTES + strlen(list) + strlen(runtime) + 8;
		} else if (is_asan(*environment)) {
			text += strlen(*environment) + sizeof(ASAN_ADDED);
		}
	}
	/* each line may become two, one is added, and there is an end */
	return found ? (2 * lines + 2) * sizeof(char *) + text + sizeof(ASAN ASAN_ADDED) : 0;
}

char **environment_make(
    char *const *environment, enum environment_change change, const char *runtime, void *to)
{
	size_t lines = 0, n = 0;
	char **out = to, *text;
	bool front = true, lenient = change == ENVIRONMENT_LENIENT || change == ENVIRONMENT_TWICE;

	while (environment[lines])
		lines++;
	text = (char *)(out + 2 * lines + 2);
	for (size_t i = 0; i < lines; i++) {
		const char *list = list_of(environment[i]);
		char *start = text;

		if (lenient && is_asan(environment[i])) {
			lenient = false;
			if (!strstr(environment[i], ASAN_KEY)) {
				text = put(text, environment[i], strlen(environment[i]));
				text = put(text, ASAN_ADDED, sizeof(ASAN_ADDED) - 1) + 1;
				out[n++] = start;
				continue;
			}
		}
		if (!list || !names_us(list) || change == ENVIRONMENT_LENIENT) {
			out[n++] = environment[i];
			continue;
		}
		text = put(text, VARIABLE, VARIABLE_BYTES);
		if (change != ENVIRONMENT_BEHIND || !put_behind(text, list, runtime))
			put_others(text, list);
		if (change == ENVIRONMENT_TWICE) {
			if (front)
				out[n++] = start;
			out[n++] = environment[i];
			front = false;
		} else if (*text) { /* where we were the only entry, there was no such variable */
			out[n++] = start;
		}
		text += strlen(text) + 1;
	}
	if (lenient) {
		put(text, ASAN ASAN_ADDED, sizeof(ASAN ASAN_ADDED) - 1);
		out[n++] = text;
	}
	out[n] = NULL;
	return out;
}

bool environment_library(char *const *environment, char *out, size_t size)
{
	struct entry e;
	const char *list;

	for (; environment && *environment; environment++) {
		list = list_of(*environment);
		for (; list && next_entry(list, &e); list = e.text + e.length)
			if (is_ours(&e) && e.length < size) {
				put(out, e.text, e.length);
				return true;
			}
	}
	return false;
}

/* Take out what was added; false: nothing of the line is left. */
static bool settle_asan(char *line)
{
	const size_t added = sizeof(ASAN_ADDED) - 1;
	size_t length = strlen(line);

	if (length < added || strcmp(line + length - added, ASAN_ADDED) != 0)
		return true;
	line[length - added] = 0;
	return length - added >= sizeof(ASAN);
}

static void settle_runtime(char *list)
{
	struct entry first;

	if (next_entry(list, &first) && first.text == list &&
	    !strncmp(list + first.length, MARK, sizeof(MARK) - 1) &&
	    program_is_runtime(first.text, (unsigned)first.length)) {
		const char *rest = list + first.length + sizeof(MARK) - 1;

		memmove(list, rest, strlen(rest) + 1);
	}
}

void environment_settle(char **environment, bool sanitized)
{
	char **last = NULL;
	size_t n = 0, kept = 0;

	for (; environment && environment[n]; n++)
		if (list_of(environment[n]))
			last = &environment[n];
	if (!last || !names_us(list_of(*last)))
		return;
	settle_runtime(*last + VARIABLE_BYTES);
	for (size_t i = 0; i < n; i++) {
		bool keep = true;

		if (list_of(environment[i]))
			keep = &environment[i] == last;
		else if (is_asan(environment[i]) && !sanitized)
			keep = settle_asan(environment[i]);
		if (keep)
			environment[kept++] = environment[i];
	}
	environment[kept] = NULL;
}
