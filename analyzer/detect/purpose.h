/*
 * purpose.h - what a program's own names say of memory that it puts in place at start: a model's
 * weights, or room for work to come. Blocks of one size, taken before the first request, may be
 * either, and nothing in a trace tells which. So the names decide there, and only there: they never
 * overrule the shape.
 */
#ifndef ANALYZER_DETECT_PURPOSE_H
#define ANALYZER_DETECT_PURPOSE_H

#include "detect/detect.h"

enum purpose {
	PURPOSE_UNTOLD, /* no name says it, or the names contradict each other */
	PURPOSE_WEIGHTS, /* "load_layers", "read_checkpoint" */
	PURPOSE_ROOM, /* "reserve_slots", "KVCache" */
};

/* Read the words of a function's name: parts between underscores, dots and changes of case. */
enum purpose purpose_of_name(const char *function);
/* Ask the call site's function and its nearest callers; the first that says something decides. */
enum purpose purpose_of(const struct scene *scene, uint32_t callsite);

/* True if the refused request is one that a program makes while it starts: its line's first,
 * larger than all that lives, before any work. */
bool purpose_is_start(const struct scene *scene);

#endif
