/*
 * arenas.h - the mappings that the interpreter's allocator for small objects made for itself, and
 * how full it says they are.
 */
#ifndef ANALYZER_VERDICT_ARENAS_H
#define ANALYZER_VERDICT_ARENAS_H

#include "model/callsite/callsite.h"

/* Marks the places that hold arenas: sets their `arenas`, and `unused` by the interpreter's last
 * account before the moment; that stays 0 where there is none. */
void arenas_mark(const struct model *m, struct callsites *callsites);

/* What it held free then; 0: not known. */
uint64_t arenas_free_at(const struct model *m, uint64_t time_ns);
/* Of what was in use at the newest account before that, so much was in use already when there were
 * half as many arenas: that is no growth. */
uint64_t arenas_steady(const struct model *m, uint64_t time_ns);

#endif
