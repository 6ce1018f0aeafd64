/*
 * device.h - the arithmetic of a message that says where a device's memory was: PyTorch's, and any
 * that has the same fields.
 *
 * requested, total and free are needed; allocated with reserved or reserved_unallocated, allowed,
 * this_process, private_pools and the list `processes` (of pid and used) are taken where they are.
 */
#ifndef ANALYZER_EXPLAIN_DEVICE_H
#define ANALYZER_EXPLAIN_DEVICE_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"

/* False: the message does not say it. */
bool device_ledger(const struct explain_message *m, struct explain_ledger *out);
/* Adds to the message's fields what follows from them: reserved, reserved_unallocated,
 * other_processes, this_process_other. 0 or -ENOMEM. */
int device_derive(struct explain_message *m);
/* False: the message does not say enough. */
bool device_vote(const struct explain_message *m, struct votes *votes, struct str *words);

#endif
