/* survivors.h - the blocks of a call site that remain: their number and their generations. */
#ifndef ANALYZER_MODEL_SURVIVORS_H
#define ANALYZER_MODEL_SURVIVORS_H

#include <stdbool.h>
#include <stdint.h>

struct callsite;
struct callsites;

/* At the moment. Filled by survivors.c, const for all others. */
struct survivors {
	uint64_t count, bytes;
	double even; /* share of the history's eighths that kept about as many as the others */
	/* share of bytes born in the last third of time, or of the process's work if larger */
	double late;
	uint64_t before; /* bytes born in the first eighth */
	bool stays; /* each generation leaves survivors, until the moment */
};

/* Read the survivors of `c`, one of `all`, from its steps. */
void survivors_read(const struct callsites *all, const struct callsite *c, struct survivors *out);

/* Return the bytes, or blocks, born until `time_ns` that still lived at the moment. A step that
 * crosses that time counts in proportion. */
double survivors_bytes_until(const struct callsite *c, uint64_t time_ns);
double survivors_count_until(const struct callsite *c, uint64_t time_ns);
typedef double (*survivors_until_t)(const struct callsite *c, uint64_t time_ns);

#endif
