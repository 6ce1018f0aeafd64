/*
 * own_thread.h - has a process make a thread for what takes milliseconds, so that a thread of the
 * program is stopped only until the new one is there. The new one ends when it is let go.
 */
#ifndef ANALYZER_ATTACH_OWN_THREAD_H
#define ANALYZER_ATTACH_OWN_THREAD_H

#include <stdint.h>

#include "attach/remote.h"
#include "attach/safe_point.h"
#include "util/text/err.h"

struct own_thread {
	struct remote *remote;
	uint64_t pause_ns; /* of the thread that made it */
};

/* Have the remote's thread make another one, let it go on, and go on with the new one. 0; 1: none
 * is made, and the remote is as before: the program has one thread only, and is to keep it so, or a
 * filter of system calls or a limit of its addresses, or the kernel or the C library refuses.
 * Negative errno with err: the remote is at its end. */
int own_thread_begin(
    struct remote *r, const struct landmarks *marks, struct own_thread *out, struct err *err);
/* In place of remote_end(): the thread goes on and ends. */
void own_thread_end(struct own_thread *own);

#endif
