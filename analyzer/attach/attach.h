/*
 * attach.h - has a running process begin or end its own recording: opens libwhyoom.so in it, and
 * calls whyoom_attach() or whyoom_detach() there.
 */
#ifndef ANALYZER_ATTACH_ATTACH_H
#define ANALYZER_ATTACH_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/safe_point.h"
#include "attach/target.h"
#include "util/text/err.h"

struct attach_request {
	const struct target *target; /* which passed refusals_check() */
	const char *library; /* a file, as this process sees it; NULL: it is in the target */
	bool in_memory; /* the target cannot open that file: give it a copy in its memory */
	const char *function; /* of the library: whyoom_attach, whyoom_detach */
	const void *settings; /* its arguments; NULL: none */
	size_t settings_bytes;
};

struct attach_done {
	pid_t thread; /* that was used */
	enum safe_point_how how;
	uint64_t pause_ns; /* of that thread */
	bool apart; /* the rest was done by a new thread, which has ended */
	int64_t result; /* of the function */
};

/* Do it, in a process of its own that survives this one, so that the target is never left halfway.
 * 0: the function was called; negative errno with err: see remote_call() and safe_point_reach(). */
int attach_call(const struct attach_request *request, struct attach_done *out, struct err *err);

#endif
