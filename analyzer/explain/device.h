/*
 * device.h - works out where a device's memory was, from PyTorch's message or another one with the
 * same fields.
 *
 * requested and total are needed, and free, or allocated with reserved or reserved_unallocated;
 * allowed, this_process, private_pools and the list `processes` (of pid and used) are optional.
 *
 * Or, from a compiler's plan of a program: arguments, outputs, temporaries or program.
 */
#ifndef ANALYZER_EXPLAIN_DEVICE_H
#define ANALYZER_EXPLAIN_DEVICE_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"

/* Fill the ledger. False: the message does not have the numbers. */
bool device_ledger(const struct explain_message *m, struct explain_ledger *out);
/* Add the fields that follow from others: reserved, reserved_unallocated,
 * other_processes, this_process_other. 0 or -ENOMEM. */
int device_derive(struct explain_message *m);
/* Vote for causes. False: the message does not have enough numbers. */
bool device_vote(const struct explain_message *m, struct votes *votes, struct str *words);

#endif
