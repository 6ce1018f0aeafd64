/*
 * host.h - the arithmetic of a message about the host's memory: one request, or a kill by the
 * kernel.
 *
 * Fields: requested; or anon, what a killed process had in memory; or the list `tasks` of comm and
 * resident.
 */
#ifndef ANALYZER_EXPLAIN_HOST_H
#define ANALYZER_EXPLAIN_HOST_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/str.h"

void host_vote(const struct explain_message *m, struct votes *votes, struct str *words);

/* A kill beside the kernel's table of tasks: was the killed process the one that filled the memory?
 */
void host_vote_of_kill(const struct explain_message *kill, const struct explain_message *table,
    struct votes *votes, struct str *words);

#endif
