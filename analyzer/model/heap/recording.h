/*
 * recording.h - what the recorder said of its own work: where it stopped, lost events, sampled more
 * coarsely or paused.
 */
#ifndef ANALYZER_MODEL_RECORDING_H
#define ANALYZER_MODEL_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

struct event;

/* Filled by recording.c, const for all others. */
struct recording {
	bool budget; /* it stopped at the budget of the trace */
	uint64_t lost; /* events */
	/* --max-rate: how often the sample was made coarser, and how coarse it was at most. */
	uint64_t coarse_every, coarser_times, coarsest_every, coarsest_exact_from;
	/* What lived had no room in a checkpoint: how often blocks of the sample were left out, how
	 * many, and what those that stayed are a sample by since. */
	uint64_t thinned_times, thinned_blocks, thinned_every;
	uint64_t paused_ns, paused_since_ns; /* since: 0 when it goes on */
};

/* EV_NOTICE. */
void recording_note(struct recording *r, const struct event *e);
/* After the last event, at that time. */
void recording_end(struct recording *r, uint64_t time_ns);

#endif
