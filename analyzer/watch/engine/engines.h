/*
 * engines.h - asks inference engines for their metrics over HTTP, while the watcher does other
 * things: libcurl, loaded when it is asked for. An answer is bounded in time and size. One thread.
 */
#ifndef ANALYZER_WATCH_ENGINES_H
#define ANALYZER_WATCH_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

#include "util/text/err.h"
#include "watch/engine/kv_pool.h"

#define ENGINES_MAX 8u
#define ENGINES_BYTES (4u << 20) /* of an answer; vLLM's page has some 100 KiB */
#define ENGINES_SECONDS 5u /* until the end of an answer: a busy server answers late */

/* What is known of one, after the latest answer. */
struct engine {
	char *url; /* as given, without a password, and with /metrics where it had no path */
	bool answered; /* the latest question, and the rest is from that answer */
	char *problem; /* why it did not; NULL: none, or not asked yet */
	struct kv_pool pool;
	double pressure; /* as kv_pool_pressure(), and 1 for a minute after a preemption */
};

struct engines;

/* Prepare to ask these URLs, http or https; without a path they get /metrics. Nothing is asked yet.
 * 0; negative errno with err, -ENOSYS: this build, or this machine, has no libcurl. */
int engines_open(const char *const *urls, size_t count, struct engines **out, struct err *err);
void engines_close(struct engines *e); /* accepts NULL */

/* Ask all that are not being asked already. */
void engines_ask(struct engines *e);
/* Do what can be done without waiting. */
void engines_serve(struct engines *e);
/* Return after how many milliseconds engines_serve() shall be called again; UINT_MAX: nobody is
 * being asked. */
unsigned engines_wait_ms(const struct engines *e);
/* Wait until all have answered or failed. */
void engines_wait(struct engines *e);

const struct engine *engines_list(const struct engines *e, size_t *count); /* NULL: none */

#endif
