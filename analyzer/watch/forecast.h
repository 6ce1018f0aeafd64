/*
 * forecast.h - whether memory that lives grows, how fast, and when what is left will be used up.
 *
 * The lower envelope counts: what is kept after requests end. Its slope is Theil and Sen's, the
 * median of the slopes of all pairs (Sen 1968, doi 10.1080/01621459.1968.10480934), which holds
 * while fewer than 29 % of the points are outliers. Pure functions.
 */
#ifndef ANALYZER_WATCH_FORECAST_H
#define ANALYZER_WATCH_FORECAST_H

#include <stddef.h>
#include <stdint.h>

/* A period of the run, in order of time: the least and the most that lived in it, in bytes. */
struct forecast_period {
	uint64_t time_ns; /* its middle, since the start */
	uint64_t least, most;
};

enum forecast_state {
	FORECAST_UNKNOWN, /* it has not run long enough to tell */
	FORECAST_STEADY, /* there is no trend */
	FORECAST_GROWS,
};

struct forecast {
	enum forecast_state state;
	double rate; /* bytes a second; 0 unless it grows */
	/* Until the room is used up, in seconds: INFINITY unless it grows. */
	double seconds, soonest, latest;
};

/* Judge the periods since the process began to serve. `room`: bytes that its next peak may have
 * beyond the highest so far. */
void forecast_make(
    const struct forecast_period *periods, size_t count, uint64_t room, struct forecast *out);

#endif
