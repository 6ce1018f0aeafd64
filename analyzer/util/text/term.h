/*
 * term.h - the abilities of the terminal.
 */
#ifndef ANALYZER_UTIL_TERM_H
#define ANALYZER_UTIL_TERM_H

#include <stdbool.h>
#include <stddef.h>

enum term_style {
	TERM_PLAIN,
	TERM_BOLD,
	TERM_DIM,
	TERM_RED,
	TERM_YELLOW,
	TERM_GREEN,
	TERM_CYAN,
	TERM_BLUE,
	/* text that can be read on a ground of that colour */
	TERM_ON_YELLOW,
	TERM_ON_CYAN,
	TERM_ON_BLUE,
	TERM_ON_WHITE
};

/* True: `fd` is a terminal, and neither NO_COLOR nor TERM=dumb is set. */
bool term_colour(int fd);
/* Width in columns, by COLUMNS if set; 80 if unknown; at least 40. */
unsigned term_width(int fd);
/* The escape sequence, or "" when `colour` is false. TERM_PLAIN switches back. */
const char *term_style(bool colour, enum term_style style);
/* Columns of a UTF-8 text: a combining mark takes none, a wide character two. No escape sequences.
 */
unsigned term_columns(const char *text);

#endif
