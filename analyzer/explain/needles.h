/*
 * needles.h - finds many literal texts in one pass over a log, which reads each byte once.
 */
#ifndef ANALYZER_EXPLAIN_NEEDLES_H
#define ANALYZER_EXPLAIN_NEEDLES_H

#include <stddef.h>
#include <stdint.h>

struct needles;

/* Build the automaton; a needle's id is its index in `texts`. No text may be empty. 0; -ENOMEM;
 * -E2BIG: the texts need more than 65,535 states. */
int needles_new(const char *const *texts, size_t count, struct needles **out);
void needles_free(struct needles *needles);

/* Scan the bytes on from `*state` (0 at first), and call back for each needle found, with the
 * offset after its last byte. An error of the callback ends the scan and is returned. */
typedef int (*needles_found)(void *arg, size_t id, size_t end);
int needles_scan(const struct needles *needles, uint32_t *state, const char *text, size_t bytes,
    needles_found found, void *arg);

#endif
