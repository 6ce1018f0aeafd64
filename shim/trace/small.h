/*
 * small.h - puts the traces of short-lived processes, of which there may be thousands, into one
 * file of their directory, "small.N.whyooms": a trace of its own takes three slots, most of them
 * nearly empty.
 */
#ifndef SHIM_SMALL_H
#define SHIM_SMALL_H

#include <stdbool.h>

/* Put the trace of an ended image, to which no process writes any more, into the directory's file
 * of small traces, and remove it. Only if it is small and holds nothing that anybody looks for by
 * name: no failure, no loss. False: the trace is unchanged, as always in doubt. */
bool small_fold(const char *directory, const char *path);

/* Is the calling thread the only one of the process? */
bool small_alone(void);

#endif
