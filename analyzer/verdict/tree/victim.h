/*
 * victim.h - which processes of a set a kernel's log tells of.
 */
#ifndef ANALYZER_VERDICT_VICTIM_H
#define ANALYZER_VERDICT_VICTIM_H

#include "verdict/verdict.h"

/*
 * Sets victim[i], of set->count, for each image whose pid the log names as killed. The kernel
 * counts pids outside of containers: where it names none of ours, the one process that nobody saw
 * end otherwise is it, if its program has the victim's name. `hints` may be NULL.
 */
void victim_find(const struct trace_set *set, const struct verdict_hints *hints, bool *victim);

#endif
