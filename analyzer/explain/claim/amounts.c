/* amounts.c - see amounts.h. */
#include "explain/claim/amounts.h"

#include <string.h>

#include "explain/claim/sentence.h"
#include "util/tuned.h"

TUNED(uint64_t, BARE_MIN, 4096, "smaller numbers without a unit are mostly counts or codes");
TUNED(size_t, BEFORE, 9, "a longer way to the word before a number leads to another number's word");
TUNED(size_t, AFTER, 4, "as BEFORE; a word behind a number stands closer");
TUNED(size_t, LEFT_NEAR, 4, "\"left in the process limit\", \"from 3 GiB to 4 GiB\"");
TUNED(double, SAME, 0.06, "\"10266147967 [9.5gb]\": one decimal of a GiB is 5 % of it");

TUNED(size_t, REFUSED_NEAR, 3, "\"cannot hotplug 16 GiB\", \"unable to map 4 GiB\"");
TUNED(double, MANY_TIMES, 100, "\"12.4/11.9 GB\" are of one unit, \"3/512 MB\" may be a count");

#define NO_AMOUNT AMOUNT_COUNT

static bool is_mark(const struct lexeme *x, const char *marks)
{
	return x->type == LEXEME_MARK && strchr(marks, x->mark);
}

static bool is_word(const struct lexeme *x, const char *word)
{
	return x->type == LEXEME_WORD && strcmp(x->word, word) == 0;
}

/* glog's head, "E0116 11:21:24.131190 3662714 file.cpp:512]", has a thread's number in it. */
static bool in_head(const struct lexemes *l, size_t i)
{
	const char *w = l->count ? l->list[0].word : "";

	if (strlen(w) != 5 || !strchr("iwef", w[0]) || strspn(w + 1, "0123456789") != 4)
		return false;
	for (size_t k = 0; k < i; k++)
		if (is_mark(&l->list[k], "]"))
			return false;
	return true;
}

/* "4096 of 32768 bytes each": neither is an amount of memory. */
static bool is_count_of_each(const struct lexemes *l, size_t i, size_t to)
{
	return i + 3 < to && is_word(&l->list[i + 1], "of") &&
	       l->list[i + 2].type == LEXEME_NUMBER && is_word(&l->list[i + 3], "each");
}

/* "indexing (12/288594)": how far it is; "==41031==ERROR": a process. */
static bool is_place(const struct lexemes *l, size_t i)
{
	if (i > 1 && is_mark(&l->list[i - 1], "=") && is_mark(&l->list[i - 2], "="))
		return true;
	return i > 1 && is_mark(&l->list[i - 1], "/") && l->list[i - 2].type == LEXEME_NUMBER &&
	       l->list[i - 2].unit == UNIT_NONE && l->list[i - 2].bytes < BARE_MIN;
}

/* "maxTokensInPagedKvCache (29184)": the name says what is counted. */
static bool is_count_by_name(const struct lexemes *l, size_t i)
{
	size_t name = i;
	bool count = false;

	while (name > 0 && is_mark(&l->list[name - 1], "(=:"))
		name--;
	while (name > 0 && l->list[name - 1].type == LEXEME_WORD) {
		const struct lexeme *x = &l->list[--name];

		if (is_word(x, "bytes") || is_word(x, "size") || x->vocabulary & MEMORY_NOUNS)
			return false;
		count |=
		    x->vocabulary & (WORD_COUNTED | WORD_TOKENS) && !(x->vocabulary & WORD_HOST);
		if (!x->joined)
			break;
	}
	return count;
}

/* "failed alloc size=-1.00 B": not said. In "free: 5 - 3" the sign is another. */
static bool is_negative(const struct lexemes *l, size_t i)
{
	return i > 1 && is_mark(&l->list[i - 1], "-") && l->list[i - 1].at + 1 == l->list[i].at &&
	       is_mark(&l->list[i - 2], "=:(");
}

static bool is_size(const struct lexemes *l, size_t i, size_t to)
{
	const struct lexeme *x = &l->list[i];

	if (x->type != LEXEME_NUMBER || x->unit == UNIT_PERCENT || is_negative(l, i))
		return false;
	if (x->unit == UNIT_BYTE)
		return true;
	/* "xtb(35213,0x10c7075c0) malloc": a process and its thread */
	if (i > 1 && i + 2 < to && is_mark(&l->list[i - 1], "(") && is_mark(&l->list[i + 1], ",") &&
	    l->list[i + 2].type == LEXEME_NUMBER && l->list[i + 2].joined)
		return false;
	if (is_count_by_name(l, i))
		return false;
	if (x->joined || x->bytes < BARE_MIN || in_head(l, i) || is_count_of_each(l, i, to) ||
	    is_place(l, i))
		return false;
	if (i > 0 && is_mark(&l->list[i - 1], ":") && l->list[i - 1].at + 1 == x->at &&
	    x->bytes <= UINT16_MAX) /* a port */
		return false;
	if (i + 1 < to && l->list[i + 1].type == LEXEME_WORD &&
	    l->list[i + 1].vocabulary & WORD_COUNTED)
		return false;
	for (size_t back = 1; back <= 2 && back <= i; back++) {
		const struct lexeme *b = &l->list[i - back];

		if (b->vocabulary & (WORD_COUNTED | WORD_TOKENS) || is_word(b, "pid") ||
		    is_word(b, "tid") || is_word(b, "line") || is_word(b, "port") ||
		    is_word(b, "shape") || is_word(b, "sqlstate") || is_word(b, "result") ||
		    is_word(b, "errno") || is_word(b, "code") || is_word(b, "id") ||
		    (is_word(b, "length") && !is_mark(&l->list[i - 1], "=")))
			return false;
		if (b->type == LEXEME_WORD)
			break;
	}
	return true;
}

/* "maximum memory-aligned size" */
static bool is_largest(const struct lexemes *l, size_t size)
{
	for (size_t back = 1; back <= LEFT_NEAR && back <= size; back++)
		if (is_word(&l->list[size - back], "maximum") ||
		    is_word(&l->list[size - back], "max"))
			return true;
	return false;
}

/* "found 16 GB", "node has 16 GiB", where a need was told before: what there is. */
static bool is_found(const struct lexemes *l, size_t i)
{
	if (!is_word(&l->list[i], "found") && !is_word(&l->list[i], "has") &&
	    !is_word(&l->list[i], "have") && !is_word(&l->list[i], "got") &&
	    !is_word(&l->list[i], "detected"))
		return false;
	if (i + 1 >= l->count || l->list[i + 1].type != LEXEME_NUMBER)
		return false;
	for (size_t k = i; k-- > 0;)
		if (l->list[k].vocabulary & WORD_ASKED)
			return true;
	return false;
}

static enum amount meaning_of(const struct lexemes *l, size_t i)
{
	const struct lexeme *x = &l->list[i];

	if (x->type != LEXEME_WORD)
		return NO_AMOUNT;
	if (is_found(l, i))
		return AMOUNT_LIMIT;
	if (is_word(x, "reservable") || is_word(x, "contiguous") || is_word(x, "largest"))
		return AMOUNT_PIECE;
	/* "more than total mem size : 29464985600", "red zone: 7264MB" */
	if (is_word(x, "size") && i > 1 && l->list[i - 1].vocabulary & MEMORY_NOUNS &&
	    (is_word(&l->list[i - 2], "total") || is_word(&l->list[i - 2], "maximum") ||
		is_word(&l->list[i - 2], "max")))
		return AMOUNT_LIMIT;
	/* "The maximum size of a buffer is 17179869184 bytes" */
	if (is_word(x, "size") && is_largest(l, i))
		return AMOUNT_LIMIT;
	/* "but bank size is only 1046181792 B" */
	if (is_word(x, "only") && i > 1 && is_word(&l->list[i - 1], "is") &&
	    is_word(&l->list[i - 2], "size"))
		return AMOUNT_LIMIT;
	if (is_word(x, "size") && i > 0 && is_word(&l->list[i - 1], "bank"))
		return AMOUNT_LIMIT;
	if (is_word(x, "zone") && i > 0 && is_word(&l->list[i - 1], "red"))
		return AMOUNT_LIMIT;
	/* "to write a total of 4 GiB": a sum of whatever the words before it say */
	if (is_word(x, "total") && i + 1 < l->count && is_word(&l->list[i + 1], "of") &&
	    !(i > 0 && is_word(&l->list[i - 1], "of")) &&
	    !(i > 1 && is_word(&l->list[i - 2], "of")))
		return NO_AMOUNT;
	if (is_word(x, "total"))
		return i > 0 && is_word(&l->list[i - 1], "in") ? AMOUNT_USED : AMOUNT_LIMIT;
	if (is_word(x, "be"))
		return i > 0 && is_word(&l->list[i - 1], "would") ? AMOUNT_USED : NO_AMOUNT;
	/* "reserved" of a runtime is what it took, "was reserved" what it could not. */
	if (x->vocabulary & WORD_FREE)
		return i > 0 && is_word(&l->list[i - 1], "largest") ? AMOUNT_PIECE : AMOUNT_FREE;
	if (x->vocabulary & WORD_LIMIT)
		return AMOUNT_LIMIT;
	if (is_word(x, "requests") && i > 0 &&
	    (is_word(&l->list[i - 1], "concurrent") || is_word(&l->list[i - 1], "active") ||
		is_word(&l->list[i - 1], "running") || is_word(&l->list[i - 1], "all")))
		return NO_AMOUNT;
	if (x->vocabulary & WORD_ASKED)
		return AMOUNT_ASKED;
	if (x->vocabulary & WORD_USED)
		return AMOUNT_USED;
	return NO_AMOUNT;
}

/* "5 GiB free", "12 GB physical memory used"; not "requested 5 GiB available 2 GiB". */
static enum amount by_word_after(const struct lexemes *l, size_t i, size_t to)
{
	for (size_t k = i + 1; k < to && k <= i + AFTER; k++) {
		const struct lexeme *x = &l->list[k];
		enum amount a = meaning_of(l, k);
		size_t next = k + 1;

		if (x->type == LEXEME_NUMBER || is_mark(x, ".,;()[]:/<>|=") || is_word(x, "of") ||
		    is_word(x, "and") || is_word(x, "but") || is_word(x, "for") ||
		    is_word(x, "from") || is_word(x, "exceeds") || is_word(x, "exceeded") ||
		    is_word(x, "than") || is_word(x, "plus"))
			return NO_AMOUNT;
		if (a == NO_AMOUNT)
			continue;
		while (next < to && is_mark(&l->list[next], ":=(["))
			next++;
		return next < to && l->list[next].type == LEXEME_NUMBER ? NO_AMOUNT : a;
	}
	return NO_AMOUNT;
}

/* "memory left in process limit=6.42 GB" */
static bool is_left_in(const struct lexemes *l, size_t limit, size_t from)
{
	for (size_t k = limit; k-- > from && limit - k <= LEFT_NEAR;) {
		if (!(l->list[k].vocabulary & WORD_FREE))
			continue;
		return is_word(&l->list[k + 1], "in") || is_word(&l->list[k + 1], "of") ||
		       is_word(&l->list[k + 1], "until") || is_word(&l->list[k + 1], "before");
	}
	return false;
}

/* "to grow the heap from 240 MiB to 288 MiB": what it has, and what it wants. */
static bool is_growth(const struct lexemes *l, size_t i, size_t next, size_t to)
{
	if (i == 0 || next >= to || !is_word(&l->list[i - 1], "from") ||
	    !is_word(&l->list[next - 1], "to") || next - i > LEFT_NEAR)
		return false;
	for (size_t k = i; k-- > 0;)
		if (l->list[k].vocabulary & (WORD_TAKE | WORD_ALLOCATE))
			return true;
	return false;
}

static enum amount by_word_before(const struct lexemes *l, size_t i, size_t from)
{
	for (size_t k = i; k-- > from && i - k <= BEFORE;) {
		enum amount a = meaning_of(l, k);

		if (l->list[k].type == LEXEME_NUMBER && is_size(l, k, i))
			return NO_AMOUNT;
		if (a == AMOUNT_LIMIT && is_left_in(l, k, from))
			return AMOUNT_FREE;
		if (a != NO_AMOUNT)
			return a;
		if (is_mark(&l->list[k], ".;"))
			return NO_AMOUNT;
	}
	return NO_AMOUNT;
}

/* "memory 1200MB over limit 1024MB": what a noun of memory has directly behind it is held. */
static bool is_held(const struct lexemes *l, size_t i, size_t from, size_t to)
{
	size_t noun = i;

	while (noun > from && is_mark(&l->list[noun - 1], ":="))
		noun--;
	if (noun == from ||
	    !(l->list[noun - 1].vocabulary & MEMORY_NOUNS || is_word(&l->list[noun - 1], "rss")))
		return false;
	for (size_t k = i + 1; k < to; k++)
		if (l->list[k].vocabulary & WORD_LIMIT)
			return true;
	return false;
}

/* "Unable to hotplug 16384 MiB memory": what could not be done is what was asked for. */
static bool is_refused(const struct lexemes *l, size_t i, size_t from)
{
	for (size_t back = 1; back <= REFUSED_NEAR && back <= i - from; back++) {
		const struct lexeme *x = &l->list[i - back];

		if (x->type != LEXEME_WORD)
			return false;
		if (x->vocabulary & WORD_FAIL && !(x->vocabulary & WORD_ERROR))
			return true;
	}
	return false;
}

/* "24 GB needed, 16 GB VRAM": what there is, beside what is needed. */
static bool is_there(const struct lexemes *l, size_t i, size_t from, size_t to)
{
	if (i + 1 >= to || !(l->list[i + 1].vocabulary & MEMORY_NOUNS))
		return false;
	for (size_t k = i; k-- > from;)
		if (l->list[k].vocabulary & WORD_ASKED && l->list[k].type == LEXEME_WORD)
			return true;
	return false;
}

/* "12.4/11.9 GB": the first number has the unit of the second. 0: it is not so. */
static uint64_t with_unit_behind(const struct lexemes *l, size_t i, size_t to)
{
	const struct lexeme *x = &l->list[i], *y = &l->list[i + 2];

	if (i + 2 >= to || x->type != LEXEME_NUMBER || x->unit != UNIT_NONE ||
	    !is_mark(&l->list[i + 1], "/") || y->type != LEXEME_NUMBER || y->unit != UNIT_BYTE ||
	    y->value < 1 || x->value > MANY_TIMES * y->value || x->value * MANY_TIMES < y->value)
		return 0;
	return (uint64_t)(x->value * ((double)y->bytes / y->value));
}

/* Returns whether `of`, `/` or `>` stands between two sizes. */
static bool is_pair(const struct lexemes *l, size_t i, size_t k)
{
	bool joint = false;

	for (size_t n = i + 1; n < k; n++) {
		const struct lexeme *x = &l->list[n];

		if (is_word(x, "of") || is_mark(x, "/>") || is_word(x, "exceeds") ||
		    is_word(x, "exceeded"))
			joint = true;
		else if (!is_mark(x, "()[]") && !(x->vocabulary & (WORD_OVER | WORD_LIMIT)) &&
			 !is_word(x, "out") && !is_word(x, "the") && !is_word(x, "which") &&
			 !is_word(x, "its"))
			return false;
	}
	return joint;
}

/* "10266147967 [9.5gb]": the same number again. */
static bool same_again(const struct lexemes *l, size_t i, size_t k)
{
	const struct lexeme *a = &l->list[i], *b = &l->list[k];
	double ratio = a->bytes ? (double)b->bytes / (double)a->bytes : 0;

	for (size_t n = i + 1; n < k; n++)
		if (!is_mark(&l->list[n], "[(/"))
			return false;
	return a->unit == UNIT_NONE && b->unit == UNIT_BYTE && ratio > 1 - SAME && ratio < 1 + SAME;
}

/* "[2278734]" is a process or a place in a file, if no word tells of it. */
static bool is_bracketed(const struct lexemes *l, size_t i)
{
	return l->list[i].unit == UNIT_NONE && i > 0 && is_mark(&l->list[i - 1], "[");
}

static void put(struct amounts *out, enum amount a, uint64_t bytes)
{
	if (a == AMOUNT_ASKED && !bytes) /* "failed_alloc_size=0B": not said */
		return;
	if (a == NO_AMOUNT) {
		if (!out->other_said)
			out->other = bytes;
		out->other_said = true;
	} else if (!out->said[a]) {
		out->said[a] = true;
		out->bytes[a] = bytes;
	}
}

/* "less than the sum of the weights (5 GiB) and the buffer (1 GiB)" */
static bool is_summand(const struct lexemes *l, size_t from, size_t i)
{
	for (size_t k = from; k < i; k++)
		if (is_word(&l->list[k], "sum"))
			return true;
	return false;
}

/* "not enough for 58720256 B across 12 banks, where each bank needs to store 4894720 B": what is
 * free is free in one of them. */
static bool is_share(const struct lexemes *l, size_t from, size_t i)
{
	for (size_t k = i; k-- > from && i - k <= BEFORE && !is_mark(&l->list[k], ",.;");)
		if (is_word(&l->list[k], "each"))
			return true;
	return false;
}

static size_t next_size(const struct lexemes *l, size_t i, size_t to)
{
	while (i < to && !is_size(l, i, to))
		i++;
	return i;
}

void amounts_read(struct amounts *out, const struct lexemes *l, size_t from, size_t to)
{
	enum amount paired = NO_AMOUNT;

	for (size_t i = from; i < to; i++) {
		const struct lexeme *x = &l->list[i];
		size_t next;
		uint64_t shared;
		enum amount a;

		if (x->type == LEXEME_NUMBER && i + 1 < to && !x->joined &&
		    l->list[i + 1].vocabulary & WORD_COUNTED)
			out->counts = true;
		shared = with_unit_behind(l, i, to);
		if (shared) {
			put(out, AMOUNT_USED, shared);
			out->sizes++;
			paired = AMOUNT_LIMIT;
			continue;
		}
		if (!is_size(l, i, to))
			continue;
		if (is_bracketed(l, i) && by_word_before(l, i, from) == NO_AMOUNT)
			continue;
		/* "2048 of 32768 bytes each" */
		if (i + 1 < to && is_word(&l->list[i + 1], "each"))
			continue;
		out->sizes++;
		/* "limit of 2 GiB reached" */
		a = i > from + 1 && is_word(&l->list[i - 1], "of") &&
			    l->list[i - 2].vocabulary & WORD_LIMIT
			? AMOUNT_LIMIT
			: by_word_after(l, i, to);
		if (a == NO_AMOUNT)
			a = by_word_before(l, i, from);
		if (a == NO_AMOUNT && is_refused(l, i, from))
			a = AMOUNT_ASKED;
		if (a == NO_AMOUNT && is_held(l, i, from, to))
			a = AMOUNT_USED;
		if (a == NO_AMOUNT && out->said[AMOUNT_ASKED] && is_there(l, i, from, to))
			a = AMOUNT_LIMIT;
		if (paired != NO_AMOUNT) {
			a = paired;
			paired = NO_AMOUNT;
		}
		next = next_size(l, i + 1, to);
		if (next < to && same_again(l, i, next)) {
			i = next;
			next = next_size(l, i + 1, to);
		}
		if (is_growth(l, i, next, to)) {
			a = AMOUNT_USED;
			paired = AMOUNT_ASKED;
		} else if (next < to && is_pair(l, i, next)) {
			if (a == NO_AMOUNT || a == AMOUNT_LIMIT)
				a = AMOUNT_USED;
			paired = AMOUNT_LIMIT;
		}
		if (a == AMOUNT_ASKED && out->said[a] && is_summand(l, from, i))
			out->bytes[a] += x->bytes;
		else if (a == AMOUNT_ASKED && is_share(l, from, i))
			out->said[a] = true, out->bytes[a] = x->bytes;
		else
			put(out, a, x->bytes);
	}
}
