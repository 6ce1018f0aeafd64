/*
 * phrase.h - finds a phrase of small letters in a text, in either case.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_PHRASE_H
#define ANALYZER_EXPLAIN_CLAIM_PHRASE_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* True if it begins where a word begins, also within a name: "load model" in "_load model", "model
 * loader" in "DefaultModel loader", but not in "preload model". */
static inline bool has_phrase(const char *text, const char *phrase)
{
	for (const char *at = strcasestr(text, phrase); at; at = strcasestr(at + 1, phrase))
		if (at == text || !isalnum((unsigned char)*phrase) ||
		    !isalnum((unsigned char)at[-1]) ||
		    (isupper((unsigned char)*at) && islower((unsigned char)at[-1])))
			return true;
	return false;
}

#endif
