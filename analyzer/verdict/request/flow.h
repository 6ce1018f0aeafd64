/*
 * flow.h - inside verdict/: the work until the moment, from one more pass over the events: which
 * requests, tasks and threads there were, what each held, and what each stage held.
 */
#ifndef ANALYZER_VERDICT_FLOW_H
#define ANALYZER_VERDICT_FLOW_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Read the host's work until the moment of r->callsites, and mark call sites that no single call
 * filled. r->flow is zeroed or from an earlier reading. Afterwards the feed stands at the moment.
 * 0; negative errno with err. */
int flow_read(struct verdict_result *r, struct feed feed, struct err *err);

/* If a device refused, read on until then, for flow_read_space(). The feed moves on: read the
 * moment's live blocks before. 0; negative errno with err. */
int flow_read_on(struct flow *flow, struct err *err);

/* Replace the requests by those that worked in a space of `then`, the process when that space
 * refused a request; r->callsites are the space's, and marked as by flow_read(). Stages stay the
 * host's. 0; negative errno with err. */
int flow_read_space(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *space, struct err *err);

/* Call once the verdict is known: if the weights did not fit, no phase was work. */
void flow_settle(struct verdict_result *r);
void flow_fini(struct flow *flow);

#endif
