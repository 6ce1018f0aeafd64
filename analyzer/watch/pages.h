/*
 * pages.h - what the watcher answers over HTTP: metrics, profiles, and a page that lists them.
 * Everything comes from the latest look; nothing is read for a request.
 */
#ifndef ANALYZER_WATCH_PAGES_H
#define ANALYZER_WATCH_PAGES_H

#include "watch/engine/engines.h"
#include "watch/http.h"
#include "watch/metrics.h"
#include "watch/watched.h"

/* The watcher keeps it up to date between two calls of http_serve(). */
struct pages {
	struct watch *const *watches;
	const struct watched *const *states; /* of each */
	size_t count;
	const struct metrics_label *labels;
	size_t label_count;
	const struct metrics_own *own;
	const struct engines *engines; /* NULL: none */
};

/* An http_answer_fn; `arg` is a struct pages. */
void pages_answer(void *arg, const struct http_request *r, struct http_answer *out);

#endif
