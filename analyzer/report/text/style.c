/* style.c - see style.h. */
#include "report/text/style.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/text/fmt.h"

struct report_style report_style_of(int fd)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	struct report_style style = {.colour = term_colour(fd), .columns = term_width(fd)};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (!value || !*value)
			continue;
		style.unicode = strcasestr(value, "utf-8") || strcasestr(value, "utf8");
		break;
	}
	return style;
}

enum term_style style_tone(enum cause cause)
{
	if (cause == CAUSE_HEALTHY)
		return TERM_GREEN;
	return cause == CAUSE_UNKNOWN ? TERM_YELLOW : TERM_RED;
}

void style_blanks(struct str *out, unsigned n)
{
	while (n--)
		str_putc(out, ' ');
}

void style_end(struct str *out)
{
	while (out->length && out->text[out->length - 1] == ' ')
		out->text[--out->length] = '\0';
	str_putc(out, '\n');
}

/* As many of a text's first bytes as fit in so many columns, at least one character. */
static size_t fitting(const char *text, unsigned columns)
{
	char one[5] = "";
	size_t at = 0;

	for (unsigned used = 0; text[at];) {
		size_t bytes = str_utf8(text + at);

		bytes = bytes ? bytes : 1;
		memcpy(one, text + at, bytes);
		one[bytes] = '\0';
		used += term_columns(one);
		if (at && used > columns)
			break;
		at += bytes;
	}
	return at;
}

/* Is this what a number before it counts in? "15.3" and "MiB" stay together. */
static bool is_unit(const char *word)
{
	static const char *const units[] = {
	    "B", "KiB", "MiB", "GiB", "TiB", "bytes", "%", "ns", "us", "ms", "s", "min", "h", "d"};
	size_t length = strcspn(word, " ,.;:)");

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (length == strlen(units[i]) && strncmp(word, units[i], length) == 0)
			return true;
	return false;
}

/* The next word, ended with NUL; a number with its unit is one. NULL at the end. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " "), *end = word + strcspn(word, " ");
	const char *number = word + strspn(word, "(+-<");

	if (!*word)
		return NULL;
	if (*end && *number >= '0' && *number <= '9' && is_unit(end + 1))
		end += 1 + strcspn(end + 1, " ");
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static void put(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *format, va_list args)
{
	struct str text = {0}, safe = {0};
	unsigned width = style->columns > indent + 12 ? style->columns : indent + 12, at = indent;
	char *word, *rest;

	str_vprintf(&text, format, args);
	str_safe(&safe, str_text(&text));
	rest = safe.text;
	str_puts(out, head);
	for (unsigned n = term_columns(head); n < indent; n++)
		str_putc(out, ' ');
	while (rest && (word = next_word(&rest))) {
		unsigned length = term_columns(word);

		if (at > indent && at + 1 + length > width) {
			str_putc(out, '\n');
			style_blanks(out, indent);
			at = indent;
		} else if (at > indent) {
			str_putc(out, ' ');
			at++;
		}
		/* A path or a C++ name may be longer than a line. */
		while (at + length > width) {
			size_t bytes = fitting(word, width - at);

			if (!word[bytes])
				break;
			str_add(out, word, bytes);
			str_putc(out, '\n');
			style_blanks(out, indent);
			at = indent;
			word += bytes;
			length = term_columns(word);
		}
		str_puts(out, word);
		at += length;
	}
	str_putc(out, '\n');
	str_free(&text);
	str_free(&safe);
}

void style_item(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(out, style, head, indent, format, args);
	va_end(args);
}

void style_wrap(
    struct str *out, const struct report_style *style, unsigned indent, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put(out, style, "", indent, format, args);
	va_end(args);
}

static void put_title(
    struct str *out, const struct report_style *style, const char *format, va_list args)
{
	str_puts(out, term_style(style->colour, TERM_BOLD));
	put(out, style, "", 0, format, args);
	/* The last line's end belongs behind the switch. */
	if (style->colour && out->length && !out->failed)
		out->text[--out->length] = '\0';
	if (style->colour)
		str_printf(out, "%s\n", term_style(style->colour, TERM_PLAIN));
}

void style_title(struct str *out, const struct report_style *style, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_title(out, style, format, args);
	va_end(args);
}

void style_heading(struct str *out, const struct report_style *style, const char *format, ...)
{
	va_list args;

	str_putc(out, '\n');
	va_start(args, format);
	put_title(out, style, format, args);
	va_end(args);
}

void style_verdict(
    struct str *out, const struct report_style *style, enum cause cause, double confidence)
{
	str_printf(out, "%s%s%s", term_style(style->colour, style_tone(cause)), cause_name(cause),
	    term_style(style->colour, TERM_PLAIN));
	if (confidence > 0)
		str_printf(out, "   %s%.0f %% sure%s", term_style(style->colour, TERM_DIM),
		    confidence * 100, term_style(style->colour, TERM_PLAIN));
	str_putc(out, '\n');
}

void style_fix(
    struct str *out, const struct report_style *style, size_t n, const char *for_, const char *text)
{
	bool any = strcmp(for_, "any") == 0;
	char head[32];

	snprintf(head, sizeof(head), "  %zu. ", n);
	style_item(out, style, head, 5, "%s%s%s", any ? "" : for_, any ? "" : ": ", text);
}

void style_cell(struct str *out, const struct report_style *style, const char *text,
    unsigned columns, bool right)
{
	struct str safe = {0};
	unsigned length;

	str_safe(&safe, text);
	length = term_columns(str_text(&safe));
	if (length > columns) {
		unsigned dots = style->unicode ? 1 : 2, room = columns > dots ? columns - dots : 0;
		size_t bytes = room ? fitting(str_text(&safe), room) : 0;
		struct str part = {0};

		str_add(&part, str_text(&safe), bytes);
		str_puts(out, str_text(&part));
		/* A wide character may have had no room. */
		for (length = term_columns(str_text(&part)); length < room; length++)
			str_putc(out, ' ');
		str_free(&part);
		str_puts(out, style->unicode ? "\xe2\x80\xa6" : "..");
	} else {
		if (right)
			style_blanks(out, columns - length);
		str_puts(out, str_text(&safe));
		if (!right)
			style_blanks(out, columns - length);
	}
	str_free(&safe);
}

void style_place(
    struct str *out, const struct report_style *style, const char *where, unsigned columns)
{
	const char *line = strrchr(where, ':');
	unsigned all = term_columns(where), tail = line ? term_columns(line) : 0;
	struct str name = {0};

	if (all <= columns || tail + 4 > columns) {
		style_cell(out, style, where, all < columns ? all : columns, false);
		return;
	}
	str_add(&name, where, (size_t)(line ? line - where : (long)strlen(where)));
	style_cell(out, style, str_text(&name), columns - tail, false);
	if (line)
		str_safe(out, line);
	str_free(&name);
}

void style_bar(struct str *out, const struct report_style *style, double share, unsigned columns)
{
	static const char *const eighths[] = {"", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
	    "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
	unsigned parts;

	if (!(share > 0))
		return;
	if (share > 1)
		share = 1;
	parts = (unsigned)(share * columns * 8 + 0.5);
	if (!style->unicode) {
		for (unsigned n = (parts + 4) / 8; n > 0; n--)
			str_putc(out, '#');
		return;
	}
	for (unsigned n = parts / 8; n > 0; n--)
		str_puts(out, "\xe2\x96\x88");
	str_puts(out, eighths[parts % 8]);
}

void style_function(struct str *to, const struct report_style *style, const char *function)
{
	fmt_function(to, function, style->unicode ? "<\xe2\x80\xa6>" : "<..>");
}

const char *style_where(
    char *buffer, size_t room, const char *file, uint32_t line, const char *module)
{
	const char *path = file ? file : module, *base = path ? strrchr(path, '/') : NULL;

	if (!path) {
		buffer[0] = '\0';
		return buffer;
	}
	base = base ? base + 1 : path;
	if (file && line)
		snprintf(buffer, room, "%s:%u", base, line);
	else
		snprintf(buffer, room, "%s", base);
	return buffer;
}

/* The source position keeps its line number; the function is shortened first. */
void style_line(struct str *out, const struct report_style *style, const char *of, const char *file,
    uint32_t line, unsigned columns)
{
	char buffer[512];
	const char *where = style_where(buffer, sizeof(buffer), file, line, NULL);
	unsigned name, place = term_columns(where);
	struct str function = {0};

	style_function(&function, style, of);
	name = term_columns(str_text(&function));
	if (!*where) {
		style_cell(out, style, str_text(&function), name < columns ? name : columns, false);
		str_free(&function);
		return;
	}
	if (name + 2 + place > columns) {
		unsigned least = columns > 24 ? columns / 2 - 1 : 10;

		if (place > least)
			place = columns > name + 2 + least ? columns - name - 2 : least;
		name = columns > place + 2 ? columns - place - 2 : 8;
		if (name > term_columns(str_text(&function)))
			name = term_columns(str_text(&function));
	}
	style_cell(out, style, str_text(&function), name, false);
	str_puts(out, "  ");
	style_place(out, style, where, place);
	str_free(&function);
}
