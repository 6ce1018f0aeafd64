/* arenas.h - the mappings of the interpreter's allocator for small objects, and their free part. */
#ifndef ANALYZER_VERDICT_ARENAS_H
#define ANALYZER_VERDICT_ARENAS_H

#include "model/callsite/callsite.h"

/* Mark the call sites that hold arenas: set their `arenas`, and `unused` from the interpreter's
 * last statistics before the moment (0 if there are none). */
void arenas_mark(const struct model *m, struct callsites *callsites);

/* Return the free bytes in the arenas at that moment; 0: unknown. */
uint64_t arenas_free_at(const struct model *m, uint64_t time_ns);
/* Return the used bytes at that moment that were already used when there were half as many arenas:
 * they are no growth. */
uint64_t arenas_steady(const struct model *m, uint64_t time_ns);

#endif
