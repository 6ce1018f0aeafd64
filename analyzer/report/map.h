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
	const struct report_view *report; /* for a format with pictures, with a page of this map */
	uint32_t limit; /* draw at most so many strips, equal ones once; 0: all */
	struct trace_set_damage damage;
};

/* Add up the live blocks of a segment by stack, most bytes first. Fills at most `room` pins and
 * returns the number of stacks; -1: no memory. */
struct map_pin {
	uint32_t stats;
	uint64_t bytes, blocks;
};
int map_pins(
    const struct space_map *map, size_t first, size_t count, struct map_pin *pins, unsigned room);

#endif
