/*
 * early TRACE...: the verdict on each process of these traces at three quarters of its life, as if
 * memory had run out then (early.h). Prints a line for each process with a limit on the host,
 * fields separated by tabs: pid, bytes that live, cause, confidence; cause and confidence with the
 * end that is assumed, the part of the limit in use, the summary. A life ends as in backtest.c.
 * backtest.py compares.
 */
#include <stdio.h>
#include <stdlib.h>

#include "knowledge/knowledge.h"
#include "model/model.h"
#include "trace/trace.h"
#include "watch/early.h"

#define LIFE_PART 0.75

/* Return the end of its life, as a report would have it. */
static int life(struct trace *t, uint64_t *first_ns, uint64_t *end_ns, struct err *err)
{
	struct failure_view host;
	struct model *m;
	int r = feed_until_model(feed_of_trace(t), UINT64_MAX, UINT64_MAX, &m, err);

	if (r)
		return r;
	failure_settle(m);
	failure_read(m, NULL, &host);
	*first_ns = m->run.first_ns;
	*end_ns = host.kind != FAILURE_NONE ? host.time_ns : m->run.last_ns;
	model_free(m);
	return 0;
}

static int print_process(struct trace *t, struct early *early, struct err *err)
{
	uint64_t first_ns, end_ns;
	int r = life(t, &first_ns, &end_ns, err);

	if (!r)
		r = early_judge(feed_of_trace(t),
		    first_ns + (uint64_t)((double)(end_ns - first_ns) * LIFE_PART), early, err);
	if (r)
		return r < 0 ? r : 0;
	printf("%u\t%llu\t%s\t%.3f\t%s\t%.3f\t%.3f\t%s\n", trace_facts(t)->pid,
	    (unsigned long long)early->live_bytes, cause_name(early->cause), early->confidence,
	    cause_name(early->as_if.verdict.cause), early->as_if.verdict.confidence,
	    1 - (double)early->room.left / (double)early->room.bytes, early->as_if.verdict.summary);
	early_fini(early);
	return 0;
}

int main(int argc, char **argv)
{
	struct early *early = calloc(1, sizeof(*early));
	int status = early ? 0 : 1;

	for (int i = 1; early && i < argc; i++) {
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
