/* export.c - the exporters, and the order in which one is told of a process. See export.h. */
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/sums.h"
#include "util/text/fmt.h"

static const struct exporter *const exporters[] = {
#define EXPORTER(name) &exporter_##name,
#include "export/exporters.def"
#undef EXPORTER
};
#define EXPORTERS (sizeof(exporters) / sizeof(*exporters))

static const struct {
	const char *name, *unit, *meaning;
} measures[] = {
#define MEASURE(NAME, name, unit, meaning) {#name, unit, meaning},
    EXPORT_MEASURES(MEASURE)
#undef MEASURE
};

const char *export_event_name(enum export_event_kind kind)
{
	static const char *const names[] = {[EXPORT_ALLOC] = "alloc",
	    [EXPORT_FREE] = "free",
	    [EXPORT_UNFREE] = "unfree",
	    [EXPORT_MAP] = "map",
	    [EXPORT_UNMAP] = "unmap",
	    [EXPORT_UNUNMAP] = "ununmap",
	    [EXPORT_FAILED] = "failed",
	    [EXPORT_OTHER] = NULL};

	return names[kind];
}

const char *export_curve_name(enum export_curve_kind kind)
{
	static const char *const names[] = {[CURVE_LIVE] = "live",
	    [CURVE_RSS] = "resident",
	    [CURVE_FREE] = "free",
	    [CURVE_RESERVED] = "reserved"};

	return names[kind];
}

const char *export_mark_phase(const struct event *mark)
{
	static const char *const names[] = {
	    NULL, "begin", "end", "point", "enter", "leave", "length"};

	return mark->u.mark.phase < sizeof(names) / sizeof(*names) ? names[mark->u.mark.phase]
								   : NULL;
}

const char *export_mark_what(const struct event *mark)
{
	static const char *const names[] = {"request", "phase", "pushed", "range", "nvtx"};

	return mark->u.mark.what < sizeof(names) / sizeof(*names) ? names[mark->u.mark.what] : NULL;
}

const char *export_measure_name(enum export_measure measure)
{
	return measures[measure].name;
}

const char *export_measure_unit(enum export_measure measure)
{
	return measures[measure].unit;
}

const char *export_measure_meaning(enum export_measure measure)
{
	return measures[measure].meaning;
}

enum export_measure export_measure_find(const char *name)
{
	enum export_measure m = MEASURE_LIVE;

	while (m < MEASURES && strcmp(measures[m].name, name) != 0)
		m++;
	return m;
}

const struct exporter *export_default(void)
{
	return exporters[0];
}

const struct exporter *export_find(const char *name)
{
	for (size_t i = 0; i < EXPORTERS; i++)
		if (!strcmp(exporters[i]->name, name))
			return exporters[i];
	return NULL;
}

void export_names(const char *between, struct str *out)
{
	for (size_t i = 0; i < EXPORTERS; i++)
		str_printf(out, "%s%s", i ? between : "", exporters[i]->name);
}

void export_help(FILE *out)
{
	fputs("\nFormats:\n", out);
	for (size_t i = 0; i < EXPORTERS; i++)
		fprintf(out, "  %-15s %s\n", exporters[i]->name, exporters[i]->summary);
}

uint32_t export_space_index(const struct export *x, const char *name)
{
	for (uint32_t i = 0; i < x->name_count; i++)
		if (strcmp(x->names[i], name) == 0)
			return i;
	return EXPORT_HOST;
}

void export_function(struct str *out, const struct symbol *s)
{
	if (s->python)
		str_puts(out, s->function);
	else
		fmt_function(out, s->function ? s->function : "(unknown)", "<\xe2\x80\xa6>");
}

void export_frame(struct str *out, const struct symbol *s)
{
	const char *file = s->file ? str_base_name(s->file) : NULL;

	export_function(out, s);
	if (file && s->line)
		str_printf(out, " (%s:%u)", file, s->line);
	else if (file)
		str_printf(out, " (%s)", file);
}

void export_title(struct str *out, const struct export_space *s, enum export_measure measure)
{
	bool seconds = s->at[0] >= '0' && s->at[0] <= '9', moment = measure == MEASURE_LIVE;
	struct str text = {0};

	str_printf(&text, "%s: %s", s->name, moment ? "live at " : measures[measure].meaning);
	if (moment)
		str_printf(&text, "%s%s", seconds ? "" : "the ", s->at);
	str_json(out, str_text(&text));
	out->failed |= text.failed;
	str_free(&text);
}

void export_process(struct str *out, const struct export *x)
{
	struct str text = {0};

	str_printf(&text, "pid %u:", x->facts->pid);
	for (const char *const *arg = x->facts->argv; arg && *arg; arg++)
		str_printf(&text, " %s", *arg);
	if (!x->facts->argv)
		str_printf(&text, " %s", x->facts->exe ? x->facts->exe : "(unknown)");
	str_json(out, str_text(&text));
	out->failed |= text.failed;
	str_free(&text);
}

int export_failed(struct export *x, int rc, struct err *err)
{
	if (!rc)
		rc = x->out->failed;
	if (rc == -ENOMEM)
		return err_set(err, rc, "no memory for the %s export", x->to->name);
	if (rc && rc == x->out->failed)
		return err_set(err, rc, "cannot write the output: %s", strerror(-rc));
	return rc;
}

int export_begin(struct export *x, const struct exporter *to, const struct export_options *options,
    struct sink *out, const char *path, const struct model *all, struct err *err)
{
	*x = (struct export){.to = to,
	    .options = *options,
	    .out = out,
	    .path = path,
	    .feed = all->feed,
	    .all = all,
	    .facts = all->feed.facts(all->feed.self),
	    .names = {"host"},
	    .name_count = 1};
	if (to->one_measure && x->options.measure == MEASURES)
		x->options.measure = MEASURE_LIVE;
	for (uint32_t i = 0; all->spaces && i < all->spaces->count; i++)
		x->names[x->name_count++] = all->spaces->list[i]->name;
	x->state = calloc(1, to->state + 1);
	if (!x->state)
		return export_failed(x, -ENOMEM, err);
	return export_failed(x, to->begin ? to->begin(x, err) : 0, err);
}

bool export_wants_temporary(const struct exporter *to, const struct export_options *options)
{
	return (to->needs & EXPORT_SUMS) &&
	       (!to->one_measure || options->measure == MEASURE_TEMPORARY);
}

int export_look(struct export *x, uint32_t stack, struct export_stack *out)
{
	int rc;

	*out = (struct export_stack){.id = stack};
	if (!stack)
		return 0;
	rc = feed_path(&x->feed, stack, &x->walk);
	if (rc)
		return rc;
	out->symbols = x->walk.symbols;
	out->count = x->walk.count;
	out->same = x->walk.same;
	return 0;
}

/* Return whether stack() has got it; from now on it has. Negative: no memory. */
static int was_told(struct export *x, uint32_t stack)
{
	uint32_t limit = x->feed.stack_limit ? x->feed.stack_limit(x->feed.self) : STACK_MAX;
	uint8_t bit = (uint8_t)(1u << stack % 8);
	int before;

	if (!x->told && !(x->told = calloc(limit / 8u + 1, 1)))
		return -ENOMEM;
	if (!stack || stack >= limit)
		return 1;
	before = x->told[stack / 8] & bit;
	x->told[stack / 8] |= bit;
	return before != 0;
}

int export_tell_stack(struct export *x, uint32_t stack, struct err *err)
{
	struct export_stack s;
	int rc = x->to->stack ? was_told(x, stack) : 1;

	if (rc)
		return rc < 0 ? rc : 0;
	rc = export_look(x, stack, &s);
	return rc ? rc : x->to->stack(x, &s, err);
}

struct summing {
	struct export *x;
	const struct export_space *space;
	bool begun; /* space() was called */
	struct err *err;
};

static int begin_space(struct summing *g)
{
	bool first = !g->begun;

	g->begun = true;
	return first && g->x->to->space ? g->x->to->space(g->x, g->space, g->err) : 0;
}

static int give_sum(void *arg, uint32_t stack, const struct export_sum *sum)
{
	struct summing *g = arg;
	struct export_sum given = *sum;
	struct export_stack s;
	int rc;

	if (g->x->temporary)
		given.value[MEASURE_TEMPORARY] =
		    temporary_bytes(g->x->temporary, g->space->index, stack);
	if (g->x->to->by_measure && !given.value[g->x->measure])
		return 0;
	rc = begin_space(g);
	if (!rc)
		rc = export_tell_stack(g->x, stack, g->err);
	if (!rc)
		rc = export_look(g->x, stack, &s);
	if (rc)
		return rc;
	given.space = g->space;
	given.stack = &s;
	rc = g->x->to->sum(g->x, &given, g->err);
	return rc ? rc : g->x->out->failed;
}

int export_sums(const struct export_space *s,
    int (*fn)(void *arg, uint32_t stack, const struct export_sum *sum), void *arg)
{
	return sums_each(s->model, s->moment, fn, arg);
}

static int give_space(struct export *x, const struct export_space *s, struct err *err)
{
	const struct exporter *to = x->to;
	struct summing g = {.x = x, .space = s, .err = err};
	int rc = to->by_measure ? 0 : begin_space(&g);

	if (!rc && to->sum)
		rc = sums_each(s->model, s->moment, give_sum, &g);
	if (!rc && g.begun && to->space_end)
		rc = to->space_end(x, s, err);
	return rc;
}

int export_space(struct export *x, const struct export_space *s, struct err *err)
{
	enum export_measure only = x->options.measure;
	int rc = 0;

	if (!x->to->by_measure)
		return export_failed(x, give_space(x, s, err), err);
	for (int m = 0; !rc && m < MEASURES; m++) {
		x->measure = (enum export_measure)m;
		if (only == MEASURES || only == x->measure)
			rc = give_space(x, s, err);
	}
	return export_failed(x, rc, err);
}

int export_verdict(struct export *x, const struct verdict_result *r, struct err *err)
{
	return export_failed(x, x->to->verdict ? x->to->verdict(x, r, err) : 0, err);
}

int export_end(struct export *x, struct err *err)
{
	int rc = x->to->end ? x->to->end(x, err) : 0;

	return export_failed(x, rc ? rc : sink_finish(x->out), err);
}

void export_fini(struct export *x)
{
	if (x->to && x->to->fini && x->state)
		x->to->fini(x);
	free(x->state);
	free(x->told);
	trace_path_fini(&x->walk);
	*x = (struct export){0};
}
