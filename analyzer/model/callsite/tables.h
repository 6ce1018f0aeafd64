/*
 * tables.h - who holds what a place keeps: the hash table or array that was enlarged, by a factor
 * each time, whenever the number of kept blocks had grown by that factor. The table lies where the
 * keeping is done, which the stacks of the blocks themselves do not show: they were made elsewhere.
 */
#ifndef ANALYZER_MODEL_TABLES_H
#define ANALYZER_MODEL_TABLES_H

#include "model/callsite/history.h"

/* Fills `tables` and `remembered` of the places that keep a good part of everything. 0 or -ENOMEM.
 */
int tables_read(
    const struct feed *feed, struct callsites *p, const struct member *members, size_t count);

#endif
