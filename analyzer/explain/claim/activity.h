/*
 * activity.h - what a program was doing near a message, by the words of the lines around it:
 * loading weights, taking its pools at the start, serving, training.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_ACTIVITY_H
#define ANALYZER_EXPLAIN_CLAIM_ACTIVITY_H

#include <stddef.h>

enum activity {
	ACTIVITY_UNKNOWN,
	ACTIVITY_LOAD, /* weights, or an index, are loaded */
	ACTIVITY_START, /* pools are taken, the largest batch is tried, graphs are captured */
	ACTIVITY_TRAIN,
	ACTIVITY_SERVE,
	ACTIVITY_COUNT,
};

/* Read the text before a message, the message, and the text behind it. The message's own words
 * count before those of the lines around it, and nearer lines before those further off. */
enum activity activity_read(const char *text, size_t begin, size_t end, size_t bytes);

#endif
