/*
 * pickle.h - writes Python's pickle, protocol 2, with only the opcodes that PyTorch's memory_viz
 * reads. Values are appended to a text; containers are nested by the caller's order of calls. What
 * is used often is given a number, and is named by it from then on.
 *
 * The viewer spreads the items of a list into a call, so a list is filled in parts:
 * pickle_list_next() before each item ends a part in time.
 */
#ifndef ANALYZER_EXPORT_PICKLE_H
#define ANALYZER_EXPORT_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text/str.h"

void pickle_begin(struct str *p);
void pickle_end(struct str *p);

/* `value` is at most 2^53: JavaScript holds larger integers only roughly. */
void pickle_u64(struct str *p, uint64_t value);
void pickle_minus_one(struct str *p);
void pickle_real(struct str *p, double value);
void pickle_bool(struct str *p, bool value);
/* Invalid UTF-8 becomes U+FFFD; NULL is the empty text. */
void pickle_text(struct str *p, const char *text);

/* Give the latest value that number; push that value again. */
void pickle_name(struct str *p, uint32_t number);
void pickle_again(struct str *p, uint32_t number);

/* Keys and values in turn between the two. */
void pickle_dict(struct str *p);
void pickle_dict_end(struct str *p);
/* An empty dict, and what puts the latest key and value into it. */
void pickle_empty_dict(struct str *p);
void pickle_set(struct str *p);
/* (a, b) of the latest two values. */
void pickle_pair(struct str *p);

#define PICKLE_PART 1000u /* items; Python's own writer takes that many, too */
struct pickle_list {
	uint32_t items; /* of the part under way */
};
/* An empty list, which pickle_name() may name; then items may follow. */
void pickle_empty_list(struct str *p);
/* Before the items: the list is the latest value. */
void pickle_list(struct str *p, struct pickle_list *list);
void pickle_list_next(struct str *p, struct pickle_list *list);
void pickle_list_end(struct str *p, struct pickle_list *list);

#endif
