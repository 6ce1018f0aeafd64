/*
 * follow_compare TRACE MS: follow the trace of a running process, with a look every MS
 * milliseconds, until the process ends; then read the whole file at once and compare. Prints the
 * number of looks and of events; exit status 1 where the two differ.
 *
 * A thread that writes a checkpoint commits its own event after that, on a busy machine later than
 * the follower waits. Where there was a checkpoint such an event, one for each, may be out of
 * order.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trace/reader.h"

#define CHECKPOINTS_MAX 5 /* in the few seconds that a program runs here */

/* What one way of reading gives. The hash is of kinds, threads, addresses and sizes, in order. */
struct result {
	uint64_t events, unmatched, doubles, hash, live, count;
	uint64_t by_depth[64]; /* live bytes by the depth of the stack: ids may differ */
};

static void see(struct result *r, const struct event *e)
{
	const uint64_t parts[] = {e->kind, e->thread, e->address, e->size};

	r->events++;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		r->hash = (r->hash ^ parts[i]) * 0x100000001b3u;
}

struct sums {
	struct trace *t;
	struct result *r;
};

static int add(void *arg, const struct block *b)
{
	struct sums *s = arg;
	const struct frame *frames;
	size_t depth = trace_stack(s->t, b->stack, &frames);

	s->r->live += b->size;
	s->r->count++;
	s->r->by_depth[depth < 63 ? depth : 63] += b->size;
	return 0;
}

static void end(struct trace *t, struct result *r)
{
	trace_each_live(t, add, &(struct sums){t, r});
	r->unmatched = trace_counts(t)->unmatched_frees;
	r->doubles = trace_counts(t)->double_allocs;
}

static bool is_near(uint64_t a, uint64_t b)
{
	return a > b ? a - b <= CHECKPOINTS_MAX : b - a <= CHECKPOINTS_MAX;
}

static bool are_same(const struct result *a, const struct result *b, bool checkpoints)
{
	if (!memcmp(a, b, sizeof(*a)))
		return true;
	return checkpoints && a->events == b->events && is_near(a->unmatched, b->unmatched) &&
	       is_near(a->doubles, b->doubles) && is_near(a->count, b->count);
}

static int fail(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 2;
}

int main(int argc, char **argv)
{
	struct result followed = {0}, whole = {0};
	unsigned looks = 1;
	bool checkpoints;
	struct trace *t;
	struct event e;
	struct err err;
	int r;

	if (argc != 3 || trace_follow(argv[1], &t, &err))
		return argc == 3 ? fail(&err) : 2;
	for (;;) {
		bool running = trace_facts(t)->running;

		while ((r = trace_next(t, &e, &err)) == 1)
			see(&followed, &e);
		if (r < 0)
			return fail(&err);
		if (!running)
			break;
		nanosleep(&(struct timespec){.tv_nsec = atol(argv[2]) * 1000000}, NULL);
		r = trace_follow_on(t, &err);
		if (r < 0)
			return fail(&err);
		if (r == 1) { /* a checkpoint: begin again */
			trace_unfollow(t);
			followed = (struct result){0};
			if (trace_follow(argv[1], &t, &err))
				return fail(&err);
		}
		looks++;
	}
	end(t, &followed);
	trace_unfollow(t);
	if (trace_open(argv[1], &t, &err))
		return fail(&err);
	while ((r = trace_next(t, &e, &err)) == 1)
		see(&whole, &e);
	if (r < 0)
		return fail(&err);
	end(t, &whole);
	checkpoints = trace_facts(t)->checkpoint.number;
	trace_close(t);
	printf("%u looks, %" PRIu64 " events, %" PRIu64 " blocks live; at once %" PRIu64
	       " events, %" PRIu64 " blocks live\n",
	    looks, followed.events, followed.count, whole.events, whole.count);
	if (!are_same(&followed, &whole, checkpoints)) {
		printf("unmatched %" PRIu64 " %" PRIu64 ", doubles %" PRIu64 " %" PRIu64
		       ", live bytes %" PRIu64 " %" PRIu64 ", order %s\n",
		    followed.unmatched, whole.unmatched, followed.doubles, whole.doubles,
		    followed.live, whole.live, followed.hash == whole.hash ? "same" : "differs");
		return 1;
	}
	return 0;
}
