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

/* Gather the data of a judged process, and of the other processes of its set that matter most, as
 * far as they fit: each of these is judged, too. `set` may be NULL; asked NULL: a report. 0;
 * negative errno with err. The result and what is asked must outlive it. */
int page_gather(const struct verdict_result *r, const struct trace_set *set,
    const struct page_map *asked, struct page **out, struct err *err);
void page_free(struct page *page); /* accepts NULL */

/* Append a table of the largest requests as HTML; nothing if there were none. */
void page_requests(const struct page *page, struct str *out);
/* Append a table of the processes as HTML; nothing if there is one. */
void page_processes(const struct page *page, struct str *out);
/* Append the data as elements, one for each process that has some, each as base64 of a gzip file.
 * Out of memory shows as the str's `failed`. */
void page_blocks(const struct page *page, struct str *out);
/* Append the map of the space that is shown first as HTML without scripts: at the moment that was
 * asked for, else at the verdict's. Nothing, if it has no map. */
void page_map_table(const struct page *page, struct str *out);
/* NULL: the page is a report. */
const struct page_map *page_asked(const struct page *page);

#endif
