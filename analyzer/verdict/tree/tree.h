/*
 * tree.h - the processes of a set beside each other: what each held of the host and of each GPU at
 * the moment that the report is about. All models would be too large to keep; their courses are
 * not.
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

/* Keep the course of a process. `supervised` may be NULL. NULL: no memory. */
struct course *course_new(
    const struct model *m, const struct supervised *supervised, const struct trace *t);
void course_free(struct course *course); /* accepts NULL */

/* Return when the process was refused memory and did not recover, on the monotonic clock; 0: never.
 */
uint64_t course_refused_ns(const struct course *course);

/* Return the sum of all others' peaks of resident bytes: no less than at any moment. */
uint64_t tree_siblings(struct course *const *courses, size_t count, size_t subject);

/* Return the bytes that lived in all others when the subject ended, as they recorded: no less than
 * the resident ones, as not all may be touched. */
uint64_t tree_siblings_live(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Return the workers of the subject's pool when it ended: processes of the same parent and program
 * with about as much resident memory. */
struct scene_workers tree_workers(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Fill the memory of each process as of that moment on the subject's clock. The courses are in the
 * order of the processes; `words` keeps names and lists. 0 or -ENOMEM. */
int tree_settle(struct process_tree *tree, struct course *const *courses, uint64_t moment_ns,
    struct arena *words);

#endif
