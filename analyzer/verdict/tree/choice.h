/*
 * choice.h - of all processes of a set, the one that the report is about: the one that was refused
 * memory and never got over it, else the one that was killed, else the one that was started.
 */
#ifndef ANALYZER_VERDICT_CHOICE_H
#define ANALYZER_VERDICT_CHOICE_H

#include "verdict/tree/tree.h"
#include "verdict/verdict.h"

struct choice {
	struct process_tree tree; /* its list is the caller's from choice_make() on */
	struct model *model; /* of the subject; likewise */
	struct trace *trace; /* of the subject */
	struct course **courses; /* of all processes, in their order */
	struct supervised
	    *supervised; /* what was seen of the subject from outside; NULL: nothing */
};

/* Read all processes of the set and choose among them. `words` keeps the command lines. Whatever
 * this returns, the caller frees the model and the tree's list, and calls choice_fini(). 0;
 * negative errno with err: -ENODATA when the set holds no process. */
int choice_make(struct choice *c, const struct trace_set *set, const struct verdict_hints *hints,
    struct arena *words, struct err *err);
void choice_fini(struct choice *c);

#endif
