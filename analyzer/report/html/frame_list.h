/*
 * frame_list.h - all frames that a page names, by text: two of the same words are one.
 */
#ifndef ANALYZER_REPORT_FRAME_LIST_H
#define ANALYZER_REPORT_FRAME_LIST_H

#include "report/frame_tree.h"
#include "report/html/block.h"
#include "util/vec.h"
#include "verdict/framework/frame_role.h"

#define FRAME_NONE UINT32_MAX

struct listed_frame {
	uint32_t function, file, module; /* texts */
	uint32_t line, flags;
};
/* Zero at first. */
struct frame_list {
	struct map by_text; /* to 1 + number */
	VEC(struct listed_frame) frames;
};

/* What the page shows of a frame beside its names, as bits. */
uint32_t frame_list_flags(const struct symbol *symbol, enum frame_role role);
/* The number of a frame; FRAME_NONE: no memory. */
uint32_t frame_list_add(struct frame_list *list, struct block_texts *texts,
    const struct symbol *symbol, uint32_t flags);
void frame_list_write(const struct frame_list *list, struct str *to);
void frame_list_fini(struct frame_list *list);

#endif
