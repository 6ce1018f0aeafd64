/*
 * small.h - the traces of short-lived processes, of which there may be thousands, go into one file
 * of their directory, "small.N.whyooms": a trace of its own takes three slots, and most of them are
 * as good as empty.
 */
#ifndef SHIM_SMALL_H
#define SHIM_SMALL_H

#include <stdbool.h>
#include <stdint.h>

/* The trace of an image that has ended, by exit or exec, and that nobody writes to any more: goes
 * into the directory's file of small traces if it is one, and has nothing that anybody may look for
 * in it by name: no failure, nothing lost. False: it is as it was; so it is when in doubt. */
bool small_fold(const char *directory, const char *path);

/* Is the calling thread all that there is of the process? */
bool small_alone(void);

#endif
