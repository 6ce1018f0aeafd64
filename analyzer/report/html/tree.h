/*
 * tree.h - writes a tree of frames into a page's block, cut to what can be seen.
 */
#ifndef ANALYZER_REPORT_TREE_H
#define ANALYZER_REPORT_TREE_H

#include "report/frame_tree.h"
#include "report/html/block.h"

/* A frame narrower than this share of every sum cannot be seen, and is not written. */
#define TREE_SHARE_MIN 0.0005

/* Write what has a visible share of any sum, at most `most` nodes, and set .written and .more of
 * the nodes. Their frames are 1 + numbers of the page's list. Returns how many were written. */
uint32_t tree_write(struct frame_tree *t, uint32_t most, struct str *to);

#endif
