/*
 * alert.h - runs a command at each change of a watched process's state, with the facts in its
 * environment. One at a time: what changes meanwhile is told afterwards, as it is then. Nothing
 * here waits, except alerts_finish().
 */
#ifndef ANALYZER_CMD_WATCH_ALERT_H
#define ANALYZER_CMD_WATCH_ALERT_H

#include <signal.h>
#include <stdbool.h>

#include "util/text/err.h"
#include "watch/watched.h"

#define ALERT_SECONDS 30.0 /* of a command, which is killed then */

enum alert_state {
	ALERT_OK,
	ALERT_GROWING, /* a space has a trend */
	ALERT_AT_RISK, /* it raises an alarm: forecast.h */
	ALERT_ENDED, /* the process is not there any more */
};
const char *alert_state_name(enum alert_state state); /* "at-risk" */
/* Return the state at this look; `before` while that is not known. */
enum alert_state alert_state_of(const struct watched *w, enum alert_state before);

struct alerts;
/* `command` for `sh -c`, not copied; `quiet`: what it prints goes nowhere. NULL: no memory. */
struct alerts *alerts_new(const char *command, bool quiet);
void alerts_free(struct alerts *a); /* accepts NULL; kills a command that runs */
/* Note a process's state at this look. `path`: its trace. A state counts when two looks in a row
 * have it, the end at once; a process that was never seen running has none. 0 or -ENOMEM. */
int alerts_see(struct alerts *a, const struct watched *w, const char *path);
/* Note that its trace cannot be read any more, or that it has ended. */
void alerts_end(struct alerts *a, const char *path);
/* Start and end commands as it is due: call it often. 0 or -ENOMEM. A command that cannot be
 * started is noted on stderr. */
int alerts_serve(struct alerts *a);
bool alerts_busy(const struct alerts *a); /* a command runs, or shall */
/* Run what is still to be told, and wait for it; at most until *stopped is not 0. */
void alerts_finish(struct alerts *a, const volatile sig_atomic_t *stopped);

#endif
