/*
 * ending.h - the sentences after the cause: what was refused or killed, at which limit, and when
 * memory would have run out. words.c writes the cause.
 */
#ifndef ANALYZER_VERDICT_ENDING_H
#define ANALYZER_VERDICT_ENDING_H

#include "verdict/result.h"

struct str;

/* Other lines are mentioned when the blamed one has less than nine tenths. */
#define NEARLY_PART 10u

/* Content of the earlier sentences. */
enum said { SAID_CAUSE, SAID_REQUEST, SAID_LIMIT };

/* Add "answer (chat.py:31)", without what is NULL or 0. */
void ending_callsite(struct str *s, const char *function, const char *file, uint32_t line);

/* Is the request of this many bytes, which a sentence named, the one that failed? */
enum said ending_said(const struct verdict_result *r, uint64_t bytes);

/* Add how much was in use before the recorder was attached: "612 MiB of the limit of 1.00 GiB
 * (RLIMIT_AS) were there before whyoom came". */
void ending_before(struct str *s, const struct verdict_result *r);

/* End the sentence of the cause, and add how the process failed. */
void ending_add(struct str *s, const struct verdict_result *r, enum said said);

/* Add how little the limit left, where the C library or the loader was refused: such requests are
 * not recorded. */
void ending_left(struct str *s, const struct verdict_result *r);

/* Say first that the process did not end for lack of memory; where it grew, the cause is first. */
void ending_first(struct str *s, const struct verdict_result *r);

/* Add when memory would have run out, if that is known. */
void ending_outlook(struct str *s, const struct verdict_result *r);

#endif
