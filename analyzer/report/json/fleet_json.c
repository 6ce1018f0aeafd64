/* fleet_json.c - the answer to a question about a fleet, for a program: a row is an object. */
#include <stdlib.h>

#include "report/format.h"
#include "util/text/json.h"

static void cell(struct json *j, const char *column, const struct fleet_cell *c)
{
	char *end;
	long long whole;

	if (!c->number || !c->text) {
		json_string(j, column, c->text);
		return;
	}
	whole = strtoll(c->text, &end, 10);
	if (*end)
		json_real(j, column, strtod(c->text, NULL), 6);
	else
		json_i64(j, column, whole);
}

void fleet_json(const struct fleet_answer *a, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};
	const struct fleet_cell *at = a->cells;

	(void)style;
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_array(&j, "columns");
	for (size_t i = 0; i < a->column_count; i++)
		json_string(&j, NULL, a->columns[i]);
	json_array_end(&j);
	json_array(&j, "rows");
	for (size_t row = 0; row < a->row_count; row++) {
		json_object(&j, NULL);
		for (size_t i = 0; i < a->column_count; i++)
			cell(&j, a->columns[i], at++);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
}
