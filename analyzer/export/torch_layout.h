/*
 * torch_layout.h - PyTorch's segments with the blocks in them, kept along the events of all
 * devices, such that the two always fit together: a block lies in one segment, no two overlap.
 * PyTorch's viewer counts on that, and a trace does not promise it: a block that does not fit is
 * left out, and counted.
 *
 * The driver's memory becomes a segment when PyTorch's first block lies in it; what other libraries
 * hold is none. Where the driver's part was not recorded, a block is a segment of its own. Memory
 * grows with live blocks.
 */
#ifndef ANALYZER_EXPORT_TORCH_LAYOUT_H
#define ANALYZER_EXPORT_TORCH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/ranges.h"

enum torch_layout_change {
	TORCH_SEGMENT_ALLOC,
	TORCH_SEGMENT_FREE,
	TORCH_SEGMENT_MAP, /* a part of an expandable segment */
	TORCH_SEGMENT_UNMAP,
	TORCH_BLOCK_ALLOC,
	TORCH_BLOCK_FREE,
};

/* A segment, a part of one, or a block. */
struct torch_piece {
	uint64_t start, end, stream;
	uint32_t stack, device;
	bool expandable;
};

struct torch_layout {
	struct ranges driver; /* see torch_layout.c for the fields' use */
	struct ranges blocks;
	uint64_t left_out, left_out_bytes; /* blocks */
	/* Told of each change in an order that the viewer can replay. */
	void (*changed)(
	    void *arg, enum torch_layout_change change, const struct torch_piece *piece);
	void *arg;
};

void torch_layout_init(struct torch_layout *l);
void torch_layout_fini(struct torch_layout *l);

/* Memory of the driver appears, as one block or mapped; `expandable`: it can grow. Each returns 0
 * or -ENOMEM. */
int torch_layout_memory(struct torch_layout *l, const struct torch_piece *piece);
/* It disappears. A block that still is in it becomes a segment of its own. */
int torch_layout_no_memory(struct torch_layout *l, uint64_t start, uint64_t end);
int torch_layout_block(struct torch_layout *l, const struct torch_piece *piece);
int torch_layout_no_block(struct torch_layout *l, uint64_t start);

/* Call `segment` for each segment by address, and after it `block` for each of its blocks. */
struct torch_layout_visit {
	void *arg;
	void (*segment)(void *arg, const struct torch_piece *piece);
	void (*block)(void *arg, const struct torch_piece *piece);
};
void torch_layout_each(const struct torch_layout *l, const struct torch_layout_visit *visit);

#endif
