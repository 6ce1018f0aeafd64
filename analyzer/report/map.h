/*
 * map.h - the contiguous-block map of a space: as strips for a terminal, and as JSON.
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
	/* A refused request, where there is one; segment 0: the level below was not asked. */
	uint64_t request, segment;
	uint64_t reserved, free, total; /* of PyTorch's allocator, of the device */
	bool reserved_known, free_known;
	/* Of the device until then: what no event explains; the model's. */
	const struct device_sample *samples;
	size_t sample_count;
	uint32_t limit; /* strips that are drawn, equal ones once; 0: all of them */
	struct trace_set_damage damage;
};

void report_map_text(const struct map_view *v, const struct report_style *style, struct str *out);
/* One JSON object. Of the host, segments without their blocks. */
void report_map_json(const struct map_view *v, struct str *out);

/* The segments to draw, by address: those that tell most, which are where room could be made, then
 * by holes, then by size. Segments of one layout are one choice; with limit 0 each is its own. To
 * be freed; NULL: no memory. */
struct map_choice {
	size_t segment;
	size_t like; /* further segments of that layout */
	uint64_t weight, size; /* of all their holes; of each */
};
struct map_choice *map_choose(const struct space_map *map, uint32_t limit, size_t *count);

/* The live blocks of a segment by site, most bytes first. At most `room`; returns how many sites
 * there are; -1: no memory. */
struct map_pin {
	uint32_t stats;
	uint64_t bytes, blocks;
};
int map_pins(
    const struct space_map *map, size_t first, size_t count, struct map_pin *pins, unsigned room);

#endif
