/*
 * trial.h - for `whyoom doctor`: the directory for the traces, and a small program that is recorded
 * there. One thread.
 */
#ifndef ANALYZER_CMD_DOCTOR_TRIAL_H
#define ANALYZER_CMD_DOCTOR_TRIAL_H

#include <limits.h>

#include "report/diagnosis.h"

/* Examine the directory where `whyoom run` would put its traces: `wanted`, which need not exist
 * yet, or (NULL or "") the current one or /var/tmp. `folder` is an existing directory to try in, or
 * "" if there is none. */
void doctor_disk(struct diagnosis *d, const char *wanted, bool allow_tmpfs, char folder[PATH_MAX]);

/* Record /bin/sh below `folder` with that library, read the trace, and remove it. */
void doctor_trial(struct diagnosis *d, const char *library, const char *folder);

#endif
