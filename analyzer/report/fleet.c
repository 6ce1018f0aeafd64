/* fleet.c - see fleet.h. */
#include "report/fleet.h"

#include <stdlib.h>
#include <string.h>

const char *fleet_shown(const char *column, const struct fleet_cell *cell, struct fmt *f)
{
	double value;

	if (!cell->text)
		return "-";
	if (!cell->number || !strstr(column, "bytes"))
		return cell->text;
	value = strtod(cell->text, NULL);
	return fmt_size(f, value > 0 ? (uint64_t)(value + 0.5) : 0);
}

const char *fleet_word(const struct fleet_answer *a, size_t row, const char *column)
{
	for (size_t i = 0; i < a->column_count && row < a->row_count; i++)
		if (!strcmp(a->columns[i], column))
			return a->cells[row * a->column_count + i].text;
	return NULL;
}

uint64_t fleet_number(const struct fleet_answer *a, size_t row, const char *column)
{
	const char *text = fleet_word(a, row, column);

	return text ? strtoull(text, NULL, 10) : 0;
}
