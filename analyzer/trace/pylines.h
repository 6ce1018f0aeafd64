/*
 * pylines.h - the source line of an instruction, by a Python code object's raw line table.
 */
#ifndef ANALYZER_TRACE_PYLINES_H
#define ANALYZER_TRACE_PYLINES_H

#include <stddef.h>
#include <stdint.h>

/* `version`: major * 256 + minor. `offset`: the instruction's byte offset, -1: not started. 0: this
 * instruction has no line, or the table does not reach it. */
uint32_t pylines_line(
    uint32_t version, uint32_t first_line, const uint8_t *table, size_t bytes, int64_t offset);

#endif
