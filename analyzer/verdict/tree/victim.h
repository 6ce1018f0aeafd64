/* victim.h - the processes of a set that a kernel's log names as killed. */
#ifndef ANALYZER_VERDICT_VICTIM_H
#define ANALYZER_VERDICT_VICTIM_H

#include "verdict/verdict.h"

/* Set victim[i], of set->count, for each image with a pid that the log names. The kernel counts
 * pids outside containers: if it names none of ours, the victim is the only process whose end was
 * not recorded, if its program has the victim's name. `hints` may be NULL. */
void victim_find(const struct trace_set *set, const struct verdict_hints *hints, bool *victim);

#endif
