/*
 * kv_pool.h - what an inference engine publishes about its pool of keys and values (the KV cache)
 * and its queue, whichever engine and version it is. Blocks inside a preallocated pool make no
 * allocation, so no trace has them. Pure functions.
 */
#ifndef ANALYZER_WATCH_KV_POOL_H
#define ANALYZER_WATCH_KV_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "util/text/err.h"

#define KV_POOL_MODEL 128u /* bytes of a model's name, with the NUL */

/* Of all that the server runs: of several engines, usage is the fullest one's, the rest are sums.
 * NaN: this version does not publish it. */
struct kv_pool {
	const char *kind; /* "vllm", "sglang", "tgi", "llama.cpp" */
	char model[KV_POOL_MODEL]; /* "": not published, or several */
	double usage; /* 0 to 1 */
	double tokens; /* that the pool can hold */
	double running, waiting; /* requests */
	double preemptions; /* since the server's start: requests that gave their place up */
	double preempted; /* likewise, in the server's latest interval */
};

/* Read a page of metrics. 0; -ENODATA with err: it is of none of these engines. */
int kv_pool_read(const char *page, size_t length, struct kv_pool *out, struct err *err);

/* Whether the pool limits the server: 1: it is nearly full and requests wait, or it has just taken
 * places away; 0: neither; NaN: what is published does not tell. */
double kv_pool_pressure(const struct kv_pool *now);
/* Return how many requests were preempted between two readings; NaN: not known. After a restart of
 * the server it is what was counted since. */
double kv_pool_preempted_between(const struct kv_pool *before, const struct kv_pool *now);

#endif
