/* vote.c - see vote.h. */
#include "explain/vote.h"

#include <string.h>

#include "explain/device.h"
#include "explain/host.h"
#include "explain/shortage.h"

void votes_add(struct votes *votes, enum cause cause, double confidence)
{
	for (size_t i = 0; i < votes->count; i++)
		if (votes->list[i].cause == cause) {
			if (confidence > votes->list[i].confidence)
				votes->list[i].confidence = confidence;
			return;
		}
	if (votes->count < VOTES_MAX)
		votes->list[votes->count++] = (struct vote){cause, confidence};
}

void votes_combine(struct votes *votes, enum cause cause, double confidence)
{
	for (size_t i = 0; i < votes->count; i++)
		if (votes->list[i].cause == cause) {
			double *have = &votes->list[i].confidence;

			*have = 1 - (1 - *have) * (1 - confidence);
			return;
		}
	votes_add(votes, cause, confidence);
}

void votes_sort(struct votes *votes)
{
	for (size_t i = 1; i < votes->count; i++) {
		struct vote vote = votes->list[i];
		size_t at = i;

		for (; at > 0 && votes->list[at - 1].confidence < vote.confidence; at--)
			votes->list[at] = votes->list[at - 1];
		votes->list[at] = vote;
	}
}

/* A role whose buffers have one size says most, a role that many kinds of requests pass through
 * says least. Below DECIDED (explain.c) a role only supports other messages. */
static const struct {
	enum role role;
	enum cause cause;
	double confidence;
} roles[] = {
    /* Start-up: before the first request is served. */
    {ROLE_WEIGHTS_LOAD, CAUSE_OVERSIZED_MODEL, 0.8},
    {ROLE_WARM_UP, CAUSE_BATCH_PREALLOC, 0.7},
    /* Buffers that are as long as the prompt. */
    {ROLE_KV_CACHE, CAUSE_PROMPT_GROWTH, 0.7},
    {ROLE_ATTENTION, CAUSE_PROMPT_GROWTH, 0.55},
    {ROLE_PROMPT_ASSEMBLY, CAUSE_PROMPT_GROWTH, 0.6},
    {ROLE_HISTORY, CAUSE_PROMPT_GROWTH, 0.6},
    {ROLE_CHECKPOINTER, CAUSE_STATE_RETENTION, 0.6},
    {ROLE_DOCUMENT_LOADER, CAUSE_OVERSIZED_INTERMEDIATE, 0.6},
    {ROLE_SPLITTER, CAUSE_OVERSIZED_INTERMEDIATE, 0.6},
    {ROLE_EMBEDDING, CAUSE_OVERSIZED_INTERMEDIATE, 0.6},
    {ROLE_TOOL_CALL, CAUSE_OVERSIZED_INTERMEDIATE, 0.55},
    {ROLE_FAN_OUT, CAUSE_CONCURRENCY, 0.35},
};

static bool role_votes(const struct traceback *t, enum role role)
{
	bool startup = t->roles[ROLE_WEIGHTS_LOAD].function || t->roles[ROLE_WARM_UP].function;

	/* A warm-up runs the functions of a request, with made-up requests. */
	return t->roles[role].function &&
	       (!startup || role == ROLE_WEIGHTS_LOAD || role == ROLE_WARM_UP);
}

static void vote_of_traceback(const struct traceback *t, struct votes *votes)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (role_votes(t, roles[i].role))
			votes_add(votes, roles[i].cause, roles[i].confidence);
}

const char *vote_function_of(const struct traceback *t, enum cause cause)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (roles[i].cause == cause && role_votes(t, roles[i].role))
			return t->roles[roles[i].role].function;
	return NULL;
}

void vote_of_message(const struct explain_message *m, struct votes *votes, struct str *words)
{
	if (!shortage_vote(m, votes, words) && !device_vote(m, votes, words))
		host_vote(m, votes, words);
	shortage_vote_of_pieces(m, votes, words);
	shortage_vote_of_size(m, votes, words);
	shortage_vote_of_part(m, votes, words);
	vote_of_traceback(&m->traceback, votes);
	for (size_t i = 0; i < m->known->cause_count; i++)
		votes_add(votes, m->known->causes[i].cause, m->known->causes[i].confidence);
	shortage_vote_of_words(m, votes);
	votes_sort(votes);
	/* Where the numbers have advice, they know that it was not what the program did. */
	if (m->kind == MESSAGE_FAILURE && !m->known->claim && !votes->advice &&
	    strcmp(m->known->space, "host") != 0)
		shortage_vote_of_activity(m, votes);
	votes_sort(votes);
}
