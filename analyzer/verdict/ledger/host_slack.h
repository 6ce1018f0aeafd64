/*
 * host_slack.h - the free memory of the host's malloc and of the interpreter's arenas at a
 * verdict's moment, and the call site whose blocks pin it.
 */
#ifndef ANALYZER_VERDICT_HOST_SLACK_H
#define ANALYZER_VERDICT_HOST_SLACK_H

#include "verdict/ledger/ledger.h"

/* Mark the call sites with mappings of the interpreter's allocator for small objects: set their
 * `arenas`, and `unused` from the interpreter's last statistics before the moment (0 if there are
 * none). */
void arenas_mark(const struct model *m, struct callsites *callsites);
/* True if the interpreter asked for the block or mapping of that stack, for an object of its own. A
 * C extension may be on the stack, too: it asked for the object. `interpreter`: feed_interpreter().
 */
bool arenas_by_interpreter(const struct feed *feed, const char *interpreter, uint32_t stack);

/* Fill *out from that moment's ledger: free lists and, under a limit on address space, the space
 * that malloc reserves to grow into (glibc takes 64 MiB for each arena, and an arena for each
 * thread). The feed must stand at the moment, since it is asked for the live blocks. `pinned_by` is
 * the call site whose blocks border on most of the holes; if the known holes are too few, the one
 * that released most bytes, which are the holes. 0 or -ENOMEM. */
int host_slack_read(const struct feed *feed, const struct model *m,
    const struct callsites *callsites, const struct ledger *ledger, struct scene_slack *out);

/* Return the most bytes that malloc and the arenas had free at an earlier moment. */
uint64_t host_slack_at(const struct model *m, uint64_t time_ns);

/* For any allocator: note a hole between the blocks of two call sites (or CALLSITE_NONE), in *slack
 * except its bytes, and in `beside` for either call site. */
void slack_hole(
    struct scene_slack *slack, uint64_t *beside, uint64_t size, uint32_t before, uint32_t after);
/* Return the call site with the most bytes; CALLSITE_NONE: none has more than `least`. */
uint32_t slack_most(const uint64_t *bytes, uint32_t count, uint64_t least);

#endif
