/*
 * feed_until.h - a process as it was at some moment: its events until then, and no more.
 */
#ifndef ANALYZER_MODEL_FEED_UNTIL_H
#define ANALYZER_MODEL_FEED_UNTIL_H

#include "model/model.h"

/* Stops after that many events that are no blocks of the host's (struct model's `others`), and
 * before the first one later than `ns`. The feed stands where it stopped. 0; negative errno with
 * err filled. */
int feed_until_model(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err);
/* The same without the host's blocks. */
int feed_until_spaces(struct feed feed, uint64_t others, struct model **out, struct err *err);

#endif
