/*
 * small_code.h - codes the plain form of a small trace against a similar base, and the times of its
 * events: matches, literals and numbers, in an adaptive binary range code (docs/trace-format.md,
 * section 11). Takes some 10 ns for a new byte, 2 ns for a matched one.
 */
#ifndef SHIM_SMALL_CODE_H
#define SHIM_SMALL_CODE_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory that the caller provides for one call. */
struct small_coder;
size_t small_coder_bytes(void);

/*
 * Code `window`: first the base's plain form of `base` bytes, then the bytes to be coded, up to
 * `end`. base == end: only times. Returns the bytes written to `out`; 0: no room.
 */
size_t small_encode(struct small_coder *c, const uint8_t *window, uint32_t base, uint32_t end,
    const uint32_t *times, uint32_t count, uint8_t *out, size_t room);

#endif
