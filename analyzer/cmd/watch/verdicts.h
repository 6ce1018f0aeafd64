/*
 * verdicts.h - full reports on running processes that are at risk, made by a process beside the
 * watcher, one at a time: `X.report.json` and `X.report.html` beside the trace `X.whyoom`, each
 * written aside and renamed. The likely cause comes back. Their cost bounds their number.
 */
#ifndef ANALYZER_CMD_WATCH_VERDICTS_H
#define ANALYZER_CMD_WATCH_VERDICTS_H

#include <stdbool.h>

#include "watch/watched.h"

#define VERDICT_SHARE 0.02 /* of a core that they may take */
#define VERDICT_SECONDS 300.0 /* of one, which is killed then */

struct verdicts;
/* `seconds`: between two verdicts on one process, at least. `quiet`: nothing is noted. NULL: no
 * memory. */
struct verdicts *verdicts_new(double seconds, bool quiet);
void verdicts_free(struct verdicts *v); /* accepts NULL; kills the process */
/* Begin a verdict on a process, if it is at risk, and it is due. A process is at risk if a space
 * raises an alarm, or it was refused memory since its last verdict. 0 or -ENOMEM. */
int verdicts_see(struct verdicts *v, const struct watched *w, const char *path);
/* Forget the process. */
void verdicts_end(struct verdicts *v, const char *path);
/* True, once, after a verdict was made: the trace's path, valid until the next call of any function
 * here, and the cause. Call it often. A failure is noted on stderr. */
bool verdicts_made(struct verdicts *v, const char **path, struct watched_cause *out);
bool verdicts_busy(const struct verdicts *v);

#endif
