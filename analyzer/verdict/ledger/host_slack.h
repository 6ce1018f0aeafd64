/*
 * host_slack.h - the free memory of the host's malloc at a verdict's moment, and the call site
 * whose blocks pin it.
 */
#ifndef ANALYZER_VERDICT_HOST_SLACK_H
#define ANALYZER_VERDICT_HOST_SLACK_H

#include "verdict/ledger/ledger.h"

/* Fill *out from that moment's ledger: free lists and, under a limit on address space, the space
 * that malloc reserves to grow into (glibc takes 64 MiB for each arena, and an arena for each
 * thread). The feed must stand at the moment, since it is asked for the live blocks. `pinned_by` is
 * the call site whose blocks border on most of the holes; if the known holes are too few, the one
 * that released most bytes, which are the holes. 0 or -ENOMEM. */
int host_slack_read(const struct feed *feed, const struct model *m,
    const struct callsites *callsites, const struct ledger *ledger, struct scene_slack *out);

/* Return the most bytes that malloc had free at an earlier moment. */
uint64_t host_slack_at(const struct model *m, uint64_t time_ns);

#endif
