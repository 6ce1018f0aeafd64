/*
 * scan.h - finds the messages in a log, in one pass and bounded memory. Of explain.c only.
 *
 * Literal texts find the places (needles.h), and only there a message's pattern is tried, on a
 * bounded piece of the log. Where two messages overlap, the longer one is taken.
 */
#ifndef ANALYZER_EXPLAIN_SCAN_H
#define ANALYZER_EXPLAIN_SCAN_H

#include "explain/explain.h"

struct scan;

/* The messages go to explanation->messages, in the log's order; their cause and meaning are not
 * set. 0; negative errno with err. A pattern that does not compile is noted, and its message left
 * out. */
int scan_new(const struct knowledge *knowledge, struct explanation *explanation, struct scan **out,
    struct err *err);
void scan_free(struct scan *scan);
/* The log's next bytes. 0 or -ENOMEM. */
int scan_feed(struct scan *scan, const char *text, size_t bytes);
int scan_end(struct scan *scan);

#endif
