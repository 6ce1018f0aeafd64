/*
 * says.h - the ways to say that memory ran out: a noun of memory with a word of lack, a request
 * that was refused, a limit that was passed, a kill, numbers that contradict each other.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_SAYS_H
#define ANALYZER_EXPLAIN_CLAIM_SAYS_H

#include <stdbool.h>

#include "explain/claim/sentence.h"

/* Each sets s->at to where the claim begins, if it returns true. */
bool says_short(struct sentence *s);
bool says_no_room(struct sentence *s);
bool says_full(struct sentence *s);
bool says_too_large(struct sentence *s);
bool says_too_small(struct sentence *s);
bool says_refused(struct sentence *s);
bool says_over(struct sentence *s);
bool says_high_usage(struct sentence *s);
bool says_killed(struct sentence *s);
bool says_oom(struct sentence *s);
bool says_used_over(struct sentence *s, bool ended);
bool says_by_numbers(struct sentence *s, const struct sentence *line);

/* "errors", "issues": the word behind a lack that makes it a topic, and no event. */
bool says_topic(const struct sentence *s, size_t i);
/* Something else than a request for memory failed: a look at it, ports, a right that lacks. */
bool says_other_matter(const struct sentence *s, size_t from);
/* A file, a message or a request was too large. That is no lack of memory. */
bool says_message_size(const struct sentence *s);
/* A collector of garbage at work. */
bool says_collection(const struct sentence *line);

#endif
