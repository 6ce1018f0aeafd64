/*
 * choice.h - chooses the process of a set that the report is about: one that was refused memory and
 * never recovered, or else one that was killed, or else the one that was started.
 */
#ifndef ANALYZER_VERDICT_CHOICE_H
#define ANALYZER_VERDICT_CHOICE_H

#include "verdict/tree/tree.h"
#include "verdict/verdict.h"

struct choice {
	struct process_tree tree; /* after choice_make() the caller owns its list */
	struct model *model; /* the subject's; the same */
	struct trace *trace; /* of the subject */
	struct course **courses; /* of all processes, in their order */
	struct supervised *supervised; /* the subject, from outside; NULL: not watched */
};

/* Read all processes of the set and choose one. `words` keeps the command lines. In any case, the
 * caller frees the model and the tree's list, and calls choice_fini(). 0; negative errno with err:
 * -ENODATA when the set has no process. */
int choice_make(struct choice *c, const struct trace_set *set, const struct verdict_hints *hints,
    struct arena *words, struct err *err);
void choice_fini(struct choice *c);

#endif
