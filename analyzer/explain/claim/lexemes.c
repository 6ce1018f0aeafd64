/* lexemes.c - see lexemes.h. */
#include "explain/claim/lexemes.h"

#include <stdlib.h>
#include <string.h>

#include "explain/claim/vocabulary.h"

#define WORD_MAX 40u
#define DIGITS_MAX 40u

/* A file's name, or an address of the web: its words say nothing, but /dev/shm's. */
static size_t path_end(const char *line, size_t at, size_t end)
{
	size_t i = at;

	if (at > 0 && !strchr(" \t\"'=([<:,`", line[at - 1]))
		return at;
	if (line[i] == '~')
		i++;
	else if (end - i > 8 && !memcmp(line + i, "https://", 8))
		i += 7; /* at the second slash */
	else if (end - i > 8 && !memcmp(line + i, "http://", 7))
		i += 6;
	else if (end - i > 2 && line[i + 1] == ':' && (line[i + 2] == '\\' || line[i + 2] == '/'))
		i += 2;
	else if (line[i] == '.' && end - i > 1)
		i++;
	if (i >= end || (line[i] != '/' && line[i] != '\\') || i + 1 >= end || line[i + 1] == ' ' ||
	    line[i + 1] == '/' || (end - i >= 8 && !memcmp(line + i, "/dev/shm", 8)))
		return at;
	while (i < end && !strchr(" \t\n\"'`)]>,;", line[i]))
		i++;
	return i;
}

struct cutter {
	struct lexemes *out;
	const char *line;
	size_t at, end;
};

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return is_upper(c) || is_lower(c) || (unsigned char)c >= 0x80;
}

static char char_at(const struct cutter *c, size_t at)
{
	return at < c->end ? c->line[at] : '\0';
}

static struct lexeme *add(struct cutter *c, enum lexeme_type type, size_t at)
{
	struct lexeme *l;

	if (c->out->count == LEXEMES_MAX)
		return NULL;
	l = &c->out->list[c->out->count++];
	*l = (struct lexeme){.type = type, .word = "", .at = at};
	return l;
}

static void add_word(struct cutter *c, size_t from, size_t to, bool joined)
{
	size_t bytes = to - from < WORD_MAX ? to - from : WORD_MAX;
	char *copy = c->out->text + c->out->used;
	struct lexeme *l;

	if (c->out->used + bytes + 1 > LEXEMES_TEXT)
		return;
	l = add(c, LEXEME_WORD, from);
	if (!l)
		return;
	for (size_t i = 0; i < bytes; i++) {
		char ch = c->line[from + i];

		copy[i] = is_upper(ch) ? (char)(ch - 'A' + 'a') : ch;
	}
	copy[bytes] = '\0';
	c->out->used += bytes + 1;
	l->word = copy;
	l->joined = joined;
	l->vocabulary = vocabulary_of(copy);
}

/* A part of a joined name begins here: aB, or the last capital of ABc. */
static bool part_begins(const struct cutter *c, size_t begin, size_t i)
{
	char before;

	if (i == begin || !is_upper(c->line[i]))
		return false;
	before = c->line[i - 1];
	return is_lower(before) || (is_upper(before) && is_lower(char_at(c, i + 1)));
}

/* "can't" is one word; so is "kv2". */
static void read_word(struct cutter *c)
{
	size_t begin = c->at, i = begin;
	bool joined =
	    begin > 0 && (c->line[begin - 1] == '_' || (c->line[begin - 1] == '-' && begin > 1 &&
							   is_letter(c->line[begin - 2])));

	while (i < c->end) {
		char here = c->line[i];

		if (here == '\'' && i > begin && is_letter(char_at(c, i + 1)) &&
		    char_at(c, i - 1) == 'n') {
			i++;
			continue;
		}
		if (!is_letter(here) && !(i > begin && is_digit(here)))
			break;
		if (part_begins(c, begin, i)) {
			add_word(c, begin, i, joined);
			joined = true;
			begin = i;
		}
		i++;
	}
	add_word(c, begin, i, joined);
	c->at = i;
}

/* Reads "GiB", "MB", "bytes", "KBytes", "G", "byte(s)" at `at`. Returns the end of the unit, or
 * `at`. */
static size_t read_unit(const struct cutter *c, size_t at, double *factor)
{
	static const char letters[] = "kmgtpe";
	size_t i = at;
	char ch = char_at(c, i);
	const char *letter;

	*factor = 1;
	if (ch == ' ' || ch == '-')
		ch = char_at(c, ++i);
	letter = ch ? strchr(letters, ch | 0x20) : NULL;
	if (letter && is_letter(ch)) {
		for (const char *p = letters; p <= letter; p++)
			*factor *= 1024;
		i++;
		if (char_at(c, i) == 'i')
			i++;
		ch = char_at(c, i);
		/* A lone letter is a unit only right behind its number: 7.35G, 512Mi, not "5 m". */
		if (!is_letter(ch))
			return (char_at(c, at) | 0x20) == *letter && !is_digit(ch) ? i : at;
	}
	if ((ch | 0x20) != 'b')
		return at;
	if (!is_letter(char_at(c, i + 1)))
		return is_digit(char_at(c, i + 1)) ? at : i + 1;
	for (const char *rest = "yte"; *rest; rest++)
		if ((char_at(c, ++i) | 0x20) != *rest)
			return at;
	i++;
	if ((char_at(c, i) | 0x20) == 's')
		i++;
	return is_letter(char_at(c, i)) ? at : i;
}

static void read_hexadecimal(struct cutter *c)
{
	size_t begin = c->at, i = begin + 2, unit;
	uint64_t value = 0;
	struct lexeme *l;
	double factor;

	while (i < c->end && strchr("0123456789abcdefABCDEF", c->line[i]) && c->line[i]) {
		char ch = c->line[i++];

		value = value << 4 | (uint64_t)(is_digit(ch) ? ch - '0' : (ch | 0x20) - 'a' + 10);
	}
	c->at = i;
	l = i - begin <= 18 ? add(c, LEXEME_NUMBER, begin) : NULL;
	if (l) {
		l->bytes = value;
		l->value = (double)value;
		l->joined = true; /* an address more often than a size */
		unit = read_unit(c, i, &factor);
		if (unit > i && factor <= 1) { /* "0x13ffffffe8 bytes" */
			l->unit = UNIT_BYTE;
			l->joined = false;
			c->at = unit;
		}
	}
}

/* "46,5 GiB": a comma before the fraction, where a unit of bytes follows. */
static bool is_decimal_comma(const struct cutter *c, size_t i)
{
	size_t end = i + 1;
	double factor;

	while (end < c->end && is_digit(c->line[end]))
		end++;
	return c->line[i] == ',' && (end == i + 2 || end == i + 3) &&
	       read_unit(c, end, &factor) > end && factor > 1;
}

/* Reads digits with commas between groups of three, and a fraction. */
static size_t read_digits(const struct cutter *c, char *plain, bool *whole)
{
	size_t i = c->at, n = 0;
	double factor;

	*whole = true;
	while (i < c->end && n < DIGITS_MAX) {
		char ch = c->line[i];

		if (ch == ',' && is_digit(char_at(c, i + 1)) && is_digit(char_at(c, i + 2)) &&
		    is_digit(char_at(c, i + 3)) && !is_digit(char_at(c, i + 4))) {
			i++;
			continue;
		}
		if (*whole &&
		    ((ch == '.' && is_digit(char_at(c, i + 1))) || is_decimal_comma(c, i))) {
			*whole = false;
			ch = '.';
		} else if (!is_digit(ch)) {
			break;
		}
		plain[n++] = ch;
		i++;
	}
	plain[n] = '\0';
	while (i < c->end && is_digit(c->line[i]))
		i++;
	/* numpy writes "113. GiB" */
	if (char_at(c, i) == '.' && char_at(c, i + 1) == ' ' && is_upper(char_at(c, i + 2)) &&
	    read_unit(c, i + 1, &factor) > i + 1)
		i++;
	return i;
}

static void read_number(struct cutter *c)
{
	char plain[DIGITS_MAX + 1];
	size_t begin = c->at, end, unit;
	struct lexeme *l;
	double factor;
	bool whole;

	if (c->line[begin] == '0' && (char_at(c, begin + 1) | 0x20) == 'x') {
		read_hexadecimal(c);
		return;
	}
	end = read_digits(c, plain, &whole);
	unit = read_unit(c, end, &factor);
	c->at = unit;
	l = add(c, LEXEME_NUMBER, begin);
	if (!l)
		return;
	l->value = strtod(plain, NULL);
	if (whole && unit == end) {
		l->bytes = strtoull(plain, NULL, 10); /* UINT64_MAX if there are too many digits */
	} else if (unit > end) {
		double size = l->value * factor;

		l->unit = UNIT_BYTE;
		if (factor == 1 && whole)
			l->bytes = strtoull(plain, NULL, 10);
		else
			l->bytes = size < 1.8e19 ? (uint64_t)size : UINT64_MAX;
	}
	if (char_at(c, c->at) == '%' || (char_at(c, c->at) == ' ' && char_at(c, c->at + 1) == '%'))
		l->unit = UNIT_PERCENT;
	/* 12:03:55, 1.2.3 and v2 are no amounts. */
	if (unit == end && (char_at(c, end) == '.' || char_at(c, end) == ':') &&
	    is_digit(char_at(c, end + 1)))
		l->joined = true;
	if (unit == end && (is_letter(char_at(c, end)) || char_at(c, end) == '_'))
		l->joined = true;
	if (begin > 0 && (strchr(":.-_", c->line[begin - 1]) || is_letter(c->line[begin - 1])) &&
	    !(begin > 1 && c->line[begin - 1] == ':' && !is_digit(c->line[begin - 2])))
		l->joined = true;
	/* A minus sign. */
	if (begin > 1 && c->line[begin - 1] == '-' && c->line[begin - 2] == ' ')
		l->joined = false;
}

/* Colours: ESC [ ... m, also where the ESC was lost or is written as text. */
static bool skip_colour(struct cutter *c)
{
	size_t i = c->at + (c->line[c->at] == '\x1b');

	if (char_at(c, i) != '[' || (i == c->at && !is_digit(char_at(c, i + 1))))
		return false;
	for (i++; i < c->end && (is_digit(c->line[i]) || c->line[i] == ';'); i++)
		;
	if (char_at(c, i) != 'm')
		return false;
	c->at = i + 1;
	return true;
}

void lexemes_read(struct lexemes *out, const char *line, size_t bytes)
{
	struct cutter c = {out, line, 0, bytes};

	out->count = 0;
	out->used = 0;
	while (c.at < c.end && out->count < LEXEMES_MAX) {
		char ch = line[c.at];
		size_t path;

		if ((ch == '\x1b' || ch == '[') && skip_colour(&c)) {
			continue;
		} else if ((path = path_end(line, c.at, c.end)) > c.at) {
			c.at = path;
		} else if (is_letter(ch)) {
			read_word(&c);
		} else if (is_digit(ch)) {
			read_number(&c);
		} else {
			bool hyphen = ch == '-' && c.at > 0 && is_letter(line[c.at - 1]) &&
				      is_letter(char_at(&c, c.at + 1));

			if (ch && !hyphen && strchr(".,:;()[]/<>=!?\"|+-*#%{}", ch)) {
				struct lexeme *l = add(&c, LEXEME_MARK, c.at);

				if (l)
					l->mark = ch;
			}
			c.at++;
		}
	}
}
