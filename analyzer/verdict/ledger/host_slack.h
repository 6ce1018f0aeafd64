/*
 * host_slack.h - what the host's malloc holds and nobody uses, at the moment that a verdict is
 * about, and whose blocks pin it.
 */
#ifndef ANALYZER_VERDICT_HOST_SLACK_H
#define ANALYZER_VERDICT_HOST_SLACK_H

#include "verdict/ledger/ledger.h"

/*
 * Fills *out from that moment's ledger: free lists, and under a limit on address space what malloc
 * keeps of it to grow into (glibc takes 64 MiB for each arena, and an arena for each thread). The
 * feed stands at the moment, so that it can tell what lives. `pinned_by` is the place whose blocks
 * border on most of the holes; where those are too few to have a place, the one that gave most
 * back: they are its blocks' holes. 0 or -ENOMEM.
 */
int host_slack_read(const struct feed *feed, const struct model *m,
    const struct callsites *callsites, const struct ledger *ledger, struct scene_slack *out);

/* What malloc had free at a moment before, at most. */
uint64_t host_slack_at(const struct model *m, uint64_t time_ns);

#endif
