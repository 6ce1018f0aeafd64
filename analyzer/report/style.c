/* style.c - see style.h. */
#include "report/style.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static void blanks(struct str *out, unsigned n)
{
	while (n--)
		str_putc(out, ' ');
}

void style_item(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *text)
{
	struct str safe = {0};
	unsigned width = style->columns > indent + 20 ? style->columns : indent + 20, at = indent;
	char *word, *rest;

	str_safe(&safe, text);
	str_puts(out, head);
	for (unsigned n = term_columns(head); n < indent; n++)
		str_putc(out, ' ');
	for (word = safe.text ? strtok_r(safe.text, " ", &rest) : NULL; word;
	     word = strtok_r(NULL, " ", &rest)) {
		unsigned length = term_columns(word);

		if (at > indent && at + 1 + length > width) {
			str_putc(out, '\n');
			blanks(out, indent);
			at = indent;
		} else if (at > indent) {
			str_putc(out, ' ');
			at++;
		}
		str_puts(out, word);
		at += length;
	}
	str_putc(out, '\n');
	str_free(&safe);
}

void style_wrap(
    struct str *out, const struct report_style *style, unsigned indent, const char *text)
{
	style_item(out, style, "", indent, text);
}

void style_heading(struct str *out, const struct report_style *style, const char *text)
{
	str_printf(out, "\n%s", term_style(style->colour, TERM_BOLD));
	str_safe(out, text);
	str_printf(out, "%s\n", term_style(style->colour, TERM_PLAIN));
}

void style_cell(struct str *out, const struct report_style *style, const char *text,
    unsigned columns, bool right)
{
	struct str safe = {0};
	unsigned length;

	str_safe(&safe, text);
	length = term_columns(str_text(&safe));
	if (length > columns) {
		const char *p = str_text(&safe);
		unsigned at = 0, room = columns > 1 ? columns - (style->unicode ? 1 : 2) : 0;

		while (*p && at < room) {
			size_t bytes = str_utf8(p);

			str_add(out, p, bytes ? bytes : 1);
			p += bytes ? bytes : 1;
			at++;
		}
		str_puts(out, style->unicode ? "\xe2\x80\xa6" : "..");
	} else {
		if (right)
			blanks(out, columns - length);
		str_puts(out, str_text(&safe));
		if (!right)
			blanks(out, columns - length);
	}
	str_free(&safe);
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
