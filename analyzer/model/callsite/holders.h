/*
 * holders.h - the tables that hold what a call site keeps: hash tables or arrays that were enlarged
 * by a factor whenever the number of kept blocks had grown by that factor. The stack of a table
 * shows the code that keeps the blocks; the stacks of the blocks show only the code that made them.
 */
#ifndef ANALYZER_MODEL_HOLDERS_H
#define ANALYZER_MODEL_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct callsites;
struct feed;
struct callsite_member;

/* Filled by holders.c, const for all others. */
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

/* Fill .holders of the call sites that keep a good part of everything. `members`: by call site. 0
 * or -ENOMEM. */
int holders_read(const struct feed *feed, struct callsites *p,
    const struct callsite_member *members, size_t count);

#endif
