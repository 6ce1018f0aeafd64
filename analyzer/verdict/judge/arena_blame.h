/*
 * arena_blame.h - inside verdict/: blames a line for small objects that stay. They lie in the
 * interpreter's arenas, and no event shows them. The line that asked for an arena is the one whose
 * object found no room, which is often one that makes much and keeps nothing. What objects are kept
 * in is larger, and recorded.
 */
#ifndef ANALYZER_VERDICT_ARENA_BLAME_H
#define ANALYZER_VERDICT_ARENA_BLAME_H

#include "verdict/result.h"

/* If r->verdict blames a line for arenas, but all that this line is seen to make comes and goes,
 * blame another line, or else the function that all arenas have in common, and add evidence. Call
 * it after decide(). 0 or -ENOMEM. */
int arena_blame(struct verdict_result *r);
/* Return what follows the blamed line in the summary; NULL: arena_blame() left the verdict alone.
 */
const char *arena_blame_words(const struct verdict *v);

#endif
