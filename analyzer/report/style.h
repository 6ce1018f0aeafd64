/*
 * style.h - the few shapes that text reports are made of.
 */
#ifndef ANALYZER_REPORT_STYLE_H
#define ANALYZER_REPORT_STYLE_H

#include "report/report.h"
#include "util/term.h"

/* Text from a trace or of our own, wrapped at words to the width, each line after `indent` blanks;
 * the first line too. Ends with a newline. */
void style_wrap(
    struct str *out, const struct report_style *style, unsigned indent, const char *text);
/* Like it, but the first line begins with `head`, which takes the indent's place. */
void style_item(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *text);
/* A heading of its own line. */
void style_heading(struct str *out, const struct report_style *style, const char *text);
/* Padded with blanks to `columns`, cut with an ellipsis when longer. `right`: to the right. */
void style_cell(struct str *out, const struct report_style *style, const char *text,
    unsigned columns, bool right);
/* A bar of part/whole of `columns`. */
void style_bar(struct str *out, const struct report_style *style, double share, unsigned columns);
/* "name.py:31", from the whole path; the module for native code without lines. */
const char *style_where(
    char *buffer, size_t room, const char *file, uint32_t line, const char *module);

#endif
