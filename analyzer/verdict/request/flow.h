/*
 * flow.h - inside verdict/: the work until the moment, from one more pass over the events: which
 * requests, tasks and threads there were, what each held, and what each stage held.
 */
#ifndef ANALYZER_VERDICT_FLOW_H
#define ANALYZER_VERDICT_FLOW_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Read the host's work until the moment of `callsites`, and mark call sites that no single call
 * filled. *flow is zeroed or from an earlier reading. Afterwards the feed stands at the moment. 0;
 * negative errno with err. */
int flow_read(const struct verdict_result *r, struct feed feed, struct callsites *callsites,
    struct flow *flow, struct err *err);

/* If a device refused, read on until then, for flow_read_space(). The feed moves on: read the
 * moment's live blocks before. 0; negative errno with err. */
int flow_read_on(struct flow *flow, struct err *err);

/* A device's space that refused a request. */
struct flow_of_space {
	struct feed feed;
	const struct model *then; /* the process at the refusal */
	const struct space *space; /* of `then` */
	struct callsites *callsites; /* of that space; marked as by flow_read() */
};
/* Replace the requests in *flow by those that worked in that space. Stages stay the host's. 0;
 * negative errno with err. */
int flow_read_space(const struct verdict_result *r, const struct flow_of_space *of,
    struct flow *flow, struct err *err);

/* Call once the verdict is known: if the weights did not fit, no phase was work. */
void flow_settle(const struct verdict_result *r, struct flow *flow);
void flow_fini(struct flow *flow);

#endif
