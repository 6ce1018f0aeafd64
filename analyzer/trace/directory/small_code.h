/*
 * small_code.h - what is coded in the record of a small trace: docs/trace-format.md, section 11.
 */
#ifndef ANALYZER_TRACE_SMALL_CODE_H
#define ANALYZER_TRACE_SMALL_CODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes window[base..end), of which what lies before is there (base == end: nothing; then window
 * may be NULL), and so many times. 0 or -EINVAL: it refers to what is not there, or ends early.
 */
int small_decode(const uint8_t *data, size_t bytes, uint8_t *window, uint32_t base, uint32_t end,
    uint32_t *times, uint32_t count);

#endif
