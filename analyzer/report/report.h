/*
 * report.h - a verdict, and the memory of call sites, as text or JSON. Everything is appended to a
 * str, which cmd/ writes out. Names come from traces: control characters never reach the output.
 */
#ifndef ANALYZER_REPORT_REPORT_H
#define ANALYZER_REPORT_REPORT_H

#include <stdbool.h>

#include "explain/join/join.h"
#include "util/text/str.h"
#include "verdict/result.h"

struct report_style {
	bool colour;
	bool unicode; /* bars and dots beyond ASCII */
	bool verbose;
	bool native; /* shows the interpreter's and libc's own frames in stacks, too */
	unsigned columns; /* at least 40; 80 when not a terminal */
};

/* Return the style that suits this descriptor; -1: a file. */
struct report_style report_style_of(int fd);

struct page;
struct report_view {
	const struct verdict_result *result;
	const struct explanation *log; /* of the same run; NULL: none */
	const enum join *joined; /* the failure that each of the log's messages is about */
	const struct page *page; /* for a format with pictures; NULL: none */
};

/* Append at most ten lines, for the end of `whyoom run`. `trace` is `whyoom report`'s argument. */
void report_brief(const struct verdict_result *r, const char *trace,
    const struct report_style *style, struct str *out);

/* Append the verdict in one line of LAST_WORD_MAX bytes at most: its cause, its sentence, the first
 * fix, and the command that says more. Longer parts are cut at whole characters. There are no
 * control characters in it. */
#define LAST_WORD_MAX 980u
void report_last_word(const struct verdict_result *r, const char *trace, struct str *out);

enum sites_by { SITES_LIVE, SITES_PEAK, SITES_TOTAL, SITES_GROWTH, SITES_LEAKED };
struct sites_view {
	const struct model *model;
	const struct callsites *callsites; /* at the moment in question */
	const char *at; /* "failure", "peak", "end" */
	enum sites_by by;
	uint32_t limit; /* at most this many; 0: all */
	struct trace_set_damage damage;
};
/* Return the enum sites_by of "live", "peak", ...; -1: there is no such order. */
int sites_by_name(const char *name);

#endif
