/*
 * ranges.h - the mappings of a process: address ranges that do not overlap, cut and joined as mmap,
 * munmap and mremap do. A balanced tree, so that no order of addresses makes it slow.
 */
#ifndef ANALYZER_UTIL_RANGES_H
#define ANALYZER_UTIL_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end; /* [start, end) */
	uint64_t serial; /* of the mapping that made it; both parts of a split keep it */
	uint64_t birth_ns;
	uint32_t stack;
	uint32_t kind; /* as its user counts them */
	uint32_t flags; /* TRACE_MAP_* */
	uint32_t prot;
	uint32_t volume; /* of struct shm, plus 1; 0: none */
};

struct ranges {
	struct range_node *root;
	size_t count;
	uint64_t seed;
};

void ranges_init(struct ranges *r);
void ranges_fini(struct ranges *r);

/* What became of a piece that is cut out: removed tells the piece; split is 1 when what is left of
 * its range lies on both sides of it, whole 1 when nothing is left of it. */
typedef void (*range_cut_fn)(void *arg, const struct range *piece, int whole, int split);

/* Takes [start, end) out of whatever lies there; fn may be NULL. 0 or -ENOMEM (a split needs a
 * node). */
int ranges_cut(struct ranges *r, uint64_t start, uint64_t end, range_cut_fn fn, void *arg);
/* Adds a range; the caller has cut what lay there. 0 or -ENOMEM. Empty ranges are ignored. */
int ranges_add(struct ranges *r, const struct range *range);

/* The range that holds an address, or NULL; valid until the next change. */
const struct range *ranges_find(const struct ranges *r, uint64_t address);

typedef void (*range_fn)(void *arg, const struct range *range);
void ranges_each(const struct ranges *r, range_fn fn, void *arg); /* by address */
/* Those that reach into [start, end), whole. */
void ranges_within(const struct ranges *r, uint64_t start, uint64_t end, range_fn fn, void *arg);

#endif
