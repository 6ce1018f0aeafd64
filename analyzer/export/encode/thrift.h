/*
 * thrift.h - writes Thrift's compact protocol, which describes a Parquet file's parts. Fields of a
 * struct come in order of their ids, and each struct keeps the last one.
 */
#ifndef ANALYZER_EXPORT_THRIFT_H
#define ANALYZER_EXPORT_THRIFT_H

#include <stddef.h>
#include <stdint.h>

#include "util/text/str.h"

enum thrift_type {
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12
};

struct thrift {
	struct str *out;
	unsigned last; /* field of this struct */
};

/* A struct that is a field or an item; end each with thrift_end(). */
struct thrift thrift_struct(struct thrift *in, unsigned field);
struct thrift thrift_item(struct str *out);
void thrift_end(struct thrift *t);
void thrift_i32(struct thrift *t, unsigned field, int32_t value);
void thrift_i64(struct thrift *t, unsigned field, int64_t value);
void thrift_text(struct thrift *t, unsigned field, const char *text);
/* Then as many items. */
void thrift_list(struct thrift *t, unsigned field, enum thrift_type type, size_t count);
void thrift_item_i32(struct thrift *t, int32_t value);
void thrift_item_text(struct thrift *t, const char *text);

#endif
