#include "model/feed_until.h"

#include "util/progress.h"

static int read_until(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err)
{
	struct model *m;
	struct event e;
	uint64_t events = 0;
	int rc = model_new(feed, &m, err);

	feed_progress(&feed, "reading until the moment");
	while (rc == 0 && m->run.others < others && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = 0;
		if (e.time_ns > ns)
			break;
		rc = model_apply(m, &e, err);
		feed_passed(&feed, ++events);
	}
	progress_end();
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_finish(m);
	*out = m;
	return 0;
}

int feed_until_model(
    struct feed feed, uint64_t others, uint64_t ns, struct model **out, struct err *err)
{
	int rc = feed.rewind(feed.self, err);

	return rc ? rc : read_until(feed, others, ns, out, err);
}

int feed_until_spaces(struct feed feed, uint64_t others, struct model **out, struct err *err)
{
	int rc = feed_rewind_spaces(&feed, err);

	return rc ? rc : read_until(feed, others, UINT64_MAX, out, err);
}
