/*
 * fleet.h - the answer to a question about a fleet, as a table.
 */
#ifndef ANALYZER_REPORT_FLEET_H
#define ANALYZER_REPORT_FLEET_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
