/* amounts.c - see amounts.h. */
#include "explain/claim/amounts.h"

#include <string.h>

#include "explain/claim/sentence.h"
#include "util/tuned.h"

TUNED(uint64_t, BARE_MIN, 4096, "smaller numbers without a unit are mostly counts or codes");
TUNED(size_t, BEFORE, 9, "a longer way to the word before a number leads to another number's word");
TUNED(size_t, AFTER, 4, "as BEFORE; a word behind a number stands closer");
TUNED(double, SAME, 0.06, "\"10266147967 [9.5gb]\": one decimal of a GiB is 5 % of it");

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

static bool is_size(const struct lexemes *l, size_t i, size_t to)
{
	const struct lexeme *x = &l->list[i];

	if (x->type != LEXEME_NUMBER || x->unit == UNIT_PERCENT)
		return false;
	if (x->unit == UNIT_BYTE)
		return true;
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
		    is_word(b, "errno") || is_word(b, "code") || is_word(b, "id") ||
		    (is_word(b, "length") && !is_mark(&l->list[i - 1], "=")))
			return false;
		if (b->type == LEXEME_WORD)
			break;
	}
	return true;
}

static enum amount meaning_of(const struct lexemes *l, size_t i)
{
	const struct lexeme *x = &l->list[i];

	if (x->type != LEXEME_WORD)
		return NO_AMOUNT;
	if (is_word(x, "reservable") || is_word(x, "contiguous") || is_word(x, "largest"))
		return AMOUNT_PIECE;
	/* "more than total mem size : 29464985600", "red zone: 7264MB" */
	if (is_word(x, "size") && i > 1 && l->list[i - 1].vocabulary & MEMORY_NOUNS &&
	    (is_word(&l->list[i - 2], "total") || is_word(&l->list[i - 2], "maximum") ||
		is_word(&l->list[i - 2], "max")))
		return AMOUNT_LIMIT;
	/* "but bank size is only 1046181792 B" */
	if (is_word(x, "only") && i > 1 && is_word(&l->list[i - 1], "is") &&
	    is_word(&l->list[i - 2], "size"))
		return AMOUNT_LIMIT;
	if (is_word(x, "size") && i > 0 && is_word(&l->list[i - 1], "bank"))
		return AMOUNT_LIMIT;
	if (is_word(x, "zone") && i > 0 && is_word(&l->list[i - 1], "red"))
		return AMOUNT_LIMIT;
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

static enum amount by_word_before(const struct lexemes *l, size_t i, size_t from)
{
	for (size_t k = i; k-- > from && i - k <= BEFORE;) {
		enum amount a = meaning_of(l, k);

		if (l->list[k].type == LEXEME_NUMBER && is_size(l, k, i))
			return NO_AMOUNT;
		if (a != NO_AMOUNT)
			return a;
		if (is_mark(&l->list[k], ".;"))
			return NO_AMOUNT;
	}
	return NO_AMOUNT;
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
		enum amount a;

		if (x->type == LEXEME_NUMBER && i + 1 < to && !x->joined &&
		    l->list[i + 1].vocabulary & WORD_COUNTED)
			out->counts = true;
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
		if (paired != NO_AMOUNT) {
			a = paired;
			paired = NO_AMOUNT;
		}
		next = next_size(l, i + 1, to);
		if (next < to && same_again(l, i, next)) {
			i = next;
			next = next_size(l, i + 1, to);
		}
		if (next < to && is_pair(l, i, next)) {
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
