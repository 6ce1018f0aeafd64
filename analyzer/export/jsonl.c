/*
 * jsonl.c - one JSON object a line, `type` first: header, stacks before their first use, sums,
 * events, samples of curves, verdict. export-schema.json says what may be where. For jq, DuckDB,
 * pandas and programs of ten lines.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "export/export.h"
#include "knowledge/knowledge.h"
#include "util/text/json.h"

/* JavaScript's numbers are exact up to here; larger ones are texts. */
#define EXACT (1ull << 53)

struct jsonl {
	struct str line;
	struct json json;
};

static struct json *begin(struct export *x, const char *type)
{
	struct jsonl *t = x->state;

	t->json = (struct json){.out = &t->line};
	json_object(&t->json, NULL);
	json_string(&t->json, "type", type);
	return &t->json;
}

static int end(struct export *x)
{
	struct jsonl *t = x->state;

	json_object_end(&t->json);
	str_putc(&t->line, '\n');
	sink_str(x->out, &t->line);
	return 0;
}

static void number(struct json *j, const char *key, uint64_t value)
{
	char text[24];

	if (value <= EXACT) {
		json_u64(j, key, value);
		return;
	}
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	json_string(j, key, text);
}

static void address(struct json *j, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	json_string(j, "address", text);
}

static int jsonl_begin(struct export *x, struct err *err)
{
	const struct trace_facts *f = x->facts;
	time_t seconds = (time_t)(f->start_real_ns / 1000000000u);
	struct json *j = begin(x, "header");
	uint64_t every = 0;
	char text[40] = "";
	struct tm tm;

	(void)err;
	json_u64(j, "schema", 1);
	json_string(j, "exporter", "whyoom " WHYOOM_VERSION);
	json_u64(j, "pid", f->pid);
	json_u64(j, "parent_pid", f->ppid);
	json_string(j, "executable", f->exe);
	json_array(j, "command");
	for (const char *const *arg = f->argv; arg && *arg; arg++)
		json_string(j, NULL, *arg);
	json_array_end(j);
	if (gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_string(j, "started", text);
	number(j, "duration_ns", f->last_ns);
	feed_number(&x->feed, "sampled.every", &every);
	json_u64_or_null(j, "sampled_every", every, every);
	number(j, "dropped", f->dropped_total);
	json_bool(j, "damaged", f->damage.count);
	json_array(j, "spaces");
	for (uint32_t i = 0; i < x->name_count; i++)
		json_string(j, NULL, x->names[i]);
	json_array_end(j);
	return end(x);
}

static int jsonl_stack(struct export *x, const struct export_stack *s, struct err *err)
{
	struct json *j = begin(x, "stack");

	(void)err;
	json_u64(j, "id", s->id);
	json_array(j, "frames"); /* innermost first, as in the other results */
	for (size_t i = s->count; i-- > 0;) {
		const struct symbol *f = &s->symbols[i];

		json_object(j, NULL);
		json_string(j, "function", f->function);
		json_string(j, "file", f->file);
		json_u64_or_null(j, "line", f->line, f->line);
		json_string(j, "module", f->module);
		json_object_end(j);
	}
	json_array_end(j);
	return end(x);
}

static int jsonl_space(struct export *x, const struct export_space *s, struct err *err)
{
	struct json *j = begin(x, "space");

	(void)err;
	json_string(j, "space", s->name);
	json_string(j, "at", s->at);
	number(j, "t_ns", s->time_ns);
	return end(x);
}

static int jsonl_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct json *j = begin(x, "sum");

	(void)err;
	json_string(j, "space", s->space->name);
	json_u64(j, "stack", s->stack->id);
	number(j, "live_bytes", s->value[MEASURE_LIVE]);
	number(j, "live_blocks", s->live_blocks);
	number(j, "peak_bytes", s->value[MEASURE_PEAK]);
	number(j, "total_bytes", s->value[MEASURE_TOTAL]);
	number(j, "total_blocks", s->value[MEASURE_COUNT]);
	number(j, "temporary_bytes", s->value[MEASURE_TEMPORARY]);
	return end(x);
}

static struct json *begin_event(struct export *x, const struct export_event *e)
{
	const char *kind = export_event_name(e->kind);
	struct json *j = begin(x, "event");

	json_string(j, "kind", kind ? kind : "mark");
	number(j, "t_ns", e->raw->time_ns);
	json_string(j, "space", x->names[e->space]);
	json_u64(j, "thread", e->raw->thread);
	if (e->raw->task)
		json_u64(j, "task", e->raw->task);
	return j;
}

static int block(struct export *x, const struct export_event *e)
{
	struct json *j = begin_event(x, e);
	const struct block *b = e->block;

	address(j, b ? b->address : e->raw->address);
	if (b) {
		number(j, "size", b->size);
		json_u64(j, "stack", b->stack);
		number(j, "block", b->serial);
		if (b->mean > 0) { /* it stands for others */
			number(j, "bytes", block_bytes(b));
			number(j, "blocks", block_count(b));
		}
		if (e->kind == EXPORT_FREE)
			number(j, "born_ns", b->birth_ns);
	}
	if (e->raw->flags & EVENT_REALLOC)
		json_bool(j, "realloc", true);
	return end(x);
}

static int range(struct export *x, const struct export_event *e)
{
	struct json *j = begin_event(x, e);

	address(j, e->raw->address);
	number(j, "size", e->raw->size);
	json_u64(j, "stack", e->raw->stack);
	return end(x);
}

static int failed(struct export *x, const struct export_event *e)
{
	struct json *j = begin_event(x, e);

	number(j, "size", e->raw->size);
	json_u64(j, "stack", e->raw->stack);
	json_string(j, "call", e->raw->u.failed.api);
	return end(x);
}

static int mark(struct export *x, const struct export_event *e)
{
	const struct event *raw = e->raw;
	const char *phase = export_mark_phase(raw), *what = export_mark_what(raw);
	struct json *j = begin_event(x, e);

	json_string(j, "phase", phase ? phase : "");
	json_string(j, "what", what ? what : "");
	number(j, "id", raw->u.mark.id);
	json_string(j, "name", raw->u.mark.name);
	if (raw->u.mark.tokens)
		number(j, "tokens", raw->u.mark.tokens);
	return end(x);
}

static int jsonl_event(struct export *x, const struct export_event *e, struct err *err)
{
	(void)err;
	switch (e->kind) {
	case EXPORT_ALLOC:
	case EXPORT_FREE:
	case EXPORT_UNFREE:
		return block(x, e);
	case EXPORT_MAP:
	case EXPORT_UNMAP:
	case EXPORT_UNUNMAP:
		return range(x, e);
	case EXPORT_FAILED:
		return failed(x, e);
	case EXPORT_MARK:
		return mark(x, e);
	case EXPORT_LEVEL: /* the curves have them */
	case EXPORT_OTHER:
		break;
	}
	return 0;
}

static int jsonl_point(struct export *x, const struct export_curve *c, uint64_t time_ns,
    uint64_t value, struct err *err)
{
	struct json *j = begin(x, "sample");

	(void)err;
	json_string(j, "curve", export_curve_name(c->kind));
	json_string(j, "space", x->names[c->space]);
	number(j, "t_ns", time_ns);
	number(j, "bytes", value);
	return end(x);
}

static int jsonl_verdict(struct export *x, const struct verdict_result *r, struct err *err)
{
	const struct verdict *v = &r->verdict;
	struct json *j = begin(x, "verdict");

	(void)err;
	json_string(j, "cause", cause_name(v->cause));
	json_real(j, "confidence", v->confidence, 2);
	json_string(j, "summary", v->summary);
	json_string(j, "failure", failure_kind_name(r->failure.kind));
	number(j, "t_ns", r->failure.time_ns);
	number(j, "requested_bytes", r->failure.requested_bytes);
	json_string(j, "limit", limit_kind_name(r->ledger.limit));
	number(j, "limit_bytes", r->ledger.limit_bytes);
	json_string(j, "function", v->blame.function);
	json_string(j, "file", v->blame.file);
	json_u64_or_null(j, "line", v->blame.line, v->blame.line);
	number(j, "blamed_bytes", v->blame.bytes);
	json_array(j, "fixes");
	for (size_t i = 0; i < v->fix_count; i++)
		json_string(j, NULL, v->fixes[i].text);
	json_array_end(j);
	return end(x);
}

static void jsonl_fini(struct export *x)
{
	struct jsonl *t = x->state;

	str_free(&t->line);
}

const struct exporter exporter_jsonl = {
    .name = "jsonl",
    .summary = "jq, DuckDB, pandas: one JSON object a line, with all events",
    .needs = EXPORT_SUMS | EXPORT_EVENTS | EXPORT_CURVES | EXPORT_VERDICT,
    .can_gzip = true,
    .state = sizeof(struct jsonl),
    .begin = jsonl_begin,
    .stack = jsonl_stack,
    .space = jsonl_space,
    .sum = jsonl_sum,
    .event = jsonl_event,
    .point = jsonl_point,
    .verdict = jsonl_verdict,
    .fini = jsonl_fini,
};
