/*
 * story.h - the order of a log's messages, and which of them are about one event.
 */
#ifndef ANALYZER_EXPLAIN_STORY_H
#define ANALYZER_EXPLAIN_STORY_H

#include "explain/explain.h"

/* Drops what does not count, sorts the rest and numbers the events. */
void story_tell(struct explanation *e);
bool story_has(const struct explanation *e, enum message_kind kind);
/* True if two failures, `a` before `b`, are close enough to be about one event. */
bool story_near(
    const struct explanation *e, const struct explain_message *a, const struct explain_message *b);

#endif
