/*
 * meaning.h - a sentence of a knowledge file with the message's own numbers in it.
 */
#ifndef ANALYZER_EXPLAIN_MEANING_H
#define ANALYZER_EXPLAIN_MEANING_H

#include "explain/fields.h"
#include "util/text/str.h"

/* Write the text with each {NAME} replaced by the field's value: sizes as "1.25 GiB", integers as
 * "16,384", or with {=NAME} as "16384". Text between [[ and ]] is left out if a field in it is
 * missing; elsewhere a missing field is "?". */
void meaning_write(struct str *out, const char *text, const struct fields *fields);

#endif
