/*
 * pylines.h - the source line of an instruction, by a Python code object's raw line table.
 */
#ifndef ANALYZER_TRACE_PYLINES_H
#define ANALYZER_TRACE_PYLINES_H

#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

/* Places of one table that reading can begin at, as far as it was read: tables of modules are long,
 * and asked for many of their lines. */
struct pylines_mark {
	int64_t end, line; /* by the entries before it */
	size_t at;
};
struct pylines {
	struct pylines_mark *items;
	size_t count, capacity;
};

/* `version`: major * 256 + minor. `offset`: the instruction's byte offset, -1: not started. 0: this
 * instruction has no line, or the table does not reach it. `marks`: all zero before the first
 * question about a table, the caller's to free; NULL: none are kept. */
uint32_t pylines_line(uint32_t version, uint32_t first_line, const uint8_t *table, size_t bytes,
    int64_t offset, struct pylines *marks);

#endif
