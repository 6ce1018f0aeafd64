/*
 * flame_tree.h - the stacks of a space at a moment as a tree, for the commands that draw it.
 */
#ifndef ANALYZER_CMD_FLAME_TREE_H
#define ANALYZER_CMD_FLAME_TREE_H

#include "cmd/common/moment.h"
#include "export/export.h"
#include "report/flame.h"

struct flame_tree {
	struct frame_tree tree;
	VEC(struct flame_frame) frames;
	struct flame_view view; /* of both; the caller sets what is shown of it */
};
/* `space` NULL: the host. `native`: the frames of the interpreter, its import
 * system and libc, too. `temporary` is of
 * the run, for that measure. 0; negative errno with err; call flame_tree_fini() in both cases. The
 * strings are the trace's. */
int flame_tree_make(struct flame_tree *out, const struct trace_set *set, struct trace *t,
    const struct space_at *s, const char *space, enum export_measure measure,
    const struct temporary *temporary, bool native, struct err *err);
void flame_tree_fini(struct flame_tree *f);

#endif
