/* shortage.c - see shortage.h. */
#include "explain/shortage.h"

#include <string.h>

#include "explain/claim/scope.h"
#include "explain/claim/setting.h"
#include "explain/meaning.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

TUNED(uint64_t, IMPOSSIBLE, 1ull << 47, "more than a process's address space");
TUNED(uint64_t, ABSURD_SIZE, 1ull << 40, "more than a machine has");
TUNED(uint64_t, HUGE_SIZE, 8ull << 30, "as much as a small machine or a container has in all");
TUNED(uint64_t, LARGE_SIZE, 1ull << 30, "allocators and loaders rarely ask for a GiB at once");
TUNED(double, ABSURD_VOTE, 0.8, "only a wrong size or one huge array asks for that");
TUNED(double, HUGE_VOTE, 0.65, "it may still be one of several such requests");
TUNED(double, LARGE_VOTE, 0.5, "the memory may have been full before");
TUNED(double, BEYOND_VOTE, 0.75, "more than there is: a temporary, or a wrong size");
TUNED(double, PIECES_VOTE, 0.6, "free, but refused: in pieces, or another limit");
TUNED(uint64_t, SMALL_PART, 10, "a tenth: what is larger may be too large by itself");
TUNED(uint64_t, LARGE_PART, 4, "a quarter: few other pieces have room beside it");
TUNED(uint64_t, HALF, 2, "a half: not two of them fit");
TUNED(uint64_t, PIECE_MIN, 16u << 20, "below that it is the limit which is small");
TUNED(double, PART_VOTE, 0.6, "a smaller piece would have had room, as a rule");
TUNED(double, LOAD_VOTE, 0.55, "just enough to decide where no number speaks");
TUNED(double, SCOPE_VOTE, 0.55, "the message says whose memory it was, not why it was so much");
TUNED(double, NAMED_VOTE, 0.52, "who wrote the message knew what mostly helps");
TUNED(double, START_VOTE, 0.52, "a start may load weights, too");

struct numbers {
	uint64_t asked, used, limit, free;
	bool asked_said, used_said, limit_said, free_said;
};

static struct numbers read_numbers(const struct explain_message *m)
{
	struct numbers n = {0};

	n.asked_said = fields_bytes(&m->fields, "requested_bytes", &n.asked);
	n.used_said = fields_bytes(&m->fields, "used_bytes", &n.used);
	n.limit_said = fields_bytes(&m->fields, "limit_bytes", &n.limit);
	n.free_said = fields_bytes(&m->fields, "free_bytes", &n.free);
	return n;
}

enum size_class shortage_size_class(uint64_t bytes)
{
	return bytes >= IMPOSSIBLE    ? SIZE_IMPOSSIBLE
	       : bytes >= ABSURD_SIZE ? SIZE_ABSURD
	       : bytes >= LARGE_SIZE  ? SIZE_LARGE
				      : SIZE_ORDINARY;
}

void shortage_vote_of_request(uint64_t bytes, struct votes *votes)
{
	switch (shortage_size_class(bytes)) {
	case SIZE_IMPOSSIBLE:
		votes->advice =
		    "Look for where the size is computed: an overflow, a shape that is not "
		    "set or was damaged, a race.";
		break;
	case SIZE_ABSURD:
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, ABSURD_VOTE);
		break;
	case SIZE_LARGE:
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE,
		    bytes >= HUGE_SIZE ? HUGE_VOTE : LARGE_VOTE);
		break;
	case SIZE_ORDINARY:
		break;
	}
}

static void one_size(
    const struct explain_message *m, uint64_t asked, struct votes *votes, struct str *words)
{
	bool device = strcmp(m->known->space, "device") == 0;
	enum size_class size = shortage_size_class(asked);
	struct fmt a;

	/* On a device, or while something is loaded, a gigabyte is nothing unusual. */
	if (size == SIZE_LARGE && (device || m->activity != ACTIVITY_UNKNOWN))
		return;
	shortage_vote_of_request(asked, votes);
	if (size == SIZE_IMPOSSIBLE)
		str_printf(words,
		    " %s is more than a process can address: memory is not what was short, the "
		    "size was computed wrongly.",
		    fmt_size(&a, asked));
	else if (size == SIZE_ABSURD)
		str_printf(words,
		    " %s is more than a %s has: one huge array, or a size that was computed "
		    "wrongly.",
		    fmt_size(&a, asked), device ? "device" : "machine");
	else if (size == SIZE_LARGE)
		str_puts(words, " That is one large array or buffer, made whole.");
}

/* The arithmetic between the numbers, as far as they are said. */
static void weigh(const struct explain_message *m, const struct numbers *n, struct votes *votes,
    struct str *words)
{
	struct fmt a, b;

	if (n->asked_said && n->limit_said && n->asked > n->limit && n->asked < ABSURD_SIZE) {
		votes_add(votes, CAUSE_OVERSIZED_INTERMEDIATE, BEYOND_VOTE);
		str_printf(words,
		    " One request of %s is more than the %s there can be: it fits at no time.",
		    fmt_size(&a, n->asked), fmt_size(&b, n->limit));
	} else if (n->asked_said && n->free_said && n->asked <= n->free && n->free) {
		votes_add(votes, CAUSE_FRAGMENTATION, PIECES_VOTE / 2);
		str_printf(words,
		    " %s were free, which is enough: in one piece it was not, or another limit "
		    "refused (of mappings, of address space, of one allocation).",
		    fmt_size(&a, n->free));
	} else if (n->asked_said && n->limit_said && n->asked < n->limit / SMALL_PART) {
		str_puts(words, " The request itself is small: it was full before.");
	} else if (n->asked_said && !n->limit_said && !n->free_said && !n->used_said) {
		one_size(m, n->asked, votes, words);
	}
}

void shortage_vote_of_activity(const struct explain_message *m, struct votes *votes)
{
	if (votes->count && votes->list[0].confidence >= LARGE_VOTE)
		return;
	if (m->activity == ACTIVITY_LOAD)
		votes_add(votes, CAUSE_OVERSIZED_MODEL, LOAD_VOTE);
	else if (m->activity == ACTIVITY_START)
		votes_add(votes, CAUSE_BATCH_PREALLOC, START_VOTE);
}

static enum cause cause_of_scope(enum scope scope)
{
	static const enum cause causes[SCOPE_COUNT] = {
	    [SCOPE_REQUEST] = CAUSE_OVERSIZED_INTERMEDIATE,
	    [SCOPE_REQUESTS] = CAUSE_CONCURRENCY,
	    [SCOPE_STORE] = CAUSE_STATE_RETENTION,
	    [SCOPE_START] = CAUSE_BATCH_PREALLOC,
	    [SCOPE_WEIGHTS] = CAUSE_OVERSIZED_MODEL,
	    [SCOPE_LIMIT] = CAUSE_EXTERNAL,
	};

	return causes[scope];
}

static enum cause cause_of_setting(enum setting_change change, enum setting_of of)
{
	if (change == SETTING_LOWER && of == SETTING_OF_WORKERS)
		return CAUSE_CONCURRENCY;
	if (change == SETTING_LOWER && of == SETTING_OF_BATCH)
		return CAUSE_OVERSIZED_INTERMEDIATE;
	if (of == SETTING_OF_SHARE || (change == SETTING_LOWER && of == SETTING_OF_LENGTH))
		return CAUSE_BATCH_PREALLOC;
	return CAUSE_UNKNOWN;
}

static enum cause cause_of_settings(const struct explain_message *m)
{
	static const char *const names[SETTING_CHANGES] = {"raise", "lower", "change"};

	for (unsigned c = 0; c < SETTING_CHANGES; c++) {
		const struct field *f = fields_find(&m->fields, names[c]);
		const char *name = f && f->type == FIELD_TEXT ? f->text : NULL;

		while (name) {
			const char *end = strstr(name, " or ");
			size_t bytes = end ? (size_t)(end - name) : strlen(name);
			enum cause cause =
			    cause_of_setting((enum setting_change)c, setting_of(name, bytes));

			if (cause)
				return cause;
			name = end ? end + 4 : NULL;
		}
	}
	return CAUSE_UNKNOWN;
}

void shortage_vote_of_words(const struct explain_message *m, struct votes *votes)
{
	enum scope scope;
	enum cause cause;

	for (size_t i = 0; i < votes->count; i++)
		if (votes->list[i].confidence >= LARGE_VOTE)
			return;
	if (m->kind != MESSAGE_FAILURE || votes->advice)
		return;
	scope = scope_read(m->text);
	cause = cause_of_scope(scope);
	if (cause)
		votes_add(votes, cause, SCOPE_VOTE);
	else if (m->known->claim && (cause = cause_of_settings(m)))
		votes_add(votes, cause, NAMED_VOTE);
}

void shortage_vote_of_pieces(
    const struct explain_message *m, struct votes *votes, struct str *words)
{
	uint64_t asked, left, piece;
	struct fmt a, b, c;

	if (m->kind != MESSAGE_FAILURE || !fields_bytes(&m->fields, "requested_bytes", &asked) ||
	    !fields_bytes(&m->fields, "free_bytes", &left) ||
	    !fields_bytes(&m->fields, "piece_bytes", &piece) || asked > left || asked <= piece)
		return;
	votes_add(votes, CAUSE_FRAGMENTATION, PIECES_VOTE);
	str_printf(words,
	    "%s%s were free, more than the %s that were asked for, but at most %s of it in one "
	    "piece: fragmentation.",
	    words->length ? " " : "", fmt_size(&a, left), fmt_size(&b, asked), fmt_size(&c, piece));
}

void shortage_vote_of_size(const struct explain_message *m, struct votes *votes, struct str *words)
{
	static const char *const names[] = {"asked_bytes", "size_bytes", "block_bytes"};
	bool host = strcmp(m->known->space, "host") == 0;
	uint64_t bytes, most = 0;

	if (m->kind != MESSAGE_FAILURE || m->known->claim || votes->count || words->length)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (fields_bytes(&m->fields, names[i], &bytes) && bytes > most)
			most = bytes;
	if (most < (host && !m->known->cause_count ? HUGE_SIZE : ABSURD_SIZE))
		return;
	meaning_write(words, m->known->meaning, &m->fields);
	one_size(m, most, votes, words);
}

static bool first_of(
    const struct explain_message *m, const char *const *names, size_t count, uint64_t *bytes)
{
	for (size_t i = 0; i < count; i++)
		if (fields_bytes(&m->fields, names[i], bytes))
			return true;
	return false;
}

void shortage_vote_of_part(const struct explain_message *m, struct votes *votes, struct str *words)
{
	static const char *const asks[] = {
	    "requested_bytes", "asked_bytes", "block_bytes", "chunk_bytes", "new_bytes"};
	static const char *const limits[] = {
	    "most_bytes", "limit_bytes", "breaker_bytes", "allowed_bytes"};
	uint64_t asked, limit;
	struct fmt a, b;

	if (m->kind != MESSAGE_FAILURE || votes->count || m->known->cause_count ||
	    !first_of(m, asks, sizeof(asks) / sizeof(*asks), &asked) ||
	    !first_of(m, limits, sizeof(limits) / sizeof(*limits), &limit) || asked < PIECE_MIN ||
	    asked < limit / LARGE_PART || asked > ABSURD_SIZE)
		return;
	votes_add(
	    votes, CAUSE_OVERSIZED_INTERMEDIATE, asked >= limit / HALF ? PART_VOTE : LARGE_VOTE);
	if (!words->length)
		meaning_write(words, m->known->meaning, &m->fields);
	if (!m->known->claim)
		str_printf(words, " One piece of %s is a large part of %s by itself.",
		    fmt_size(&a, asked), fmt_size(&b, limit));
}

static bool is_memory_of_its_own(const struct explain_message *m)
{
	return strcmp(m->known->claim, "device") == 0 || strcmp(m->known->claim, "host") == 0;
}

bool shortage_vote(const struct explain_message *m, struct votes *votes, struct str *words)
{
	struct numbers n = read_numbers(m);
	size_t told;

	if (!m->known->claim)
		return false;
	meaning_write(words, m->known->meaning, &m->fields);
	if (m->kind != MESSAGE_FAILURE)
		return true;
	told = words->length;
	weigh(m, &n, votes, words);
	if (is_memory_of_its_own(m) && words->length == told) {
		shortage_vote_of_activity(m, votes);
		if (m->activity == ACTIVITY_LOAD)
			str_puts(words, " It was loading then.");
		else if (m->activity == ACTIVITY_START)
			str_puts(words, " It was starting then, before it served anybody.");
		else if (m->activity == ACTIVITY_TRAIN)
			str_puts(words, " It was training then.");
	}
	return true;
}
