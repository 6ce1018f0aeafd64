/*
 * metrics.h - what is known of the watched processes as Prometheus reads it, text format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats. Labels are bounded: a process, its
 * spaces, and its few call sites that grow fastest.
 */
#ifndef ANALYZER_WATCH_METRICS_H
#define ANALYZER_WATCH_METRICS_H

#include "knowledge/knowledge.h"
#include "watch/watched.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics_label {
	const char *key, *value;
};

/* What the watcher itself does. */
struct metrics_own {
	double cpu_seconds;
	uint64_t looks, answers, resident_bytes;
	const struct metrics_failures *failures; /* NULL: processes that end are not judged */
};
/* What processes ended of since the watcher began, and what became of the reports on it. */
struct metrics_failures {
	uint64_t by_cause[CAUSE_COUNT];
	uint64_t pushed, problems, pending;
};

/* Append the page. `labels`: further ones of each process, `label_count` of them. Without memory
 * the text has failed, see util/text/str.h. */
void metrics_write(const struct watched *const *processes, size_t count,
    const struct metrics_label *labels, size_t label_count, struct str *out);
/* Append the watcher's own numbers, which no process has. */
void metrics_write_own(const struct metrics_own *own, struct str *out);
/* Append a label to a sample that has begun with "NAME{". */
void metrics_add_label(struct str *out, const char *key, const char *value);
/* True if Prometheus takes that as the name of a label, and the page has none of that name. */
bool metrics_label_valid(const char *key);

#endif
