/*
 * space.h - which memory a line is about, by its words: the host's, a device's, a pool's.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_SPACE_H
#define ANALYZER_EXPLAIN_CLAIM_SPACE_H

#include "explain/claim/claim.h"
#include "explain/claim/sentence.h"

/* `over`: a limit was passed. */
enum claim_kind space_of(const struct sentence *line, bool over);
bool space_is_shared(const struct sentence *line);

#endif
