/*
 * ranges.h - the mappings of a process: a set of address ranges that do not overlap, cut as mmap,
 * munmap and mremap do. A balanced tree: each operation takes logarithmic time for any order of
 * addresses.
 */
#ifndef ANALYZER_UTIL_RANGES_H
#define ANALYZER_UTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end; /* [start, end) */
	uint64_t serial; /* of the mapping; both parts of a split keep it */
	uint64_t birth_ns;
	uint32_t stack;
	uint32_t kind; /* the caller's */
	uint32_t flags; /* TRACE_MAP_* */
	uint32_t prot;
	uint32_t volume; /* index in struct shm, plus 1; 0: none */
};

struct ranges {
	struct range_node *root;
	size_t count;
	uint64_t seed;
};

void ranges_init(struct ranges *r);
void ranges_fini(struct ranges *r);

/* Report a piece that is cut out. whole: 1, nothing of its range is left; split: 1, parts are left
 * on both sides of it. */
typedef void (*range_cut_fn)(void *arg, const struct range *piece, int whole, int split);

/* Remove [start, end) from all ranges; fn may be NULL. 0; -ENOMEM: no memory for a split. */
int ranges_cut(struct ranges *r, uint64_t start, uint64_t end, range_cut_fn fn, void *arg);
/* Add a range where none lies: cut first. Empty ranges are ignored. 0 or -ENOMEM. */
int ranges_add(struct ranges *r, const struct range *range);

/* The range that holds an address; NULL: none. Valid until the next change. */
const struct range *ranges_find(const struct ranges *r, uint64_t address);

typedef void (*range_fn)(void *arg, const struct range *range);
void ranges_each(const struct ranges *r, range_fn fn, void *arg); /* in order of address */
/* Call `fn` with each range that overlaps [start, end), uncut. */
void ranges_within(const struct ranges *r, uint64_t start, uint64_t end, range_fn fn, void *arg);

#endif
