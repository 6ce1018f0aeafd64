/*
 * style.h - the few shapes that text reports are made of.
 */
#ifndef ANALYZER_REPORT_STYLE_H
#define ANALYZER_REPORT_STYLE_H

#include "report/report.h"
#include "util/text/term.h"

/* Text, as printf() makes it, wrapped at words to the width, each line after `indent` blanks; the
 * first line too. A word wider than a line is broken. Ends with a newline. */
void style_wrap(struct str *out, const struct report_style *style, unsigned indent,
    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Like it, but the first line begins with `head`, which takes the indent's place. */
void style_item(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A title on a line of its own, or on as many as it takes; a heading after an empty one. */
void style_title(struct str *out, const struct report_style *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void style_heading(struct str *out, const struct report_style *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Padded with blanks to `columns`, cut with an ellipsis when longer. `right`: to the right. */
void style_cell(struct str *out, const struct report_style *style, const char *text,
    unsigned columns, bool right);
/* "name.py:31" in at most `columns`: the name is cut, not the line. */
void style_place(
    struct str *out, const struct report_style *style, const char *where, unsigned columns);
/* A function and its "name.py:31" in at most `columns`: the function is cut first. */
void style_line(struct str *out, const struct report_style *style, const char *function,
    const char *file, uint32_t line, unsigned columns);
void style_blanks(struct str *out, unsigned n);
/* Ends a line of cells: without the blanks that pad the last one. */
void style_end(struct str *out);
/* A bar of part/whole of `columns`. */
void style_bar(struct str *out, const struct report_style *style, double share, unsigned columns);
/* As fmt_function(), in the style's characters. */
void style_function(struct str *to, const struct report_style *style, const char *function);
/* The line that a verdict begins with: its cause, and how sure it is. */
void style_verdict(
    struct str *out, const struct report_style *style, enum cause cause, double confidence);
/* The n-th fix, from 1; `for_` is a framework's name, or "any". */
void style_fix(struct str *out, const struct report_style *style, size_t n, const char *for_,
    const char *text);
/* The colour of a verdict. */
enum term_style style_tone(enum cause cause);
/* "name.py:31", from the whole path; the module for native code without lines. */
const char *style_where(
    char *buffer, size_t room, const char *file, uint32_t line, const char *module);

#endif
