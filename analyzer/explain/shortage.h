/*
 * shortage.h - works out what a claim means (claim/claim.h): the arithmetic between what was asked
 * for, used, allowed and free, and what the program was doing.
 *
 * Fields: asked, used, limit and free; and the activity of the message. Knows no program.
 */
#ifndef ANALYZER_EXPLAIN_SHORTAGE_H
#define ANALYZER_EXPLAIN_SHORTAGE_H

#include "explain/explain.h"
#include "explain/vote.h"
#include "util/text/str.h"

/* Judge a claim. True: it is one, and `words` got its sentences. */
bool shortage_vote(const struct explain_message *m, struct votes *votes, struct str *words);
/* Add fragmentation where enough was free, and the largest free piece (`piece`) was too small. */
void shortage_vote_of_pieces(
    const struct explain_message *m, struct votes *votes, struct str *words);
/* Judge a refused size that a message names without more numbers (`asked`, `size`, `block`), if no
 * device or process can have as much. */
void shortage_vote_of_size(const struct explain_message *m, struct votes *votes, struct str *words);
/* Judge a request that is a large part of a limit that the message names. */
void shortage_vote_of_part(const struct explain_message *m, struct votes *votes, struct str *words);
/* Add what the words of a failure say: whose memory it was that ran out (claim/scope.h), or else
 * what the settings bound that it names itself (claim/setting.h). Nothing where a cause is likely
 * before. */
void shortage_vote_of_words(const struct explain_message *m, struct votes *votes);
/* Add what the activity supports, for a message that supports nothing by itself. */
void shortage_vote_of_activity(const struct explain_message *m, struct votes *votes);

/* How large one refused request is beside what machines and processes have. */
enum size_class {
	SIZE_ORDINARY,
	SIZE_LARGE, /* allocators and loaders rarely ask for as much at once */
	SIZE_ABSURD, /* more than a machine has */
	SIZE_IMPOSSIBLE, /* more than a process can address */
};
enum size_class shortage_size_class(uint64_t bytes);
/* Vote by the size of one request alone: the larger it is, the likelier it is the cause by itself.
 * An impossible size is no cause, and gets advice. */
void shortage_vote_of_request(uint64_t bytes, struct votes *votes);

#endif
