/* diff.c - see diff.h. Reads one side after the other: both may be of one trace. */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/compare.h"
#include "diff/phases.h"
#include "util/num.h"

const char *diff_by_name(enum diff_by by)
{
	static const char *const names[DIFF_BY_COUNT] = {"live", "total"};

	return names[by];
}

const char *diff_kind_name(enum diff_kind kind)
{
	static const char *const names[] = {"same", "grew", "shrank", "new", "gone"};

	return names[kind];
}

/* Both sides step out of the same wrappers. */
static int share_wrappers(struct side *a, struct side *b)
{
	const struct map *from[] = {&a->wrappers, &b->wrappers};
	struct map *to[] = {&b->wrappers, &a->wrappers};

	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < from[k]->capacity; i++)
			if (from[k]->used[i] && !map_put(to[k], from[k]->slots[i].key))
				return -ENOMEM;
	return 0;
}

static int read_sides(struct diff_sides *s, struct err *err)
{
	int rc;

	if ((rc = side_moment(&s->a, &s->b, err)) || (rc = side_moment(&s->b, &s->a, err)) ||
	    (rc = side_sum(&s->a, err)) || (rc = side_sum(&s->b, err)))
		return rc;
	if ((rc = side_wrappers(&s->a)) || (rc = side_wrappers(&s->b)) ||
	    (rc = share_wrappers(&s->a, &s->b)) || (rc = side_sites(&s->a)) ||
	    (rc = side_sites(&s->b)) ||
	    (rc = match_sites(s->a.sites.items, s->a.sites.count, s->b.sites.items,
		 s->b.sites.count, &s->pairs)))
		return err_set(err, rc, "no memory for the comparison");
	phases_align(s);
	rc = side_read(&s->a, err);
	return rc ? rc : side_read(&s->b, err);
}

static struct diff_side_view view_of(const struct side *s)
{
	const struct verdict_result *r = &s->verdict;
	const struct trace_facts *facts = trace_facts(s->trace);
	struct diff_side_view out = {.path = facts->path,
	    .at = s->at,
	    .pid = facts->pid,
	    .cause = r->verdict.cause,
	    .confidence = r->verdict.confidence,
	    .failure = r->failure.kind,
	    .sample_every = r->coverage.sample_every,
	    .attached = r->coverage.attach.any,
	    .ran_ns = r->coverage.attach.ran_ns,
	    .before_bytes = num_less(r->coverage.attach.there, r->coverage.attach.freed)};

	for (size_t i = 0; i < r->tree.count; i++)
		if (r->tree.processes[i].pid == facts->pid)
			out.cmdline = r->tree.processes[i].cmdline;
	trace_set_damage(s->moment.set, s->trace, &out.damage);
	return out;
}

static int check_asked(
    const struct diff_request *request, const struct diff_sides *s, struct err *err)
{
	const struct side *sides[] = {&s->a, &s->b};

	if (request->space && !side_space(&s->a, request->space) &&
	    !side_space(&s->b, request->space)) {
		struct str known = {0};
		int rc;

		for (size_t k = 0; k < 2; k++)
			for (size_t i = 0; i < sides[k]->space_count; i++)
				if (!k || !side_space(&s->a, sides[k]->spaces[i]->name))
					str_printf(&known, "%s%s", known.length ? ", " : "",
					    sides[k]->spaces[i]->name);
		rc = err_set(err, -ENOENT, "no space '%.40s' in these traces; there is %.200s",
		    request->space, str_text(&known));
		str_free(&known);
		return rc;
	}
	for (size_t k = 0; k < 2 && request->per_request; k++)
		if (!sides[k]->marks || !sides[k]->requests.begun)
			return err_set(err, -ENOENT,
			    "%s: no requests are known in this trace: mark them (whyoom/mark.h), "
			    "or "
			    "compare without --per-request",
			    sides[k]->moment.set->path);
	return 0;
}

int diff_make(const struct diff_request *request, struct diff_result *out, struct err *err)
{
	struct diff_result r = {.by = request->by, .per_request = request->per_request};
	struct diff_sides *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_set(err, -ENOMEM, "no memory for the comparison");
	r.sides = s;
	s->a.pictures = s->b.pictures = request->pictures;
	rc = side_open(&s->a, &request->a, request->by, err);
	if (!rc)
		rc = side_open(&s->b, &request->b, request->by, err);
	if (!rc)
		rc = read_sides(s, err);
	if (!rc)
		rc = check_asked(request, s, err);
	if (rc)
		goto out;
	r.one_run = s->a.trace == s->b.trace;
	r.a = view_of(&s->a);
	r.b = view_of(&s->b);
	if ((rc = compare_spaces(s, request, &r)) || (rc = facts_read(s, &r)) ||
	    (rc = sentence_write(&r)))
		err_set(err, rc, "no memory for the comparison");
out:
	if (rc)
		diff_fini(&r);
	else
		*out = r;
	return rc;
}

void diff_fini(struct diff_result *r)
{
	if (r->sides) {
		match_fini(&r->sides->pairs);
		side_fini(&r->sides->a);
		side_fini(&r->sides->b);
		free(r->sides);
	}
	free(r->stacks);
	free(r->facts);
	arena_free(&r->arena);
	memset(r, 0, sizeof(*r));
}

double diff_growth(const struct diff_result *r)
{
	double most = 0;

	for (size_t i = 0; i < r->space_count; i++) {
		const struct diff_space *s = &r->spaces[i];
		double a = (double)s->a.amount.bytes, b = (double)s->b.amount.bytes;

		if (s->larger)
			most = fmax(most, a > 0 ? b / a - 1 : INFINITY);
	}
	return most;
}
