/* claim.c - see claim.h. */
#include "explain/claim/claim.h"

#include <string.h>

#include "explain/claim/evidence.h"
#include "explain/claim/lack.h"
#include "explain/claim/mood.h"
#include "explain/claim/says.h"
#include "explain/claim/sentence.h"
#include "explain/claim/space.h"
#include "explain/claim/vocabulary.h"
#include "util/tuned.h"

TUNED(size_t, LIST_WORDS, 8, "two numbers with their words");
TUNED(size_t, KEY_WORDS, 4, "\"Trying to allocate: 67108864B\"; a longer one is a sentence");

/* Without one of these words nothing failed; letters of either case begin them. */
const char *const claim_needles[] = {"fail", "Fail", "FAIL", "nable to", "nable alloc", "UNABLE",
    "annot ", "an not ", "o sufficient", "isappeared", "DEVICE_LOST", "evice lost", "bruptly",
    "ran out", "hortage", "etsam", " oom", "\"oom\"", "verlimit", "ause of high", "due to high",
    "ause of excess", "due to excess", "137", "signal 9", "SIGKILL", "-9", "rrno 12", "ANNOT",
    "an't ", "ould not", "ouldn't", "ut of ", "UT OF", "UT_OF", "utOf", "ut_of", "xceed", "XCEED",
    "nsufficient", "NSUFFICIENT", "ot enough", "OT ENOUGH", "o enough", "otEnough", "ot_enough",
    "OT_ENOUGH", "xhaust", "XHAUST", " full", "Full", "FULL", "illed", "ILLED", "efused",
    "o available", "ot available", "o free ", "o space", "o room", "o more ", "arger than",
    "reater than", "ore than", "igher than", "memory than", "memory pressure", "need ", "oo large",
    "oo big", "oo long", "onger than", " fit", " above ", "eached", "REACHED", "ow on ", "ENOMEM",
    "OOM", "erminated", "victed", "eartbeat", "rejected by", "egmentation", "egfault", "SIGSEGV",
    "violation", "llegal memory", "quota", "Quota", "oo many", "oo low", "mpossible", "ack of",
    "required", "equires", "needs ", "returned NULL", "returned null", "maximum number",
    "nsupported system", "imit reached", "imit of ", "over limit", "ate limit", "unreachable",
    "disconnected", "unexpectedly", "epleted", " died", "bad_alloc", "only ", "not permitted",
    "ermission denied", "ave enough", "ueue is full", "ust be between", "ueue full", "queue size",
    "ueue capacity", "ool exhausted", "ool is exhausted", "ueuePool limit", "verloaded",
    "tack overflow", "tackOverflow", "recursion depth", "call stack size", "overflowed its stack",
    " leaked ", "memory leak", "no memory", "ancel", "ANCEL", "verflow", "oo small", "arge enough",
    "ut-of-", "eaped", "too much memory", "emory left", "space left", "NO_MEMORY", "SQLSTATE",
    "VkResult", "HRESULT", "NTSTATUS", "ret: -", "returned -", "emory budget", "RAM budget",
    "MemoryAllocation", "MEMORY_ALLOC", "emory error", "llocation error", "rror alloc", NULL};

const char *claim_name(enum claim_kind kind)
{
	static const char *const names[] = {
	    "",
#define CLAIM(id, name) name,
#include "explain/claim/claims.def"
	};

	return kind < CLAIM_COUNT ? names[kind] : "";
}

bool claim_is_unsure(enum claim_kind kind)
{
	return kind == CLAIM_UNSURE || kind == CLAIM_UNSURE_DEVICE;
}

static size_t sentence_end(const struct lexemes *l, size_t from)
{
	for (size_t i = from; i < l->count; i++) {
		const struct lexeme *x = &l->list[i];

		if (x->type != LEXEME_MARK || !strchr(".;!?", x->mark))
			continue;
		if (i + 1 == l->count || l->list[i + 1].at > x->at + 1)
			return i + 1;
	}
	return l->count;
}

/* "increase the size from 0 bytes to 64 MiB": done, and no more than told. */
static bool is_recovered(const struct sentence *line)
{
	return any_word(line, "warning") || any_word(line, "warn") || any_flag(line, WORD_RETRY);
}

static enum claim_kind kind_of(struct sentence *s, const struct sentence *line)
{
	struct sentence all = *line;
	bool refused = says_short(s) || says_full(s) || says_refused(s) || says_too_large(s) ||
		       says_oom(s) || says_no_room(s) || says_high_usage(s);

	if (says_collection(line) || any_two(line, "callbacks", "suppressed"))
		return CLAIM_NONE;
	if (mood_configuration(s))
		return CLAIM_SETTING;
	if (says_over(s) && any_flag(s, WORD_DISK) && !any_flag(s, MEMORY_NOUNS | WORD_DEVICE) &&
	    !mood_hypothetical(s))
		return CLAIM_DISK;
	if (any_two(s, "no", "space") && any_two(s, "left", "on") && space_is_shared(line) &&
	    any_flag(line, WORD_FAIL) && !mood_hypothetical(s))
		return CLAIM_SHARED;
	if (refused && lack_is_locked(line) && !mood_hypothetical(s))
		return CLAIM_LOCKED;
	if ((refused || says_over(s)) && says_message_size(s) && (any_size(s) || says_over(s)) &&
	    !says_refused(s) && !mood_hypothetical(s))
		return CLAIM_SIZE;
	if (refused && !mood_hypothetical(s) && !mood_got_over(s, line->to))
		return space_of(line, says_over(&all));
	if (refused && !mood_hypothetical(s) && mood_went_on(s, line))
		return CLAIM_AGAIN;
	if (refused && mood_hypothetical(s) && mood_guesses(s, line))
		return CLAIM_GUESS;
	if (any_word(s, "jetsam") || any_word(s, "pageshortage") ||
	    any_two(s, "space", "shortage") || any_two(s, "memory", "shortage"))
		return CLAIM_KILLED;
	if (says_killed(s) && !mood_hypothetical(s))
		return CLAIM_KILLED;
	if ((says_over(s) || says_used_over(s, true)) && !mood_hypothetical(s) &&
	    !mood_got_over(s, line->to))
		return mood_near(line) ? CLAIM_NEAR : space_of(line, true);
	if (says_too_small(s) && !mood_hypothetical(s) && !is_recovered(line))
		return CLAIM_POOL;
	if (says_by_numbers(s, line) && !mood_hypothetical(s) && !mood_got_over(s, line->to))
		return mood_near(line) ? CLAIM_NEAR : space_of(line, false);
	return CLAIM_NONE;
}

/* What an agent remembers is called memory, too: "conversation memory", "memory table". */
static void forget_other_memory(struct lexemes *l)
{
	static const char *const before[] = {"conversation", "chat", "agent", "agents", "episodic",
	    "semantic", "entity", "session", "conversational", "term"};
	static const char *const behind[] = {"table", "tables", "backend", "module", "service",
	    "record", "records", "entry", "provider", "client", "saver", "collection", "node",
	    "agent", "server", "plugin", "tool", "key", "id"};

	for (size_t i = 0; i < l->count; i++) {
		const char *last = i > 0 ? l->list[i - 1].word : "";
		const char *next = i + 1 < l->count ? l->list[i + 1].word : "";
		bool other = false;

		if (strcmp(l->list[i].word, "memory") != 0)
			continue;
		for (size_t k = 0; k < sizeof(before) / sizeof(*before); k++)
			other |= strcmp(last, before[k]) == 0;
		for (size_t k = 0; k < sizeof(behind) / sizeof(*behind); k++)
			other |= strcmp(next, behind[k]) == 0;
		if (other)
			l->list[i].vocabulary &= ~(unsigned)WORD_MEMORY;
	}
}

/* What no rule understood may still be a failure beside a word of memory. */
static void read_unsure(const struct lexemes *l, const struct sentence *whole, struct claim *out)
{
	for (size_t from = 0, to; from < l->count && !out->kind; from = to) {
		struct sentence s = {.l = l, .from = from};

		s.to = to = sentence_end(l, from);
		out->kind = evidence_of(&s, whole);
		if (out->kind)
			amounts_read(&out->amounts, l, 0, l->count);
	}
}

bool claim_read(const char *line, size_t bytes, struct claim *out)
{
	static _Thread_local struct lexemes l;
	struct sentence whole = {.l = &l};

	*out = (struct claim){0};
	lexemes_read(&l, line, bytes);
	forget_other_memory(&l);
	whole.to = l.count;
	if (mood_source(&l, line, bytes) || mood_quiet(&l, line))
		return false;
	for (size_t from = 0, to; from < l.count && !out->kind; from = to) {
		struct sentence s = {.l = &l, .from = from};

		s.to = to = sentence_end(&l, from);
		out->kind = kind_of(&s, &whole);
		if (!out->kind)
			continue;
		if (out->kind == CLAIM_POOL && lack_of(&whole) == CLAIM_DISK)
			out->kind = CLAIM_DISK;
		amounts_read(&out->amounts, &l, from, to);
		amounts_read(&out->amounts, &l, to, l.count);
		amounts_read(&out->amounts, &l, 0, from);
	}
	for (size_t from = 0, to; from < l.count && !out->kind; from = to) {
		struct sentence s = {.l = &l, .from = from};

		s.to = to = sentence_end(&l, from);
		out->kind = lack_of(&s);
		if (out->kind && mood_hypothetical(&s) && out->kind != CLAIM_MAPS &&
		    out->kind != CLAIM_PROMPT && out->kind != CLAIM_QUOTA &&
		    out->kind != CLAIM_LOST && out->kind != CLAIM_LEAK && out->kind != CLAIM_STACK)
			out->kind = CLAIM_NONE;
	}
	read_unsure(&l, &whole, out);
	return out->kind != CLAIM_NONE;
}

bool claim_read_key(const char *line, size_t bytes, struct amounts *out)
{
	static _Thread_local struct lexemes l;
	size_t key = 0;
	bool before;

	lexemes_read(&l, line, bytes);
	while (key < l.count && key < KEY_WORDS && l.list[key].type == LEXEME_WORD)
		key++;
	/* "3.4 GB required", "11960320 bytes available, 16777232 requested." */
	before = l.count > 1 && l.count <= LIST_WORDS && key == 0 &&
		 l.list[0].type == LEXEME_NUMBER && l.list[0].unit == UNIT_BYTE;
	if (!before &&
	    (key == 0 || key + 1 >= l.count || l.list[key].type != LEXEME_MARK ||
		!strchr(":=", l.list[key].mark) || l.list[key + 1].type != LEXEME_NUMBER))
		return false;
	amounts_read(out, &l, 0, l.count);
	return true;
}
