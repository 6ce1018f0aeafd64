/*
 * space_map.h - the layout of a space at one moment: its segments (without segments, the address
 * ranges of its blocks), the blocks and holes in each, and which blocks would have to be released
 * to make room for a request.
 *
 * Made from a model that stands at the moment (feed_until.h). Memory grows with live blocks.
 */
#ifndef ANALYZER_MODEL_SPACE_MAP_H
#define ANALYZER_MODEL_SPACE_MAP_H

#include "model/space/space.h"
#include "util/vec.h"

#define MAP_HOLE UINT32_MAX

/* All live blocks of one call site, as blame.h defines it. */
struct map_callsite {
	uint32_t stack; /* one of its stacks */
	const char *function, *file; /* file NULL, line 0: unknown */
	uint32_t line;
	uint64_t bytes, blocks;
};

struct map_piece {
	uint64_t start, end;
	uint64_t birth_ns, stream;
	uint32_t callsite; /* index; MAP_HOLE for a hole */
	uint32_t stack;
};

struct map_segment {
	uint64_t start, end;
	uint64_t birth_ns;
	uint32_t stack; /* of its own acquisition; 0: none */
	bool acquired; /* one call acquired it; false: a range of blocks */
	bool captured; /* for a CUDA graph, which needs all of it as long as it exists */
	bool mapped; /* memory of handles: it can grow and shrink */
	uint64_t live_bytes, live_blocks, holes, hole_bytes, largest_hole;
	size_t first, count; /* of the pieces */
};

struct space_map {
	char name[32];
	enum space_kind kind; /* SPACE_OTHER for the host */
	bool host;
	VEC(struct map_piece) pieces; /* by address */
	VEC(struct map_segment) segments; /* by address */
	VEC(struct map_callsite) callsites; /* by bytes, most first */
	uint64_t bytes; /* of all segments */
	uint64_t live_bytes, live_blocks, holes, hole_bytes, largest_hole;
	/* Memory without an address: of handles that are not mapped, and arrays. */
	uint64_t hidden_bytes, hidden_blocks;

	uint64_t request; /* 0: none */
	/* The fewest live blocks whose release would free that many bytes in a row; found false: no
	 * segment is that large. */
	struct {
		bool found;
		size_t segment, first, count; /* pieces, including holes */
		uint64_t bytes, blocks; /* to release */
	} room;
};

/* Fill *out. 0 or -ENOMEM. The strings belong to the model's feed. */
int space_map_make(
    const struct model *m, const struct space *sp, uint64_t request, struct space_map *out);
/* The same for the host; `each` calls its function for all live blocks, as trace_each_live(). */
int space_map_host(const struct model *m,
    int (*each)(void *self, int (*fn)(void *arg, const struct block *b), void *arg), void *self,
    uint64_t request, struct space_map *out);
void space_map_fini(struct space_map *map);

#endif
