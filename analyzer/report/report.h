/*
 * report.h - a verdict in words or as JSON, and sites in both. Writes into a str; cmd/ puts it
 * where it belongs. Names come from traces: control characters never reach the output.
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
	bool native; /* the interpreter's and libc's own frames in stacks, too */
	unsigned columns; /* 40 to ...; 80 when not a terminal */
};

/* What that stream can show. */
struct report_style report_style_of(int fd);

/* A log of the same run. */
struct report_log {
	const struct explanation *explanation;
	const enum join *of; /* what each of its messages tells of */
};

/* One screen; with verbose everything that is known. `log` may be NULL. */
void report_text(const struct verdict_result *r, const struct report_log *log,
    const struct report_style *style, struct str *out);
/* At most ten lines, for the end of `whyoom run`. `trace`: what to give `whyoom report`. */
void report_brief(const struct verdict_result *r, const char *trace,
    const struct report_style *style, struct str *out);
/* One JSON object, schema 1: report-schema.json. `log` may be NULL. */
void report_json(const struct verdict_result *r, const struct report_log *log, struct str *out);

enum sites_by {
	SITES_LIVE,
	STACK_STATS_LIST_PEAK,
	SITES_TOTAL,
	STACK_STATS_LIST_GROWTH,
	STACK_STATS_LIST_LEAKED
};
struct sites_view {
	const struct model *model;
	const struct callsites *callsites; /* made at the moment in question */
	const char *at; /* "failure", "peak", "end" */
	enum sites_by by;
	uint32_t limit; /* at most this many; 0: all */
	struct trace_set_damage damage;
};
void report_sites_text(
    const struct sites_view *v, const struct report_style *style, struct str *out);
void report_sites_json(const struct sites_view *v, struct str *out);
/* "live", ...; -1: no such order. */
int sites_by_name(const char *name);

#endif
