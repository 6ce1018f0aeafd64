/* explain_json.c - an explanation as JSON: explain-schema.json says what may be where. */
#include "report/format.h"
#include "report/parts.h"
#include "util/text/json.h"

static void fields(struct json *j, const struct fields *f);

static void field(struct json *j, const struct field *f)
{
	switch (f->type) {
	case FIELD_BYTES:
		json_u64(j, f->name, f->bytes);
		break;
	case FIELD_INTEGER:
		json_i64(j, f->name, f->integer);
		break;
	case FIELD_REAL:
		json_real(j, f->name, f->real, 6);
		break;
	case FIELD_TEXT:
		json_string(j, f->name, f->text);
		break;
	case FIELD_LIST:
		json_array(j, f->name);
		for (size_t i = 0; i < f->rows->count; i++) {
			json_object(j, NULL);
			fields(j, &f->rows->items[i]);
			json_object_end(j);
		}
		json_array_end(j);
		break;
	}
}

static void fields(struct json *j, const struct fields *f)
{
	for (size_t i = 0; i < f->list.count; i++)
		field(j, &f->list.items[i]);
}

static void message(struct json *j, const struct explain_message *m, const enum join *of)
{
	json_object(j, NULL);
	json_string(j, "from", m->known->from);
	json_string(j, "kind", message_kind_name(m->kind));
	json_string(j, "cause", m->cause ? cause_name(m->cause) : NULL);
	json_object(j, "fields");
	json_string(j, "message", m->known->name);
	json_u64(j, "line", m->line);
	if (m->time)
		json_string(j, "time", m->time);
	if (m->count > 1) {
		json_u64(j, "count", m->count);
		json_u64(j, "last_line", m->last_line);
	}
	fields(j, &m->fields);
	json_object_end(j);
	json_string(j, "text", m->text);
	if (of)
		json_string(j, "recorded",
		    *of == JOIN_FAILURE	    ? "failure"
		    : *of == JOIN_RECOVERED ? "recovered"
					    : NULL);
	json_object_end(j);
}

void runner_up_json(struct json *j, enum cause cause, double confidence)
{
	if (!cause) {
		json_null(j, "runner_up");
		return;
	}
	json_object(j, "runner_up");
	json_string(j, "cause", cause_name(cause));
	json_real(j, "confidence", confidence, 3);
	json_object_end(j);
}

static void verdict(struct json *j, const struct explanation *e)
{
	json_object(j, "verdict");
	json_string(j, "cause", cause_name(e->verdict.cause));
	json_real(j, "confidence", e->verdict.confidence, 3);
	json_string(j, "summary", e->verdict.summary);
	json_array(j, "fixes");
	for (size_t i = 0; i < e->verdict.fix_count; i++) {
		const struct explain_fix *f = &e->verdict.fixes[i];

		json_object(j, NULL);
		json_string(j, "for", f->for_);
		json_string(j, "setting", *f->setting ? f->setting : NULL);
		json_string(j, "text", f->text);
		json_object_end(j);
	}
	json_array_end(j);
	runner_up_json(j, e->verdict.runner_up, e->verdict.runner_up_confidence);
	json_string(j, "next", e->verdict.next);
	json_object_end(j);
}

void explanation_json(struct json *j, const struct explanation *e, const enum join *of)
{
	json_array(j, "messages");
	for (size_t i = 0; i < e->count; i++)
		message(j, &e->messages[i], of ? &of[i] : NULL);
	json_array_end(j);
	verdict(j, e);
}

void explain_json(const struct explanation *e, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	explanation_json(&j, e, NULL);
	json_object_end(&j);
	str_putc(out, '\n');
}
