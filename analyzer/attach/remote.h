/*
 * remote.h - calls functions in another process, on one of its threads that is stopped at a safe
 * point. The thread gets a stack of its own for it, and blocks its signals; the others run on.
 *
 * Should the caller be killed while a call runs, the thread finishes the call, puts back by itself
 * what it had, and goes on.
 */
#ifndef ANALYZER_ATTACH_REMOTE_H
#define ANALYZER_ATTACH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/safe_point.h"
#include "attach/target.h"
#include "util/text/err.h"

#define REMOTE_TEXT_MAX 65536u

struct remote {
	const struct target *target;
	struct safe_point *point;
	uint64_t syscall_code;
	uint64_t area; /* mapped in the target; 0: none */
	int signal; /* by which the thread says that a call has come back */
	bool lost; /* a call did not come back in time: the thread is not ours any more */
};

/* Block the thread's signals and map the area. 0; negative errno with err, and the thread goes on
 * as before. `point` stays the caller's. */
int remote_begin(const struct target *target, const struct landmarks *marks,
    struct safe_point *point, struct remote *out, struct err *err);
/* Make a system call. Returns what it returns, negative errno if it fails. */
int64_t remote_syscall(struct remote *r, long number, const uint64_t arguments[6]);
/* Copy bytes to where calls find them, at most REMOTE_TEXT_MAX. Returns the address; 0: none. */
uint64_t remote_text(struct remote *r, const void *bytes, size_t count);
/* Call a function with at most four arguments. 0; -ETIMEDOUT: it did not come back in time; the
 * thread is let go, and finishes it by itself; -EFAULT: it crashed; other negative errno. With err.
 */
int remote_call(struct remote *r, uint64_t function, const uint64_t arguments[MACHINE_ARGUMENTS],
    unsigned timeout_ms, int64_t *result, struct err *err);
/* Let the thread go on, and keep the area. Returns how long it was held, in ns. */
uint64_t remote_let_go(struct remote *r);
/* Go on with another thread, which r->point is now, stopped and saved. 0; negative errno. */
int remote_take_over(struct remote *r);
/* Unmap the area, restore the thread and let it go on. Returns how long it was held, in ns. */
uint64_t remote_end(struct remote *r);

#endif
