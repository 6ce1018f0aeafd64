/*
 * session.h - begins and ends the recording of a running process, with the reasons in words where
 * it cannot.
 */
#ifndef ANALYZER_ATTACH_SESSION_H
#define ANALYZER_ATTACH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/attach.h"
#include "util/text/err.h"

/* True: the process sees other files than we do, by a mount namespace or a root of its own. */
bool session_is_elsewhere(const struct target *target);
/* True: the user may do that to a path, as access() understands `how`, with no other groups. */
bool session_may(uid_t uid, gid_t gid, const char *path, int how);

/* Begin. `settings` are NAME=VALUE strings of WHYOOM_* variables, each ended by a NUL, `bytes` in
 * all. `target` has passed refusals_check(). 0; negative errno with err: nothing is recorded, or,
 * with -ETIMEDOUT, not yet. */
int session_begin(const struct target *target, const char *library, const char *settings,
    size_t bytes, struct attach_done *done, struct err *err);
/* End. Returns as session_begin(). */
int session_end(pid_t pid, struct attach_done *done, struct err *err);

#endif
