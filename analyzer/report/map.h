/*
 * map.h - the memory of a space, address by address: as strips for a terminal, and as JSON.
 */
#ifndef ANALYZER_REPORT_MAP_H
#define ANALYZER_REPORT_MAP_H

#include "model/space/space_map.h"
#include "report/text/style.h"

struct map_view {
	const struct model *model; /* as it stands at the moment */
	const struct space_map *map;
	const char *at; /* "failure", "peak", "end", "12.5s" */
	uint32_t pid;
	uint64_t time_ns;
	/* The refused request, or 0; segment 0: the level below was not asked. */
	uint64_t request, segment;
	uint64_t reserved, free, total; /* of PyTorch's allocator, of the device */
	bool reserved_known, free_known;
	/* The device's memory that no event explains, until that moment. Owned by the model. */
	const struct device_sample *samples;
	size_t sample_count;
	uint32_t limit; /* draw at most so many strips, equal ones once; 0: all */
	struct trace_set_damage damage;
};

/* Choose the segments to draw and return them by address, for free(); NULL: no memory. Segments
 * where room could be made come first, then those with more free bytes, then larger ones. Segments
 * of the same layout are one choice, but with limit 0 each is its own. */
struct map_choice {
	size_t segment;
	size_t like; /* further segments of the same layout */
	uint64_t weight, size; /* bytes of all their holes; of each segment */
};
struct map_choice *map_choose(const struct space_map *map, uint32_t limit, size_t *count);

/* Add up the live blocks of a segment by stack, most bytes first. Fills at most `room` pins and
 * returns the number of stacks; -1: no memory. */
struct map_pin {
	uint32_t stats;
	uint64_t bytes, blocks;
};
int map_pins(
    const struct space_map *map, size_t first, size_t count, struct map_pin *pins, unsigned room);

#endif
