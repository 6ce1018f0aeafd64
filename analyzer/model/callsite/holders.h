/*
 * holders.h - the tables that hold a call site's kept blocks: hash tables or arrays that were
 * enlarged by a factor whenever the number of kept blocks had grown by that factor. A table's stack
 * shows the code that keeps the blocks; the blocks' stacks show only the code that made them.
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
	/* Stacks of tables that grew with the number of kept blocks: likely their holders. */
	uint32_t tables[CALLSITE_TABLES];
	uint32_t table_count;
	/* All of these tables are filled by a runtime function that also calls the maker of the
	 * entries: a function that remembers its results. */
	bool remembered;
};

/* Fill .holders of call sites that keep much. `members`: by call site. 0 or -ENOMEM. */
int holders_read(const struct feed *feed, struct callsites *p,
    const struct callsite_member *members, size_t count);

#endif
