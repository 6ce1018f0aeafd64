/*
 * engine_words.h - what is known of inference engines, as lines for a person and as metrics.
 */
#ifndef ANALYZER_WATCH_ENGINE_WORDS_H
#define ANALYZER_WATCH_ENGINE_WORDS_H

#include "util/text/str.h"
#include "watch/engine/engines.h"
#include "watch/metrics.h"

/* Append a line: "vllm at http://...: pool 97 % full, 12 requests run, 30 wait". Safe for a
 * terminal. */
void engine_line(const struct engine *e, struct str *out);
/* Append such a line for each, with its end; nothing for NULL. */
void engine_lines(const struct engines *e, struct str *out);
/* Append the families of all engines; `labels` as in metrics_write(). */
void engine_metrics(const struct engine *engines, size_t count, const struct metrics_label *labels,
    size_t label_count, struct str *out);

#endif
