/*
 * recording.h - the recorder's own notes: where it stopped, lost events, sampled more coarsely or
 * paused.
 */
#ifndef ANALYZER_MODEL_RECORDING_H
#define ANALYZER_MODEL_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

struct event;

/* Filled by recording.c, const for all others. */
struct recording {
	bool budget; /* it stopped at the trace's size limit */
	uint64_t lost; /* events */
	/* --max-rate: how often the sample was made coarser, and its coarsest rate. */
	uint64_t coarse_every, coarser_times, coarsest_every, coarsest_exact_from;
	/* Live blocks had no room in a checkpoint: how often sampled blocks were left out, how
	 * many, and the rate of the remaining sample. */
	uint64_t thinned_times, thinned_blocks, thinned_every;
	uint64_t paused_ns, paused_since_ns; /* since: 0 unless it is paused */
};

/* Apply EV_NOTICE. */
void recording_note(struct recording *r, const struct event *e);
/* Call after the last event, with its time. */
void recording_end(struct recording *r, uint64_t time_ns);

#endif
