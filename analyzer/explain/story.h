/*
 * story.h - messages in the order of time, and which of them tell of one event.
 */
#ifndef ANALYZER_EXPLAIN_STORY_H
#define ANALYZER_EXPLAIN_STORY_H

#include "explain/explain.h"

/* Sorts by time when every message that has one has it from one clock, else leaves the log's order;
 * then numbers the events. */
void story_order(struct explanation *explanation);

#endif
