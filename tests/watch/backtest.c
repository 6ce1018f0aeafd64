/*
 * backtest TRACE...: what a forecast would have said at one half, three quarters and nine tenths of
 * the life of each process of these traces, and what then happened. Prints for each cut: the trace,
 * the pid, the cut, the state, and the forecast's seconds over those that were really left.
 */
#include <stdio.h>

#include "model/model.h"
#include "trace/trace.h"
#include "verdict/failure/failure.h"
#include "watch/watched.h"

static const double cuts[] = {0.5, 0.75, 0.9};
static const char *const states[] = {"unknown", "steady", "grows"};

static int cut(struct trace *t, const char *path, double part, struct err *err)
{
	uint64_t last = trace_facts(t)->last_ns, at = (uint64_t)((double)last * part), left = 0;
	struct room rooms[FAILURE_ROOMS];
	struct forecast f;
	struct model *m;
	size_t count;
	int r = feed_until_model(feed_of_trace(t), UINT64_MAX, at, &m, err);

	if (r)
		return r;
	count = failure_rooms(m, NULL, rooms);
	for (size_t i = 0; i < count; i++)
		if (!i || rooms[i].left < left)
			left = rooms[i].left;
	watch_forecast(m, left, &f);
	printf("%s %u %.2f %s %.3f room %llu of %s rate %.0f real %.3f s\n", path,
	    trace_facts(t)->pid, part, count ? states[f.state] : "no-limit",
	    f.seconds / ((double)(last - at) / 1e9), (unsigned long long)left,
	    count ? limit_kind_name(rooms[0].limit) : "-", f.rate, (double)(last - at) / 1e9);
	model_free(m);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	for (int i = 1; i < argc; i++) {
		struct trace_set set;
		struct err err;
		int r = trace_set_open(argv[i], &set, &err);

		for (size_t k = 0; !r && k < set.count; k++) {
			struct event e;

			/* The time of the last event is known after a pass. */
			while ((r = trace_next(set.images[k], &e, &err)) == 1)
				;
			for (size_t n = 0; n < sizeof(cuts) / sizeof(*cuts) && !r; n++)
				r = cut(set.images[k], argv[i], cuts[n], &err);
		}
		if (r) {
			fprintf(stderr, "%s\n", err.text);
			status = 1;
			continue;
		}
		trace_set_close(&set);
	}
	return status;
}
