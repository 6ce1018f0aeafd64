/*
 * healthy.c - nothing ran out. Says so only of a process that did not fail; whether enough was seen
 * to say it is for verdict/ to check.
 */

#include "detect/registry.h"

static int judge(const struct scene *scene, struct finding *out)
{
	const struct model *m = scene->model;
	struct finding f = {.cause = "healthy", .fix = NULL, .blame = CALLSITE_NONE, .strength = 1};

	if (scene->end.failed)
		return DETECT_SILENT;
	finding_evidence(&f, "live bytes at the high-water mark", (double)m->peak.bytes, "bytes");
	finding_evidence(&f, "high-water mark at", (double)m->peak.time_ns, "ns");
	/* Of the time before a checkpoint only what outlived it is in that. */
	if (m->replaced.most_bytes > m->peak.bytes)
		finding_evidence(&f, "most that lived at a time before the checkpoint",
		    (double)m->replaced.most_bytes, "bytes");
	finding_evidence(
	    &f, "live bytes at the end", (double)(m->blocks.bytes + m->maps.bytes), "bytes");
	if (scene->limit.bytes)
		finding_evidence(&f, "limit", (double)scene->limit.bytes, "bytes");
	if (m->refusals.bursts)
		finding_evidence(&f, "refused requests that the program got over",
		    (double)m->refusals.bursts, "1");
	*out = f;
	return 0;
}

const struct detector detect_healthy = {
    .name = "healthy",
    .claim = "nothing ran out",
    .judge = judge,
};
