/* claim.c - see claim.h. */
#include "explain/claim/claim.h"

#include <string.h>

#include "explain/claim/lack.h"
#include "explain/claim/sentence.h"
#include "explain/claim/space.h"
#include "explain/claim/vocabulary.h"
#include "util/tuned.h"

TUNED(size_t, NOUN_NEAR, 5,
    "\"out of GPU device memory\": a noun further off belongs to another verb");
TUNED(size_t, PAIR_NEAR, 9, "\"allocation of 512 MiB for the batch failed\"");
TUNED(uint64_t, MEMORY_LIMIT_MIN, 1u << 20, "no program is given less than a MiB");
TUNED(size_t, LEVEL_WITHIN, 14, "a logger's level stands behind its time and thread");

/* Without one of these words nothing failed; letters of either case begin them. */
const char *const claim_needles[] = {"fail", "Fail", "FAIL", "nable to", "UNABLE", "annot ",
    "an not ", "o sufficient", "isappeared", "DEVICE_LOST", "evice lost", "bruptly", "ran out",
    "hortage", "etsam", " oom", "\"oom\"", "verlimit", "ause of high", "due to high",
    "ause of excess", "due to excess", "137", "signal 9", "SIGKILL", "-9", "rrno 12", "ANNOT",
    "an't ", "ould not", "ouldn't", "ut of ", "UT OF", "UT_OF", "utOf", "ut_of", "xceed", "XCEED",
    "nsufficient", "NSUFFICIENT", "ot enough", "OT ENOUGH", "o enough", "xhaust", "XHAUST", " full",
    "Full", "FULL", "illed", "ILLED", "efused", "o available", "ot available", "o free ", "o space",
    "o room", "o more ", "arger than", "reater than", "ore than", "igher than", "memory than",
    "memory pressure", "need ", "oo large", "oo big", "oo long", "onger than", " fit ", " above ",
    "eached", "REACHED", "ow on ", "ENOMEM", "OOM", "erminated", "victed", "eartbeat",
    "rejected by", "egmentation", "egfault", "SIGSEGV", "violation", "llegal memory", "quota",
    "Quota", "oo many", "oo low", "mpossible", "ack of", "required", "equires", "needs ",
    "returned NULL", "returned null", "maximum number", "nsupported system", "imit reached",
    "imit of ", "over limit", "ate limit", "unreachable", "disconnected", "unexpectedly", "epleted",
    " died", "bad_alloc", "only ", "not permitted", "ermission denied", "ave enough",
    "ueue is full", "ust be between", "ueue full", "queue size", "ueue capacity", "ool exhausted",
    "ool is exhausted", "ueuePool limit", "verloaded", "tack overflow", "tackOverflow",
    "recursion depth", "call stack size", "overflowed its stack", " leaked ", "memory leak",
    "no memory", NULL};

const char *claim_name(enum claim_kind kind)
{
	static const char *const names[] = {
	    "",
#define CLAIM(id, name) name,
#include "explain/claim/claims.def"
	};

	return kind < CLAIM_COUNT ? names[kind] : "";
}

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

/* "ngx_slab_alloc() failed: no memory in cache zone": not "no memory leaks" */
static bool ends_there(const struct sentence *s, size_t i)
{
	return i >= s->to || lexeme(s, i)->type == LEXEME_MARK || word_is(s, i, "in") ||
	       word_is(s, i, "for") || word_is(s, i, "to");
}

/* "not enough data to fill the buffer" */
static bool is_data(const struct sentence *s, size_t i)
{
	static const char *const words[] = {"data", "samples", "points", "examples", "values",
	    "arguments", "input", "information", "bits", "tokens"};

	for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++)
		if (word_is(s, i, words[w]))
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
		else if (two_words(s, i, "not", "have") && word_is(s, i + 2, "enough"))
			noun = i + 3;
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
			 (has_flag(s, i + 3, WORD_FREE) || has_flag(s, i + 2, WORD_FREE) ||
			     ends_there(s, i + 2)))
			noun = i + 1;
		/* "memory not available to allocate buffer" */
		if (!noun && two_words(s, i, "not", "available") && i > s->from &&
		    has_flag(s, i - 1, WORD_MEMORY) && any_flag(s, WORD_ALLOCATE))
			noun = i - 1;
		if (!noun || is_data(s, noun))
			continue;
		for (size_t n = noun; n < noun + NOUN_NEAR && n < s->to; n++) {
			if (has_flag(s, n, WORD_DISK) || word_is(s, n, "bounds") ||
			    word_is(s, n, "range") || word_is(s, n, "stack") ||
			    lexeme(s, n)->mark == ':')
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

/* "could not be executed in the allotted memory" */
static bool says_no_room(struct sentence *s)
{
	static const char *const shares[] = {
	    "allotted", "available", "allowed", "assigned", "configured", "given"};
	bool refused = false;

	for (size_t i = s->from; i < s->to; i++) {
		refused = refused || refuses(s, i);
		if (!refused || !has_flag(s, i, WORD_MEMORY) || i < s->from + 3 ||
		    !word_is(s, i - 2, "the") ||
		    !(word_is(s, i - 3, "in") || word_is(s, i - 3, "within") ||
			word_is(s, i - 3, "into")))
			continue;
		for (size_t w = 0; w < sizeof(shares) / sizeof(*shares); w++)
			if (word_is(s, i - 1, shares[w])) {
				s->at = i - 1;
				return true;
			}
	}
	return false;
}

/* A pool of connections or threads holds no memory. */
static bool is_other_pool(const struct sentence *s, size_t i)
{
	return has_flag(s, i, WORD_POOL) && i > s->from &&
	       has_flag(s, i - 1, WORD_COUNTED | WORD_THREADS);
}

/* "virtual memory exhausted", "object store is full" */
static bool says_full(struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		if (!has_flag(s, i, MEMORY_NOUNS | WORD_POOL) || has_flag(s, i, WORD_DISK) ||
		    is_other_pool(s, i))
			continue;
		for (size_t n = i + 1; n <= i + 4 && n < s->to; n++) {
			if (lexeme(s, n)->type == LEXEME_MARK && strchr(".,;:", lexeme(s, n)->mark))
				break;
			if ((word_is(s, n, "full") || word_is(s, n, "exhausted") ||
				word_is(s, n, "depleted") || word_is(s, n, "exhaustion") ||
				word_is(s, n, "insufficient")) &&
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

/* True if the line is about other things that a program allocates: ports, licences, ids. */
static bool other_goods(const struct sentence *s)
{
	static const char *const goods[] = {"port", "ports", "address", "addresses", "ip",
	    "license", "licenses", "seat", "seats", "inode", "subnet", "pid", "tty", "handle",
	    "vlan", "cpu", "cpus", "gpus", "id", "ids"};

	if (any_flag(s, MEMORY_NOUNS) || any_size(s))
		return false;
	for (size_t i = 0; i < sizeof(goods) / sizeof(*goods); i++) {
		size_t at = find_word(s, goods[i]);

		/* "size:3221291008, device_id:0": not what was allocated */
		if (at < s->to && !(lexeme(s, at)->joined && goods[i][0] == 'i'))
			return true;
	}
	return false;
}

/* "failed to get memory info": what failed is to look at the memory. */
static bool is_measured(const struct sentence *s, size_t from)
{
	static const char *const measures[] = {"info", "information", "usage", "stats",
	    "statistics", "statistic", "utilization", "metrics", "properties", "type", "types",
	    "clock", "bandwidth", "profile", "report", "snapshot", "dump", "status", "footprint",
	    "address", "location", "pressure", "counters", "state", "layout", "details", "data",
	    "summary", "profiler", "tracker", "configuration", "config", "settings", "policy"};
	size_t noun = find_flag(s, from, from + NOUN_NEAR + 1, MEMORY_NOUNS);

	/* "cannot get memory available for the device" */
	if (has_flag(s, noun + 1, WORD_FREE) &&
	    (word_is(s, noun + 2, "for") || word_is(s, noun + 2, "of") ||
		word_is(s, noun + 2, "on")))
		return true;
	for (size_t i = noun + 1; i <= noun + 2 && i < s->to; i++)
		for (size_t m = 0; m < sizeof(measures) / sizeof(*measures); m++)
			if (word_is(s, i, measures[m]))
				return true;
	return any_two(s, "querying", "the") || any_two(s, "memory", "querying");
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

/* "cuMemCreate" */
static bool creates_memory(const struct sentence *s, size_t i)
{
	return word_is(s, i, "create") && lexeme(s, i)->joined && i > s->from &&
	       word_is(s, i - 1, "mem");
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
			bool strong = has_flag(s, a, WORD_ALLOCATE) || creates_memory(s, a);
			bool weak = has_flag(s, a, WORD_TAKE);
			size_t first = a < f ? a : f, last = a < f ? f : a;

			if (a == f || (!strong && !weak))
				continue;
			/* "allocated 5 GiB ... failed" was not refused. */
			if (word_is(s, a, "allocated") && a > f)
				continue;
			if (weak && !strong && is_measured(s, first))
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
		return word_is(s, i + 1, "than") ||
		       (has_flag(s, i + 1, MEMORY_NOUNS) && word_is(s, i + 2, "than"));
	return true;
}

static bool any_large_number(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++)
		if (lexeme(s, i)->type == LEXEME_NUMBER && lexeme(s, i)->unit == UNIT_NONE &&
		    lexeme(s, i)->bytes >= MEMORY_LIMIT_MIN)
			return true;
	return false;
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
		/* A bare pool's limit may count anything, a large buffer's counts bytes. */
		if (!any_flag(s, MEMORY_NOUNS) && !any_size(s) &&
		    !(any_word(s, "buffer") && any_large_number(s)))
			continue;
		if (!noun && !any_size(s))
			continue;
		s->at = s->from;
		return true;
	}
	return false;
}

/* "Canceling query because of high VMEM usage" */
static bool says_high_usage(struct sentence *s)
{
	static const char *const ends[] = {"canceling", "cancelling", "canceled", "cancelled",
	    "terminating", "aborting", "rejecting", "rejected", "stopping", "stopped", "refused",
	    "refusing", "dropped", "dropping"};

	for (size_t i = s->from; i + 2 < s->to; i++) {
		if (!word_is(s, i, "high") && !word_is(s, i, "excessive"))
			continue;
		if (!has_flag(s, i + 1, MEMORY_NOUNS) || !has_flag(s, i + 2, WORD_USED))
			continue;
		s->at = i;
		return (any_two(s, "because", "of") || any_two(s, "due", "to")) &&
		       (any_flag(s, WORD_KILL) || any_of(s, ends, sizeof(ends) / sizeof(*ends)));
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

static bool is_reason(const struct sentence *s, size_t i)
{
	for (size_t back = 1; back <= 4 && back <= i - s->from; back++)
		if (word_is(s, i - back, "reason"))
			return true;
	return false;
}

/* "CUDA OOM", "failed with OOM", "process oom", "\"reason\":\"oom\"", "OOM on attempt 1, retrying"
 */
static bool says_oom(struct sentence *s)
{
	unsigned signs = WORD_DEVICE | WORD_ALLOCATE | WORD_RETRY;
	size_t oom = find_word(s, "oom");

	if (oom >= s->to || word_is(s, oom + 1, "score") || word_is(s, oom + 2, "adj") ||
	    word_is(s, oom + 1, "killer") || lexeme(s, oom + 1)->joined)
		return false;
	/* "ERROR: oom: memory.peak = 1.4G": who logs */
	if (lexeme(s, oom + 1)->mark != ':')
		signs |= WORD_ERROR;
	if (!any_flag(s, signs) && !(oom > s->from && word_is(s, oom - 1, "process")) &&
	    !is_reason(s, oom))
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
	if (!a.said[AMOUNT_ASKED])
		return false;
	return (a.said[AMOUNT_FREE] && a.bytes[AMOUNT_ASKED] > a.bytes[AMOUNT_FREE]) ||
	       (a.said[AMOUNT_LIMIT] && any_flag(s, MEMORY_NOUNS) &&
		   a.bytes[AMOUNT_ASKED] > a.bytes[AMOUNT_LIMIT]);
}

static bool any_small_size(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++)
		if (lexeme(s, i)->unit == UNIT_BYTE && lexeme(s, i)->bytes < MEMORY_LIMIT_MIN)
			return true;
	return false;
}

/* A file, a message or a request has a largest size, too, and no memory is meant. */
static bool is_message_size(const struct sentence *s)
{
	static const char *const goods[] = {"file", "body", "entity", "message", "upload",
	    "payload", "packet", "header", "headers", "response", "attachment", "document", "row",
	    "field", "frame", "log", "event"};

	/* "exceeds the max of 500KB": of a file that is built */
	if (!any_flag(s, MEMORY_NOUNS | WORD_DEVICE | WORD_POOL | WORD_ALLOCATE) &&
	    any_small_size(s))
		return true;
	/* "limit_name=MaxQueryBytesRead": what is read is not held */
	if (any_two(s, "bytes", "read") || any_two(s, "bytes", "scanned"))
		return !any_flag(s, MEMORY_NOUNS | WORD_DEVICE);
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

/* "Fri May 29", "29 May 2026": the month. */
static bool is_month(const struct sentence *s, size_t i)
{
	return word_is(s, i, "may") &&
	       (lexeme(s, i + 1)->type == LEXEME_NUMBER ||
		   (i > s->from && lexeme(s, i - 1)->type == LEXEME_NUMBER));
}

/* A word before the claim that makes it a possibility, an advice or a title. */
static bool is_hypothetical(const struct sentence *s)
{
	for (size_t i = s->from; i < s->at && i < s->to; i++) {
		if (!has_flag(s, i, WORD_MAYBE) || is_part(s, i) || is_month(s, i))
			continue;
		if ((word_is(s, i, "could") || word_is(s, i, "should") || word_is(s, i, "would")) &&
		    word_is(s, i + 1, "not"))
			continue;
		if (word_is(s, i, "reduce") && has_flag(s, i + 1, WORD_FAIL)) /* the operation */
			continue;
		return true;
	}
	/* "out of memory may happen" */
	for (size_t i = s->at; i < s->at + 8 && i < s->to; i++)
		if ((word_is(s, i, "may") || word_is(s, i, "might")) && !is_part(s, i))
			return true;
	return false;
}

/* "attempting to free up memory" */
static bool tries_to_free(const struct lexemes *l, size_t i)
{
	const struct lexeme *x = &l->list[i];

	return i + 2 < l->count && strcmp(x[2].word, "free") == 0 &&
	       (strcmp(x->word, "attempting") == 0 || strcmp(x->word, "trying") == 0);
}

/* "retrying with 1 GiB"; not "retry failed", "gave up after 3 retries" */
static bool tries_again(const struct sentence *s, size_t i)
{
	if (two_words(s, i, "fall", "back") || two_words(s, i, "falls", "back"))
		return !negated(s, i);
	if (tries_to_free(s->l, i))
		return true;
	if (!has_flag(s, i, WORD_RETRY) || is_part(s, i))
		return false;
	if (has_flag(s, i + 1, WORD_FAIL) || has_flag(s, i + 2, WORD_FAIL))
		return false;
	/* "could not split inputs and retry" */
	if (word_is(s, i, "retry") && i > s->from && word_is(s, i - 1, "and") &&
	    (any_two(s, "could", "not") || any_two(s, "can", "not") || any_word(s, "cannot")))
		return false;
	for (size_t back = 1; back <= 3 && back <= i - s->from; back++)
		if (word_is(s, i - back, "after"))
			return !word_is(s, i, "retries") && !word_is(s, i, "retry");
	return true;
}

/* "runner exited, you may not have enough memory": an end, and what may explain it. */
static bool guesses(const struct sentence *s)
{
	static const char *const ends[] = {
	    "exited", "crashed", "terminated", "stopped", "died", "failed", "quit"};
	bool ended = false;

	for (size_t i = s->from; i < s->to && i < s->at; i++) {
		for (size_t e = 0; e < sizeof(ends) / sizeof(*ends); e++)
			ended |= word_is(s, i, ends[e]) && !is_part(s, i);
		if (ended &&
		    (word_is(s, i, "may") || word_is(s, i, "might") || word_is(s, i, "probably") ||
			word_is(s, i, "likely") || word_is(s, i, "possibly")))
			return true;
	}
	return false;
}

/* "memory size is larger than the maximum allowed size", "The memory arena in bytes per thread
 * cannot exceed 4293967295": of a configuration, before it runs. */
static bool is_configuration(const struct sentence *s)
{
	for (size_t i = s->from; i + 2 < s->to; i++)
		if ((word_is(s, i, "cannot") || two_words(s, i - (i > s->from), "must", "not")) &&
		    word_is(s, i + 1, "exceed") && lexeme(s, i + 2)->type == LEXEME_NUMBER &&
		    any_flag(s, MEMORY_NOUNS) && !any_flag(s, WORD_USED | WORD_ALLOCATE))
			return true;
	/* "memory must be between 512Mi and 4Gi" */
	if (any_two(s, "must", "be") && any_two(s, "be", "between") && any_flag(s, MEMORY_NOUNS) &&
	    any_size(s))
		return true;
	for (size_t i = s->from; i + 1 < s->to; i++) {
		if (!has_flag(s, i, WORD_MEMORY) ||
		    !(word_is(s, i + 1, "size") || word_is(s, i + 1, "limit") ||
			word_is(s, i + 1, "request") || word_is(s, i + 1, "setting")))
			continue;
		for (size_t k = i + 2; k <= i + 4; k++)
			if (word_is(s, k, "than") &&
			    (word_is(s, k - 1, "larger") || word_is(s, k - 1, "greater") ||
				word_is(s, k - 1, "higher") || word_is(s, k - 1, "smaller") ||
				word_is(s, k - 1, "less") || word_is(s, k - 1, "lower")) &&
			    (any_two(s, "maximum", "allowed") || any_two(s, "allowed", "maximum") ||
				any_two(s, "minimum", "allowed") ||
				any_two(s, "allowed", "minimum")))
				return true;
	}
	return false;
}

/* What the line says behind the refusal: it tries again, with less, or goes on elsewhere. */
static bool went_on(const struct sentence *s, const struct sentence *line)
{
	struct sentence behind = *line;

	behind.from = s->at;
	for (size_t i = s->at; i < line->to; i++)
		if (tries_again(&behind, i))
			return true;
	return false;
}

static bool got_over_it(const struct sentence *s, size_t end)
{
	for (size_t i = s->at; i < end; i++) {
		const struct lexeme *x = &s->l->list[i];

		/* not the exception's name: RetryError, MaxRetryError */
		if (i < s->to ? tries_again(s, i)
			      : (x->vocabulary & WORD_RETRY && !x->joined &&
				    !(i + 1 < end && x[1].joined)))
			return true;
		if (strcmp(x->word, "passed") == 0 || strcmp(x->word, "handled") == 0 ||
		    tries_to_free(s->l, i))
			return true;
	}
	/* "retrying after out of memory" */
	for (size_t i = s->from; i < s->at; i++)
		if (tries_again(s, i))
			return true;
	return false;
}

/* A level below a warning, in capitals as loggers write it, or as a key's value; but an end that is
 * meant is told so: "INFO: worker stopped, memory limit of 128 MiB exceeded". */
static bool is_quiet(const struct lexemes *l, const char *line)
{
	bool stopped = false;

	for (size_t i = 0; i < l->count; i++) {
		stopped |= strcmp(l->list[i].word, "stopped") == 0;
		if (stopped && strcmp(l->list[i].word, "exceeded") == 0)
			return false;
	}
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

	/* "# Fatal process OOM in heap setup": V8 frames its last words so. */
	if (bytes > 8 && memcmp(line, "# Fatal ", 8) == 0)
		return false;
	/* a frame of the kernel's or a native stack: warn_alloc_failed+0x110/0x180 */
	if (memmem(line, bytes, "+0x", 3))
		return true;
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

/* A warning: nothing was refused yet. Loggers write WARN about failures, too. */
static bool is_near(const struct sentence *s)
{
	if (any_word(s, "failed") || any_word(s, "cancelled") || any_word(s, "rejected"))
		return false;
	if (any_word(s, "paused") || any_word(s, "pausing"))
		return true;
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
	bool refused = says_short(s) || says_full(s) || says_refused(s) || says_too_large(s) ||
		       says_oom(s) || says_no_room(s) || says_high_usage(s);

	if (is_collection(line) || any_two(line, "callbacks", "suppressed"))
		return CLAIM_NONE;
	if (is_configuration(s))
		return CLAIM_SETTING;
	if (says_over(s) && any_flag(s, WORD_DISK) && !any_flag(s, MEMORY_NOUNS | WORD_DEVICE) &&
	    !is_hypothetical(s))
		return CLAIM_DISK;
	if (refused && lack_is_locked(line) && !is_hypothetical(s))
		return CLAIM_LOCKED;
	if ((refused || says_over(s)) && is_message_size(s) && (any_size(s) || says_over(s)) &&
	    !says_refused(s) && !is_hypothetical(s))
		return CLAIM_SIZE;
	if (refused && !is_hypothetical(s) && !got_over_it(s, line->to))
		return space_of(line, says_over(&all));
	if (refused && !is_hypothetical(s) && went_on(s, line))
		return CLAIM_AGAIN;
	if (refused && is_hypothetical(s) && guesses(s))
		return CLAIM_GUESS;
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

bool claim_read(const char *line, size_t bytes, struct claim *out)
{
	static _Thread_local struct lexemes l;
	struct sentence whole = {.l = &l};

	*out = (struct claim){0};
	lexemes_read(&l, line, bytes);
	forget_other_memory(&l);
	whole.to = l.count;
	if (is_source(&l, line, bytes) || is_quiet(&l, line))
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
		if (out->kind && is_hypothetical(&s) && out->kind != CLAIM_MAPS &&
		    out->kind != CLAIM_PROMPT && out->kind != CLAIM_QUOTA &&
		    out->kind != CLAIM_LOST && out->kind != CLAIM_LEAK && out->kind != CLAIM_STACK)
			out->kind = CLAIM_NONE;
	}
	return out->kind != CLAIM_NONE;
}
