/*
 * forecast.h - whether memory that lives grows, how fast, and when what is left will be used up.
 *
 * What growing call sites keep tells most (growth.h makes that curve). Without them, the lower
 * envelope of all live bytes counts: what is kept after requests end. Its slope is Theil and Sen's,
 * the median of the slopes of all pairs (Sen 1968, doi 10.1080/01621459.1968.10480934), which holds
 * while fewer than 29 % of the points are outliers. Pure functions.
 */
#ifndef ANALYZER_VERDICT_FORECAST_H
#define ANALYZER_VERDICT_FORECAST_H

#include <stdbool.h>
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
	double work; /* bytes that the process will have acquired until then; INFINITY: not known */
	double since; /* seconds that it has grown so far; 0 unless it grows */
	/* It grows, and what is left will be used up in less time than it has run so far, and less
	 * than twice the time that it has grown so far. A trend tells no more. */
	bool alarm;
};

/* What call sites that grow kept at that second of the run, and what the process had acquired until
 * then, which measures its work: a pause is no plateau. In bytes. */
struct forecast_point {
	double seconds, work, kept;
};
#define FORECAST_POINTS 33u

/* Judge these points, evenly spaced, the last of which is now. `first`: second of the run at which
 * it began. `room`: bytes that are left. */
void forecast_of_points(const struct forecast_point points[FORECAST_POINTS], double first,
    uint64_t room, struct forecast *out);

/* Judge the periods since the process began to serve. `room`: bytes that its next peak may have
 * beyond the highest so far. */
void forecast_make(
    const struct forecast_period *periods, size_t count, uint64_t room, struct forecast *out);

#endif
