/*
 * small_code.h - decodes the record of a small trace: docs/trace-format.md, section 11.
 */
#ifndef ANALYZER_TRACE_SMALL_CODE_H
#define ANALYZER_TRACE_SMALL_CODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decode window[base..end), with window[0..base) given, and then `count` times. base == end: only
 * the times, and window may be NULL. 0; -EINVAL: the code ends early or refers to bytes before
 * window[0].
 */
int small_decode(const uint8_t *data, size_t bytes, uint8_t *window, uint32_t base, uint32_t end,
    uint32_t *times, uint32_t count);

#endif
