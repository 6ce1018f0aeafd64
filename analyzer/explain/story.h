/*
 * story.h - orders the messages by time and groups those that are about one event.
 */
#ifndef ANALYZER_EXPLAIN_STORY_H
#define ANALYZER_EXPLAIN_STORY_H

#include "explain/explain.h"

/* Sort by time if all times come from one clock, else keep the log's order; then number the
 * events. */
void story_order(struct explanation *explanation);

#endif
