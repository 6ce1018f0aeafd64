/*
 * healthy.c - nothing ran out. Claims so only for a process that did not fail; verdict/ checks
 * whether enough was recorded to say it.
 */

#include "detect/detect.h"

int detect_healthy(const struct scene *scene, struct finding *out)
{
	const struct model *m = scene->model;
	struct finding f = {.blame = CALLSITE_NONE, .strength = 1};

	if (scene->end.failed)
		return DETECT_SILENT;
	finding_evidence(&f, FACT_PEAK, (double)m->peak.bytes);
	finding_evidence(&f, FACT_PEAK_AT, (double)m->peak.time_ns);
	/* It lacks blocks that a checkpoint summed up. */
	if (m->replaced.most_bytes > m->peak.bytes)
		finding_evidence(&f, FACT_PEAK_PAST, (double)m->replaced.most_bytes);
	finding_evidence(&f, FACT_LIVE_AT_END, (double)(m->blocks.bytes + m->maps.bytes));
	if (scene->limit.bytes)
		finding_evidence(&f, FACT_HEALTHY_LIMIT, (double)scene->limit.bytes);
	if (m->refusals.bursts)
		finding_evidence(&f, FACT_RECOVERED, (double)m->refusals.bursts);
	*out = f;
	return 0;
}
