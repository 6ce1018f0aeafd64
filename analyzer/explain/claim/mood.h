/*
 * mood.h - how a line is meant: as a fact, a possibility, an advice, source code; and whether the
 * program got over it.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_MOOD_H
#define ANALYZER_EXPLAIN_CLAIM_MOOD_H

#include <stdbool.h>

#include "explain/claim/sentence.h"

bool mood_hypothetical(const struct sentence *s);
bool mood_guesses(const struct sentence *s, const struct sentence *line);
bool mood_configuration(const struct sentence *s);
bool mood_went_on(const struct sentence *s, const struct sentence *line);
bool mood_got_over(const struct sentence *s, size_t end);
bool mood_quiet(const struct lexemes *l, const char *line);
bool mood_source(const struct lexemes *l, const char *line, size_t bytes);
bool mood_near(const struct sentence *s);

#endif
