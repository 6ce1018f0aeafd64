/* diff_json.c - `whyoom diff` for a program: diff-schema.json describes it. */
#include <math.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "util/num.h"

static void side_json(struct json *j, const char *key, const struct diff_side_view *v)
{
	json_object(j, key);
	json_string(j, "trace", v->path);
	json_string(j, "cmdline", v->cmdline);
	json_u64(j, "pid", v->pid);
	json_string(j, "at", v->at);
	json_string(j, "failure", failure_kind_name(v->failure));
	json_string(j, "cause", cause_name(v->cause));
	json_real(j, "confidence", v->confidence, 3);
	json_bool(j, "attached", v->attached);
	json_u64_or_null(j, "sample_every_bytes", v->sample_every, v->sample_every);
	damage_json(j, &v->damage);
	json_object_end(j);
}

static void amount_json(struct json *j, const char *key, const struct diff_amount *a)
{
	json_object(j, key);
	json_u64(j, "bytes", a->bytes);
	json_u64(j, "standard_error", (uint64_t)a->error);
	json_u64(j, "blocks", a->blocks);
	json_u64(j, "mean_bytes", a->mean);
	json_u64(j, "largest_bytes", a->largest);
	json_u64(j, "busy_bytes", a->top);
	json_object_end(j);
}

static void layout_json(struct json *j, const struct diff_layout *l)
{
	if (!l->known) {
		json_null(j, "layout");
		return;
	}
	json_object(j, "layout");
	json_u64(j, "segments", l->segments);
	json_u64(j, "segment_bytes", l->segment_bytes);
	json_u64(j, "holes", l->holes);
	json_u64(j, "hole_bytes", l->hole_bytes);
	json_u64(j, "largest_hole_bytes", l->largest_hole);
	json_object_end(j);
}

static void curve_json(struct json *j, const char *key, const struct diff_curve *c)
{
	if (!c->present) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_real(j, "from_seconds", (double)c->from_ns / 1e9, 6);
	json_real(j, "until_seconds", (double)c->until_ns / 1e9, 6);
	json_u64(j, "peak_bytes", c->most);
	json_u64(j, "end_bytes", c->last);
	json_array(j, "points");
	for (uint32_t i = 0; i < c->points; i++)
		json_u64(j, NULL, c->at[i]);
	json_array_end(j);
	json_object_end(j);
}

static void phases_json(struct json *j, const struct diff_space *s)
{
	json_array(j, "phases");
	for (size_t i = 0; i < s->phase_count; i++) {
		json_object(j, NULL);
		json_string(j, "name", s->phases[i].name);
		curve_json(j, "a", &s->phases[i].a);
		curve_json(j, "b", &s->phases[i].b);
		json_object_end(j);
	}
	json_array_end(j);
}

static void space_side_json(struct json *j, const char *key, const struct diff_space_side *s)
{
	if (!s->present) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_real(j, "seconds", (double)s->time_ns / 1e9, 6);
	amount_json(j, "amount", &s->amount);
	json_u64(j, "peak_bytes", s->peak_bytes);
	json_u64_or_null(j, "requests", s->requests, s->requests);
	json_u64(j, "acquired_blocks", s->acquired);
	json_u64(j, "unmatched_bytes", s->unmatched_bytes);
	json_u64(j, "matched_by_line_bytes", s->by_line_bytes);
	layout_json(j, &s->layout);
	json_u64_or_null(j, "malloc_free_bytes", s->layout.malloc_free, s->layout.malloc_known);
	json_u64_or_null(j, "arenas_free_bytes", s->layout.arenas_free, s->layout.arenas_known);
	json_object_end(j);
}

static void line_json(struct json *j, const struct diff_result *r, const struct diff_line *p,
    const struct diff_space *space)
{
	static const char *const reasons[] = {"held", "busy", "block-size", "acquired"};

	json_object(j, NULL);
	json_string(j, "space", space->name);
	json_string(j, "kind", diff_kind_name(p->kind));
	json_string(j, "seen_by", p->kind == DIFF_SAME ? NULL : reasons[p->reason]);
	json_string(j, "function", p->function);
	json_string(j, "file", p->file);
	json_u64_or_null(j, "line", p->line, p->line);
	json_u64_or_null(j, "line_before", p->line_before, p->line_before);
	json_string(j, "renamed_from", p->renamed);
	json_bool(j, "arenas", p->arenas);
	json_bool(j, "matched", !p->unmatched);
	json_i64(j, "change_bytes", p->change);
	json_u64(j, "noise_bytes", p->noise);
	amount_json(j, "a", &p->a);
	amount_json(j, "b", &p->b);
	json_array(j, "stacks");
	for (size_t i = 0; i < p->stack_count; i++) {
		const struct diff_stack *s = &r->stacks[p->first_stack + i];

		json_object(j, NULL);
		json_u64(j, "a_bytes", s->a);
		json_u64(j, "b_bytes", s->b);
		report_stack_json(j, "stack", &s->stack);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void fact_json(struct json *j, const struct diff_fact *f)
{
	json_object(j, NULL);
	json_string(j, "kind", diff_fact_kind_name(f->kind));
	json_string(j, "name", f->name);
	json_string(j, "space", f->space);
	json_string(j, "unit", !f->number ? NULL : f->is_bytes ? "bytes" : "count");
	if (!f->number) {
		json_string(j, "a", f->a);
		json_string(j, "b", f->b);
	} else {
		if (f->a_known)
			json_i64(j, "a", f->a_value);
		else
			json_null(j, "a");
		if (f->b_known)
			json_i64(j, "b", f->b_value);
		else
			json_null(j, "b");
	}
	json_object_end(j);
}

void diff_json(const struct diff_view *v, const struct report_style *style, struct str *out)
{
	const struct diff_result *r = v->result;
	struct json j = {.out = out, .pretty = true};

	(void)style;
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "sentence", r->sentence);
	json_string(&j, "by", diff_by_name(r->by));
	json_bool(&j, "per_request", r->per_request);
	json_bool(&j, "one_run", r->one_run);
	json_real(&j, "growth", diff_growth(r), 6);
	side_json(&j, "a", &r->a);
	side_json(&j, "b", &r->b);
	json_array(&j, "changes");
	for (size_t i = 0; i < r->change_count && (!v->limit || i < v->limit); i++)
		line_json(&j, r, r->changes[i], r->change_spaces[i]);
	json_array_end(&j);
	json_array(&j, "spaces");
	for (size_t i = 0; i < r->space_count; i++) {
		const struct diff_space *s = &r->spaces[i];
		size_t end = s->line_count;

		if (v->limit && end > s->changed + v->limit)
			end = s->changed + v->limit;
		json_object(&j, NULL);
		json_string(&j, "space", s->name);
		space_side_json(&j, "a", &s->a);
		space_side_json(&j, "b", &s->b);
		json_real(&j, "work", s->work > 0 ? s->work : NAN, 4);
		json_bool(&j, "work_in_requests", s->work_by_requests);
		phases_json(&j, s);
		json_u64(&j, "lines", s->line_count);
		json_array(&j, "unchanged");
		for (size_t k = s->changed; k < end; k++)
			line_json(&j, r, &s->lines[k], s);
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "facts");
	for (size_t i = 0; i < r->fact_count; i++)
		fact_json(&j, &r->facts[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
}
