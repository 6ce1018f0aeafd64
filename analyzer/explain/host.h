/*
 * host.h - works out what a message about the host's memory means: one request, or a kill by the
 * kernel.
 *
 * Fields: requested; or anon, the memory of a killed process; or the list `tasks` of comm and
 * resident; or shmem, a cgroup's shared memory; or limit and in_use of an allocator's pool.
 */
#ifndef ANALYZER_EXPLAIN_HOST_H
#define ANALYZER_EXPLAIN_HOST_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"
#include "util/tuned.h"

void host_vote(const struct explain_message *m, struct votes *votes, struct str *words);
/* Judge a refused request by the statistics of the pool that refused it. True: the pool was full
 * before, so the request's own size says nothing, and `words` got a sentence. */
bool host_pool_was_full(
    const struct explain_message *m, const struct explain_message *stats, struct str *words);

/*
 * Judge a kill by the kernel's table of tasks: did the killed process fill the memory, a pool of
 * equal processes, or no process (shared memory)? `stats` are the group's statistics, for shmem, or
 * NULL. Returns the cause that it votes for; CAUSE_UNKNOWN: the table does not decide, and nothing
 * was written.
 */
enum cause host_vote_of_kill(const struct explain_message *kill,
    const struct explain_message *table, const struct explain_message *stats, struct votes *votes,
    struct str *words);

/* The confidence of a table of tasks: it shows one moment, not how the memory got full. */
TUNED(double, HOST_VOTE_OF_TABLE, 0.55, "just enough to decide where no other message speaks");

#endif
