/*
 * scan.h - finds the messages in a log, in one pass and bounded memory. For explain.c alone.
 *
 * Literal texts find the positions (needles.h), and a message's pattern is tried only there, on a
 * bounded piece of the log. If two messages overlap, the longer one is taken.
 */
#ifndef ANALYZER_EXPLAIN_SCAN_H
#define ANALYZER_EXPLAIN_SCAN_H

#include "explain/explain.h"

struct scan;

/* Begin a scan. The messages go to explanation->messages, in the log's order; their cause and
 * meaning are not set. 0; negative errno with err. A pattern that does not compile is noted, and
 * its message left out. */
int scan_new(const struct knowledge *knowledge, struct explanation *explanation, struct scan **out,
    struct err *err);
void scan_free(struct scan *scan);
/* Scan the log's next bytes. 0 or -ENOMEM. */
int scan_feed(struct scan *scan, const char *text, size_t bytes);
int scan_end(struct scan *scan);

#endif
