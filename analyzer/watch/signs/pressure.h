/*
 * pressure.h - early signs that a cgroup (version 2) runs short of memory, before anything is
 * refused: tasks that wait for memory, pages that are reclaimed, and memory.high exceeded. Reads
 * the group's files only.
 */
#ifndef ANALYZER_WATCH_PRESSURE_H
#define ANALYZER_WATCH_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

/* Counts are since the group was made. */
struct pressure {
	/* memory.pressure: the part of the last ten seconds, 0 to 1, and all seconds so far, in
	 * which some, or all, tasks of the group waited for memory. */
	bool stalls_known;
	double some, full;
	double some_seconds, full_seconds;
	/* memory.events: how often the group was held back at memory.high. */
	bool throttled_known;
	uint64_t throttled;
	/* memory.stat: bytes that the kernel looked at and took back, and bytes that were soon
	 * needed again. */
	bool reclaim_known;
	uint64_t scanned_bytes, reclaimed_bytes, refault_bytes;
};

/* Read the files of a group's directory. False: it has none of them, as with version 1, or is gone;
 * then *out is zeroed. */
bool pressure_read(const char *directory, struct pressure *out);

#endif
