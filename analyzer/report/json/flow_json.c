/* flow_json.c - see parts.h. */
#include "report/parts.h"

#define LISTED 32u /* requests in flight; those that ended are fewer */

static void seconds(struct json *j, const char *key, uint64_t ns)
{
	json_real(j, key, (double)ns / 1e9, 6);
}

static void phases(struct json *j, const struct flow *f)
{
	json_array(j, "phases");
	for (uint32_t i = 0; i < f->phases.count; i++) {
		const struct phase *p = &f->phases.list[i];

		json_object(j, NULL);
		json_string(j, "phase", p->name);
		seconds(j, "start_seconds", p->start_ns);
		seconds(j, "end_seconds", p->end_ns);
		json_u64(j, "live_bytes", p->live_bytes);
		json_bool(j, "marked", p->marked);
		json_object_end(j);
	}
	json_array_end(j);
}

static void ended(struct json *j, const struct request_run *q)
{
	json_object(j, NULL);
	json_u64_or_null(j, "id", q->id, q->marked);
	json_string(j, "name", q->name);
	json_u64(j, "thread", q->thread);
	json_u64(j, "task", q->task);
	seconds(j, "start_seconds", q->start_ns);
	seconds(j, "end_seconds", q->end_ns);
	json_u64(j, "acquired_bytes", q->acquired);
	json_u64(j, "peak_bytes", q->peak);
	json_u64(j, "held_bytes", q->live);
	json_object_end(j);
}

static void in_flight(struct json *j, const struct held_request *h)
{
	const struct request_run *q = h->request;

	json_object(j, NULL);
	json_u64_or_null(j, "id", q ? q->id : 0, q && q->marked);
	json_string(j, "name", q ? q->name : NULL);
	json_u64(j, "thread", h->lane->thread);
	json_u64(j, "task", h->lane->task);
	seconds(j, "start_seconds", h->since_ns ? h->since_ns : h->lane->first_ns);
	json_null(j, "end_seconds");
	json_u64(j, "acquired_bytes", q ? q->acquired : h->lane->acquired);
	json_u64(j, "peak_bytes", q ? q->peak : h->lane->peak);
	json_u64(j, "held_bytes", h->all);
	json_object_end(j);
}

static void requests(struct json *j, const struct flow *f)
{
	const struct requests *r = f->requests;

	json_object(j, "requests");
	json_string(j, "source", request_source_name(requests_source(r)));
	json_u64(j, "begun", r->begun);
	json_u64(j, "finished", r->finished);
	json_u64(j, "most_at_once", r->most_at_once);
	json_array(j, "in_flight");
	for (uint32_t i = 0; i < f->held.count && i < LISTED; i++)
		in_flight(j, &f->held.list[i]);
	json_array_end(j);
	json_array(j, "ended");
	for (uint32_t i = 0; i < r->kept_count; i++)
		ended(j, &r->kept[i]);
	json_array_end(j);
	json_object_end(j);
}

static void stages(struct json *j, const struct flow *f)
{
	json_array(j, "stages");
	for (size_t i = 0; i < f->stage_count; i++) {
		const struct stage *s = &f->stages[i];

		json_object(j, NULL);
		json_string(j, "stage", role_name(s->role));
		json_u64(j, "held_bytes", s->held);
		json_u64(j, "peak_bytes", s->peak);
		seconds(j, "peak_seconds", s->peak_ns);
		json_u64(j, "acquired_bytes", s->total);
		json_object_end(j);
	}
	json_array_end(j);
}

void flow_json(struct json *j, const struct verdict_result *r)
{
	if (!r->flow.requests)
		return;
	phases(j, &r->flow);
	requests(j, &r->flow);
	stages(j, &r->flow);
}
