/*
 * tree.h - the processes of a set: the one that the report is about, and what each held of the host
 * and of each GPU at the report's moment. All models would be too large to keep: the courses of the
 * processes' live bytes are kept, and the model of the best subject so far.
 */
#ifndef ANALYZER_VERDICT_TREE_H
#define ANALYZER_VERDICT_TREE_H

#include "verdict/failure/supervised.h"
#include "verdict/verdict.h"

/* Describe a process, without its memory. `s` may be NULL; `words` keeps the command line. */
struct process tree_process(
    struct arena *words, struct feed feed, const struct model *m, const struct supervised *s);

/* The process that the report is about: one that was refused memory and never recovered, or else
 * one that was killed, or else the one that was started. */
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

/* Fill the memory of each process at that moment on the subject's clock. The courses are the
 * choice's; `words` keeps names and lists. 0 or -ENOMEM. */
int tree_settle(struct process_tree *tree, struct course *const *courses, uint64_t moment_ns,
    struct arena *words);

/* Set victim[i], of set->count, for each image with a pid that a kernel's log names as killed. The
 * kernel counts pids outside containers: if it names none of ours, the victim is the only process
 * whose end was not recorded, if its program has the victim's name. `hints` may be NULL. */
void victim_find(const struct trace_set *set, const struct verdict_hints *hints, bool *victim);

#endif
