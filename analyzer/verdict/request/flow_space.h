/*
 * flow_space.h - inside verdict/: whose work it was in a device's space, until a request was
 * refused there. Whose work it is the host's events show, too, so they are looked at along with
 * those that the host's own flow is read from, and not in another pass. One thread.
 */
#ifndef ANALYZER_VERDICT_FLOW_SPACE_H
#define ANALYZER_VERDICT_FLOW_SPACE_H

#include "model/callsite/proportion.h"
#include "model/request/request.h"
#include "model/space/space.h"
#include "verdict/framework/framework_frames.h"

struct flow_space;

/* Nothing was seen so far. `name`: the space's, which stays the caller's, and `known` may be NULL;
 * `until`: so many events that are no blocks of the host's (struct model's `others`). NULL: no
 * memory. */
struct flow_space *flow_space_new(
    struct feed feed, struct framework_frames *known, const char *name, uint64_t until);
void flow_space_free(struct flow_space *f); /* accepts NULL */

const char *flow_space_name(const struct flow_space *f);
/* It was all seen. */
bool flow_space_done(const struct flow_space *f);
/* The next event, of all; one after the last is no matter. 0; negative errno with err. */
int flow_space_apply(struct flow_space *f, const struct event *e, struct err *err);
/* The feed's events from where it stands until that is done, or there are no more. 0; negative
 * errno with err. */
int flow_space_read(struct flow_space *f, struct err *err);
/* Who worked there, the caller's from here on. */
struct requests *flow_space_take(struct flow_space *f);

/* The blocks of the space alone, from the feed's start, until so many `others`. 0; negative errno
 * with err. */
int flow_space_proportion(struct feed feed, const char *name, uint64_t until,
    struct proportion *proportion, struct err *err);

#endif
