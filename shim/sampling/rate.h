/*
 * rate.h - --max-rate: where the trace grows faster than that, the sample is made coarser, and
 * finer again later. Each record says by which mean it was chosen, so that estimates stay what they
 * are, with a larger error. Mode sampled alone; nothing here is on the way of a block.
 */
#ifndef SHIM_RATE_H
#define SHIM_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* So many bytes of events were written since the last call. Any thread. */
void rate_add(uint64_t bytes);

/* About ten times a second, by whichever thread reads the levels then. True: the sample is another
 * one from here on, since the trace grew by *grown bytes a second; that is to be said in it. */
bool rate_look(uint64_t now_ticks, uint64_t *grown);

/* In the child of a fork, whose file begins empty; its sample is its parent's. */
void rate_forked(void);

#endif
