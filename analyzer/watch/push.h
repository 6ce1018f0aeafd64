/*
 * push.h - hands a line of JSON to a server by HTTP: one POST, bounded in time, with libcurl. Knows
 * nothing of what the line says, and tries once.
 */
#ifndef ANALYZER_WATCH_PUSH_H
#define ANALYZER_WATCH_PUSH_H

#include <stddef.h>

#include "util/text/err.h"

#define PUSH_SECONDS 10u /* until the end of the answer */

/* Check that this can be done with the URL, http or https, before it is wanted. 0; negative errno
 * with err: -EINVAL the URL is wrong; -ENOSYS: this build, or this machine, has no libcurl. */
int push_check(const char *url, struct err *err);
/* POST the line as application/json. Redirections are not followed. 0: the server took it, its
 * status was 2xx; negative errno with err: -EAGAIN, and a later time may do. Waits; one thread. */
int push_line(const char *url, const char *line, size_t bytes, struct err *err);

#endif
