/*
 * page.h - the data of the page's pictures: for each space of the subject its bytes over time, the
 * tree of its stacks, its places (call sites), what was born and died when, and its layout at the
 * moment. Made in one pass over the events and one over the stacks.
 *
 * Memory is bounded by live blocks and distinct stacks. What the page holds has fixed budgets, so
 * it does not grow with events. The same trace gives the same bytes.
 */
#ifndef ANALYZER_REPORT_PAGE_H
#define ANALYZER_REPORT_PAGE_H

#include "util/text/str.h"
#include "verdict/result.h"

struct page;

/* A page that opens with a map. */
struct page_map {
	const char *space; /* "torch:0" */
	const char *at; /* "failure", "peak", "end", "12.5s" */
	uint64_t time_ns;
};

/* Gather the data of a judged process; asked NULL: a report. 0; negative errno with err. The result
 * and what is asked must outlive it. */
int page_gather(const struct verdict_result *r, const struct page_map *asked, struct page **out,
    struct err *err);
void page_free(struct page *page); /* accepts NULL */

/* Append the data as text: base64 of a gzip file. Out of memory shows as the str's `failed`. */
void page_block(const struct page *page, struct str *out);
/* Append the map of the space that is shown first as HTML without scripts: at the moment that was
 * asked for, else at the verdict's. Nothing, if it has no map. */
void page_map_table(const struct page *page, struct str *out);
/* NULL: the page is a report. */
const struct page_map *page_asked(const struct page *page);

#endif
