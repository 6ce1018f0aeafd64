/*
 * moment.h - one process of a set, as it stood at a moment that the user named, and the space that
 * is asked about.
 */
#ifndef ANALYZER_CMD_MOMENT_H
#define ANALYZER_CMD_MOMENT_H

#include "model/space/space.h"
#include "trace/trace.h"

struct moment_request {
	const char *at; /* "failure", "peak", "end"; NULL: seconds, or the default */
	double seconds; /* of the process; used when greater than 0 */
	const char *space; /* NULL: the one that the failure is about */
	uint64_t pid; /* 0: the one that the report is about */
};

struct moment_view {
	struct trace *trace; /* has been read until the moment */
	struct model *model; /* stands there */
	struct space *space; /* of the model; NULL: the host's */
	const char *at; /* as in the request; in `name` for seconds */
	char name[64];
	uint64_t time_ns;
	bool failed; /* the moment is that of the failure, which is: */
	struct device_failure failure; /* of a device's space */
	uint64_t request; /* refused bytes, of any space */
	/* Where to stop reading, as feed_until_model() takes it. */
	uint64_t others, until_ns;
};

/* The process of that pid, or for 0 the one that the report is about. */
int moment_process(const struct trace_set *set, uint64_t pid, struct trace **out, struct err *err);
/* 0; negative errno with err filled: no such process, space or failure. */
int moment_find(const struct trace_set *set, const struct moment_request *request,
    struct moment_view *out, struct err *err);
void moment_fini(struct moment_view *view);
/* The same without reading: `out` then has no model. */
int moment_point(const struct model *all, const struct moment_request *request,
    struct moment_view *out, struct err *err);
/* The same, of a process whose events have been read: `all` is the model of its whole run. */
int moment_of(struct trace *t, const struct model *all, const struct moment_request *request,
    struct moment_view *out, struct err *err);
/* The space that is shown where nobody asks for one: what failed, else what holds most, and
 * PyTorch's blocks rather than the segments below them. NULL: the host's. */
const struct space *moment_default_space(const struct model *m);

/* One space at a moment, for the sums of its stacks. The host's moment is one of `all`. */
struct space_at {
	const struct model *model; /* of the space */
	enum moment moment; /* of that model */
	const char *at; /* "failure", "peak", "end", "12.5s" */
	uint64_t time_ns;
	struct moment_view view; /* owns the model, unless it is `all`: moment_fini() */
};
/* request->space NULL is the host. 0; negative errno with err. */
int moment_space(struct trace *t, struct model *all, const struct moment_request *request,
    struct space_at *out, struct err *err);

/* What --at takes: a name, or seconds since the start. False: it is neither; MOMENT_USAGE, with the
 * text, says so. */
bool moment_parse(const char *text, struct moment_request *out);
#define MOMENT_USAGE "--at is failure, peak, end or seconds since the start, not '%s'"

#endif
