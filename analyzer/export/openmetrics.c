/*
 * openmetrics.c - OpenMetrics text: what a process held at the moment, the call sites that held
 * most, limits, refusals and the verdict; with --history the curves, with times, for a backfill.
 * The samples of a family must be together, so each family is a text until the end: as many lines
 * as spaces and call sites, or points of curves. Stacks are no labels: there are too many. The
 * verdict is a gauge, since node_exporter's textfile collector knows no type info.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/export.h"

#define SITES 20u /* of each space: every label set is a time series that somebody stores */
#define MS 1000000u /* Prometheus keeps milliseconds */

#define FAMILIES(FAMILY)                                                                           \
	FAMILY(LIVE, "whyoom_live_bytes", "gauge", "bytes", "Live bytes at the moment.")           \
	FAMILY(PEAK, "whyoom_peak_bytes", "gauge", "bytes", "The most live bytes.")                \
	FAMILY(ALLOCATED, "whyoom_allocated_bytes", "counter", "bytes", "Bytes allocated.")        \
	FAMILY(ALLOCATIONS, "whyoom_allocations", "counter", "", "Blocks allocated.")              \
	FAMILY(BLOCKS, "whyoom_blocks", "gauge", "", "Live blocks at the moment.")                 \
	FAMILY(SITE, "whyoom_site_live_bytes", "gauge", "bytes",                                   \
	    "Live bytes of a call site at the moment; those that hold most.")                      \
	FAMILY(RESIDENT, "whyoom_resident_bytes", "gauge", "bytes", "Resident bytes, as sampled.") \
	FAMILY(FREE, "whyoom_device_free_bytes", "gauge", "bytes",                                 \
	    "Free bytes of a device, as its driver said.")                                         \
	FAMILY(RESERVED, "whyoom_device_reserved_bytes", "gauge", "bytes",                         \
	    "Bytes that PyTorch's allocator reserved.")                                            \
	FAMILY(                                                                                    \
	    LIMIT, "whyoom_limit_bytes", "gauge", "bytes", "The limit that the verdict is about.") \
	FAMILY(REFUSALS, "whyoom_refusals", "counter", "", "Refused requests.")                    \
	FAMILY(VERDICT, "whyoom_verdict_info", "gauge", "", "The cause that the verdict names.")

enum family {
#define FAMILY(NAME, name, type, unit, help) FAMILY_##NAME,
	FAMILIES(FAMILY)
#undef FAMILY
	    FAMILY_COUNT
};
static const struct {
	const char *name, *type, *unit, *help;
} families[] = {
#define FAMILY(NAME, name, type, unit, help) {name, type, unit, help},
    FAMILIES(FAMILY)
#undef FAMILY
};

struct openmetrics {
	struct str of[FAMILY_COUNT];
	/* The point of a curve that waits for the end of its millisecond. */
	bool waits;
	struct export_curve curve;
	uint64_t ms, value;
};

static void label_value(struct str *out, const char *text)
{
	struct str safe = {0};

	str_safe(&safe, text ? text : "");
	for (const char *p = str_text(&safe); *p; p++) {
		if (*p == '\\' || *p == '"')
			str_putc(out, '\\');
		str_putc(out, *p);
	}
	out->failed |= safe.failed;
	str_free(&safe);
}

/* Begin a sample: name, suffix and the labels that all have. */
static struct str *sample(struct export *x, enum family f, const char *space)
{
	struct openmetrics *t = x->state;
	struct str *out = &t->of[f];

	str_printf(out, "%s%s{pid=\"%u\"", families[f].name,
	    str_same(families[f].type, "counter") ? "_total" : "", x->facts->pid);
	if (space) {
		str_puts(out, ",space=\"");
		label_value(out, space);
		str_putc(out, '"');
	}
	return out;
}

static void label(struct str *out, const char *name, const char *value)
{
	str_printf(out, ",%s=\"", name);
	label_value(out, value);
	str_putc(out, '"');
}

static void end_sample(struct str *out, uint64_t value)
{
	str_printf(out, "} %llu\n", (unsigned long long)value);
}

static int by_live(const void *a, const void *b)
{
	const struct callsite *const *x = a, *const *y = b;

	if ((*x)->facts.live_bytes != (*y)->facts.live_bytes)
		return (*x)->facts.live_bytes < (*y)->facts.live_bytes ? 1 : -1;
	return *x < *y ? -1 : *x > *y;
}

static void write_sites(struct export *x, const struct export_space *s,
    const struct callsite *const *list, uint32_t count)
{
	char line[16];

	for (uint32_t i = 0; i < count && i < SITES && list[i]->facts.live_bytes; i++) {
		struct str *out = sample(x, FAMILY_SITE, s->name), name = {0};

		/* Two call sites may have the same words, but no two samples may. */
		snprintf(line, sizeof(line), "%u", list[i]->line);
		str_printf(&name, "%u", i + 1);
		label(out, "rank", str_text(&name));
		label(out, "function", list[i]->function);
		label(out, "file", list[i]->file);
		label(out, "line", list[i]->line ? line : "");
		end_sample(out, list[i]->facts.live_bytes);
		str_free(&name);
	}
}

static int read_sites(struct export *x, const struct export_space *s, struct err *err)
{
	const struct callsite **list;
	struct callsites *all = NULL;
	int rc = callsites_new(s->model, s->moment, &all, err);

	if (rc)
		return rc;
	list = malloc((all->count + 1u) * sizeof(*list));
	if (list) {
		for (uint32_t i = 0; i < all->count; i++)
			list[i] = &all->list[i];
		qsort(list, all->count, sizeof(*list), by_live);
		write_sites(x, s, list, all->count);
	}
	free(list);
	callsites_free(all);
	return list ? 0 : -ENOMEM;
}

struct sums {
	uint64_t value[MEASURES], blocks;
};

static int add_sum(void *arg, uint32_t stack, const struct export_sum *sum)
{
	struct sums *s = arg;

	(void)stack;
	for (int m = 0; m < MEASURES; m++)
		s->value[m] += sum->value[m];
	s->blocks += sum->live_blocks;
	return 0;
}

static int openmetrics_space(struct export *x, const struct export_space *s, struct err *err)
{
	struct sums sums = {0};
	int rc = x->options.history ? 0 : export_sums(s, add_sum, &sums);

	if (rc || x->options.history)
		return rc;
	end_sample(sample(x, FAMILY_LIVE, s->name), sums.value[MEASURE_LIVE]);
	end_sample(sample(x, FAMILY_PEAK, s->name), sums.value[MEASURE_PEAK]);
	end_sample(sample(x, FAMILY_ALLOCATED, s->name), sums.value[MEASURE_TOTAL]);
	end_sample(sample(x, FAMILY_ALLOCATIONS, s->name), sums.value[MEASURE_COUNT]);
	end_sample(sample(x, FAMILY_BLOCKS, s->name), sums.blocks);
	return read_sites(x, s, err);
}

static enum family family_of(enum export_curve_kind kind)
{
	switch (kind) {
	case CURVE_LIVE:
		break;
	case CURVE_RSS:
		return FAMILY_RESIDENT;
	case CURVE_FREE:
		return FAMILY_FREE;
	case CURVE_RESERVED:
		return FAMILY_RESERVED;
	}
	return FAMILY_LIVE;
}

/* Write the point that waits. Its time is the start of the recording plus its own. */
static void write_point(struct export *x)
{
	struct openmetrics *t = x->state;
	struct str *out;

	if (!t->waits)
		return;
	t->waits = false;
	out = sample(x, family_of(t->curve.kind), x->names[t->curve.space]);
	if (x->options.history)
		str_printf(out, "} %llu %llu.%03u\n", (unsigned long long)t->value,
		    (unsigned long long)(t->ms / 1000), (unsigned)(t->ms % 1000));
	else
		end_sample(out, t->value);
}

/* Of several values in a millisecond the last counts; without history, the last of all. */
static int openmetrics_point(struct export *x, const struct export_curve *c, uint64_t time_ns,
    uint64_t value, struct err *err)
{
	struct openmetrics *t = x->state;
	uint64_t ms = (x->facts->start_real_ns + time_ns) / MS;
	bool same = t->curve.kind == c->kind && t->curve.space == c->space;

	(void)err;
	if (!x->options.history && c->kind == CURVE_LIVE)
		return 0; /* given at the moment */
	if (!same || (x->options.history && ms != t->ms))
		write_point(x);
	t->waits = true;
	t->curve = *c;
	t->ms = ms;
	t->value = value;
	return 0;
}

static void refusals(struct export *x)
{
	const struct spaces *s = x->all->spaces;

	end_sample(sample(x, FAMILY_REFUSALS, "host"), x->all->refusals.requests);
	for (uint32_t i = 1; i < x->name_count; i++) {
		uint64_t n = 0;

		for (size_t k = 0; k < s->failure_count; k++)
			n += s->failures[k].space == i - 1 ? s->failures[k].count : 0;
		end_sample(sample(x, FAMILY_REFUSALS, x->names[i]), n);
	}
}

static int openmetrics_verdict(struct export *x, const struct verdict_result *r, struct err *err)
{
	char confidence[16];
	struct str *out;

	(void)err;
	if (x->options.history)
		return 0;
	if (r->ledger.limit != LIMIT_NONE && r->ledger.limit_bytes) {
		out = sample(x, FAMILY_LIMIT, r->ledger.space ? r->ledger.space : "host");
		label(out, "limit", limit_kind_name(r->ledger.limit));
		end_sample(out, r->ledger.limit_bytes);
	}
	refusals(x);
	out = sample(x, FAMILY_VERDICT, NULL);
	snprintf(confidence, sizeof(confidence), "%.2f", r->verdict.confidence);
	label(out, "cause", cause_name(r->verdict.cause));
	label(out, "confidence", confidence);
	label(out, "function", r->verdict.blame.function);
	label(out, "file", r->verdict.blame.file);
	end_sample(out, 1);
	return 0;
}

static int openmetrics_end(struct export *x, struct err *err)
{
	struct openmetrics *t = x->state;

	(void)err;
	write_point(x);
	for (int f = 0; f < FAMILY_COUNT; f++) {
		if (!t->of[f].length && !t->of[f].failed)
			continue;
		sink_printf(x->out, "# TYPE %s %s\n", families[f].name, families[f].type);
		if (families[f].unit[0])
			sink_printf(x->out, "# UNIT %s %s\n", families[f].name, families[f].unit);
		sink_printf(x->out, "# HELP %s %s\n", families[f].name, families[f].help);
		sink_str(x->out, &t->of[f]);
	}
	sink_puts(x->out, "# EOF\n");
	return 0;
}

static void openmetrics_fini(struct export *x)
{
	struct openmetrics *t = x->state;

	for (int f = 0; f < FAMILY_COUNT; f++)
		str_free(&t->of[f]);
}

const struct exporter exporter_openmetrics = {
    .name = "openmetrics",
    .summary = "Prometheus: the moment's numbers, or with --history a backfill",
    .needs = EXPORT_SUMS | EXPORT_CURVES | EXPORT_VERDICT,
    .can_history = true,
    .state = sizeof(struct openmetrics),
    .space = openmetrics_space,
    .point = openmetrics_point,
    .verdict = openmetrics_verdict,
    .end = openmetrics_end,
    .fini = openmetrics_fini,
};
