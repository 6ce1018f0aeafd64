/*
 * parquet.c - a Parquet file for DuckDB, pandas, Polars and Spark. It holds one table: a row an
 * event, or without events (--events none) a row a stack with its sums.
 */
#include <errno.h>
#include <stdio.h>

#include "export/encode/parquet_file.h"
#include "export/export.h"
#include "model/callsite/blame.h"
#include "util/vec.h"

static const struct parquet_column event_columns[] = {
    {"number", PARQUET_INT}, {"t_ns", PARQUET_INT}, {"kind", PARQUET_TEXT}, {"space", PARQUET_TEXT},
    {"thread", PARQUET_INT}, {"task", PARQUET_INT}, /* 0: not known */
    {"address", PARQUET_UNSIGNED}, {"size", PARQUET_UNSIGNED},
    {"bytes", PARQUET_UNSIGNED}, /* of blocks: with those that a sampled one stands for */
    {"blocks", PARQUET_UNSIGNED},
    {"born_ns", PARQUET_INT}, /* of blocks, so that a release tells the lifetime */
    {"stack", PARQUET_INT}, /* 0: not known */
    {"function", PARQUET_TEXT}, /* the frame to blame */
    {"file", PARQUET_TEXT}, {"line", PARQUET_INT}, /* 0: not known */
};

static const struct parquet_column sum_columns[] = {
    {"space", PARQUET_TEXT}, {"at", PARQUET_TEXT}, {"t_ns", PARQUET_INT}, {"stack", PARQUET_INT},
    {"live_bytes", PARQUET_UNSIGNED}, {"live_blocks", PARQUET_UNSIGNED},
    {"peak_bytes", PARQUET_UNSIGNED}, {"total_bytes", PARQUET_UNSIGNED},
    {"total_blocks", PARQUET_UNSIGNED}, {"temporary_bytes", PARQUET_UNSIGNED},
    {"function", PARQUET_TEXT}, {"file", PARQUET_TEXT}, {"line", PARQUET_INT},
    {"frames", PARQUET_TEXT}, /* outermost first, between semicolons, as in folded */
};

struct own_line {
	const char *function, *file; /* the feed's */
	uint32_t line;
};

struct parquet {
	struct parquet_file file;
	struct blame_memory traits;
	struct blame_context context;
	VEC(struct own_line) lines; /* by stack */
	struct str text;
};

static int parquet_start(struct export *x, struct err *err)
{
	struct parquet *t = x->state;
	bool events = x->options.events;

	(void)err;
	t->context =
	    (struct blame_context){.malloc_owner = x->feed.info(x->feed.self, "malloc.owner"),
		.interpreter = feed_interpreter(&x->feed),
		.memory = &t->traits};
	return parquet_begin(&t->file, events ? event_columns : sum_columns,
	    events ? sizeof(event_columns) / sizeof(*event_columns)
		   : sizeof(sum_columns) / sizeof(*sum_columns),
	    x->out);
}

static int parquet_stack(struct export *x, const struct export_stack *s, struct err *err)
{
	struct parquet *t = x->state;
	int at = s->count ? blame_frame(&t->context, s->symbols, s->count) : -1;
	const struct symbol *own;

	(void)err;
	if (vec_reach(&t->lines, s->id + 1u))
		return -ENOMEM;
	if (!s->count)
		return 0;
	own = &s->symbols[at < 0 ? s->count - 1 : (size_t)at];
	t->lines.items[s->id] = (struct own_line){own->function, own->file, own->line};
	return 0;
}

static void put_line(struct parquet *t, uint32_t stack)
{
	struct own_line none = {0}, *own = stack < t->lines.count ? &t->lines.items[stack] : &none;

	parquet_text(&t->file, own->function);
	parquet_text(&t->file, own->file);
	parquet_u64(&t->file, own->line);
}

static void put_frames(struct parquet *t, const struct export_stack *s)
{
	struct str name = {0};

	for (size_t i = 0; i < s->count; i++) {
		str_clear(&name);
		export_frame(&name, &s->symbols[i]);
		for (char *p = name.text; p && *p; p++)
			if (*p == ';')
				*p = ':';
		str_printf(&t->text, "%s%s", i ? ";" : "", str_text(&name));
	}
	parquet_text(&t->file, str_text(&t->text));
	t->file.out->failed = t->file.out->failed	      ? t->file.out->failed
			      : t->text.failed || name.failed ? -ENOMEM
							      : 0;
	str_clear(&t->text);
	str_free(&name);
}

static int parquet_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct parquet *t = x->state;

	(void)err;
	if (x->options.events)
		return 0;
	parquet_text(&t->file, s->space->name);
	parquet_text(&t->file, s->space->at);
	parquet_u64(&t->file, s->space->time_ns);
	parquet_u64(&t->file, s->stack->id);
	parquet_u64(&t->file, s->value[MEASURE_LIVE]);
	parquet_u64(&t->file, s->live_blocks);
	parquet_u64(&t->file, s->value[MEASURE_PEAK]);
	parquet_u64(&t->file, s->value[MEASURE_TOTAL]);
	parquet_u64(&t->file, s->value[MEASURE_COUNT]);
	parquet_u64(&t->file, s->value[MEASURE_TEMPORARY]);
	put_line(t, s->stack->id);
	put_frames(t, s->stack);
	parquet_row_end(&t->file);
	return 0;
}

static int parquet_event(struct export *x, const struct export_event *e, struct err *err)
{
	struct parquet *t = x->state;
	const char *kind = export_event_name(e->kind);
	const struct block *b = e->block;
	uint32_t stack = b ? b->stack : e->raw->stack;

	(void)err;
	if (!kind)
		return 0;
	parquet_u64(&t->file, e->number);
	parquet_u64(&t->file, e->raw->time_ns);
	parquet_text(&t->file, kind);
	parquet_text(&t->file, x->names[e->space]);
	parquet_u64(&t->file, e->raw->thread);
	parquet_u64(&t->file, e->raw->task);
	parquet_u64(&t->file, b ? b->address : e->raw->address);
	parquet_u64(&t->file, b ? b->size : e->raw->size);
	parquet_u64(&t->file, b ? block_bytes(b) : e->raw->size);
	parquet_u64(&t->file, b ? block_count(b) : 1);
	parquet_u64(&t->file, b ? b->birth_ns : e->raw->time_ns);
	parquet_u64(&t->file, stack);
	put_line(t, stack);
	parquet_row_end(&t->file);
	return 0;
}

static int parquet_finish(struct export *x, struct err *err)
{
	struct parquet *t = x->state;
	char pid[16], started[24];
	const char *facts[] = {"whyoom.pid", pid, "whyoom.started_unix_ns", started,
	    "whyoom.executable", x->facts->exe, NULL};

	(void)err;
	snprintf(pid, sizeof(pid), "%u", x->facts->pid);
	snprintf(started, sizeof(started), "%llu", (unsigned long long)x->facts->start_real_ns);
	parquet_end(&t->file, facts);
	return 0;
}

static void parquet_free(struct export *x)
{
	struct parquet *t = x->state;

	parquet_fini(&t->file);
	vec_free(&t->traits.traits);
	vec_free(&t->lines);
	str_free(&t->text);
}

const struct exporter exporter_parquet = {
    .name = "parquet",
    .summary = "DuckDB, pandas, Polars, Spark: a row an event, or --events none a row a stack",
    .needs = EXPORT_SUMS | EXPORT_EVENTS,
    .binary = true,
    .state = sizeof(struct parquet),
    .begin = parquet_start,
    .stack = parquet_stack,
    .sum = parquet_sum,
    .event = parquet_event,
    .end = parquet_finish,
    .fini = parquet_free,
};
