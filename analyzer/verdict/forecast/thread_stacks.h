/*
 * thread_stacks.h - the stacks of threads that do not end: address space that no block tells of,
 * and that a limit on address space or data counts. The C library makes a table for each thread at
 * the line that starts it: these blocks say who starts threads, and how many live when; the address
 * space says what each takes. Pure functions of a model.
 */
#ifndef ANALYZER_VERDICT_THREAD_STACKS_H
#define ANALYZER_VERDICT_THREAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/callsite/callsite.h"

struct thread_stacks {
	const struct stack_stats *tables; /* of the call that starts most threads; NULL: unknown */
	uint32_t callsite; /* the line of that call, or CALLSITE_NONE */
	double each; /* bytes of address space for each table */
};

/* Read the stacks at the end of a model, which owns the tables. Few threads, or threads without a
 * size, are not known. */
struct thread_stacks thread_stacks_read(const struct model *m, const struct callsites *all);

/* Return the bytes of the stacks of those threads that were started until then, and still live. */
double thread_stacks_until(const struct thread_stacks *s, uint64_t time_ns);

#endif
