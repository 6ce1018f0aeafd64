/*
 * fields.h - the values in a message, by name, with sizes in bytes.
 *
 * A group's name says what its text is. NAME_bytes is a size with its unit, or a plain number of
 * bytes. NAME_KiB, _kB, _MiB, _MB, _GiB and _GB are numbers of these, all powers of 1024, as the
 * programs that write "GB" count; _pages are of 4 KiB. All of them become the field NAME_bytes.
 * NAME_n is an integer and NAME_x a decimal number: the field NAME. All others are text.
 */
#ifndef ANALYZER_EXPLAIN_FIELDS_H
#define ANALYZER_EXPLAIN_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/pattern.h"
#include "util/arena.h"
#include "util/vec.h"

enum field_type { FIELD_BYTES, FIELD_INTEGER, FIELD_REAL, FIELD_TEXT, FIELD_LIST };

struct field;
struct fields {
	VEC(struct field) list;
};

struct field_rows {
	struct fields *items;
	size_t count, capacity;
};

struct field {
	const char *name; /* "requested_bytes" */
	enum field_type type;
	union {
		uint64_t bytes;
		int64_t integer;
		double real;
		const char *text;
		struct field_rows *rows;
	};
};

/* Add a field for each group of a match. A malformed number becomes text. 0 or -ENOMEM. */
int fields_of_match(struct fields *fields, const struct pattern_match *match, struct arena *arena);
int fields_add_bytes(struct fields *fields, const char *name, uint64_t bytes);
int fields_add_integer(struct fields *fields, const char *name, int64_t value);
int fields_add_text(
    struct fields *fields, const char *name, const char *text, size_t bytes, struct arena *arena);
/* Add an empty list, which the caller fills; NULL: no memory. */
struct field_rows *fields_add_rows(struct fields *fields, const char *name, struct arena *arena);

const struct field *fields_find(const struct fields *fields, const char *name);
/* Set *bytes to the field's size. False, and *bytes unchanged: there is no such size. */
bool fields_bytes(const struct fields *fields, const char *name, uint64_t *bytes);
void fields_free(struct fields *fields);

#endif
