/*
 * rate.h - --max-rate: when the trace grows faster, the sample becomes coarser, and finer again
 * later. Each record tells the mean by which it was chosen, so estimates stay unbiased; their error
 * grows. Only in mode sampled; nothing here is on the path of a block.
 */
#ifndef SHIM_RATE_H
#define SHIM_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Count bytes of events that were written. Any thread. */
void rate_add(uint64_t bytes);

/* Adjust the sample about ten times a second; the thread that reads the levels calls it. Returns
 * whether the sample changed because the trace grew by *grown bytes a second; the caller records
 * that. */
bool rate_adjust(uint64_t now_ticks, uint64_t *grown);

/* In the child of a fork: its file begins empty. The sample is the parent's. */
void rate_forked(void);

#endif
