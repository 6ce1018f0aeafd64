/* sample.h - positions in the library built from sample.c (SAMPLE, its path). */
#ifndef TESTS_UNIT_TRACE_SAMPLE_H
#define TESTS_UNIT_TRACE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct sample {
	uint64_t outer, sink, rust, clone; /* addresses of the file's own */
	uint64_t outer_size, sink_size;
	uint64_t call; /* the address after outer's call of sink, as a return address */
	uint8_t build_id[64];
	size_t build_id_bytes;
};

void sample_read(const char *path, struct sample *out);
/* Return a copy made by a command with %s twice: from, to. The caller removes it. */
void sample_copy(const char *command, char *path);
/* The line of sample.c that holds this text. */
unsigned sample_line(const char *text);

#endif
