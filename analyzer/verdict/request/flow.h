/*
 * flow.h - inside verdict/: what went on until the moment, from one more pass over the events:
 * whose work it was and what each held (requests, tasks, threads), and what each stage held.
 */
#ifndef ANALYZER_VERDICT_FLOW_H
#define ANALYZER_VERDICT_FLOW_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Read the host's work until the moment of `callsites`, and mark there which call sites no single
 * call filled. *flow is all zero or from an earlier reading. Afterwards the feed stands at the
 * moment. 0; negative errno with err. */
int flow_read(const struct verdict_result *r, struct feed feed, struct callsites *callsites,
    struct flow *flow, struct err *err);

/* Where a device refused, read on until then, for flow_read_space(). The feed moves on: ask what
 * lives at the moment before. 0; negative errno with err. */
int flow_read_on(struct flow *flow, struct err *err);

/* A device's space that refused a request. */
struct flow_of_space {
	struct feed feed;
	const struct model *then; /* the process as it was at the refusal */
	const struct space *space; /* of `then` */
	struct callsites *callsites; /* of that space; marked as by flow_read() */
};
/* Replace the requests in *flow by those that worked in that space. Stages stay the host's. 0;
 * negative errno with err. */
int flow_read_space(const struct verdict_result *r, const struct flow_of_space *of,
    struct flow *flow, struct err *err);

/* When the verdict is known: where the weights did not fit, no phase of work was one. */
void flow_settle(const struct verdict_result *r, struct flow *flow);
void flow_fini(struct flow *flow);

#endif
