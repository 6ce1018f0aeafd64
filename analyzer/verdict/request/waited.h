/*
 * waited.h - inside verdict/: blame for what a library's own threads made goes to the line that
 * waited for them.
 */
#ifndef ANALYZER_VERDICT_WAITED_H
#define ANALYZER_VERDICT_WAITED_H

#include "verdict/result.h"

/* After decide(): changes r->verdict.blame, and adds evidence, where one line waited. `refused`: of
 * r->places, or NULL. 0 or negative, err filled. */
int waited_read(
    struct verdict_result *r, struct feed feed, const struct failure *refused, struct err *err);

#endif
