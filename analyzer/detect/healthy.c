/*
 * healthy.c - nothing ran out. Says so only of a process that did not fail; whether enough was seen
 * to say it is for verdict/ to check.
 */
#include <errno.h>
#include <stdlib.h>

#include "detect/registry.h"

struct state {
	const struct scene *scene;
};

static int open_healthy(const struct scene *scene, void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->scene = scene;
	*state = s;
	return 0;
}

static int judge(void *state, struct finding *out)
{
	struct state *s = state;
	const struct model *m = s->scene->model;
	struct finding f = {.cause = "healthy", .fix = NULL, .blame = PLACE_NONE, .strength = 1};

	if (s->scene->failed)
		return DETECT_SILENT;
	finding_evidence(&f, "live bytes at the high-water mark", (double)m->peak_bytes, "bytes");
	finding_evidence(&f, "high-water mark at", (double)m->peak_ns, "ns");
	finding_evidence(
	    &f, "live bytes at the end", (double)(m->live_bytes + m->map_bytes), "bytes");
	if (s->scene->limit_bytes)
		finding_evidence(&f, "limit", (double)s->scene->limit_bytes, "bytes");
	if (m->bursts)
		finding_evidence(
		    &f, "refused requests that the program got over", (double)m->bursts, "1");
	*out = f;
	return 0;
}

static void close_healthy(void *state)
{
	free(state);
}

const struct detector detect_healthy = {
    .name = "healthy",
    .claim = "nothing ran out",
    .open = open_healthy,
    .judge = judge,
    .close = close_healthy,
};
