/*
 * early [--blamed FUNCTION] TRACE...: the verdict on each process of these traces at three quarters
 * of its life, as if memory had run out then (early.h). Prints a line for each process with a limit
 * on the host, fields separated by tabs: pid, bytes that live, cause, confidence; cause and
 * confidence with the end that is assumed, the part of the limit in use, the summary; bytes that
 * the function holds then, and at the end with the request that it was refused. A life ends as in
 * backtest.c. backtest.py compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/knowledge.h"
#include "model/model.h"
#include "trace/trace.h"
#include "util/text/str.h"
#include "watch/early.h"

#define LIFE_PART 0.75

struct life {
	uint64_t first_ns, end_ns;
	uint64_t held; /* at the end */
};

static const char *blamed = "";

/* A refused thread wants a stack, and is counted by its table. */
static uint64_t held_by(const struct callsites *all, const struct failure *refused)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < all->count; i++)
		if (str_same(all->list[i].function, blamed))
			sum += all->list[i].facts.live_bytes +
			       (refused && refused->api != TRACE_API_THREAD && i == all->failed
				       ? refused->size
				       : 0);
	return sum;
}

/* Set the end of its life, as a report would have it. */
static int life(struct trace *t, struct life *out, struct err *err)
{
	struct failure_view host;
	struct callsites *all;
	struct model *m;
	int r = feed_until_model(feed_of_trace(t), UINT64_MAX, UINT64_MAX, &m, err);

	if (r)
		return r;
	failure_settle(m);
	failure_read(m, NULL, &host);
	out->first_ns = m->run.first_ns;
	out->end_ns = host.kind != FAILURE_NONE ? host.time_ns : m->run.last_ns;
	r = callsites_new(m, failure_moment(m), &all, err);
	if (!r) {
		out->held = held_by(all, model_failure(m));
		callsites_free(all);
	}
	model_free(m);
	return r;
}

static int print_process(struct trace *t, struct early *early, struct err *err)
{
	struct life of;
	int r = life(t, &of, err);

	if (!r)
		r = early_judge(feed_of_trace(t),
		    of.first_ns + (uint64_t)((double)(of.end_ns - of.first_ns) * LIFE_PART), early,
		    err);
	if (r)
		return r < 0 ? r : 0;
	printf("%u\t%llu\t%s\t%.3f\t%s\t%.3f\t%.3f\t%s\t%llu\t%llu\n", trace_facts(t)->pid,
	    (unsigned long long)early->live_bytes, cause_name(early->cause), early->confidence,
	    cause_name(early->as_if.verdict.cause), early->as_if.verdict.confidence,
	    1 - (double)early->room.left / (double)early->room.bytes, early->as_if.verdict.summary,
	    (unsigned long long)held_by(early->as_if.callsites, NULL), (unsigned long long)of.held);
	early_fini(early);
	return 0;
}

int main(int argc, char **argv)
{
	struct early *early = calloc(1, sizeof(*early));
	int status = early ? 0 : 1, first = 1;

	if (argc > 2 && strcmp(argv[1], "--blamed") == 0) {
		blamed = argv[2];
		first = 3;
	}
	for (int i = first; early && i < argc; i++) {
		struct trace_set set;
		struct err err;
		int r = trace_set_open(argv[i], &set, &err);

		for (size_t k = 0; !r && k < set.count; k++)
			r = print_process(set.images[k], early, &err);
		if (r) {
			fprintf(stderr, "%s\n", err.text);
			status = 1;
			continue;
		}
		trace_set_close(&set);
	}
	free(early);
	return status;
}
