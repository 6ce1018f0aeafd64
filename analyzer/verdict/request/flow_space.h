/*
 * flow_space.h - inside verdict/: the requests that worked in a device's space until it refused
 * one. The host's events also show which request a thread works for, so both flows are read in one
 * pass. One thread.
 */
#ifndef ANALYZER_VERDICT_FLOW_SPACE_H
#define ANALYZER_VERDICT_FLOW_SPACE_H

#include "model/callsite/proportion.h"
#include "model/request/request.h"
#include "model/space/space.h"
#include "verdict/framework/framework_frames.h"

struct flow_space;

/* Begin with no events. `name`, the space's, stays the caller's; `known` may be NULL; `until` is
 * the number of events that are no blocks of the host's (struct model's run.others). NULL: no
 * memory. */
struct flow_space *flow_space_new(
    struct feed feed, struct framework_frames *known, const char *name, uint64_t until);
void flow_space_free(struct flow_space *f); /* accepts NULL */

const char *flow_space_name(const struct flow_space *f);
/* Take the feed's next event; after the last one, do nothing. 0; negative errno with err. */
int flow_space_apply(struct flow_space *f, const struct event *e, struct err *err);
/* Read on until all events were seen or the feed ends. 0; negative errno with err. */
int flow_space_read(struct flow_space *f, struct err *err);
/* Return the requests that worked there. The caller frees them. */
struct requests *flow_space_take(struct flow_space *f);

/* Feed the space's blocks to `proportion`, from the feed's start until that many run.others. 0;
 * negative errno with err. */
int flow_space_proportion(struct feed feed, const char *name, uint64_t until,
    struct proportion *proportion, struct err *err);

#endif
