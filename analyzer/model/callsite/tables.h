/*
 * tables.h - who holds what a place keeps: the hash table or array that was enlarged, by a factor
 * each time, whenever the number of kept blocks had grown by that factor. The table lies where the
 * keeping is done, which the stacks of the blocks themselves do not show: they were made elsewhere.
 */
#ifndef ANALYZER_MODEL_TABLES_H
#define ANALYZER_MODEL_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callsites;
struct feed;
struct callsite_member;

/* Filled by tables.c, const for all others. */
#define CALLSITE_TABLES 4u
struct holders {
	/* Stacks of the tables (hash tables, arrays) that grew as the number of the kept blocks
	 * did: what holds them, most likely. */
	uint32_t tables[CALLSITE_TABLES];
	uint32_t table_count;
	/* All of these are filled by code of the runtime that also calls for what it puts there: a
	 * function that remembers its results. */
	bool remembered;
};

/* Fills .holders of the call sites that keep a good part of everything. 0 or -ENOMEM. */
int tables_read(const struct feed *feed, struct callsites *p, const struct callsite_member *members,
    size_t count);

#endif
