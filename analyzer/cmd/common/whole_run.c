/* whole_run.c - see whole_run.h. */
#include "cmd/common/whole_run.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"
#include "verdict/subject.h"

int whole_run_read(
    struct trace *t, bool temporary, double seconds, struct whole_run *out, struct err *err)
{
	struct model_options with = {0};

	if (temporary) {
		out->temporary = calloc(1, sizeof(*out->temporary));
		if (!out->temporary)
			return err_set(err, -ENOMEM, "no memory for the temporary blocks");
		out->temporary->until_ns = seconds > 0 ? num_ns(seconds) : UINT64_MAX;
		with = temporary_options(out->temporary);
	}
	return subject_model_with(feed_of_trace(t), &with, &out->all, err);
}

void whole_run_fini(struct whole_run *run)
{
	model_free(run->all);
	if (run->temporary)
		temporary_fini(run->temporary);
	free(run->temporary);
	*run = (struct whole_run){0};
}
