/*
 * attached.h - the result of `whyoom attach` and `whyoom detach`: what was done to a process.
 */
#ifndef ANALYZER_REPORT_ATTACHED_H
#define ANALYZER_REPORT_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>

struct attached_view {
	int pid;
	const char *name; /* of the program */
	bool begun; /* it is recorded from now on; else no more */
	const char *mode; /* "full", "sampled"; NULL at the end */
	const char *trace; /* the directory, as the process sees it; NULL at the end */
	const char *trace_here; /* as this command sees it: the same, or below /proc/PID/root */
	uint64_t for_ns; /* it ends by itself after that; 0: by hand */
	int thread; /* that was paused */
	uint64_t pause_ns;
	bool asleep; /* it was in a wait; else about to enter malloc */
	bool own_thread; /* it made a thread for the work, which has ended */
};

#endif
