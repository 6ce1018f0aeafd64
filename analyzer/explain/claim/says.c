/* says.c - see says.h. */
#include "explain/claim/says.h"

#include <string.h>

#include "explain/claim/amounts.h"
#include "explain/claim/vocabulary.h"
#include "util/tuned.h"

TUNED(size_t, NOUN_NEAR, 5,
    "\"out of GPU device memory\": a noun further off belongs to another verb");
TUNED(size_t, HARDLY_BEFORE, 4, "\"unlikely to have enough memory\"");
TUNED(size_t, PAIR_NEAR, 9, "\"allocation of 512 MiB for the batch failed\"");
TUNED(uint64_t, MEMORY_LIMIT_MIN, 1u << 20, "no program is given less than a MiB");

/* "out of memory errors": prose about them. */
bool says_topic(const struct sentence *s, size_t i)
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

/* "unlikely to have enough", "doesn't have enough" */
static bool hardly(const struct sentence *s, size_t i)
{
	static const char *const words[] = {
	    "unlikely", "hardly", "doesn't", "don't", "didn't", "isn't", "aren't", "wasn't"};

	for (size_t back = 1; back <= HARDLY_BEFORE && back <= i - s->from; back++)
		for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++)
			if (word_is(s, i - back, words[w]))
				return true;
	return false;
}

/* "out of memory", "OutOfDirectMemoryError", "not enough free memory", "no available KV blocks" */
bool says_short(struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++) {
		size_t noun = 0;

		if (two_words(s, i, "out", "of"))
			noun = i + 2;
		else if (two_words(s, i, "not", "have") && word_is(s, i + 2, "enough"))
			noun = i + 3;
		else if (two_words(s, i, "not", "enough") || two_words(s, i, "no", "enough") ||
			 two_words(s, i, "low", "on") || two_words(s, i, "lack", "of") ||
			 two_words(s, i, "short", "of") || two_words(s, i, "short", "on") ||
			 two_words(s, i, "no", "sufficient") ||
			 two_words(s, i, "no", "available") || two_words(s, i, "no", "free") ||
			 two_words(s, i, "no", "more") || two_words(s, i, "no", "remaining"))
			noun = i + 2;
		else if (word_is(s, i, "insufficient") || word_is(s, i, "inadequate") ||
			 word_is(s, i, "insufficiently"))
			noun = i + 1;
		else if (word_is(s, i, "no") && has_flag(s, i + 1, WORD_MEMORY) &&
			 (has_flag(s, i + 3, WORD_FREE) || has_flag(s, i + 2, WORD_FREE) ||
			     ends_there(s, i + 2) ||
			     (lexeme(s, i + 1)->joined && !lexeme(s, i + 2)->joined)))
			noun = i + 1;
		else if (word_is(s, i, "enough") && hardly(s, i))
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
			    !says_topic(s, n + 1)) {
				s->at = i;
				return true;
			}
		}
	}
	return false;
}

/* "could not be executed in the allotted memory" */
bool says_no_room(struct sentence *s)
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

/* "virtual memory exhausted", "object store is full"; "heap overflow", if that is all it says */
bool says_full(struct sentence *s)
{
	if (s->to - s->from == 2 && two_words(s, s->from, "heap", "overflow")) {
		s->at = s->from;
		return true;
	}
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
			    !negated(s, n) && is_together(s, i, n)) {
				s->at = i;
				return true;
			}
		}
	}
	return false;
}

/* "does not fit into memory", "too large for the device" */
bool says_too_large(struct sentence *s)
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

/* "Patch buffer overflow, please increase its size", "the cache must be large enough to" */
bool says_too_small(struct sentence *s)
{
	bool grow = any_word(s, "increase") || any_word(s, "enlarge") || any_word(s, "raise");

	for (size_t i = s->from; i < s->to; i++) {
		bool small = two_words(s, i, "too", "small") ||
			     (two_words(s, i, "large", "enough") &&
				 (negated(s, i) || (i > s->from && word_is(s, i - 1, "be")))) ||
			     (grow && (word_is(s, i, "overflow") || word_is(s, i, "overflowed")));

		if (!small || (any_flag(s, WORD_DISK) && !any_flag(s, MEMORY_NOUNS)) ||
		    !(any_flag(s, MEMORY_NOUNS | WORD_POOL) || any_word(s, "zone")))
			continue;
		s->at = i;
		return any_flag(s, WORD_ERROR) || any_word(s, "must") || grow;
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

		/* "size:3221291008, device_id:0", "handle_read:": not what was allocated */
		if (at < s->to && !(lexeme(s, at)->joined && goods[i][0] == 'i') &&
		    !lexeme(s, at + 1)->joined)
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

bool says_other_matter(const struct sentence *s, size_t from)
{
	return other_goods(s) || other_reason(s) || is_measured(s, from);
}

/* "cuMemCreate" */
static bool creates_memory(const struct sentence *s, size_t i)
{
	return word_is(s, i, "create") && lexeme(s, i)->joined && i > s->from &&
	       word_is(s, i - 1, "mem");
}

/* "failed to allocate 4 GiB", "cudaMalloc failed", "allocation of 512 MiB failed", "could not
 * reserve enough memory" */
bool says_refused(struct sentence *s)
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
			    !any_word(s, "fatal") && !any_word(s, "panic") &&
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
bool says_over(struct sentence *s)
{
	unsigned nouns = MEMORY_NOUNS | WORD_POOL;
	bool noun = any_flag(s, nouns) || any_word(s, "rss") || any_word(s, "data");

	if (any_two(s, "gc", "overhead") && any_two(s, "limit", "exceeded")) {
		s->at = s->from;
		return true;
	}

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

/* Somebody ended it: a query, a request, a job. */
static bool says_ended(const struct sentence *s)
{
	static const char *const ends[] = {"canceling", "cancelling", "canceled", "cancelled",
	    "terminating", "aborting", "rejecting", "rejected", "stopping", "stopped", "refused",
	    "refusing", "dropped", "dropping"};

	return any_flag(s, WORD_KILL) || any_of(s, ends, sizeof(ends) / sizeof(*ends));
}

/* "Canceling query because of high VMEM usage" */
bool says_high_usage(struct sentence *s)
{
	for (size_t i = s->from; i + 2 < s->to; i++) {
		if (!word_is(s, i, "high") && !word_is(s, i, "excessive"))
			continue;
		if (!has_flag(s, i + 1, MEMORY_NOUNS) || !has_flag(s, i + 2, WORD_USED))
			continue;
		s->at = i;
		return (any_two(s, "because", "of") || any_two(s, "due", "to")) && says_ended(s);
	}
	return false;
}

bool says_killed(struct sentence *s)
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
bool says_oom(struct sentence *s)
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

/* "[CANCELLED] used: 9 GB, limit: 8 GB"; `ended`: the sentence has to say what came of it. */
bool says_used_over(struct sentence *s, bool ended)
{
	struct amounts a = {0};

	if (!(any_flag(s, MEMORY_NOUNS) || any_word(s, "rss")) ||
	    (ended && !says_ended(s) && !any_flag(s, WORD_FAIL)))
		return false;
	amounts_read(&a, s->l, s->from, s->to);
	s->at = s->from;
	return a.said[AMOUNT_USED] && a.said[AMOUNT_LIMIT] &&
	       a.bytes[AMOUNT_USED] > a.bytes[AMOUNT_LIMIT];
}

/* "the model needs 24 GB, but only 16 GB are available" */
bool says_by_numbers(struct sentence *s, const struct sentence *line)
{
	struct amounts a = {0};

	if (!any_flag(line, MEMORY_NOUNS | WORD_DEVICE | WORD_ERROR) ||
	    (any_flag(line, WORD_DISK) && !any_flag(s, MEMORY_NOUNS)))
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
bool says_message_size(const struct sentence *s)
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
bool says_collection(const struct sentence *line)
{
	return any_two(line, "allocation", "failure") && !any_flag(line, WORD_MEMORY) &&
	       (any_word(line, "gc") || any_word(line, "scavenge") || any_word(line, "sweep") ||
		   any_word(line, "compact"));
}
