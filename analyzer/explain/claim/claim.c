/* claim.c - see claim.h. */
#include "explain/claim/claim.h"

#include <string.h>

#include "explain/claim/vocabulary.h"
#include "util/tuned.h"

TUNED(size_t, NOUN_NEAR, 5,
    "\"out of GPU device memory\": a noun further off belongs to another verb");
TUNED(size_t, PAIR_NEAR, 9, "\"allocation of 512 MiB for the batch failed\"");
TUNED(size_t, LEVEL_WITHIN, 14, "a logger's level stands behind its time and thread");

/* Without one of these words nothing failed; letters of either case begin them. */
const char *const claim_needles[] = {"fail", "Fail", "FAIL", "nable to", "UNABLE", "annot ",
    "an not ", "o sufficient", "isappeared", "DEVICE_LOST", "evice lost", "bruptly", "ran out",
    "hortage", "etsam", "137", "signal 9", "SIGKILL", "-9", "rrno 12", "ANNOT", "an't ", "ould not",
    "ouldn't", "ut of ", "UT OF", "UT_OF", "utOf", "ut_of", "xceed", "XCEED", "nsufficient",
    "NSUFFICIENT", "ot enough", "OT ENOUGH", "o enough", "xhaust", "XHAUST", " full", "Full",
    "FULL", "illed", "ILLED", "efused", "o available", "o free ", "o space", "o room", "o more ",
    "arger than", "reater than", "ore than", "igher than", "oo large", "oo big", "oo long",
    "onger than", " fit ", "eached", "REACHED", "ow on ", "ENOMEM", "OOM", "erminated", "victed",
    "eartbeat", "egmentation", "egfault", "SIGSEGV", "violation", "llegal memory", "quota", "Quota",
    "oo many", "oo low", "mpossible", "ack of", "required", "equires", "needs ", "returned NULL",
    "returned null", "maximum number", "nsupported system", "imit reached", "imit of ",
    "over limit", "ate limit", "unreachable", "disconnected", "unexpectedly", "epleted", " died",
    "bad_alloc", "only ", NULL};

const char *claim_name(enum claim_kind kind)
{
	static const char *const names[] = {
	    "",
#define CLAIM(id, name) name,
#include "explain/claim/claims.def"
	};

	return kind < CLAIM_COUNT ? names[kind] : "";
}

struct sentence {
	const struct lexemes *l;
	size_t from, to;
	size_t at; /* where the claim begins */
};

static const struct lexeme *lexeme(const struct sentence *s, size_t i)
{
	static const struct lexeme none = {.type = LEXEME_MARK, .word = ""};

	return i < s->to ? &s->l->list[i] : &none;
}

static bool word_is(const struct sentence *s, size_t i, const char *word)
{
	return strcmp(lexeme(s, i)->word, word) == 0 && *word;
}

static bool has_flag(const struct sentence *s, size_t i, unsigned flags)
{
	return lexeme(s, i)->vocabulary & flags;
}

/* Returns the first lexeme from `from` on, before `to`, with one of the flags; s->to: none. */
static size_t find_flag(const struct sentence *s, size_t from, size_t to, unsigned flags)
{
	for (size_t i = from; i < to && i < s->to; i++)
		if (has_flag(s, i, flags))
			return i;
	return s->to;
}

static bool any_flag(const struct sentence *s, unsigned flags)
{
	return find_flag(s, s->from, s->to, flags) < s->to;
}

static size_t find_word(const struct sentence *s, const char *word)
{
	for (size_t i = s->from; i < s->to; i++)
		if (word_is(s, i, word))
			return i;
	return s->to;
}

static bool any_word(const struct sentence *s, const char *word)
{
	return find_word(s, word) < s->to;
}

static bool two_words(const struct sentence *s, size_t i, const char *first, const char *second)
{
	return word_is(s, i, first) && word_is(s, i + 1, second);
}

static bool any_two(const struct sentence *s, const char *first, const char *second)
{
	for (size_t i = s->from; i < s->to; i++)
		if (two_words(s, i, first, second))
			return true;
	return false;
}

static bool any_size(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++)
		if (lexeme(s, i)->type == LEXEME_NUMBER && lexeme(s, i)->unit == UNIT_BYTE)
			return true;
	return false;
}

/* Part of a name or a path: error_handler, /opt/test/run.py. */
static bool is_part(const struct sentence *s, size_t i)
{
	const struct lexeme *x = lexeme(s, i);
	size_t end = x->at + strlen(x->word);

	if (x->joined || lexeme(s, i + 1)->joined)
		return true;
	if (i > s->from && lexeme(s, i - 1)->type == LEXEME_MARK &&
	    strchr("/.-", lexeme(s, i - 1)->mark) && lexeme(s, i - 1)->at + 1 == x->at)
		return true;
	return lexeme(s, i + 1)->type == LEXEME_MARK && lexeme(s, i + 1)->at == end &&
	       strchr("/-", lexeme(s, i + 1)->mark);
}

static bool negated(const struct sentence *s, size_t i)
{
	for (size_t back = 1; back <= 2 && back <= i - s->from; back++)
		if (word_is(s, i - back, "not") || word_is(s, i - back, "never") ||
		    word_is(s, i - back, "without") || word_is(s, i - back, "no"))
			return true;
	return false;
}

/* "could not", "can not", "did not": a refusal in two words. */
static bool refuses(const struct sentence *s, size_t i)
{
	if (has_flag(s, i, WORD_FAIL))
		return true;
	return word_is(s, i, "not") && i > s->from &&
	       (word_is(s, i - 1, "could") || word_is(s, i - 1, "can") ||
		   word_is(s, i - 1, "did") || word_is(s, i - 1, "was"));
}

#define MEMORY_NOUNS (WORD_MEMORY | WORD_RUNTIME | WORD_SHARED)

/* --- the ways to say it; each sets s->at to where it begins --- */

/* "out of memory errors": prose about them. */
static bool is_topic(const struct sentence *s, size_t i)
{
	static const char *const topics[] = {"access", "errors", "issues", "problems", "conditions",
	    "situations", "exceptions", "crashes", "kills"};

	for (size_t t = 0; t < sizeof(topics) / sizeof(*topics); t++)
		if (word_is(s, i, topics[t]))
			return true;
	return false;
}

/* "out of memory", "OutOfDirectMemoryError", "not enough free memory", "no available KV blocks" */
static bool says_short(struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		size_t noun = 0;

		if (two_words(s, i, "out", "of"))
			noun = i + 2;
		else if (two_words(s, i, "not", "enough") || two_words(s, i, "no", "enough") ||
			 two_words(s, i, "low", "on") || two_words(s, i, "lack", "of") ||
			 two_words(s, i, "no", "sufficient") ||
			 two_words(s, i, "no", "available") || two_words(s, i, "no", "free") ||
			 two_words(s, i, "no", "more") || two_words(s, i, "no", "remaining"))
			noun = i + 2;
		else if (word_is(s, i, "insufficient") || word_is(s, i, "inadequate") ||
			 word_is(s, i, "insufficiently"))
			noun = i + 1;
		else if (word_is(s, i, "no") && has_flag(s, i + 1, WORD_MEMORY) &&
			 (has_flag(s, i + 3, WORD_FREE) || has_flag(s, i + 2, WORD_FREE)))
			noun = i + 1;
		if (!noun)
			continue;
		for (size_t n = noun; n < noun + NOUN_NEAR && n < s->to; n++) {
			if (has_flag(s, n, WORD_DISK) || word_is(s, n, "bounds") ||
			    word_is(s, n, "range") || lexeme(s, n)->mark == ':')
				break;
			if ((has_flag(s, n, MEMORY_NOUNS | WORD_POOL) ||
				((word_is(s, n, "resource") || word_is(s, n, "resources")) &&
				    any_word(s, "load"))) &&
			    !is_topic(s, n + 1)) {
				s->at = i;
				return true;
			}
		}
	}
	return false;
}

/* "virtual memory exhausted", "object store is full" */
static bool says_full(struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		if (!has_flag(s, i, MEMORY_NOUNS | WORD_POOL) || has_flag(s, i, WORD_DISK))
			continue;
		for (size_t n = i + 1; n <= i + 4 && n < s->to; n++) {
			if (lexeme(s, n)->type == LEXEME_MARK && strchr(".,;:", lexeme(s, n)->mark))
				break;
			if ((word_is(s, n, "full") || word_is(s, n, "exhausted") ||
				word_is(s, n, "depleted") || word_is(s, n, "exhaustion")) &&
			    !negated(s, n)) {
				s->at = i;
				return true;
			}
		}
	}
	return false;
}

/* "does not fit into memory", "too large for the device" */
static bool says_too_large(struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		bool no_fit = word_is(s, i, "fit") &&
			      (negated(s, i) || (i > s->from && (word_is(s, i - 1, "doesn't") ||
								    word_is(s, i - 1, "won't") ||
								    word_is(s, i - 1, "can't") ||
								    word_is(s, i - 1, "cannot"))));
		bool large = two_words(s, i, "too", "large") || two_words(s, i, "too", "big");

		if ((no_fit || large) &&
		    (any_flag(s, MEMORY_NOUNS | WORD_DEVICE) ||
			(no_fit && any_flag(s, WORD_POOL)) || (large && any_size(s)))) {
			s->at = i > s->from ? i - 1 : i;
			return true;
		}
	}
	return false;
}

static bool any_of(const struct sentence *s, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (any_word(s, words[i]))
			return true;
	return false;
}

/* True if the line is about other things that a program allocates: ports, licences, ids. */
static bool other_goods(const struct sentence *s)
{
	static const char *const goods[] = {"port", "ports", "address", "addresses", "ip",
	    "license", "licenses", "seat", "seats", "inode", "subnet", "pid", "tty", "handle",
	    "vlan", "cpu", "cpus", "gpus", "id", "ids"};

	return !any_flag(s, MEMORY_NOUNS) && !any_size(s) &&
	       any_of(s, goods, sizeof(goods) / sizeof(*goods));
}

/* Refused for another reason than memory. */
static bool other_reason(const struct sentence *s)
{
	return any_two(s, "invalid", "argument") || any_two(s, "not", "permitted") ||
	       any_two(s, "permission", "denied") || any_two(s, "not", "supported") ||
	       any_two(s, "not", "implemented") || any_two(s, "access", "denied") ||
	       any_two(s, "not", "found") || any_two(s, "no", "such") ||
	       any_word(s, "unsupported") || any_two(s, "driver", "version");
}

/* "failed to allocate 4 GiB", "cudaMalloc failed", "allocation of 512 MiB failed", "could not
 * reserve enough memory" */
static bool says_refused(struct sentence *s)
{
	size_t enomem = find_word(s, "enomem");

	for (size_t f = s->from; f < s->to; f++) {
		size_t begin = f > s->from + PAIR_NEAR ? f - PAIR_NEAR : s->from;

		if (!refuses(s, f) || negated(s, f))
			continue;
		for (size_t a = begin; a <= f + PAIR_NEAR && a < s->to; a++) {
			bool strong = has_flag(s, a, WORD_ALLOCATE);
			bool weak = has_flag(s, a, WORD_TAKE);
			size_t first = a < f ? a : f, last = a < f ? f : a;

			if (a == f || (!strong && !weak))
				continue;
			/* "allocated 5 GiB ... failed" was not refused. */
			if (word_is(s, a, "allocated") && a > f)
				continue;
			if (weak && !strong &&
			    find_flag(s, first, last + NOUN_NEAR, MEMORY_NOUNS) >= s->to &&
			    !(any_size(s) && a > f && a - f <= 3))
				continue;
			if (strong && !any_flag(s, MEMORY_NOUNS | WORD_POOL | WORD_THING) &&
			    !any_size(s) && !any_word(s, "enomem") && !any_word(s, "errno") &&
			    !(a + 1 == f || a + 2 == f))
				continue;
			s->at = first;
			return !other_goods(s) && !other_reason(s);
		}
	}
	if (enomem < s->to && any_flag(s, WORD_FAIL)) {
		s->at = enomem;
		return true;
	}
	return false;
}

/* "exceeded", "larger than", "over the limit of" */
static bool is_over(const struct sentence *s, size_t i)
{
	const char *w = lexeme(s, i)->word;

	if (!has_flag(s, i, WORD_OVER) || negated(s, i))
		return false;
	if (strcmp(w, "more") == 0 || strcmp(w, "larger") == 0 || strcmp(w, "greater") == 0 ||
	    strcmp(w, "bigger") == 0 || strcmp(w, "longer") == 0 || strcmp(w, "higher") == 0)
		return word_is(s, i + 1, "than");
	return true;
}

/* "memory limit of 2 GiB exceeded", "RSS is above the maximum", "would be larger than the breaker"
 */
static bool says_over(struct sentence *s)
{
	unsigned nouns = MEMORY_NOUNS | WORD_POOL;
	bool noun = any_flag(s, nouns) || any_word(s, "rss") || any_word(s, "data");

	for (size_t o = s->from; o < s->to; o++) {
		if (!is_over(s, o))
			continue;
		if (!any_flag(s, WORD_LIMIT) && !any_word(s, "breaker") &&
		    !any_word(s, "available") && !(any_flag(s, WORD_MEMORY) && any_word(s, "used")))
			continue;
		if (word_is(s, o, "over") &&
		    find_flag(s, o, o + NOUN_NEAR, WORD_LIMIT | WORD_MEMORY) >= s->to)
			continue;
		/* A bare pool's limit may count anything. */
		if (!any_flag(s, MEMORY_NOUNS) && !any_size(s))
			continue;
		if (!noun && !any_size(s))
			continue;
		s->at = s->from;
		return true;
	}
	return false;
}

static bool says_killed(struct sentence *s)
{
	size_t kill = find_flag(s, s->from, s->to, WORD_KILL);
	size_t oom = find_word(s, "oom");

	if (kill >= s->to || (kill > s->from + 1 && refuses(s, kill - 2)) ||
	    (kill > s->from && word_is(s, kill - 1, "for")))
		return false;
	if (oom >= s->to && find_flag(s, s->from, s->to, WORD_MEMORY) >= s->to &&
	    !any_word(s, "oomkilled"))
		return false;
	for (size_t i = kill + 1; i <= kill + 3; i++)
		if (word_is(s, i, "false") || word_is(s, i, "disabled") || word_is(s, i, "score") ||
		    word_is(s, i, "when") || word_is(s, i, "if"))
			return false;
	s->at = kill < oom ? kill : oom;
	return true;
}

/* "CUDA OOM", "failed with OOM" */
static bool says_oom(struct sentence *s)
{
	size_t oom = find_word(s, "oom");

	if (oom >= s->to || word_is(s, oom + 1, "score") || word_is(s, oom + 2, "adj") ||
	    word_is(s, oom + 1, "killer") || lexeme(s, oom + 1)->joined)
		return false;
	if (!any_flag(s, WORD_ERROR | WORD_DEVICE | WORD_ALLOCATE))
		return false;
	s->at = oom;
	return true;
}

/* "the model needs 24 GB, but only 16 GB are available" */
static bool numbers_say(struct sentence *s)
{
	struct amounts a = {0};

	if (!any_flag(s, MEMORY_NOUNS | WORD_DEVICE | WORD_ERROR))
		return false;
	amounts_read(&a, s->l, s->from, s->to);
	s->at = s->from;
	return a.said[AMOUNT_ASKED] && a.said[AMOUNT_FREE] &&
	       a.bytes[AMOUNT_ASKED] > a.bytes[AMOUNT_FREE];
}

/* A file, a message or a request has a largest size, too, and no memory is meant. */
static bool is_message_size(const struct sentence *s)
{
	static const char *const goods[] = {"file", "body", "entity", "message", "upload",
	    "payload", "packet", "header", "headers", "response", "attachment", "document", "row",
	    "field", "frame", "log"};

	return !any_flag(s, MEMORY_NOUNS | WORD_DEVICE) &&
	       any_of(s, goods, sizeof(goods) / sizeof(*goods));
}

/* A collector of garbage says "Allocation Failure" where it begins to work. */
static bool is_collection(const struct sentence *line)
{
	return any_two(line, "allocation", "failure") && !any_flag(line, WORD_MEMORY) &&
	       (any_word(line, "gc") || any_word(line, "scavenge") || any_word(line, "sweep") ||
		   any_word(line, "compact"));
}

/* --- what is no claim --- */

/* A word before the claim that makes it a possibility, an advice or a title. */
static bool is_hypothetical(const struct sentence *s)
{
	for (size_t i = s->from; i < s->at && i < s->to; i++) {
		if (!has_flag(s, i, WORD_MAYBE) || is_part(s, i))
			continue;
		if ((word_is(s, i, "could") || word_is(s, i, "should") || word_is(s, i, "would")) &&
		    word_is(s, i + 1, "not"))
			continue;
		return true;
	}
	/* "out of memory may happen" */
	for (size_t i = s->at; i < s->at + 8 && i < s->to; i++)
		if ((word_is(s, i, "may") || word_is(s, i, "might")) && !is_part(s, i))
			return true;
	return false;
}

static bool got_over_it(const struct sentence *s, size_t end)
{
	for (size_t i = s->at; i < end; i++) {
		const struct lexeme *x = &s->l->list[i];

		if (x->vocabulary & WORD_RETRY && !x->joined)
			return true;
		if (strcmp(x->word, "passed") == 0 || strcmp(x->word, "handled") == 0)
			return true;
	}
	/* "retrying after out of memory" */
	for (size_t i = s->from; i < s->at; i++)
		if (has_flag(s, i, WORD_RETRY) && !is_part(s, i))
			return true;
	return false;
}

/* A level below a warning, in capitals as loggers write it, or as a key's value. */
static bool is_quiet(const struct lexemes *l, const char *line)
{
	for (size_t i = 0; i < l->count && i < LEVEL_WITHIN; i++) {
		const struct lexeme *x = &l->list[i];
		char first = line[x->at];

		if (x->vocabulary & WORD_ERROR && first >= 'A' && first <= 'Z' && !x->joined)
			return false;
		if (x->vocabulary & WORD_QUIET && !x->joined &&
		    ((first >= 'A' && first <= 'Z' && line[x->at + 1] < 'a') ||
			(i > 0 && l->list[i - 1].mark == '=')))
			return true;
	}
	return false;
}

/* Source code, a comment, a diff, a quotation of prose. */
static bool is_source(const struct lexemes *l, const char *line, size_t bytes)
{
	size_t i = 0;

	while (i < bytes && (line[i] == ' ' || line[i] == '\t' || line[i] == '}'))
		i++;
	if (i + 1 < bytes && (line[i] == '@' || (line[i] == '/' && line[i + 1] == '/') ||
				 (line[i] == '/' && line[i + 1] == '*') || line[i] == '*' ||
				 (line[i] == '-' && line[i + 1] == '-') || line[i] == '#'))
		return !(line[i] == '*' && i + 1 < bytes && line[i + 1] == '*');
	if (l->count < 2 || l->list[0].type != LEXEME_WORD)
		return false;
	if (l->list[0].vocabulary & WORD_CODE && !l->list[1].joined &&
	    !(l->list[1].type == LEXEME_MARK && l->list[1].mark == ':'))
		return line[l->list[0].at] >= 'a';
	/* `if (...) return`, but also "If it fails" */
	return (strcmp(l->list[0].word, "if") == 0 || strcmp(l->list[0].word, "with") == 0 ||
		strcmp(l->list[0].word, "for") == 0 || strcmp(l->list[0].word, "while") == 0);
}

/* --- what ran out --- */

static bool names_device(const struct sentence *line)
{
	for (size_t i = line->from; i < line->to; i++) {
		if (!has_flag(line, i, WORD_DEVICE))
			continue;
		/* "no space left on device", "block device" */
		if (word_is(line, i, "device") &&
		    ((i > line->from && word_is(line, i - 1, "on")) ||
			(i > line->from && word_is(line, i - 1, "block"))) &&
		    !any_word(line, "gpu") && !any_word(line, "cuda") &&
		    (any_word(line, "space") || any_word(line, "block")))
			continue;
		return true;
	}
	return false;
}

static bool names_host(const struct sentence *line)
{
	for (size_t i = line->from; i < line->to; i++)
		if (has_flag(line, i, WORD_HOST) &&
		    (has_flag(line, i + 1, WORD_MEMORY) || has_flag(line, i + 2, WORD_MEMORY)))
			return true;
	return any_two(line, "host", "malloc") || any_two(line, "host", "alloc");
}

static bool is_shared(const struct sentence *line)
{
	return any_two(line, "shared", "memory") || any_flag(line, WORD_SHARED) ||
	       any_two(line, "dev", "shm") || any_word(line, "semaphore");
}

static enum claim_kind space_of(const struct sentence *line, bool over)
{
	bool device = names_device(line) && !names_host(line);

	if (is_shared(line) && !any_two(line, "per", "block") && !any_word(line, "kernel") &&
	    !device)
		return CLAIM_SHARED;
	if (device)
		return CLAIM_DEVICE;
	if (any_flag(line, WORD_RUNTIME) || any_two(line, "direct", "memory") ||
	    any_two(line, "direct", "buffer") || any_two(line, "off", "heap") ||
	    any_two(line, "gc", "overhead"))
		return CLAIM_RUNTIME;
	if (any_word(line, "cgroup") || any_word(line, "container") || any_word(line, "pod"))
		return CLAIM_LIMIT;
	if (any_two(line, "object", "store") || any_two(line, "kv", "cache") ||
	    any_two(line, "kv", "pool") || any_word(line, "breaker") || any_word(line, "arena") ||
	    any_two(line, "buffer", "pool") || any_two(line, "memory", "pool") ||
	    any_word(line, "fielddata") || any_word(line, "workspace") ||
	    any_two(line, "cache", "blocks") || any_two(line, "memory", "management"))
		return CLAIM_POOL;
	if (any_word(line, "mmap") || any_word(line, "mprotect") || any_two(line, "map", "file") ||
	    any_two(line, "backed", "map") || any_two(line, "memory", "map") ||
	    any_two(line, "to", "map"))
		return CLAIM_MAPPING;
	return over ? CLAIM_LIMIT : CLAIM_HOST;
}

/* "exit code 137", "returned a non-zero code: 137", "signal 9" */
static bool has_kill_status(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		const struct lexeme *x = lexeme(s, i);

		if (word_is(s, i, "sigkill"))
			return true;
		if (x->type != LEXEME_NUMBER || (x->value != 137 && x->value != 9) || x->joined)
			continue;
		for (size_t back = 1; back <= 3 && back <= i - s->from; back++) {
			bool status =
			    word_is(s, i - back, "code") || word_is(s, i - back, "status") ||
			    word_is(s, i - back, "exited") || word_is(s, i - back, "errno");

			if (x->value == 137 ? status
					    : word_is(s, i - back, "signal") ||
						  (status && lexeme(s, i - 1)->mark == '-'))
				return true;
		}
	}
	return false;
}

/* What reads like a lack of memory. */
static enum claim_kind other_lack(struct sentence *s)
{
	bool size = any_size(s);

	s->at = s->to;
	if (any_two(s, "map", "count") || any_two(s, "memory", "mappings") ||
	    any_two(s, "memory", "areas"))
		return any_flag(s, WORD_LIMIT) || any_two(s, "too", "low") || any_word(s, "max")
			   ? CLAIM_MAPS
			   : CLAIM_NONE;
	if ((any_flag(s, WORD_DISK) && !any_flag(s, WORD_MEMORY) &&
		(any_word(s, "full") || any_two(s, "no", "space") || any_two(s, "out", "of") ||
		    any_two(s, "not", "enough") || any_word(s, "insufficient") ||
		    any_two(s, "quota", "exceeded"))) ||
	    (any_two(s, "no", "space") && any_two(s, "left", "on") && !is_shared(s)) ||
	    (any_two(s, "not", "enough") && any_two(s, "free", "space")))
		return CLAIM_DISK;
	if (!size &&
	    ((any_word(s, "quota") &&
		 (any_flag(s, WORD_OVER | WORD_SHORT) || any_word(s, "insufficient"))) ||
		(any_two(s, "rate", "limit") &&
		    (any_flag(s, WORD_OVER) || any_word(s, "reached"))) ||
		any_two(s, "too", "many")) &&
	    (any_word(s, "quota") || any_word(s, "rate") || any_word(s, "requests")))
		return CLAIM_QUOTA;
	if (!size && any_flag(s, WORD_TOKENS) && !any_flag(s, WORD_MEMORY) &&
	    (any_word(s, "tokens") || any_word(s, "context") || any_word(s, "prompt") ||
		any_word(s, "sequence") || any_two(s, "input", "length")) &&
	    (any_two(s, "too", "long") || any_two(s, "longer", "than") ||
		any_two(s, "more", "than") || any_word(s, "exceed") || any_word(s, "exceeds") ||
		any_word(s, "exceeded") || any_word(s, "exceeding") ||
		any_two(s, "larger", "than") || any_two(s, "greater", "than") ||
		any_two(s, "context", "length")))
		return any_two(s, "per", "min") || any_two(s, "per", "minute") ? CLAIM_QUOTA
									       : CLAIM_PROMPT;
	if (any_flag(s, WORD_THREADS) && !size && !any_flag(s, WORD_MEMORY) &&
	    (any_two(s, "temporarily", "unavailable") ||
		((any_word(s, "create") || any_word(s, "start") || any_word(s, "spawn") ||
		     any_word(s, "creation")) &&
		    any_flag(s, WORD_FAIL)) ||
		any_two(s, "too", "many")))
		return CLAIM_THREADS;
	if (any_two(s, "segmentation", "fault") || any_word(s, "sigsegv") ||
	    any_word(s, "segfault") || any_two(s, "access", "violation") ||
	    any_two(s, "illegal", "memory") || any_two(s, "misaligned", "address") ||
	    any_two(s, "side", "assert") || any_two(s, "page", "size"))
		return CLAIM_FAULT;
	if (has_kill_status(s))
		return CLAIM_SIGKILL;
	if ((any_word(s, "heartbeat") || any_word(s, "heartbeats")) &&
	    (any_two(s, "timed", "out") || any_word(s, "timeout") || any_word(s, "missed") ||
		any_word(s, "lost")))
		return CLAIM_LOST;
	if ((any_word(s, "worker") || any_word(s, "executor") || any_word(s, "actor") ||
		any_word(s, "node") || any_word(s, "process") || any_word(s, "container") ||
		any_word(s, "replica") || any_word(s, "daemon") || any_word(s, "server") ||
		any_word(s, "runner") || any_word(s, "job") || any_word(s, "session")) &&
	    !any_two(s, "time", "limit") &&
	    (any_word(s, "died") || any_word(s, "unexpectedly") || any_word(s, "disappeared") ||
		any_word(s, "abruptly") || any_word(s, "unreachable") ||
		any_two(s, "was", "killed") || any_two(s, "signal", "9")))
		return CLAIM_LOST;
	if (any_two(s, "device", "lost") && !any_word(s, "may"))
		return CLAIM_LOST;
	return CLAIM_NONE;
}

/* A warning: nothing was refused yet. */
static bool is_near(const struct sentence *s)
{
	return any_word(s, "warn") || any_word(s, "warning") || any_word(s, "near") ||
	       any_word(s, "nearly") || any_word(s, "approaching") || any_word(s, "almost");
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

static enum claim_kind kind_of(struct sentence *s, const struct sentence *line)
{
	struct sentence all = *line;
	bool refused =
	    says_short(s) || says_full(s) || says_refused(s) || says_too_large(s) || says_oom(s);

	if (is_collection(line))
		return CLAIM_NONE;
	if ((refused || says_over(s)) && is_message_size(s) && (any_size(s) || says_over(s)) &&
	    !says_refused(s) && !is_hypothetical(s))
		return CLAIM_SIZE;
	if (refused && !is_hypothetical(s) && !got_over_it(s, line->to))
		return space_of(line, says_over(&all));
	if (any_word(s, "jetsam") || any_word(s, "pageshortage") ||
	    any_two(s, "space", "shortage") || any_two(s, "memory", "shortage"))
		return CLAIM_KILLED;
	if (says_killed(s) && !is_hypothetical(s))
		return CLAIM_KILLED;
	if (says_over(s) && !is_hypothetical(s) && !got_over_it(s, line->to))
		return is_near(line) ? CLAIM_NEAR : space_of(line, true);
	if (numbers_say(s) && !is_hypothetical(s) && !got_over_it(s, line->to))
		return is_near(line) ? CLAIM_NEAR : space_of(line, false);
	return CLAIM_NONE;
}

bool claim_read(const char *line, size_t bytes, struct claim *out)
{
	static _Thread_local struct lexemes l;
	struct sentence whole = {.l = &l};

	*out = (struct claim){0};
	lexemes_read(&l, line, bytes);
	whole.to = l.count;
	if (is_source(&l, line, bytes) || is_quiet(&l, line))
		return false;
	for (size_t from = 0, to; from < l.count && !out->kind; from = to) {
		struct sentence s = {.l = &l, .from = from};

		s.to = to = sentence_end(&l, from);
		out->kind = kind_of(&s, &whole);
		if (!out->kind)
			continue;
		if (out->kind == CLAIM_POOL && other_lack(&whole) == CLAIM_DISK)
			out->kind = CLAIM_DISK;
		amounts_read(&out->amounts, &l, from, to);
		amounts_read(&out->amounts, &l, to, l.count);
		amounts_read(&out->amounts, &l, 0, from);
	}
	for (size_t from = 0, to; from < l.count && !out->kind; from = to) {
		struct sentence s = {.l = &l, .from = from};

		s.to = to = sentence_end(&l, from);
		out->kind = other_lack(&s);
		if (out->kind && is_hypothetical(&s) && out->kind != CLAIM_MAPS &&
		    out->kind != CLAIM_PROMPT && out->kind != CLAIM_QUOTA &&
		    out->kind != CLAIM_LOST)
			out->kind = CLAIM_NONE;
	}
	return out->kind != CLAIM_NONE;
}
