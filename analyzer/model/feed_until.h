/* feed_until.h - the model of a process at an earlier moment: only its events until then. */
#ifndef ANALYZER_MODEL_FEED_UNTIL_H
#define ANALYZER_MODEL_FEED_UNTIL_H

#include "model/model.h"

/* Apply events until the first one later than `ns`, or until `others` of them were no blocks of the
 * host (struct run). The feed stays where it stopped. 0; negative errno with err. */
int feed_until_model(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err);
/* The same without the host's blocks. */
int feed_until_spaces(struct feed feed, uint64_t others, struct model **out, struct err *err);

#endif
