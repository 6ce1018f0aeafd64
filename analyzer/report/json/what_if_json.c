/* what_if_json.c - the answer of `whyoom what-if` as JSON: what-if-schema.json. */
#include "report/format.h"
#include "report/parts.h"
#include "util/text/json.h"

static const char *const match_names[] = {"none", "identical", "within", "not"};

static void match_json(struct json *j, const struct torch_match *m)
{
	json_object(j, "model");
	json_string(j, "match", match_names[m->kind]);
	json_u64(j, "requests", m->requests);
	json_u64(j, "segments", m->segments);
	json_u64(j, "streams", m->streams);
	json_u64(j, "compared", m->compared);
	json_real(j, "deviation", m->deviation, 6);
	if (m->first.what) {
		json_object(j, "first_difference");
		json_string(j, "what", m->first.what);
		json_real(j, "seconds", (double)m->first.time_ns / 1e9, 6);
		json_u64(j, "request", m->first.request);
		json_u64(j, "recorded_bytes", m->first.recorded);
		json_u64(j, "modelled_bytes", m->first.modelled);
		json_object_end(j);
	} else {
		json_null(j, "first_difference");
	}
	json_string(j, "doubt", m->doubt);
	json_object_end(j);
}

static void refusal_json(struct json *j, const struct what_if_row *row)
{
	const struct torch_refusal *f = &row->refusal;

	if (!row->refused) {
		json_null(j, "refused");
		return;
	}
	json_object(j, "refused");
	json_u64(j, "request", f->block.serial);
	json_real(j, "seconds", (double)f->block.time_ns / 1e9, 6);
	json_u64(j, "bytes", f->size);
	json_u64(j, "segment_bytes", f->segment);
	json_u64(j, "reserved_bytes", f->reserved);
	json_u64(j, "allocated_bytes", f->allocated);
	json_u64(j, "largest_hole_bytes", f->largest_hole);
	json_object_end(j);
}

static void row_json(struct json *j, const char *key, const struct what_if_row *row)
{
	json_object(j, key);
	if (row->change) {
		json_string(j, "change", row->change);
		json_bool(j, "applies", !row->why_not);
		json_string(j, "why_not", row->why_not);
		json_string(j, "note", row->note);
	}
	if (row->why_not) {
		json_null(j, "fits");
		json_null(j, "headroom_bytes");
	} else {
		json_bool(j, "fits", row->fits);
		json_i64(j, "headroom_bytes", row->headroom);
	}
	refusal_json(j, row);
	json_object_end(j);
}

static void inputs_json(struct json *j, const struct what_if_inputs *in)
{
	static const char *const sources[] = {
	    [WHAT_IF_BY_MARKS] = "marks",
	    [WHAT_IF_BY_LONGEST] = "longest",
	    [WHAT_IF_BY_SIZES] = "sizes",
	};
	bool known = in->source != WHAT_IF_BY_SIZES;

	if (!in->asked) {
		json_null(j, "lengths");
		return;
	}
	json_object(j, "lengths");
	json_string(j, "from", sources[in->source]);
	json_string(j, "reference", in->reference[0] ? in->reference : NULL);
	json_u64_or_null(j, "longest_tokens", in->longest_tokens, known);
	json_real(j, "fits_share", in->fits, 6);
	json_u64_or_null(j, "fits_tokens", in->fits_tokens, known);
	json_u64(j, "linear_bytes", in->linear_bytes);
	json_u64(j, "square_bytes", in->square_bytes);
	json_object_end(j);
}

void what_if_json(const struct what_if_view *v, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	damage_json(&j, &v->damage);
	json_string(&j, "space", v->space);
	json_u64(&j, "pid", v->pid);
	json_u64_or_null(&j, "limit_bytes", v->limit, v->limit > 0);
	json_u64_or_null(&j, "requested_bytes", v->requested, v->requested > 0);
	if (v->match.requests)
		match_json(&j, &v->match);
	else
		json_null(&j, "model");
	inputs_json(&j, &v->inputs);
	row_json(&j, "recorded", &v->rows[0]);
	json_array(&j, "what_if");
	for (size_t i = 1; i < v->count; i++)
		row_json(&j, NULL, &v->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_puts(out, "\n");
}
