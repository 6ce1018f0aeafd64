/*
 * flame.h - what a space's stacks held at a moment, by caller and callee: as a flame graph or a
 * call tree for a terminal, and as JSON.
 */
#ifndef ANALYZER_REPORT_FLAME_H
#define ANALYZER_REPORT_FLAME_H

#include "report/frame_tree.h"
#include "report/report.h"
#include "verdict/framework/frame_role.h"

struct flame_frame {
	struct symbol symbol; /* its strings are the feed's */
	enum frame_role role;
};

struct flame_view {
	/* Summed. sums[0] is the measure; a node's frame is 1 + its index in `frames`. */
	struct frame_tree *tree;
	const struct flame_frame *frames;
	const char *space; /* "host", "cuda:0" */
	const char *measure, *unit, *meaning; /* "live", "bytes" or "count", "live at the moment" */
	const char *at; /* "failure", "peak", "end", "12.5s" */
	uint64_t time_ns; /* of the moment */
	uint64_t stacks; /* that have some of it */
	bool call_tree; /* a line a frame; else a flame graph */
	/* Show at most so many frames of a stack; 0: all. A flame graph ends above rows of
	 * narrow boxes, too. */
	uint32_t depth;
	/* In the call tree: at most so many callees of a frame, and none of less than 1 % of all
	 * unless it is the only one; 0: all. */
	uint32_t children;
	struct trace_set_damage damage;
};

/* Append "live at the failure in host: 34.2 MiB in 12 stacks" as a title. */
void flame_title(const struct flame_view *v, const struct report_style *style, struct str *out);
/* "34.2 MiB", or "1,200" for a measure of blocks. */
struct fmt;
const char *flame_amount(const struct flame_view *v, struct fmt *f, uint64_t amount);
/* Append a frame's function, and its "app.py:31" if it is known; a Python module's code is known by
 * the latter alone. As the style can show them, and safe. */
void flame_names(const struct flame_frame *f, const struct report_style *style,
    struct str *function, struct str *place);
/* List a node's children, the largest first, for free(). NULL: no memory. */
uint32_t *flame_children(const struct flame_view *v, uint32_t node, size_t *count);

/* The text of a view with call_tree. */
void call_tree_text(const struct flame_view *v, const struct report_style *style, struct str *out);

#endif
