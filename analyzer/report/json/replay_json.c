/* replay_json.c - see format.h. */
#include <math.h>

#include "report/format.h"
#include "report/frames.h"
#include "util/num.h"
#include "util/text/json.h"

static void point(struct json *j, const char *key, const struct replay_point *p, bool stack)
{
	if (!p->failed) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	json_string(j, "kind", p->kind);
	json_string(j, "space", p->space);
	json_u64_or_null(j, "requested_bytes", p->requested, p->requested > 0);
	json_real(j, "seconds", (double)p->time_ns / 1e9, 6);
	json_u64(j, "event", p->event);
	if (stack)
		report_stack_json(j, "stack", &p->words);
	json_object_end(j);
}

static void row(struct json *j, const struct replay_row *r)
{
	json_object(j, NULL);
	json_string(j, "name", r->name);
	json_string(j, "missing", *r->missing ? r->missing : NULL);
	if (!*r->missing) {
		json_u64(j, "peak_live", r->peak_live);
		json_u64(j, "peak_resident", r->peak_resident);
		json_u64(j, "touched_then", r->touched);
		json_u64_or_null(j, "held_then", r->held, r->held > 0);
		json_u64_or_null(j, "used_then", r->used, r->used > 0);
		json_u64(j, "end_live", r->end_live);
		json_u64(j, "end_resident", r->end_resident);
		json_bool(j, "granted", r->granted);
		json_u64(j, "granted_before_bytes", r->later);
		json_u64(j, "lent_bytes", r->lent);
		json_u64(j, "operations", r->ops);
		json_real(j, "seconds", (double)r->ns / 1e9, 6);
	}
	point(j, "failed_at", &r->failed, false);
	json_object_end(j);
}

static void basis(struct json *j, const struct replay_result *r)
{
	static const char *const names[PLAN_KINDS] = {"blocks", "zeroed", "mappings"};

	json_u64(j, "beside_bytes", r->beside);
	json_real(j, "speed", r->speed > 0 ? r->speed : NAN, 6);
	json_object(j, "touch");
	json_bool(j, "written_to", r->touched);
	for (int k = 0; k < PLAN_KINDS; k++)
		json_real(j, names[k], r->shares[k] < 0 ? NAN : r->shares[k], 4);
	json_u64(j, "fitted_to_samples", r->touch.samples);
	json_object_end(j);
	if (!r->curve.known) {
		json_null(j, "resident_curve");
		return;
	}
	json_object(j, "resident_curve");
	json_u64(j, "recorded_peak", r->curve.recorded);
	json_u64(j, "replayed_peak", r->curve.replayed);
	json_u64(j, "replayed_least", r->curve.least);
	json_u64(j, "replayed_most", r->curve.most);
	json_bool(j, "told", r->curve.told);
	json_real(j, "deviation", r->curve.deviation, 4);
	json_object_end(j);
}

static void torch_row(
    struct json *j, const char *key, const char *device, const struct through_answer *a)
{
	const struct through_refusal *f = &a->refused;

	json_object(j, key);
	json_string(j, "name", a->torch);
	json_string(j, "device", device);
	if (f->serial) {
		json_object(j, "failed_at");
		json_u64(j, "event", f->serial);
		json_u64(j, "requested_bytes", f->size);
		json_u64(j, "reserved_bytes", f->reserved);
		json_u64(j, "allocated_bytes", f->allocated);
		json_object_end(j);
	} else {
		json_null(j, "failed_at");
	}
	json_u64(j, "peak_reserved", a->peak_reserved);
	json_u64(j, "peak_allocated", a->peak_allocated);
	json_u64(j, "granted_refusals", a->granted);
	json_object_end(j);
}

static void torch(struct json *j, const struct replay_result *r)
{
	const struct through_answer *own = &r->torch.own;
	const struct torch_outcome *o = &r->torch.model;
	struct through_answer model = {.torch = "model",
	    .peak_reserved = o->peak_reserved,
	    .peak_allocated = o->peak_allocated,
	    .granted = o->granted_refusals,
	    .refused = replay_refusal(o)};

	json_object(j, "torch");
	json_string(j, "alloc_conf", r->torch.settings);
	json_u64_or_null(j, "memory_bytes", o->memory, o->memory > 0);
	json_u64(j, "streams", r->match.streams);
	torch_row(j, "model", NULL, &model);
	if (r->torch.through) {
		torch_row(j, "own", own->simulated ? "simulated" : own->device, own);
		json_bool(j, "agree", r->torch.agree);
		json_real(j, "deviation", r->torch.deviation, 6);
	} else {
		json_null(j, "own");
	}
	json_object_end(j);
}

void replay_json(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_bool(&j, "same_failure", r->same);
	point(&j, "original", &r->original, true);
	point(&j, "replayed", &r->replayed, true);
	json_string(
	    &j, "limit_kind", r->limit_kind == LIMIT_NONE ? NULL : limit_kind_name(r->limit_kind));
	json_string(&j, "limit", r->limit_by);
	json_u64_or_null(&j, "limit_bytes", r->limit_bytes, r->limit_bytes > 0);
	json_u64_or_null(&j, "memory_bytes", r->memory, r->memory > 0);
	json_u64_or_null(&j, "lasts_seconds", r->lasts_ns / 1000000000u,
	    r->lasts_ns && r->lasts_ns != UINT64_MAX);
	json_u64(&j, "peak_live", r->peak_live);
	json_array(&j, "allocators");
	for (size_t i = 0; i < r->row_count; i++)
		row(&j, &r->rows[i]);
	json_array_end(&j);
	if (r->torch.asked)
		torch(&j, r);
	if (r->asked_driver)
		json_string(&j, "device", r->driver.simulated ? "simulated" : r->driver.device);
	if (r->modelled)
		json_i64(&j, "headroom_bytes", r->headroom);
	else
		basis(&j, r);
	json_array(&j, "notes");
	for (size_t i = 0; i < r->note_count; i++)
		json_string(&j, NULL, r->notes[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_puts(out, "\n");
}
