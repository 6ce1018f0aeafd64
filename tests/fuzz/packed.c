/* packed.c - fuzz target: packed traces; their table and frames are damaged in place. */

#include "target.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *line[] = {"check", "*", NULL};
	struct event event;
	struct trace *t;
	struct trace_set set;
	struct err err;
	const char *path = target_file(data, bytes);

	target_run(line, path);
	if (trace_set_open(path, &set, &err))
		return 0;
	for (size_t i = 0; i < set.count; i++) {
		t = set.images[i];
		/* Back to the start in between: from other frames. */
		for (int n = 0; n < 100 && trace_next(t, &event, &err) > 0; n++)
			;
		trace_rewind(t);
		while (trace_next(t, &event, &err) > 0)
			;
	}
	trace_set_close(&set);
	return 0;
}
