/*
 * fleet.h - answers to questions about a fleet: one as a table, all of them as a page.
 */
#ifndef ANALYZER_REPORT_FLEET_H
#define ANALYZER_REPORT_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text/fmt.h"

struct fleet_cell {
	char *text; /* NULL: nothing is known */
	bool number;
};

struct fleet_answer {
	char **columns;
	size_t column_count;
	struct fleet_cell *cells; /* row by row */
	size_t row_count;
};

/* The cell as people read it: a size where the column says that it is one; "-": not known. */
const char *fleet_shown(const char *column, const struct fleet_cell *cell, struct fmt *f);
/* The cell of that column in a row, as a number; 0: there is none. */
uint64_t fleet_number(const struct fleet_answer *a, size_t row, const char *column);
/* The same as text; NULL: there is none. */
const char *fleet_word(const struct fleet_answer *a, size_t row, const char *column);

struct fleet_section {
	const char *name; /* of the question */
	const char *title; /* the question, a line that ends with a line feed or NUL */
	struct fleet_answer answer;
	bool chart; /* periods, causes, counts: drawn as columns above its table */
	char **links; /* of each row: where its page lies; NULL: nowhere. Or NULL: no row has one */
};

struct fleet_page {
	struct fleet_answer
	    summary; /* one row: runs, crashes, pods, unreadable, first and last day */
	struct fleet_section *sections;
	size_t count;
};

#endif
