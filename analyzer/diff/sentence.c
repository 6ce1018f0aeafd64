/* sentence.c - the sentence that says what changed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff/compare.h"
#include "diff/judge.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "util/tuned.h"

TUNED(double, WORK_APART, 0.25, "two runs of a fixed time do as much work to about a tenth");

TUNED(unsigned, FACTOR_FROM, 10u, "a reader compares 599 B and 320 MiB without a percentage");

/* Facts that the sentence ends with; the rest is in the table. */
#define FACTS_MAX 2u
#define SHORT_FACT 64u /* bytes, of both sides: a line of the sentence */

static void add_line(struct str *out, const struct diff_line *p)
{
	fmt_function(out, p->function, "<..>");
	if (p->file) {
		str_printf(out, " (%s", str_base_name(p->file));
		if (p->line)
			str_printf(out, ":%u", p->line);
		str_putc(out, ')');
	}
}

static void add_moment(struct str *out, const struct diff_result *r)
{
	if (r->one_run || r->b.at[0] < 'a' || r->b.at[0] > 'z')
		str_printf(out, " at %s", r->b.at);
	else
		str_printf(out, " at the %s", r->b.at);
}

static void add_space(struct str *out, const struct diff_space *space)
{
	if (strcmp(space->name, "host") != 0)
		str_printf(out, " of %s", space->name);
}

static void add_blocks(struct str *out, const struct diff_line *p)
{
	struct fmt a, b;

	if (p->reason == DIFF_BY_HELD && p->a.blocks != p->b.blocks && !p->arenas)
		str_printf(out, ", in %s blocks instead of %s", fmt_count(&b, p->b.blocks),
		    fmt_count(&a, p->a.blocks));
}

static void add_change(struct str *out, const struct diff_result *r, const struct diff_line *p,
    const struct diff_space *space)
{
	const char *holds = r->by == DIFF_LIVE ? "holds" : "acquires";
	uint64_t by = (uint64_t)llabs(p->change);
	const char *more = p->change < 0 ? "less" : "more";
	const char *each = r->per_request ? " a request" : "";
	struct fmt a, b, c;

	if (p->arenas)
		str_printf(out, "The interpreter's small objects, with most of the difference at ");
	add_line(out, p);
	switch (p->reason) {
	case DIFF_BY_SIZE:
		str_printf(out,
		    " makes %s blocks: %s on average instead of %s, so it takes %s %s%s",
		    p->b.mean > p->a.mean ? "larger" : "smaller",
		    fmt_size_apart(&a, p->b.mean, p->a.mean),
		    fmt_size_apart(&b, p->a.mean, p->b.mean), fmt_size(&c, by), more, each);
		add_space(out, space);
		return;
	case DIFF_BY_TOP:
		str_printf(out, " takes %s %s%s", fmt_size(&a, by), more, each);
		add_space(out, space);
		str_printf(out, " when it is busy: %s instead of %s",
		    fmt_size_apart(&a, p->b.top, p->a.top), fmt_size_apart(&b, p->a.top, p->b.top));
		return;
	case DIFF_BY_HELD:
	case DIFF_BY_ACQUIRED:
		break;
	}
	if (p->kind == DIFF_NEW) {
		str_printf(out, " is new and %s %s%s", holds, fmt_size(&a, p->b.bytes), each);
		add_space(out, space);
		add_moment(out, r);
	} else if (p->kind == DIFF_GONE) {
		str_printf(out, " is gone; it %s %s%s", r->by == DIFF_LIVE ? "held" : "acquired",
		    fmt_size(&a, p->a.bytes), each);
		add_space(out, space);
		add_moment(out, r);
	} else {
		str_printf(out, " %s %s %s%s", holds, fmt_size(&a, by), more, each);
		add_space(out, space);
		add_moment(out, r);
		str_printf(out, ": %s instead of %s", fmt_size_apart(&b, p->b.bytes, p->a.bytes),
		    fmt_size_apart(&c, p->a.bytes, p->b.bytes));
		add_blocks(out, p);
	}
}

static void add_whole(struct str *out, const struct diff_result *r, const struct diff_space *space)
{
	uint64_t a = space->a.amount.bytes, b = space->b.amount.bytes;
	struct fmt f, g;

	str_printf(out, " In all, %s %s %s", space->name, r->by == DIFF_LIVE ? "holds" : "acquired",
	    fmt_size_apart(&f, b, a));
	if (r->per_request)
		str_puts(out, " a request");
	add_moment(out, r);
	if (!a)
		str_puts(out, ", and held nothing before.");
	else if (b / a >= FACTOR_FROM)
		str_printf(out, ", before %s.", fmt_size_apart(&g, a, b));
	else
		str_printf(out, ", before %s (%+.1f %%).", fmt_size_apart(&g, a, b),
		    ((double)b - (double)a) / (double)a * 100);
}

static bool works_apart(const struct diff_result *r, const struct diff_space *space, double factor)
{
	return !r->one_run && space->work > 0 && fabs(log(space->work)) > log(factor);
}

static void add_work(struct str *out, const struct diff_result *r, const struct diff_space *space)
{
	if (!works_apart(r, space, 1 + WORK_APART))
		return;
	str_printf(out, " B did %.*f times as much work, %s.", space->work < 10 ? 2 : 0,
	    space->work,
	    space->work_by_requests ? "in requests"
				    : "by the lines that are called again and again");
}

static void add_facts(struct str *out, const struct diff_result *r)
{
	size_t told = 0;

	for (size_t i = 0; i < r->fact_count && told < FACTS_MAX; i++) {
		const struct diff_fact *f = &r->facts[i];
		struct fmt a, b;

		if (f->kind > DIFF_VERSION || str_same(f->name, "options") ||
		    (f->number && f->a_value == f->b_value) || (!f->number && str_same(f->a, f->b)))
			continue;
		if (f->number && f->a_known && f->b_known)
			str_printf(out, " The limit %s is %s, before %s.", f->name,
			    fmt_size_apart(&b, (uint64_t)f->b_value, (uint64_t)f->a_value),
			    fmt_size_apart(&a, (uint64_t)f->a_value, (uint64_t)f->b_value));
		else if (!f->number && f->a && f->b && strlen(f->a) + strlen(f->b) < SHORT_FACT)
			str_printf(out, " %s is %s, before %s.", f->name, f->b, f->a);
		else
			continue;
		told++;
	}
}

/* What was there before an attach is in no line: only what came since can be compared. */
static void add_attached(struct str *out, const struct diff_result *r)
{
	const struct diff_side_view *v = r->b.attached ? &r->b : &r->a;
	struct fmt a, b;

	if (r->one_run || r->a.attached == r->b.attached)
		return;
	str_printf(out, " %c was recorded from an attach on", r->b.attached ? 'B' : 'A');
	if (v->ran_ns)
		str_printf(out, ", %s after its start", fmt_duration(&a, v->ran_ns));
	str_puts(out, ": what it held before");
	if (v->before_bytes)
		str_printf(out, " (%s)", fmt_size(&b, v->before_bytes));
	str_puts(out, " is in no line, so the two are not comparable in that.");
}

int sentence_write(struct diff_result *r)
{
	struct str text = {0};
	const struct diff_space *space = r->change_count ? r->change_spaces[0] : r->spaces;
	int rc = 0;

	if (r->change_count) {
		add_change(&text, r, r->changes[0], space);
		str_putc(&text, '.');
		if (r->change_count > 1)
			str_printf(&text, " %zu more change%s.", r->change_count - 1,
			    r->change_count > 2 ? "s" : "");
	} else if (works_apart(r, space, RUNS_APART)) {
		str_puts(&text, "The two runs cannot be compared line by line: they did different "
				"amounts of work.");
	} else {
		str_puts(&text, r->one_run ? "No change seen between the two moments."
					   : "No change seen: no line differs by more than such "
					     "lines vary by between two runs.");
	}
	add_whole(&text, r, space);
	add_work(&text, r, space);
	add_attached(&text, r);
	add_facts(&text, r);
	r->sentence = text.failed ? NULL : arena_copy(&r->arena, str_text(&text), text.length);
	if (!r->sentence)
		rc = -ENOMEM;
	str_free(&text);
	return rc;
}
