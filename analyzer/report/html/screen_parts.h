/*
 * screen_parts.h - inside report/html/: the few shapes that the first screen of a page is made of.
 */
#ifndef ANALYZER_REPORT_SCREEN_PARTS_H
#define ANALYZER_REPORT_SCREEN_PARTS_H

#include <string.h>

#include "report/html/html.h"

/* What other formats write as lines is taken over line by line, so no line is wrapped. */
#define WIDE 100000u

static const struct report_style wide = {.unicode = true, .columns = WIDE};

static inline void heading(struct str *out, const char *id, const char *text)
{
	str_printf(out, "<section id=\"%s\"><h2>%s</h2>\n", id, text);
}

static inline void tagged(struct str *out, const char *tag, const char *class, const char *text)
{
	str_printf(out, "<%s class=\"%s\">", tag, class);
	html_text(out, text);
	str_printf(out, "</%s>\n", tag);
}

/* Appends each line of a text as an element, without its blanks. */
static inline void lines(struct str *out, const char *tag, const char *class, const char *text)
{
	while (*text) {
		size_t blank = strspn(text, " "), line = strcspn(text + blank, "\n");
		struct str one = {0};

		str_add(&one, text + blank, line);
		if (line) {
			str_printf(out, "<%s class=\"%s\">", tag, class);
			html_escape(out, str_text(&one));
			str_printf(out, "</%s>\n", tag);
		}
		text += blank + line + (text[blank + line] == '\n');
		str_free(&one);
	}
}

#endif
