/* side.c - see side.h. */
#include "diff/side.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "verdict/subject.h"
#include "verdict/verdict.h"

static int find_process(const struct trace_set *set, uint64_t pid, struct trace_set *one,
    struct trace **image, struct err *err)
{
	for (size_t i = set->count; i-- > 0;) {
		if (trace_facts(set->images[i])->pid != pid)
			continue;
		*image = set->images[i];
		*one = *set;
		one->images = image;
		one->count = 1;
		return 0;
	}
	return err_set(
	    err, -ENOENT, "%s: no process %llu in this trace", set->path, (unsigned long long)pid);
}

int side_open(struct side *s, const struct diff_moment *moment, enum diff_by by, struct err *err)
{
	const struct trace_set *set = moment->set;
	struct trace_set one;
	struct trace *image;
	int rc = 0;

	s->moment = *moment;
	s->by = by;
	map_seed();
	if (moment->pid) {
		rc = find_process(set, moment->pid, &one, &image, err);
		set = &one;
	}
	if (!rc)
		rc = verdict_of_set(set, NULL, &s->verdict, err);
	if (rc)
		return rc;
	s->judged = true;
	s->trace = s->verdict.trace;
	s->feed = feed_of_trace(s->trace);
	s->program = s->feed.info(s->feed.self, "exe");
	s->context =
	    (struct blame_context){.malloc_owner = s->feed.info(s->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&s->feed),
		.memory = &s->memory};
	return 0;
}

static bool failed(const struct side *s)
{
	return s->verdict.failure.kind != FAILURE_NONE;
}

int side_moment(struct side *s, const struct side *other, struct err *err)
{
	const char *at = s->moment.at;

	if (s->moment.seconds > 0) {
		char *name = arena_alloc(&s->arena, 64);

		if (!name)
			return err_set(err, -ENOMEM, "no memory for the comparison");
		snprintf(name, 64, "%gs", s->moment.seconds);
		s->at = name;
		s->until_ns = num_ns(s->moment.seconds);
		return 0;
	}
	if (!at)
		at = failed(s) && failed(other) ? "failure" : s->by == DIFF_LIVE ? "peak" : "end";
	s->at = at;
	s->until_ns = UINT64_MAX;
	if (strcmp(at, "peak") == 0) {
		s->by_peak = true;
	} else if (strcmp(at, "failure") == 0) {
		if (!failed(s))
			return err_set(err, -ENOENT,
			    "%s: no request failed in this trace: use --at peak",
			    s->moment.set->path);
		s->at_failure = true;
		s->until_ns = s->verdict.failure.time_ns;
	}
	return 0;
}

struct side_space *side_space(const struct side *s, const char *name)
{
	for (size_t i = 0; i < s->space_count; i++)
		if (strcmp(s->spaces[i]->name, name) == 0)
			return s->spaces[i];
	return NULL;
}

void side_fini(struct side *s)
{
	for (size_t i = 0; i < s->space_count; i++) {
		free(s->spaces[i]->series);
		free(s->spaces[i]->chain_bytes);
		free(s->spaces[i]->curve);
		free(s->spaces[i]->sums);
		free(s->spaces[i]);
	}
	vec_free(&s->stacks);
	vec_free(&s->sites);
	vec_free(&s->chains);
	vec_free(&s->names);
	vec_free(&s->memory.traits);
	map_free(&s->wrappers);
	arena_free(&s->arena);
	str_free(&s->scratch);
	if (s->judged)
		verdict_fini(&s->verdict);
}
