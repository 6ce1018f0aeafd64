/*
 * watched.h - what is known of a running process at the latest look: its memory by space, what
 * limits it, what grows, and when it will be full. Reads the trace and nothing else of the process.
 * One thread.
 */
#ifndef ANALYZER_WATCH_WATCHED_H
#define ANALYZER_WATCH_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "knowledge/knowledge.h"
#include "model/callsite/callsite.h"
#include "util/text/err.h"
#include "util/text/str.h"
#include "verdict/forecast/forecast.h"
#include "watch/signs/model_name.h"
#include "watch/signs/pressure.h"

#define WATCHED_SITES 10u /* listed, and metrics: a label for each must stay bounded */
#define WATCHED_SEEN 60u /* shown on a terminal, where they can be sorted and filtered */
#define WATCHED_SPACES 17u /* the host and each device */

/* A call site. Strings are valid until the next look. */
struct watched_site {
	const char *function, *file;
	uint32_t line;
	uint64_t live_bytes, live_count;
	double rate; /* bytes a second that it kept of late; 0 unless it keeps on growing */
	uint32_t stack; /* the one with most of its live bytes */
};

/* What the live bytes of the host are. */
struct watched_kinds {
	uint64_t blocks, mappings, shared, files;
	uint64_t imports, growing; /* parts: of modules, of call sites that keep on growing */
};

/* Memory with a limit of its own. */
struct watched_space {
	char name[32]; /* "host", "cuda:0" */
	const char *limit; /* what limits it: "cgroup", "machine", "as", "data", "device"; NULL:
			      not known */
	uint64_t limit_bytes, left; /* 0 without a limit */
	uint64_t live_bytes; /* of blocks and mappings */
	uint64_t reserved_bytes; /* from the driver, by PyTorch's allocator; 0: none */
	uint64_t largest_request; /* bytes of the largest block so far */
	bool holes_known; /* of a device: between PyTorch's blocks */
	uint64_t hole_bytes, largest_hole;
	double unusable; /* part of what is free that the largest request cannot have */
	/* Live bytes by role, and what is retained after the work: roles.h. */
	uint64_t role_bytes[ROLE_COUNT], retained_bytes;
	struct forecast forecast;
};

/* The likely cause, by the latest verdict on the process. Strings are copies, and cut. */
struct watched_cause {
	bool known; /* false: no verdict was made yet */
	enum cause cause;
	double confidence; /* 0 to 1 */
	char function[96], file[64]; /* that is blamed; "": nothing is */
	uint32_t line;
	uint64_t bytes; /* of its blocks */
};

struct watched {
	uint32_t pid;
	const char *trace; /* its trace's name, without folder and ending; as long as the watch */
	char command[64]; /* its program and first arguments */
	char model[MODEL_NAME_BYTES]; /* that it serves; "": not known */
	bool running, sampled;
	bool ended_well; /* by exit(0); it may have been refused memory before */
	uint64_t age_ns; /* since its start, of the latest event */
	uint64_t resident_bytes; /* 0: not known */
	bool attached; /* it had begun before, by ran_ns if that is not 0 */
	uint64_t ran_ns, before_bytes; /* what is left of what it held then */
	uint64_t refused; /* requests so far */
	/* Free inside the allocators, as last reported; NaN: not known. */
	double malloc_free, python_free;
	bool marks; /* it marks its requests: */
	uint64_t requests, in_flight;
	bool has_tasks; /* it runs tasks on an event loop, of which have not ended: */
	uint64_t tasks;
	uint64_t events, dropped, trace_bytes;
	uint64_t looks, begun_again; /* looks; and how often a checkpoint made it read all again */
	struct watched_space spaces[WATCHED_SPACES];
	size_t space_count;
	struct watched_kinds kinds;
	/* What the caller has set: early signs of its cgroup, zeroed if not known; a verdict. */
	struct pressure pressure;
	struct watched_cause likely;
	struct watched_site sites[WATCHED_SEEN]; /* of the host, the fastest growing first */
	size_t listed, seen; /* WATCHED_SITES, WATCHED_SEEN at most */
	size_t callsite_total;
};

struct watch; /* a process that is watched */

/* Begin with the process whose trace this is. `warm_up_ns`: nothing is forecast before that age.
 * `knowledge` outlives the watch; NULL: no role is known. 0; negative errno with err. */
int watch_open(const char *path, uint64_t warm_up_ns, const struct knowledge *knowledge,
    struct watch **out, struct err *err);
void watch_close(struct watch *w); /* accepts NULL */
const char *watch_path(const struct watch *w);
/* Set what the following looks give, too; the present one as well. */
void watch_set_pressure(struct watch *w, const struct pressure *p);
void watch_set_cause(struct watch *w, const struct watched_cause *c);
/* Return the model of the latest look, valid until the next one. */
const struct model *watch_model(const struct watch *w);
/* Read what was written since the last look. *out is valid until the next one. 0; negative errno
 * with err: the file is gone or cannot be read, and no further look can help. */
int watch_look(struct watch *w, const struct watched **out, struct err *err);
/* Give the frames of a call site's stack as of the latest look, outermost first, valid until the
 * next one. Returns their number. */
size_t watch_stack(struct watch *w, uint32_t stack, const struct symbol **out);

#endif
