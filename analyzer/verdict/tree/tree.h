/*
 * tree.h - the processes of a set beside each other: what each held of the host and of each GPU at
 * the moment that the report is about. Models are too large to keep all; their courses are not.
 */
#ifndef ANALYZER_VERDICT_TREE_H
#define ANALYZER_VERDICT_TREE_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Describe a process from its recording, but for its memory. `s` may be NULL; `words` keeps the
 * command line. */
struct process tree_process(
    struct arena *words, struct feed feed, const struct model *m, const struct supervised *s);

struct course; /* how much of each space lived in a process, over its run */

/* `supervised` may be NULL. NULL: no memory. */
struct course *course_new(
    const struct model *m, const struct supervised *supervised, const struct trace *t);
void course_free(struct course *course); /* accepts NULL */

/* When that process was refused memory for good, on the machine's monotonic clock; 0: never. */
uint64_t course_refused_ns(const struct course *course);

/* What all others had resident at most, each at its own time, bytes: no less than at any moment. */
uint64_t tree_siblings(struct course *const *courses, size_t count, size_t subject);

/* What lived in all others when the subject ended, by their own recordings, bytes: more than was
 * resident of it, if not all was touched. */
uint64_t tree_siblings_then(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Others that the subject's parent started of the same program, and that do about as much, when it
 * ended: workers of a pool. */
struct scene_workers tree_workers(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Fill the memory of each process as of that moment on the subject's clock. The courses are in the
 * order of the processes; `words` keeps names and lists. 0 or -ENOMEM. */
int tree_settle(struct process_tree *tree, struct course *const *courses, uint64_t moment_ns,
    struct arena *words);

#endif
