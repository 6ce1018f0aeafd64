/*
 * sparse.h - the fuzzers' form of a directory of traces. A trace is nearly all zeros, in which no
 * fuzzer finds anything: here it is a list of pieces at offsets of a file. Any bytes are such a
 * list, so they can be damaged at will.
 *
 *   byte 0: the command that reads it. Then pieces: u8 file << 7 | slot, u16 offset in the slot,
 *   u16 length, and as many bytes; of length 0: the file ends there.
 */
#ifndef TESTS_FUZZ_SPARSE_H
#define TESTS_FUZZ_SPARSE_H

#include <stddef.h>
#include <stdint.h>

#include "whyoom/trace.h"

#define SPARSE_FILES 2u /* a process's and its supervisor's */
#define SPARSE_SLOTS 12u /* the largest size of a file */
#define SPARSE_BYTES (SPARSE_SLOTS * TRACE_SLOT_BYTES)

struct sparse_file {
	uint8_t *data; /* SPARSE_BYTES */
	size_t bytes;
};

struct sparse {
	uint8_t command;
	struct sparse_file files[SPARSE_FILES];
};

/* Read any bytes. The caller frees the files by sparse_fini(). */
void sparse_read(struct sparse *s, const uint8_t *data, size_t bytes);
/* Write at most `room` bytes; return their number. Pieces without room are left out. */
size_t sparse_write(const struct sparse *s, uint8_t *out, size_t room);
void sparse_fini(struct sparse *s);

#endif
