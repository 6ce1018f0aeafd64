/*
 * pattern.h - the regular expressions of messages: compiled once, matched with bounds on work and
 * memory, so that no log can make a match run away.
 *
 * In a pattern, these stand for what is alike in many messages:
 *   {SIZE}   a size with its unit: "1.50 GiB", "512 bytes", "20.00MiB"
 *   {NUM}    a decimal number
 *   {INT}    an integer, perhaps with commas
 *   {NL}     a line's end and the blanks after it; also the two characters "\n" of a quoted text
 *   {LOG}    what a logger writes before the text of a further line: up to 200 characters of it
 * and a blank stands for one or more, or for the end of a line that was wrapped; [ ] is just a
 * blank.
 */
#ifndef ANALYZER_EXPLAIN_PATTERN_H
#define ANALYZER_EXPLAIN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "util/text/err.h"

struct pattern;

struct pattern_group {
	const char *name;
	const char *text; /* in the subject */
	size_t bytes;
};
#define PATTERN_GROUPS_MAX 24u

struct pattern_match {
	size_t begin, end; /* offsets in the subject */
	struct pattern_group groups[PATTERN_GROUPS_MAX]; /* those that took part */
	size_t group_count;
	bool gave_up; /* the search would have taken too long, so there is no match */
};

/* Compile a pattern. 0; -EINVAL with err: a mistake in it; -ENOMEM. */
int pattern_new(const char *text, struct pattern **out, struct err *err);
void pattern_free(struct pattern *pattern);
/* Find the first match that begins at an offset from `from` to `last`. False: there is none, or the
 * search would have taken too long. Group names live as long as the pattern. */
bool pattern_find(const struct pattern *pattern, const char *subject, size_t bytes, size_t from,
    size_t last, struct pattern_match *out);

#endif
