/*
 * early TRACE...: the verdict on each process of these traces at three quarters of its life, as if
 * the next request of the call site that grows most had been refused. Prints a line for each
 * process with a limit on the host, fields separated by tabs: pid, bytes that live, cause,
 * confidence. A life ends as in backtest.c. backtest.py compares.
 */
#include <stdio.h>
#include <stdlib.h>

#include "knowledge/knowledge.h"
#include "model/model.h"
#include "trace/trace.h"
#include "verdict/failure/failure.h"
#include "verdict/verdict.h"
#include "watch/early.h"

#define LIFE_PART 0.75

static int print_process(struct trace *t, struct err *err)
{
	struct feed trace = feed_of_trace(t);
	struct early early;
	struct verdict_result result;
	struct failure_view host;
	struct model *m;
	uint64_t end_ns, until_ns;
	int r = feed_until_model(trace, UINT64_MAX, UINT64_MAX, &m, err);

	if (r)
		return r;
	failure_settle(m);
	failure_read(m, NULL, &host);
	end_ns = host.kind != FAILURE_NONE ? host.time_ns : m->run.last_ns;
	until_ns = m->run.first_ns + (uint64_t)((double)(end_ns - m->run.first_ns) * LIFE_PART);
	model_free(m);
	r = early_begin(&early, trace, until_ns, err);
	if (r)
		return r < 0 ? r : 0;
	r = verdict_of_feed(early_feed(&early), NULL, &result, err);
	if (r)
		return r;
	printf("%u\t%llu\t%s\t%.3f\n", trace_facts(t)->pid, (unsigned long long)early.live_bytes,
	    cause_name(result.verdict.cause), result.verdict.confidence);
	verdict_fini(&result);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		struct trace_set set;
		struct err err;
		int r = trace_set_open(argv[i], &set, &err);

		for (size_t k = 0; !r && k < set.count; k++)
			r = print_process(set.images[k], &err);
		if (r) {
			fprintf(stderr, "%s\n", err.text);
			status = 1;
			continue;
		}
		trace_set_close(&set);
	}
	return status;
}
