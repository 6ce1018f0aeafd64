/*
 * waited.h - inside verdict/: blames the line that waited for a library's own threads, instead of
 * their callees.
 */
#ifndef ANALYZER_VERDICT_WAITED_H
#define ANALYZER_VERDICT_WAITED_H

#include "verdict/result.h"

/* If one line waited, change r->verdict.blame and add evidence. Call it after decide(). `refused`
 * is of r->callsites' space, or NULL. 0; negative errno with err. */
int waited_read(
    struct verdict_result *r, struct feed feed, const struct failure *refused, struct err *err);

#endif
