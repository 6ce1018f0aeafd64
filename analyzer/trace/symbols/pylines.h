/*
 * pylines.h - decodes the line table of a Python code object.
 */
#ifndef ANALYZER_TRACE_PYLINES_H
#define ANALYZER_TRACE_PYLINES_H

#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

/* A cache of entries from which decoding of one table can start: tables of modules are long, and
 * many of their lines are asked for. */
struct pylines_mark {
	int64_t end, line; /* after the entries before it; sorted by `end`, which is not negative */
	size_t at;
};
struct pylines {
	struct pylines_mark *items;
	size_t count, capacity;
};

/* The source line of an instruction; 0: it has none, or the table ends before it. `version`: major
 * * 256 + minor. `offset`: of the instruction in bytes, -1: not started. `marks`: zero before the
 * first lookup in a table, its items are freed by the caller; NULL: no cache. */
uint32_t pylines_line(uint32_t version, uint32_t first_line, const uint8_t *table, size_t bytes,
    int64_t offset, struct pylines *marks);

#endif
