/*
 * backing.h - keeps the contents of simulated memory in real memory: lazily, piece by piece, up to
 * a bound; beyond it writes are dropped, with one warning. Memory that was never written reads as
 * zeros. The pages are outside the host program's heap, and children of fork() do not get them.
 *
 * Pre: the caller holds the model's lock.
 */
#ifndef SIMGPU_BACKING_H
#define SIMGPU_BACKING_H

#include <stdint.h>

struct backing { /* of one physical allocation; zeroed at first */
	uint32_t *pieces;
	uint64_t count;
};

void backing_init(uint64_t bound);
void backing_free(struct backing *backing);

void backing_write(
    struct backing *backing, uint64_t size, uint64_t offset, const void *from, uint64_t n);
void backing_read(const struct backing *backing, uint64_t offset, void *to, uint64_t n);
/* Fills n bytes with the `width` (1, 2 or 4) low bytes of `value`, repeated. */
void backing_fill(struct backing *backing, uint64_t size, uint64_t offset, uint32_t value,
    unsigned width, uint64_t n);

#endif
