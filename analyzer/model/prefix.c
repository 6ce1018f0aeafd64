/* prefix.c - see prefix.h. */
#include "model/prefix.h"

int prefix_model(
    struct feed feed, uint64_t events, uint64_t ns, struct model **out, struct err *err)
{
	struct model *m;
	struct event e;
	int rc = model_new(feed, &m, err);

	if (rc)
		return rc;
	rc = feed.rewind(feed.self, err);
	while (rc == 0 && m->events < events && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns > ns)
			break;
		rc = model_apply(m, &e, err);
	}
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_finish(m);
	*out = m;
	return 0;
}
