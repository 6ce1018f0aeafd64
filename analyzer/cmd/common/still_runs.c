#include "cmd/common/still_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "watch/early.h"

static void add_cause(const struct early *e, struct str *out)
{
	const struct verdict *v = &e->as_if.verdict;

	if (out->length)
		str_putc(out, ' ');
	if (e->cause == CAUSE_UNKNOWN || e->cause == CAUSE_EXTERNAL) {
		str_puts(out, "Which cause that has cannot be told yet.");
		return;
	}
	str_printf(out, "If it were full now, that would be %s, %d %% sure", cause_name(e->cause),
	    (int)(e->confidence * 100));
	if (v->blame.function) {
		str_puts(out, ", in ");
		str_safe(out, v->blame.function);
	}
	if (v->blame.function && v->blame.file) {
		str_puts(out, " (");
		str_safe(out, str_base_name(v->blame.file));
		str_printf(out, ":%" PRIu32 ")", v->blame.line);
	}
	str_puts(out, ".");
}

static void add_when(const struct early *e, struct str *out)
{
	const struct forecast *f = &e->forecast;
	struct fmt a, b;

	str_printf(out, "It still runs, and at this rate the %s that are left will be full in %s",
	    fmt_size(&a, e->room.left), fmt_duration(&b, num_ns(f->seconds)));
	if (isinf(f->latest))
		str_printf(out, " (%s at the soonest).", fmt_duration(&a, num_ns(f->soonest)));
	else
		str_printf(out, " (%s to %s).", fmt_duration(&a, num_ns(f->soonest)),
		    fmt_duration(&b, num_ns(f->latest)));
}

static bool host_is_told(const struct prospect *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->spaces[i].name, "host"))
			return p->spaces[i].forecast.state == FORECAST_GROWS;
	return false;
}

int still_runs_note(const struct verdict_result *result, struct str *out, struct err *err)
{
	const struct process *p = &result->tree.processes[result->tree.subject];
	struct early *early;
	int rc;

	if (p->how != END_RUNNING || result->failure.kind != FAILURE_NONE || !result->trace)
		return 0;
	early = calloc(1, sizeof(*early));
	if (!early)
		return err_set(err, -ENOMEM, "no memory for the forecast");
	rc = early_judge(feed_of_trace(result->trace), result->model->run.last_ns, early, err);
	if (!rc && early->forecast.alarm) {
		/* A sentence above says it, once the process has run for long enough. */
		if (!host_is_told(&result->prospect))
			add_when(early, out);
		add_cause(early, out);
	}
	if (!rc)
		early_fini(early);
	free(early);
	return rc < 0 ? rc : 0;
}
