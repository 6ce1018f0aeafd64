/*
 * host_slack.h - what the host's malloc holds and nobody uses, at the moment that a verdict is
 * about, and whose blocks pin it.
 */
#ifndef ANALYZER_VERDICT_HOST_SLACK_H
#define ANALYZER_VERDICT_HOST_SLACK_H

#include "verdict/ledger/ledger.h"

/*
 * Fill *out from that moment's ledger: free lists and, under a limit on address space, what malloc
 * keeps of it to grow into (glibc takes 64 MiB for each arena, and an arena for each thread). The
 * feed must stand at the moment, as it is asked for the live blocks. `pinned_by` is the call site
 * whose blocks border on most of the holes; where the known holes are too few, the one that gave
 * most bytes back, as these are the holes. 0 or -ENOMEM.
 */
int host_slack_read(const struct feed *feed, const struct model *m,
    const struct callsites *callsites, const struct ledger *ledger, struct scene_slack *out);

/* Return the bytes that malloc had free at an earlier moment, at most. */
uint64_t host_slack_at(const struct model *m, uint64_t time_ns);

#endif
