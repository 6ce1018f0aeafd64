/*
 * flow.h - inside verdict/: what went on until the moment, from one more reading of the events:
 * whose work it was and what each held (requests, tasks, threads), and what each stage held.
 */
#ifndef ANALYZER_VERDICT_FLOW_H
#define ANALYZER_VERDICT_FLOW_H

#include "model/space/space.h"
#include "verdict/result.h"

/* Of the host, for `places`. Fills r->flow, which is empty or of an earlier reading. 0; negative
 * errno with err. */
int flow_read(
    struct verdict_result *r, struct feed feed, struct callsites *callsites, struct err *err);
/* After the first, when nobody asks any more what lived at the moment: where a device refused, on
 * until then, for the next. 0; negative errno with err. */
int flow_read_on(struct verdict_result *r, struct err *err);
/* Of a device's space, until `then`, which ended with the refusal: who held what in it. Stages stay
 * the host's. */
int flow_read_space(struct verdict_result *r, struct feed feed, const struct model *then,
    const struct space *space, struct callsites *callsites, struct err *err);
/* When the verdict is there: where the weights did not fit, what was taken for work was none. */
void flow_settle(struct verdict_result *r);
void flow_fini(struct flow *flow);

#endif
