/* reduce.c - see format.h. */
#include "report/format.h"

#include "util/text/fmt.h"
#include "util/text/json.h"

void reduce_json(const struct reduce_view *v, const struct report_style *style, struct str *out)
{
	const struct reduce_result *r = v->result;
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "trace", v->path);
	json_string(&j, "program", v->program);
	json_string(&j, "cause", cause_name(r->cause));
	json_object(&j, "original");
	json_u64(&j, "events", r->events);
	json_u64(&j, "blocks", r->blocks);
	json_real(&j, "confidence", r->confidence, 3);
	json_object_end(&j);
	json_object(&j, "reduced");
	json_u64(&j, "events", r->events_left);
	json_u64(&j, "blocks", r->blocks_left);
	json_real(&j, "confidence", r->confidence_left, 3);
	json_object_end(&j);
	json_u64(&j, "limit_less_bytes", r->limit_less);
	json_bool(&j, "fails_when_replayed", r->replayed && r->fails);
	json_u64(&j, "trials", r->trials);
	json_bool(&j, "complete", r->ended);
	json_object_end(&j);
	str_putc(out, '\n');
}

void reduce_text(const struct reduce_view *v, const struct report_style *style, struct str *out)
{
	const struct reduce_result *r = v->result;
	struct fmt a, b;

	style_title(out, style, "%s", v->path);
	style_item(out, style, "  events    ", 12, "%s of %s, %.0f times fewer",
	    fmt_count(&a, r->events_left), fmt_count(&b, r->events),
	    r->events_left ? (double)r->events / (double)r->events_left : 0);
	style_item(out, style, "  blocks    ", 12, "%s of %s", fmt_count(&a, r->blocks_left),
	    fmt_count(&b, r->blocks));
	style_item(out, style, "  cause     ", 12, "%s, confidence %.2f (before: %.2f)",
	    cause_name(r->cause), r->confidence_left, r->confidence);
	if (r->limit_less)
		style_item(out, style, "  limit     ", 12,
		    "lower by %s, the memory that was left out", fmt_size(&a, r->limit_less));
	if (r->replayed)
		style_item(
		    out, style, "  replayed  ", 12, "fails at the same request as the original");
	else if (*r->why)
		style_item(out, style, "  replayed  ", 12,
		    "not tested: the original cannot be replayed here (%s)", r->why);
	else
		style_item(out, style, "  replayed  ", 12,
		    "not tested: the original does not fail at that request here");
	if (v->program)
		style_item(out, style, "  program   ", 12, "%s", v->program);
	if (!r->ended)
		style_wrap(out, style, 2,
		    "The search ran out of time. To go on, reduce this result again, or give more "
		    "with --time SECONDS.");
}
