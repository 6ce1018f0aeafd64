/*
 * json.h - appends JSON to a str, with commas and nesting.
 */
#ifndef ANALYZER_UTIL_JSON_H
#define ANALYZER_UTIL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text/str.h"

struct json {
	struct str *out;
	unsigned depth;
	uint64_t filled; /* bit n: level n has a member already */
	bool pretty; /* one line a member, two spaces a level */
};

/* `key` is NULL in arrays and at the top level. At most 60 levels. */
void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_string(struct json *j, const char *key, const char *value); /* NULL: null */
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_real(struct json *j, const char *key, double value, int decimals); /* not finite: null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
/* null if not `known`. */
void json_u64_or_null(struct json *j, const char *key, uint64_t value, bool known);

#endif
