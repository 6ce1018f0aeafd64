/*
 * lexemes.h - cuts a line of a log into words and numbers, whatever program wrote it.
 *
 * Words are small letters; names are cut where a program joins words: OutOfMemoryError and
 * OUT_OF_MEMORY both become "out of memory". Numbers keep the unit that follows them. A line has
 * any bytes; what does not fit is left out.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_LEXEMES_H
#define ANALYZER_EXPLAIN_CLAIM_LEXEMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEXEMES_MAX 256u
#define LEXEMES_TEXT 4096u

enum lexeme_type {
	LEXEME_WORD,
	LEXEME_NUMBER,
	LEXEME_MARK, /* one character: . , : ; ( ) [ ] / < > = ! ? " | + - * # % { } */
};

enum lexeme_unit {
	UNIT_NONE,
	UNIT_BYTE, /* `bytes` is the number */
	UNIT_PERCENT,
};

struct lexeme {
	enum lexeme_type type;
	enum lexeme_unit unit;
	bool joined; /* of one name with the lexeme before: OutOfMemory, out_of_memory */
	char mark;
	const char *word; /* "" unless it is a word */
	double value;
	uint64_t bytes; /* the number, if it is whole or has a unit of bytes */
	unsigned vocabulary; /* what the word means here: see vocabulary.h */
	size_t at; /* offset in the line */
};

struct lexemes {
	struct lexeme list[LEXEMES_MAX];
	size_t count;
	char text[LEXEMES_TEXT];
	size_t used;
};

/* Cut `line`. Words live as long as `out`. */
void lexemes_read(struct lexemes *out, const char *line, size_t bytes);

#endif
