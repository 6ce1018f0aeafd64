/*
 * exposition.h - reads a page of metrics in Prometheus' text format, sample by sample, as servers
 * answer it: https://prometheus.io/docs/instrumenting/exposition_formats. The page is a stranger's:
 * lines that are no samples are counted and skipped. Nothing is copied.
 */
#ifndef ANALYZER_WATCH_EXPOSITION_H
#define ANALYZER_WATCH_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text within the page, without a NUL. */
struct exposition_text {
	const char *at;
	size_t length;
};

struct exposition_sample {
	struct exposition_text name;
	struct exposition_text labels; /* between the braces; escapes are as in the page */
	double value; /* may be NaN or infinite */
};

/* Begin with the whole page: {page, length}. */
struct exposition {
	const char *rest;
	size_t left;
	uint64_t samples, skipped; /* lines so far; comments and empty ones are neither */
};

/* Read the next sample. False: the page has ended. */
bool exposition_next(struct exposition *e, struct exposition_sample *out);
/* Write the value of a label to `out`, without its escapes and cut to `room` bytes with the NUL.
 * False: the sample has no such label; then *out is "". */
bool exposition_label(const struct exposition_sample *s, const char *key, char *out, size_t room);

#endif
