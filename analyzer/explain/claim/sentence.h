/*
 * sentence.h - looking for words in a sentence: a part of a line that lexemes.h has cut.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_SENTENCE_H
#define ANALYZER_EXPLAIN_CLAIM_SENTENCE_H

#include <string.h>

#include "explain/claim/lexemes.h"
#include "explain/claim/vocabulary.h"

#define MEMORY_NOUNS (WORD_MEMORY | WORD_RUNTIME | WORD_SHARED)

struct sentence {
	const struct lexemes *l;
	size_t from, to;
	size_t at; /* where the claim begins */
};

static inline const struct lexeme *lexeme(const struct sentence *s, size_t i)
{
	static const struct lexeme none = {.type = LEXEME_MARK, .word = ""};

	return i < s->to ? &s->l->list[i] : &none;
}

static inline bool word_is(const struct sentence *s, size_t i, const char *word)
{
	return strcmp(lexeme(s, i)->word, word) == 0 && *word;
}

static inline bool has_flag(const struct sentence *s, size_t i, unsigned flags)
{
	return lexeme(s, i)->vocabulary & flags;
}

/* Returns the first lexeme from `from` on, before `to`, with one of the flags; s->to: none. */
static inline size_t find_flag(const struct sentence *s, size_t from, size_t to, unsigned flags)
{
	for (size_t i = from; i < to && i < s->to; i++)
		if (has_flag(s, i, flags))
			return i;
	return s->to;
}

static inline bool any_flag(const struct sentence *s, unsigned flags)
{
	return find_flag(s, s->from, s->to, flags) < s->to;
}

static inline size_t find_word(const struct sentence *s, const char *word)
{
	for (size_t i = s->from; i < s->to; i++)
		if (word_is(s, i, word))
			return i;
	return s->to;
}

static inline bool any_word(const struct sentence *s, const char *word)
{
	return find_word(s, word) < s->to;
}

static inline bool two_words(
    const struct sentence *s, size_t i, const char *first, const char *second)
{
	return word_is(s, i, first) && word_is(s, i + 1, second);
}

static inline bool any_two(const struct sentence *s, const char *first, const char *second)
{
	for (size_t i = s->from; i < s->to; i++)
		if (two_words(s, i, first, second))
			return true;
	return false;
}

static inline bool any_size(const struct sentence *s)
{
	for (size_t i = s->from; i < s->to; i++)
		if (lexeme(s, i)->type == LEXEME_NUMBER && lexeme(s, i)->unit == UNIT_BYTE)
			return true;
	return false;
}

/* Part of a name or a path: error_handler, /opt/test/run.py. */
static inline bool is_part(const struct sentence *s, size_t i)
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

static inline bool negated(const struct sentence *s, size_t i)
{
	for (size_t back = 1; back <= 2 && back <= i - s->from; back++)
		if (word_is(s, i - back, "not") || word_is(s, i - back, "never") ||
		    word_is(s, i - back, "without") || word_is(s, i - back, "no"))
			return true;
	return false;
}

/* "could not", "can not", "did not": a refusal in two words. */
static inline bool refuses(const struct sentence *s, size_t i)
{
	if (has_flag(s, i, WORD_FAIL))
		return true;
	return word_is(s, i, "not") && i > s->from &&
	       (word_is(s, i - 1, "could") || word_is(s, i - 1, "can") ||
		   word_is(s, i - 1, "did") || word_is(s, i - 1, "was"));
}

/* Two words of one text, and not of two columns of a table. */
static inline bool is_together(const struct sentence *s, size_t a, size_t b)
{
	for (size_t i = a < b ? a : b; i < (a < b ? b : a); i++) {
		const struct lexeme *x = lexeme(s, i);
		size_t end = x->at + (x->type == LEXEME_WORD ? strlen(x->word) : 1);

		if (x->type != LEXEME_NUMBER && lexeme(s, i + 1)->at >= end + 2)
			return false;
	}
	return true;
}

static inline bool any_of(const struct sentence *s, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (any_word(s, words[i]))
			return true;
	return false;
}

#endif
