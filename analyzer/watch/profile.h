/*
 * profile.h - what lives in a process as pprof's profile.proto, from the model of the latest look:
 * what Parca, Pyroscope and `go tool pprof` fetch again and again.
 */
#ifndef ANALYZER_WATCH_PROFILE_H
#define ANALYZER_WATCH_PROFILE_H

#include "export/export.h"

/* Write it to a file, compressed by gzip. `space` NULL: all memory once: the host, and of each
 * device PyTorch's blocks, or what the driver gave where there are none. `measure`: what readers
 * show first, MEASURE_LIVE or MEASURE_TOTAL. 0; negative errno with err, -ENOENT: no such space. */
int profile_write(
    const struct model *m, const char *space, enum export_measure measure, int fd, struct err *err);

#endif
