/*
 * survivors.h - what remains of all that a call site made: how much, and of which generations.
 */
#ifndef ANALYZER_MODEL_SURVIVORS_H
#define ANALYZER_MODEL_SURVIVORS_H

#include <stdbool.h>
#include <stdint.h>

struct callsite;
struct callsites;

/* At the moment. Filled by survivors.c, const for all others. */
struct survivors {
	uint64_t count, bytes;
	double even; /* share of the history's eighths that kept as many as the others */
	double late; /* share of their bytes born in the last third of the time, or of the process'
			work, whichever says more */
	uint64_t before; /* bytes of those born in the first eighth */
	bool stays; /* each generation leaves survivors, until the moment */
};

/* Of `c`, one of `all`, from its steps. */
void survivors_read(const struct callsites *all, const struct callsite *c, struct survivors *out);

/* Of what was born until `time_ns`, what still lived at the moment: bytes, and blocks. Within a
 * step that lies across that time, in proportion. */
double survivors_bytes_until(const struct callsite *c, uint64_t time_ns);
double survivors_count_until(const struct callsite *c, uint64_t time_ns);
typedef double (*survivors_until_t)(const struct callsite *c, uint64_t time_ns);

#endif
