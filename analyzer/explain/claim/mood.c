/* mood.c - see mood.h. */
#include "explain/claim/mood.h"

#include <string.h>

#include "explain/claim/vocabulary.h"
#include "util/tuned.h"

TUNED(size_t, LEVEL_WITHIN, 14, "a logger's level stands behind its time and thread");

/* "Fri May 29", "29 May 2026": the month. */
static bool is_month(const struct sentence *s, size_t i)
{
	return word_is(s, i, "may") &&
	       (lexeme(s, i + 1)->type == LEXEME_NUMBER ||
		   (i > s->from && lexeme(s, i - 1)->type == LEXEME_NUMBER));
}

/* A word before the claim that makes it a possibility, an advice or a title. */
bool mood_hypothetical(const struct sentence *s)
{
	for (size_t i = s->from; i < s->at && i < s->to; i++) {
		if (!has_flag(s, i, WORD_MAYBE) || is_part(s, i) || is_month(s, i))
			continue;
		if (word_is(s, i, "cause") && lexeme(s, i + 1)->mark == ':') /* a label */
			continue;
		/* "error when creating the cache" */
		if (word_is(s, i, "when") && i > s->from &&
		    has_flag(s, i - 1, WORD_FAIL | WORD_ERROR))
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

/* "runner exited, you may not have enough memory", "It failed. The reason is probably a lack of GPU
 * memory": an end, and what may explain it. */
bool mood_guesses(const struct sentence *s, const struct sentence *line)
{
	static const char *const ends[] = {
	    "exited", "crashed", "terminated", "stopped", "died", "failed", "quit"};
	bool ended = false;

	for (size_t i = line->from; i < line->to && i < s->at; i++) {
		for (size_t e = 0; e < sizeof(ends) / sizeof(*ends); e++)
			ended |= word_is(line, i, ends[e]) && !is_part(line, i);
		if (ended && i >= s->from &&
		    (word_is(s, i, "may") || word_is(s, i, "might") || word_is(s, i, "probably") ||
			word_is(s, i, "likely") || word_is(s, i, "possibly")))
			return true;
	}
	return false;
}

/* "memory size is larger than the maximum allowed size", "The memory arena in bytes per thread
 * cannot exceed 4293967295": of a configuration, before it runs. */
bool mood_configuration(const struct sentence *s)
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
bool mood_went_on(const struct sentence *s, const struct sentence *line)
{
	struct sentence behind = *line;

	behind.from = s->at;
	for (size_t i = s->at; i < line->to; i++)
		if (tries_again(&behind, i))
			return true;
	return false;
}

/* "passed its deadline", "passed: 65 s" */
static bool passes_by(const struct lexemes *l, size_t i)
{
	const struct lexeme *next = &l->list[i + 1];

	return i + 1 < l->count && (next->mark == ':' || strcmp(next->word, "its") == 0 ||
				       strcmp(next->word, "the") == 0);
}

bool mood_got_over(const struct sentence *s, size_t end)
{
	for (size_t i = s->at; i < end; i++) {
		const struct lexeme *x = &s->l->list[i];

		/* not the exception's name: RetryError, MaxRetryError */
		if (i < s->to ? tries_again(s, i)
			      : (x->vocabulary & WORD_RETRY && !x->joined &&
				    !(i + 1 < end && x[1].joined)))
			return true;
		if ((strcmp(x->word, "passed") == 0 && !passes_by(s->l, i)) ||
		    strcmp(x->word, "handled") == 0 || tries_to_free(s->l, i))
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
bool mood_quiet(const struct lexemes *l, const char *line)
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
bool mood_source(const struct lexemes *l, const char *line, size_t bytes)
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
bool mood_near(const struct sentence *s)
{
	if (any_word(s, "failed") || any_word(s, "cancelled") || any_word(s, "rejected"))
		return false;
	if (any_word(s, "paused") || any_word(s, "pausing"))
		return true;
	return any_word(s, "warn") || any_word(s, "warning") || any_word(s, "near") ||
	       any_word(s, "nearly") || any_word(s, "approaching") || any_word(s, "almost");
}
