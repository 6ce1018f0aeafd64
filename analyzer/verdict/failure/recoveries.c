#include "verdict/failure/recoveries.h"

#include <errno.h>
#include <stdlib.h>

static void add_host(const struct model *m, struct recoveries *out)
{
	const struct failure *judged = model_failure(m);

	out->total += m->refusals.bursts - (judged != NULL);
	for (size_t i = 0; i < m->refusals.count; i++) {
		const struct failure *f = &m->refusals.list[i];

		if (f != judged)
			out->list[out->count++] = (struct recovered){.time_ns = f->time_ns,
			    .size = f->size,
			    .count = f->count,
			    .retried = f->retried,
			    .stack = stack_view_of(&m->feed, f->stack)};
	}
}

static void add_devices(
    const struct model *m, const struct device_failure *judged, struct recoveries *out)
{
	const struct spaces *s = m->spaces;

	out->total += s->failure_total - (judged != NULL);
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct device_failure *f = &s->failures[i];

		if (f != judged)
			out->list[out->count++] = (struct recovered){.time_ns = f->time_ns,
			    .size = f->size,
			    .count = f->count,
			    .retried = f->retried,
			    .space = s->list[f->space]->name,
			    .segment = f->segment,
			    .stack = stack_view_of(&m->feed, f->stack)};
	}
	for (size_t i = 1; i < out->count; i++)
		for (size_t k = i; k && out->list[k].time_ns < out->list[k - 1].time_ns; k--) {
			struct recovered swap = out->list[k];

			out->list[k] = out->list[k - 1];
			out->list[k - 1] = swap;
		}
}

int recoveries_read(
    const struct model *m, const struct device_failure *judged, struct recoveries *out)
{
	size_t most = m->refusals.count + (m->spaces ? m->spaces->failure_count : 0);

	*out = (struct recoveries){.list = calloc(most + 1, sizeof(*out->list))};
	if (!out->list)
		return -ENOMEM;
	add_host(m, out);
	if (m->spaces)
		add_devices(m, judged, out);
	return 0;
}
