/*
 * needles.h - finds many literal texts in one pass over a log, each byte looked at once.
 */
#ifndef ANALYZER_EXPLAIN_NEEDLES_H
#define ANALYZER_EXPLAIN_NEEDLES_H

#include <stddef.h>
#include <stdint.h>

struct needles;

/* 0: the needle's id is that of the text, as an index into `texts`. -ENOMEM; -E2BIG: together they
 * are too long for an automaton of 65,535 states. No text is empty. */
int needles_new(const char *const *texts, size_t count, struct needles **out);
void needles_free(struct needles *needles);

/* Goes on from `*state` (0 at first) over the bytes; calls back at the end of each needle found,
 * with the offset after its last byte. A callback that returns an error ends it, and is passed up.
 */
typedef int (*needles_found)(void *arg, size_t id, size_t end);
int needles_scan(const struct needles *needles, uint32_t *state, const char *text, size_t bytes,
    needles_found found, void *arg);

#endif
