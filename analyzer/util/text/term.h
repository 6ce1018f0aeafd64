/*
 * term.h - what the terminal can do. Colour only on a terminal, never with NO_COLOR or TERM=dumb.
 */
#ifndef ANALYZER_UTIL_TERM_H
#define ANALYZER_UTIL_TERM_H

#include <stdbool.h>
#include <stddef.h>

enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_YELLOW, TERM_GREEN, TERM_CYAN };

bool term_colour(int fd);
/* Columns; COLUMNS where it is set, 80 when unknown. At least 40. */
unsigned term_width(int fd);
/* The escape sequence, or "" when `colour` is false. TERM_PLAIN switches back. */
const char *term_style(bool colour, enum term_style style);
/* Columns that a UTF-8 text takes, combining marks counted as none and wide characters as two;
 * escape sequences are not expected. */
unsigned term_columns(const char *text);

#endif
