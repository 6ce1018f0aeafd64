/*
 * host_failure.h - inside model/: requests that the host refused, in bursts, and how the process
 * went on after each: was it granted all the same, did it do without, or was that its end? Those of
 * devices are in space_failure.c.
 */
#ifndef ANALYZER_MODEL_HOST_FAILURE_H
#define ANALYZER_MODEL_HOST_FAILURE_H

#include "model/model.h"

/* The newest burst; NULL: nothing failed. */
static inline struct failure *host_failure_newest(struct model *m)
{
	return m->failure_count ? &m->failures[m->failure_count - 1] : NULL;
}

/* Something failed, and it is not known yet how it went on. */
static inline bool host_failure_is_open(struct model *m)
{
	const struct failure *f = host_failure_newest(m);

	return f && !(f->recovered && f->settled);
}

/* A request was refused; the event's levels are the model's newest. */
void host_failure_refused(struct model *m, const struct event *e);

/*
 * While one is open: after each acquisition. A burst is over when as much was granted at the same
 * stack, or less at once, whoever asked; or when the process went on without it.
 */
void host_failure_acquired(struct model *m, const struct event *e);
/* And after so many bytes of a stack were released. */
void host_failure_released(struct model *m, const struct event *e, uint32_t stack, uint64_t bytes);

/* Of the period in which it was refused the sums tell what lived, of later ones what was done. */
void host_failure_period(struct model *m, const struct event *e);

/* The process has ended, or nothing more is known of it. */
void host_failure_end(struct model *m);

/* A request of `size` is for half of `whole`, with what is rounded. */
bool host_failure_is_half(uint64_t size, uint64_t whole);

#endif
