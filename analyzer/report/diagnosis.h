/*
 * diagnosis.h - the result of `whyoom doctor`: what was looked at, what was found, the way out, and
 * what follows. One thread; nothing is allocated.
 */
#ifndef ANALYZER_REPORT_DIAGNOSIS_H
#define ANALYZER_REPORT_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/text/style.h"

enum diagnosis_status {
	DIAGNOSIS_OK,
	DIAGNOSIS_WARN, /* whyoom works, with a limit */
	DIAGNOSIS_FAIL, /* it does not work */
};

struct diagnosis_check {
	const char *name; /* a key, static: "libc" */
	enum diagnosis_status status;
	char fact[640]; /* what was found: half a sentence, lower case */
	char way_out[400]; /* what to do about it, or "" */
};

struct diagnosis {
	char program[256]; /* as the user wrote it; "": none was named */
	struct diagnosis_check checks[40]; /* in the order in which they are shown */
	size_t count;
};

/* Append a check. When the array is full, the last one is replaced. */
void diagnosis_add(struct diagnosis *d, const char *name, enum diagnosis_status status,
    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Set the way out of the check that was added last. */
void diagnosis_way_out(struct diagnosis *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Return the worst status of all checks. */
enum diagnosis_status diagnosis_worst(const struct diagnosis *d);
/* Return "ok", "warn" or "fail". */
const char *diagnosis_word(enum diagnosis_status status);
/* Append the sentence that matters first: will it work here? */
void diagnosis_summary(const struct diagnosis *d, struct str *out);

#endif
