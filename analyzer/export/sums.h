/*
 * sums.h - the stacks of a model with their sums at a moment, in an order in which neighbours share
 * most frames. Memory grows with distinct stacks.
 */
#ifndef ANALYZER_EXPORT_SUMS_H
#define ANALYZER_EXPORT_SUMS_H

#include "export/export.h"

/* Call `fn` for each stack of which a sum is not 0, once, without the stack's words and its
 * temporary blocks. 0; what `fn` returned first other than 0; -ENOMEM. */
int sums_each(const struct model *m, enum moment at,
    int (*fn)(void *arg, uint32_t stack, const struct export_sum *sum), void *arg);

#endif
