/*
 * arenas.h - the mappings that the interpreter's allocator for small objects made for itself, and
 * how full it says they are.
 */
#ifndef ANALYZER_VERDICT_ARENAS_H
#define ANALYZER_VERDICT_ARENAS_H

#include "model/callsite/callsite.h"

/* Mark the call sites that hold arenas: set their `arenas`, and `unused` by the interpreter's last
 * account before the moment (0 where there is none). */
void arenas_mark(const struct model *m, struct callsites *callsites);

/* Return the bytes that lay free in the arenas at that moment; 0: not known. */
uint64_t arenas_free_at(const struct model *m, uint64_t time_ns);
/* Return the bytes in use at that moment that were in use already when there were half as many
 * arenas: they are no growth. */
uint64_t arenas_steady(const struct model *m, uint64_t time_ns);

#endif
