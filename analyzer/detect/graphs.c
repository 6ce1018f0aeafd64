#include "detect/graphs.h"

#include <math.h>

#include "util/num.h"

#define GRAPHS_MIN 2u /* one graph is of one shape: nothing grows with the shapes */

double graphs_in_between(const struct scene *scene)
{
	const struct scene_graphs *g = &scene->graphs;

	if (g->captures < GRAPHS_MIN)
		return 0;
	/* At most one launch to try each graph out; as many as there are, and they serve. */
	return fmax(0, fmin(1, 2 * (double)g->launches / (double)(g->captures - 1) - 1));
}

double graphs_up_front(const struct scene *scene)
{
	return scene->graphs.captures < GRAPHS_MIN ? 0 : 1 - graphs_in_between(scene);
}

/* True if it keeps a block for each graph, such as the input that a graph reads. */
static bool is_one_each(const struct scene *scene, const struct callsite *p)
{
	const struct scene_graphs *g = &scene->graphs;

	return !p->facts.freed_count && p->facts.live_count + 1 >= g->captures &&
	       p->facts.live_count <= g->captures + 1 && p->facts.last_ns > g->first_ns;
}

bool graphs_have(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	return scene->graphs.captures >= GRAPHS_MIN && p->facts.live_bytes &&
	       (scene->graphs.bytes[callsite] > p->facts.live_bytes / 2 || is_one_each(scene, p));
}

bool graphs_claim(const struct scene *scene, double part, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	const struct scene_graphs *g = &scene->graphs;
	uint64_t most = 0, whole = scene_live(scene) + g->slack;
	struct finding f = {.blame = CALLSITE_NONE, .form = FORM_GRAPHS, .slack_bytes = g->slack};
	bool asked = g->capturing;

	for (uint32_t i = 0; part > 0 && i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (!graphs_have(scene, i))
			continue;
		asked |= i == callsites->failed;
		finding_claim_without(&f, callsites, i, p->facts.live_bytes);
		if (g->bytes[i])
			finding_blame_larger(&f, i, p->facts.live_bytes, &most);
	}
	if (f.blame == CALLSITE_NONE)
		return false;
	if (asked && scene->end.refused) {
		f.request_bytes = scene->end.refused->size;
		whole += f.request_bytes;
	}
	f.start_ns = g->first_ns;
	f.strength = part * dominance((double)(f.bytes + g->slack + f.request_bytes),
				(double)num_less(whole, f.bytes + g->slack + f.request_bytes));
	finding_evidence(&f, FACT_GRAPHS, (double)g->captures);
	finding_evidence(&f, FACT_GRAPH_LAUNCHES, (double)g->launches);
	finding_evidence(&f, FACT_GRAPH_BYTES, (double)f.bytes);
	finding_evidence(&f, FACT_GRAPH_SLACK, (double)g->slack);
	*out = f;
	return f.strength > 0;
}
