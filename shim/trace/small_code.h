/*
 * small_code.h - codes the plain form of a small trace against a base that is much like it, and the
 * times of its events: matches, literals and numbers, in an adaptive binary range code
 * (docs/trace-format.md, section 11). Needs some 10 ns for a byte that is new, 2 for one that is
 * not.
 */
#ifndef SHIM_SMALL_CODE_H
#define SHIM_SMALL_CODE_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory of the caller's, for one call. */
struct small_coder;
size_t small_coder_bytes(void);

/*
 * `window` is the base's plain form, of `base` bytes, and then what is to be coded, up to `end`;
 * base == end: there are times alone. How much of `out` was written; 0: it had no room.
 */
size_t small_encode(struct small_coder *c, const uint8_t *window, uint32_t base, uint32_t end,
    const uint32_t *times, uint32_t count, uint8_t *out, size_t room);

#endif
