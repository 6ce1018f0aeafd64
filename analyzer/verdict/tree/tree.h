/*
 * tree.h - the processes of a set: what each held of the host and of each GPU at the report's
 * moment. All models would be too large to keep; the courses of their live bytes are not.
 */
#ifndef ANALYZER_VERDICT_TREE_H
#define ANALYZER_VERDICT_TREE_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Describe a process, without its memory. `s` may be NULL; `words` keeps the command line. */
struct process tree_process(
    struct arena *words, struct feed feed, const struct model *m, const struct supervised *s);

struct course; /* a process's live bytes in each space, over its run */

/* Keep a process's course. `supervised` may be NULL. NULL: no memory. */
struct course *course_new(
    const struct model *m, const struct supervised *supervised, const struct trace *t);
void course_free(struct course *course); /* accepts NULL */

/* Return when the process was refused without recovery, on the monotonic clock; 0: never. */
uint64_t course_refused_ns(const struct course *course);

/* Return the sum of all others' peaks of resident bytes: at least their sum at any moment. */
uint64_t tree_siblings(struct course *const *courses, size_t count, size_t subject);

/* Return the live bytes of all others when the subject ended, as recorded: at least the resident
 * ones, since some pages may be untouched. */
uint64_t tree_siblings_live(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Return the workers of the subject's pool when it ended: processes of the same parent and program
 * with about as much resident memory. */
struct scene_workers tree_workers(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns);

/* Fill the memory of each process at that moment on the subject's clock. The courses are in the
 * order of the processes; `words` keeps names and lists. 0 or -ENOMEM. */
int tree_settle(struct process_tree *tree, struct course *const *courses, uint64_t moment_ns,
    struct arena *words);

#endif
