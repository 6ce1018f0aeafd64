/* ledger_text.c - see parts.h. */
#include "report/parts.h"

#include <stdio.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "verdict/device/device.h"
#include "verdict/ledger/classes.h"
#include "verdict/ledger/ledger.h"

/* Rows under limit / SMALL are added up, when they are at least two. */
#define SMALL 100u
/* A row that has nine tenths of what the sentence says agrees with it. */
#define NEARLY_PART 10u
/* A device of which the process has at least this part is shown, too. */
#define DEVICE_PART 20u

struct table {
	const struct report_style *style;
	const struct ledger *ledger;
	const char *blamed; /* the class of what is blamed, or NULL */
	enum term_style tone;
	unsigned name, exact, bar; /* columns; 0: left out */
};

static int digits_of(char out[32], uint64_t bytes, bool negative)
{
	return snprintf(out, 32, "%s%llu", negative ? "-" : "",
	    (unsigned long long)(negative ? 0 - bytes : bytes));
}

/* Columns of the longest number in its rows, sign included. */
static unsigned digits(const struct ledger *l)
{
	char text[32];
	int most = digits_of(text, (uint64_t)l->unaccounted, l->unaccounted < 0), n;

	for (uint32_t i = 0; i < l->row_count; i++)
		if ((n = digits_of(text, l->rows[i].bytes, false)) > most)
			most = n;
	return (unsigned)most;
}

const char *ledger_blamed(const struct verdict_result *r, const struct ledger *l)
{
	enum live_class class = class_of_cause(r->verdict.cause);

	if (l != &r->ledger)
		return NULL;
	if (class != CLASS_NONE)
		return class_name(class);
	if (r->verdict.cause == CAUSE_FRAGMENTATION)
		return l->space ? "PyTorch slack, fragmented"
		       : ledger_get(l, LEDGER_ARENAS_FREE) > ledger_get(l, LEDGER_FREE_LISTS)
			   ? LEDGER_ARENAS_FREE
			   : LEDGER_FREE_LISTS;
	return r->verdict.cause == CAUSE_EXTERNAL ? "other processes" : NULL;
}

/* Names, sizes and shares; exact bytes where they are wanted and fit; then a bar of what is left.
 */
static struct table layout(
    const struct verdict_result *r, const struct ledger *l, const struct report_style *st)
{
	unsigned fixed = 2 + 11 + 8, longest = 24;
	struct table t = {.style = st, .ledger = l, .name = 30};

	t.blamed = ledger_blamed(r, l);
	t.tone = style_tone(r->verdict.cause);
	for (uint32_t i = 0; i < l->row_count; i++) {
		unsigned n = term_columns(l->rows[i].class);

		longest = n > longest ? n : longest;
	}
	if (longest < t.name)
		t.name = longest + 1;
	if (st->verbose)
		t.exact = digits(l) + 2;
	if (st->columns < fixed + t.exact + 20)
		t.exact = 0;
	fixed += t.exact;
	if (st->columns < fixed + t.name)
		t.name = st->columns > fixed ? st->columns - fixed : 1;
	t.bar = st->columns > fixed + t.name + 9 ? st->columns - fixed - t.name - 2 : 0;
	if (t.bar > 40)
		t.bar = 40;
	return t;
}

static void row(const struct table *t, struct str *out, const char *name, uint64_t bytes,
    bool negative, enum term_style style)
{
	const struct report_style *st = t->style;
	double limit = (double)(t->ledger->limit_bytes ? t->ledger->limit_bytes : 1);
	char exact[32];
	struct fmt a;

	str_puts(out, "  ");
	str_puts(out, style == TERM_PLAIN ? "" : term_style(st->colour, style));
	style_cell(out, st, name, t->name, false);
	style_cell(out, st, negative ? fmt_size_signed(&a, (int64_t)bytes) : fmt_size(&a, bytes),
	    11, true);
	style_cell(
	    out, st, negative ? "" : fmt_percent(&a, bytes, t->ledger->limit_bytes), 8, true);
	if (t->exact) {
		digits_of(exact, bytes, negative);
		style_cell(out, st, exact, t->exact, true);
	}
	if (!negative && bytes && t->bar) {
		str_puts(out, "  ");
		style_bar(out, st, (double)bytes / limit, t->bar);
	}
	if (style != TERM_PLAIN && st->colour)
		str_puts(out, term_style(true, TERM_PLAIN));
	style_end(out);
}

static bool is_free(const char *class)
{
	return strcmp(class, "free") == 0;
}

static bool is_before(const char *class)
{
	return strcmp(class, LEDGER_BEFORE) == 0;
}

static bool is_small(const struct table *t, const struct ledger_row *r)
{
	return !t->style->verbose && r->bytes < t->ledger->limit_bytes / SMALL &&
	       !is_free(r->class) && !(t->blamed && strcmp(r->class, t->blamed) == 0);
}

static void title(const struct verdict_result *r, const struct ledger *l,
    const struct report_style *st, struct str *out)
{
	bool failed = strcmp(l->at, "failure") == 0;
	struct str text = {0};
	struct fmt a;

	str_printf(&text, "Where %s",
	    st->verbose ? fmt_size_exact(&a, l->limit_bytes) : fmt_size(&a, l->limit_bytes));
	/* Of several devices it must be said which. */
	if (l->space && r->devices.count > 1)
		str_printf(&text, " of %s", l->space);
	if (l->limit == LIMIT_NONE)
		str_puts(&text, " went (resident)");
	else
		str_printf(&text, " went (%s)", limit_kind_name(l->limit));
	if (failed && r->failure.kind != FAILURE_NONE)
		str_printf(
		    &text, " at the failure, after %s", fmt_duration(&a, r->failure.time_ns));
	else
		str_puts(&text, failed ? " at the failure" : " at the peak");
	style_heading(out, st, "%s", str_text(&text));
	str_free(&text);
}

/* What is resident, or free on a device, was sampled; said when that is long enough ago to matter.
 */
static void age(const struct ledger *l, const struct report_style *style, struct str *out)
{
	struct fmt a;

	if (!l->age_ns || (!style->verbose && l->age_ns <= 200000000))
		return;
	str_puts(out, term_style(style->colour, TERM_DIM));
	style_wrap(out, style, 2,
	    "%s known from a sample taken %s earlier, plus the memory acquired since.",
	    l->space ? "Free memory is" : "Resident memory is", fmt_duration(&a, l->age_ns));
	str_puts(out, term_style(style->colour, TERM_PLAIN));
}

/* Allocated bytes that nobody wrote to are not resident: the verdict's sentence has more than its
 * row then. */
static void untouched(const struct verdict_result *r, const struct ledger *l, const char *class,
    const struct report_style *style, struct str *out)
{
	const struct finding *f = &r->ranking.list[0].finding;
	uint64_t bytes = num_most(f->bytes, (uint64_t)finding_fact(f, FACT_AT_ONCE_BYTES));
	uint64_t row = class ? ledger_get(l, class) : 0;
	struct fmt a, b;

	if (class_of_cause(r->verdict.cause) == CLASS_NONE || l->space || l->limit == LIMIT_AS ||
	    l->limit == LIMIT_DATA || !row || row >= bytes - bytes / NEARLY_PART)
		return;
	str_puts(out, term_style(style->colour, TERM_DIM));
	style_wrap(out, style, 2, "%s: of %s that were allocated, %s were resident.", class,
	    fmt_size(&a, bytes), fmt_size(&b, row));
	str_puts(out, term_style(style->colour, TERM_PLAIN));
}

/* The class, and since when. */
static const char *row_name(
    const struct verdict_result *r, const struct ledger_row *x, char into[48])
{
	struct fmt t;

	if (strcmp(x->class, LEDGER_UNRECORDED) || !r->coverage.rights.stopped_ns)
		return x->class;
	snprintf(
	    into, 48, "%s since %s", x->class, fmt_duration(&t, r->coverage.rights.stopped_ns));
	return into;
}

static void one(const struct verdict_result *r, const struct ledger *l,
    const struct report_style *style, struct str *out)
{
	struct table t = layout(r, l, style);
	uint64_t small_bytes = 0;
	unsigned small = 0;
	char name[48];

	title(r, l, style, out);
	for (uint32_t i = 0; i < l->row_count; i++) {
		if (is_small(&t, &l->rows[i])) {
			small_bytes += l->rows[i].bytes;
			small++;
		}
	}
	for (uint32_t i = 0; i < l->row_count; i++) {
		const struct ledger_row *x = &l->rows[i];
		bool blamed = t.blamed && strcmp(x->class, t.blamed) == 0;

		if ((small < 2 || !is_small(&t, x)) && !is_free(x->class))
			row(&t, out, row_name(r, x, name), x->bytes, false,
			    blamed		  ? t.tone
			    : is_before(x->class) ? TERM_BLUE
						  : TERM_PLAIN);
	}
	if (small >= 2) {
		snprintf(name, sizeof(name), "%u more, each under 1 %%", small);
		row(&t, out, name, small_bytes, false, TERM_PLAIN);
	}
	for (uint32_t i = 0; i < l->row_count; i++)
		if (is_free(l->rows[i].class))
			row(&t, out, l->rows[i].class, l->rows[i].bytes, false, TERM_DIM);
	row(&t, out, "unaccounted", (uint64_t)l->unaccounted, l->unaccounted < 0, TERM_DIM);
	untouched(r, l, t.blamed, style, out);
	age(l, style, out);
}

/* Where the host ran out, devices are beside the point. */
static bool matters(const struct verdict_result *r, const struct device_report *d)
{
	bool host = r->failure.kind != FAILURE_NONE && r->failure.kind != FAILURE_CUDA_OOM;

	return !host && d->ledger.limit_bytes &&
	       (d->retried || d->explained >= d->ledger.limit_bytes / DEVICE_PART);
}

void ledger_text(const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	one(r, &r->ledger, style, out);
	for (size_t i = 0; i < r->devices.count; i++) {
		const struct device_report *d = &r->devices.list[i];

		if (!(r->ledger.space && d == r->devices.first) &&
		    (style->verbose || matters(r, d)))
			one(r, &d->ledger, style, out);
	}
}
