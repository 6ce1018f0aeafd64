/* exposition.c - see exposition.h. */
#include "watch/engine/exposition.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64u /* characters of a number; printers of doubles need 24 */

static bool is_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!first && c >= '0' && c <= '9');
}

static size_t name_length(const char *at, size_t left)
{
	size_t n = 0;

	while (n < left && is_name(at[n], n == 0))
		n++;
	return n;
}

static size_t blanks(const char *at, size_t left)
{
	size_t n = 0;

	while (n < left && (at[n] == ' ' || at[n] == '\t'))
		n++;
	return n;
}

/* Return the length of a quoted text with its quotes; 0: there is none. */
static size_t quoted_length(const char *at, size_t left)
{
	if (!left || *at != '"')
		return 0;
	for (size_t n = 1; n < left; n++) {
		if (at[n] == '"')
			return n + 1;
		if (at[n] == '\\')
			n++;
	}
	return 0;
}

/* A label: KEY="VALUE". Returns its length with blanks around and a comma behind it; 0: it is
 * none. */
static size_t take_label(
    const char *at, size_t left, struct exposition_text *key, struct exposition_text *quoted)
{
	size_t n = blanks(at, left), length = name_length(at + n, left - n);

	if (!length)
		return 0;
	*key = (struct exposition_text){at + n, length};
	n += length;
	n += blanks(at + n, left - n);
	if (n == left || at[n] != '=')
		return 0;
	n++;
	n += blanks(at + n, left - n);
	length = quoted_length(at + n, left - n);
	if (!length)
		return 0;
	*quoted = (struct exposition_text){at + n, length};
	n += length;
	n += blanks(at + n, left - n);
	if (n < left && at[n] == ',')
		n++;
	return n;
}

/* Return the length of "{...}"; 0: it is broken. *labels: what is between. */
static size_t take_labels(const char *at, size_t left, struct exposition_text *labels)
{
	struct exposition_text key, quoted;
	size_t n = 1, length;

	while (n < left && at[n] != '}') {
		length = take_label(at + n, left - n, &key, &quoted);
		if (!length)
			return 0;
		n += length;
		n += blanks(at + n, left - n);
	}
	if (n >= left)
		return 0;
	*labels = (struct exposition_text){at + 1, n - 1};
	return n + 1;
}

/* A number, and then nothing, or a blank and what a sample may have besides. */
static bool take_number(const char *at, size_t left, double *out)
{
	char text[NUMBER_MAX], *end;
	size_t n = 0;

	while (n < left && at[n] != ' ' && at[n] != '\t')
		n++;
	if (!n || n >= sizeof(text))
		return false;
	memcpy(text, at, n);
	text[n] = '\0';
	*out = strtod(text, &end);
	return end == text + n;
}

static bool take_sample(const char *line, size_t left, struct exposition_sample *out)
{
	size_t n = name_length(line, left), length;

	if (!n)
		return false;
	*out = (struct exposition_sample){{line, n}, {line + n, 0}, 0};
	n += blanks(line + n, left - n);
	if (n < left && line[n] == '{') {
		length = take_labels(line + n, left - n, &out->labels);
		if (!length)
			return false;
		n += length;
		n += blanks(line + n, left - n);
	}
	return take_number(line + n, left - n, &out->value);
}

bool exposition_next(struct exposition *e, struct exposition_sample *out)
{
	while (e->left) {
		const char *line = e->rest, *end = memchr(line, '\n', e->left);
		size_t length = end ? (size_t)(end - line) : e->left, whole = length;
		size_t skip;

		e->rest += end ? whole + 1 : whole;
		e->left -= end ? whole + 1 : whole;
		if (length && line[length - 1] == '\r')
			length--;
		skip = blanks(line, length);
		if (skip == length || line[skip] == '#')
			continue;
		if (take_sample(line + skip, length - skip, out)) {
			e->samples++;
			return true;
		}
		e->skipped++;
	}
	return false;
}

/* Without quotes and escapes. An unknown escape stands for itself. */
static void copy_value(const struct exposition_text *quoted, char *out, size_t room)
{
	size_t used = 0;

	for (size_t i = 1; i + 1 < quoted->length && used + 1 < room; i++) {
		char c = quoted->at[i];

		if (c == '\\' && i + 2 < quoted->length) {
			c = quoted->at[++i];
			c = c == 'n' ? '\n' : c;
		}
		out[used++] = c ? c : '?';
	}
	out[used] = '\0';
}

bool exposition_label(const struct exposition_sample *s, const char *key, char *out, size_t room)
{
	struct exposition_text of, quoted;
	size_t n = 0, length;

	*out = '\0';
	while (n < s->labels.length) {
		length = take_label(s->labels.at + n, s->labels.length - n, &of, &quoted);
		if (!length)
			return false;
		if (of.length == strlen(key) && !memcmp(of.at, key, of.length)) {
			copy_value(&quoted, out, room);
			return true;
		}
		n += length;
	}
	return false;
}
