/*
 * what_if_show.c - an answer of `whyoom what-if`, as text and as JSON.
 */
#include <inttypes.h>

#include "cmd/what_if/what_if.h"
#include "report/damage.h"
#include "report/text/style.h"
#include "util/text/fmt.h"
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

void what_if_json(const struct what_if_answer *a, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	report_damage_json(&j, &a->damage);
	json_string(&j, "space", a->space);
	json_u64(&j, "pid", a->pid);
	json_u64_or_null(&j, "limit_bytes", a->limit, a->limit > 0);
	json_u64_or_null(&j, "requested_bytes", a->requested, a->requested > 0);
	if (a->match.requests)
		match_json(&j, &a->match);
	else
		json_null(&j, "model");
	what_if_lengths_json(&a->lengths, &j);
	row_json(&j, "recorded", &a->rows[0]);
	json_array(&j, "what_if");
	for (size_t i = 1; i < a->count; i++)
		row_json(&j, NULL, &a->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_puts(out, "\n");
}

static void row_text(
    const struct what_if_row *row, const struct report_style *style, struct str *out)
{
	const char *words = row->change ? row->change : "as it was";
	struct str line = {0};
	struct fmt a, b, c;

	if (row->why_not)
		str_printf(&line, "%s: does not apply: %s", words, row->why_not);
	else
		str_printf(&line, "%s: %s, %s", words, row->fits ? "fits" : "does not fit",
		    fmt_size_signed(&a, row->headroom));
	if (row->refused)
		str_printf(&line, "; %s refused after %s, with %s in blocks",
		    fmt_size(&a, row->refusal.size), fmt_duration(&b, row->refusal.block.time_ns),
		    fmt_size(&c, row->refusal.allocated));
	if (row->note)
		str_printf(&line, "; %s", row->note);
	style_item(out, style, "  - ", 4, str_text(&line));
	str_free(&line);
}

static void match_text(
    const struct torch_match *m, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (m->kind == TORCH_MATCH_IDENTICAL)
		str_printf(&line,
		    "The model of PyTorch's allocator takes the same %s segments as PyTorch did, "
		    "for %s requests.",
		    fmt_count(&a, m->segments), fmt_count(&b, m->requests));
	else
		str_printf(&line,
		    "The model of PyTorch's allocator does not do as PyTorch did: of what is "
		    "reserved it is off by up to %.1f %%, from request %s on, after %s. The rows "
		    "above are %s.",
		    m->deviation * 100, fmt_count(&a, m->first.request),
		    fmt_duration(&b, m->first.time_ns),
		    m->kind == TORCH_MATCH_WITHIN ? "close" : "not to be relied on");
	if (m->doubt)
		str_printf(&line, " In doubt: %s.", m->doubt);
	style_wrap(out, style, 2, str_text(&line));
	str_free(&line);
}

void what_if_text(const struct what_if_answer *a, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt f;

	report_damage_text(&a->damage, style, out);
	str_printf(&line, "What if, in %s of process %" PRIu32, a->space, a->pid);
	if (a->limit)
		str_printf(&line, ", with %s", fmt_size(&f, a->limit));
	style_title(out, style, str_text(&line));
	for (size_t i = 0; i < a->count; i++)
		row_text(&a->rows[i], style, out);
	what_if_lengths_text(&a->lengths, style, out);
	if (a->match.requests) {
		str_puts(out, "\n");
		match_text(&a->match, style, out);
	}
	str_free(&line);
}
