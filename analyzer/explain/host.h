/*
 * host.h - the arithmetic of a message about the host's memory: one request, or a kill by the
 * kernel.
 *
 * Fields: requested; or anon, what a killed process had in memory; or the list `tasks` of comm and
 * resident; or shmem, what a cgroup holds of shared memory.
 */
#ifndef ANALYZER_EXPLAIN_HOST_H
#define ANALYZER_EXPLAIN_HOST_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"
#include "util/tuned.h"

void host_vote(const struct explain_message *m, struct votes *votes, struct str *words);

/*
 * A kill beside the kernel's table of tasks: was the killed process the one that filled the memory,
 * or one of a pool of equals, or did no process (shared memory)? `stats`: the group's statistics,
 * of which shmem counts; NULL: there are none. Returns the cause that it votes for; CAUSE_UNKNOWN:
 * the table does not tell, and nothing was written.
 */
enum cause host_vote_of_kill(const struct explain_message *kill,
    const struct explain_message *table, const struct explain_message *stats, struct votes *votes,
    struct str *words);

/* The confidence of what a table of tasks says: it shows one moment, not how it came to that. */
TUNED(double, HOST_VOTE_OF_TABLE, 0.55, "just enough to decide where no other message speaks");

#endif
