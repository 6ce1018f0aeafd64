/*
 * failures.h - what processes of a directory ended of, once they have: a process beside the watcher
 * judges the directory and writes `X.report.json`, `X.report.html` and the fleet's line,
 * `X.failure.json`, beside the trace `X.whyoom` of the failure. The lines are pushed to a server;
 * `X.pushed` says that it took one. All that must outlive the watcher is in these files, so a
 * failure is judged and pushed once, also by the next watcher. Nothing here waits.
 */
#ifndef ANALYZER_CMD_WATCH_FAILURES_H
#define ANALYZER_CMD_WATCH_FAILURES_H

#include <signal.h>
#include <stdbool.h>

#include "util/text/err.h"
#include "watch/metrics.h"

#define FAILURES_SECONDS 300.0 /* of one judgement, which is killed then */
#define FAILURES_LAST 20.0 /* seconds: Kubernetes grants 30 from SIGTERM to SIGKILL */
#define FAILURES_RETRY_MOST 60.0 /* seconds between two tries to push; the first is after one */

struct failures;
/* `directory` and `url` are not copied; url NULL: nothing is pushed. What an earlier watcher left
 * is taken up. NULL: no memory. */
struct failures *failures_new(const char *directory, const char *url);
void failures_silence(struct failures *f); /* nothing is noted any more */
void failures_free(struct failures *f); /* accepts NULL; kills the process */
/* Note that a process ended, or had ended before it was seen. */
void failures_note(struct failures *f);
/* Start and end the process as it is due: call it often. 0 or -ENOMEM. */
int failures_serve(struct failures *f);
bool failures_busy(const struct failures *f); /* a process runs, or shall */
/* Judge and push what is left, for FAILURES_LAST seconds at most, or until *stopped is not 0. */
void failures_finish(struct failures *f, const volatile sig_atomic_t *stopped);
const struct metrics_failures *failures_counts(const struct failures *f);

#endif
