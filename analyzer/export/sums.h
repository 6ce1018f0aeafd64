/*
 * sums.h - the stacks of a model with their sums at a moment, in an order in which neighbours share
 * most frames. Memory grows with distinct stacks.
 */
#ifndef ANALYZER_EXPORT_SUMS_H
#define ANALYZER_EXPORT_SUMS_H

#include "export/export.h"

/* Call `fn` once for each stack with a sum other than 0. The sum has no symbols and no temporary
 * blocks. Return 0; the first value other than 0 that `fn` returned; or -ENOMEM. */
int sums_each(const struct model *m, enum moment at,
    int (*fn)(void *arg, uint32_t stack, const struct export_sum *sum), void *arg);

#endif
