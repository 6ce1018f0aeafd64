/* report_json.c - the report as JSON, schema 1: report-schema.json says what may be where. */
#include "util/text/json.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "util/text/fmt.h"

static void process_memory(struct json *j, const struct process *p)
{
	json_array(j, "memory");
	for (size_t i = 0; i < p->memory_count; i++) {
		const struct process_memory *m = &p->memory[i];

		json_object(j, NULL);
		json_string(j, "space", m->space);
		json_u64_or_null(j, "gpu", m->gpu, m->gpu != GPU_NONE);
		json_u64(j, "held_bytes", m->held);
		json_u64(j, "peak_bytes", m->peak);
		json_object_end(j);
	}
	json_array_end(j);
	json_u64_or_null(j, "resident_bytes", p->resident, p->resident);
}

static void processes(struct json *j, const struct verdict_result *r)
{
	static const char *const hows[] = {"unknown", "exit", "signal", "unknown", "detached"};

	json_array(j, "processes");
	for (size_t i = 0; i < r->tree.count; i++) {
		const struct process *p = &r->tree.processes[i];
		time_t seconds = (time_t)(p->start_real_ns / 1000000000u);
		char text[40] = "";
		struct tm tm;

		json_object(j, NULL);
		json_u64(j, "pid", p->pid);
		json_u64(j, "parent_pid", p->ppid);
		json_string(j, "cmdline", p->cmdline);
		json_string(j, "trace", p->trace);
		json_u64(j, "events", p->events);
		json_u64(j, "dropped", p->dropped);
		if (gmtime_r(&seconds, &tm))
			strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		json_string(j, "started", text);
		json_real(j, "seconds", p->seconds, 6);
		json_object(j, "end");
		json_string(j, "how", hows[p->how]);
		json_u64_or_null(j, "code", p->code, p->how == END_EXIT || p->how == END_SIGNAL);
		json_bool(j, "running", p->how == END_RUNNING);
		json_object_end(j);
		json_real(
		    j, "refused_seconds", p->refused_ns ? (double)p->refused_ns / 1e9 : NAN, 6);
		process_memory(j, p);
		json_object_end(j);
	}
	json_array_end(j);
}

/* "image=chat:1.4,pod=chat-0" as an object. */
static void labels(struct json *j, const char *text)
{
	json_object(j, "labels");
	while (*text) {
		size_t n = strcspn(text, ","), name = strcspn(text, "=");

		if (name < n) {
			char key[64], value[1024];

			snprintf(key, sizeof(key), "%.*s", (int)name, text);
			snprintf(
			    value, sizeof(value), "%.*s", (int)(n - name - 1), text + name + 1);
			json_string(j, key, value);
		}
		text += n + (text[n] == ',');
	}
	json_object_end(j);
}

/* Where the run took place. */
static void origin(struct json *j, const struct process *p)
{
	json_string(j, "host", *p->host ? p->host : NULL);
	labels(j, p->labels);
}

static void failure(struct json *j, const struct verdict_result *r)
{
	const struct failure_view *f = &r->failure;
	bool failed = f->kind != FAILURE_NONE, device = f->kind == FAILURE_CUDA_OOM;
	uint64_t segment = device ? r->devices.first->segment : 0;

	json_object(j, "failure");
	json_string(j, "kind", failure_kind_name(f->kind));
	json_u64_or_null(j, "pid", f->pid, failed);
	json_real(j, "seconds", failed ? (double)f->time_ns / 1e9 : NAN, 6);
	json_string(j, "space", device ? r->devices.first->space : failed ? "host" : NULL);
	json_u64_or_null(j, "requested_bytes", f->requested_bytes, failed && f->requested_bytes);
	json_u64_or_null(j, "segment_bytes", segment, segment);
	json_string(j, "limit_kind", limit_kind_name(f->limit));
	json_u64(j, "limit_bytes", f->limit_bytes);
	json_u64(j, "usage_bytes", f->usage_bytes);
	if (f->limit == LIMIT_MAPPINGS)
		json_u64(j, "mappings", f->mappings);
	json_string(j, "evidence", f->kill_evidence);
	report_stack_json(j, "stack", &f->stack);
	json_object_end(j);
}

static void recovered(struct json *j, const struct verdict_result *r)
{
	json_array(j, "recovered");
	for (size_t i = 0; i < r->recoveries.count; i++) {
		const struct recovered *x = &r->recoveries.list[i];

		json_object(j, NULL);
		json_real(j, "seconds", (double)x->time_ns / 1e9, 6);
		json_string(j, "space", x->space ? x->space : "host");
		json_u64(j, "requested_bytes", x->size);
		if (x->segment)
			json_u64(j, "segment_bytes", x->segment);
		json_u64(j, "refused", x->count);
		json_string(j, "how", x->retried ? "retried" : "survived");
		report_stack_json(j, "stack", &x->stack);
		json_object_end(j);
	}
	json_array_end(j);
}

/* What is known of the time that a checkpoint took the place of. */
static void past(struct json *j, const struct coverage *c)
{
	const struct replaced *p = &c->past;

	json_object(j, "checkpoint");
	json_real(j, "until_seconds", (double)c->checkpoint.until_ns / 1e9, 3);
	json_bool(j, "damaged", c->checkpoint.damaged);
	json_bool(j, "lost", !c->checkpoint.number);
	json_u64(j, "trace_bytes", p->trace_bytes);
	json_u64(j, "acquired", p->acquired);
	json_u64(j, "acquired_bytes", p->acquired_bytes);
	json_u64(j, "released", p->released);
	json_u64(j, "released_bytes", p->released_bytes);
	json_u64(j, "most_bytes", p->most_bytes);
	json_u64(j, "left_out", p->left_out);
	json_array(j, "periods");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct replaced_period *q = &p->periods[i];

		json_object(j, NULL);
		json_real(j, "from_seconds", (double)q->begin_ns / 1e9, 3);
		json_real(j, "until_seconds", (double)q->end_ns / 1e9, 3);
		json_u64(j, "acquired", q->acquired);
		json_u64(j, "acquired_bytes", q->acquired_bytes);
		json_u64(j, "released", q->released);
		json_u64(j, "released_bytes", q->released_bytes);
		json_u64(j, "most_bytes", q->most_bytes);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void coverage(struct json *j, const struct verdict_result *r)
{
	const struct coverage *c = &r->coverage;

	json_object(j, "coverage");
	json_string(j, "malloc_owner", c->malloc_owner);
	json_array(j, "hooks");
	if (c->malloc_seen)
		json_string(j, NULL, "malloc");
	if (c->maps_seen)
		json_string(j, NULL, "mmap");
	json_array_end(j);
	json_string(j, "python", c->python && *c->python ? c->python : NULL);
	json_string(j, "cuda", r->devices.first ? r->devices.first->cuda : NULL);
	json_string(j, "torch", r->devices.first ? r->devices.first->torch_blocks : NULL);
	json_bool(j, "trace_complete", c->complete);
	json_u64(j, "lost_events", c->lost_events);
	if (c->small_missing || c->checkpoint.until_ns)
		json_string(j, "bound", c->disk_bound ? "max-disk" : "max-trace");
	if (c->sample_every) {
		json_object(j, "sampled");
		json_u64(j, "every_bytes", c->sample_every);
		json_u64(j, "exact_from_bytes", c->exact_from);
		json_u64(j, "error_bytes", (uint64_t)c->error);
		if (c->coarser_times) {
			json_u64(j, "coarser_times", c->coarser_times);
			json_u64(j, "coarsest_every_bytes", c->coarsest_every);
			json_u64(j, "coarsest_exact_from_bytes", c->coarsest_exact_from);
		}
		if (c->thinned_times) {
			json_u64(j, "thinned_times", c->thinned_times);
			json_u64(j, "thinned_blocks", c->thinned_blocks);
			json_u64(j, "thinned_every_bytes", c->thinned_every);
		}
		json_object_end(j);
	}
	if (c->attach.any) {
		json_object(j, "attached");
		json_real(
		    j, "after_seconds", c->attach.ran_ns ? (double)c->attach.ran_ns / 1e9 : NAN, 3);
		json_u64(j, "there_bytes", c->attach.there);
		json_u64(j, "freed_bytes", c->attach.freed);
		json_object_end(j);
	}
	if (c->paused_ns) {
		json_real(j, "paused_seconds", (double)c->paused_ns / 1e9, 3);
		json_u64(j, "paused_bytes", c->paused_bytes);
	}
	if (c->checkpoint.until_ns)
		past(j, c);
	if (c->brief_stacks || c->untold) {
		json_u64(j, "brief_stacks", c->brief_stacks);
		json_u64(j, "untold", c->untold);
	}
	if (c->rights.stopped_ns || c->rights.children) {
		json_object(j, "rights");
		json_string(j, "given_up", trace_right_key(c->rights.reason));
		json_real(j, "seconds", (double)c->rights.given_up_ns[c->rights.reason] / 1e9, 3);
		json_real(j, "not_recorded_since_seconds", (double)c->rights.stopped_ns / 1e9, 3);
		json_u64(j, "children", c->rights.children);
		json_object_end(j);
	}
	json_string(j, "gap", c->gap);
	json_object_end(j);
}

/* What the verdict was chosen among, best first. */
static void candidates(struct json *j, const struct verdict_result *r)
{
	json_array(j, "candidates");
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct candidate *c = &r->ranking.list[i];

		json_object(j, NULL);
		json_string(j, "cause", cause_name(c->finding.cause));
		json_real(j, "strength", c->finding.strength, 4);
		json_real(j, "share", c->share, 4);
		json_real(j, "further", c->further, 4);
		json_real(j, "score", c->score, 4);
		json_real(j, "confidence", c->confidence, 4);
		json_bool(j, "fits", c->fits);
		json_bool(j, "admissible", c->admissible);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Sums of what a trace claims may be larger than any that there is. */
static int64_t whole(double value)
{
	return value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? INT64_MIN : (int64_t)value;
}

static void verdict(struct json *j, const struct verdict_result *r)
{
	const struct verdict *v = &r->verdict;

	json_object(j, "verdict");
	json_string(j, "cause", cause_name(v->cause));
	json_real(j, "confidence", v->confidence, 3);
	json_string(j, "summary", v->summary);
	json_string(
	    j, "space", r->failure.kind == FAILURE_CUDA_OOM ? r->devices.first->space : "host");
	if (v->blame.function) {
		json_object(j, "blame");
		json_string(j, "function", v->blame.function);
		json_string(j, "file", v->blame.file);
		json_u64_or_null(j, "line", v->blame.line, v->blame.line);
		json_u64(j, "bytes", v->blame.bytes);
		if (r->coverage.sample_every)
			json_u64(j, "error_bytes", (uint64_t)v->blame.error);
		report_stack_json(j, "stack", &v->blame.stack);
		json_object_end(j);
	} else {
		json_null(j, "blame");
	}
	json_array(j, "evidence");
	for (size_t i = 0; i < v->evidence_count; i++) {
		const struct evidence *e = &v->evidence[i];

		json_object(j, NULL);
		json_string(j, "fact", fact_text(e->fact));
		if (fact_unit(e->fact) == UNIT_SHARE)
			json_real(j, "value", e->value, 4);
		else
			json_i64(j, "value", whole(e->value));
		json_string(j, "unit", unit_name(fact_unit(e->fact)));
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "fixes");
	for (size_t i = 0; i < v->fix_count; i++) {
		json_object(j, NULL);
		json_string(j, "for", v->fixes[i].for_);
		json_string(j, "text", v->fixes[i].text);
		json_object_end(j);
	}
	json_array_end(j);
	runner_up_json(j, v->runner_up, v->runner_up_confidence);
	json_string(j, "next", v->next);
	candidates(j, r);
	json_object_end(j);
}

static void ledger(struct json *j, const struct ledger *l)
{
	json_object(j, NULL);
	json_string(j, "space", l->space ? l->space : "host");
	json_u64(j, "pid", l->pid);
	json_string(j, "limit_kind", limit_kind_name(l->limit));
	json_u64(j, "limit_bytes", l->limit_bytes);
	json_string(j, "at", l->at);
	json_array(j, "rows");
	for (uint32_t i = 0; i < l->row_count; i++) {
		json_object(j, NULL);
		json_string(j, "class", l->rows[i].class);
		json_u64(j, "bytes", l->rows[i].bytes);
		json_object_end(j);
	}
	json_array_end(j);
	json_i64(j, "unaccounted_bytes", l->unaccounted);
	json_real(j, "sample_age_seconds", (double)l->age_ns / 1e9, 6);
	json_object_end(j);
}

static void ledgers(struct json *j, const struct verdict_result *r)
{
	json_array(j, "ledger");
	ledger(j, &r->ledger);
	/* Of the device that failed, it is the first. */
	for (size_t i = r->failure.kind == FAILURE_CUDA_OOM; i < r->devices.count; i++)
		ledger(j, &r->devices.list[i].ledger);
	json_array_end(j);
}

void report_json(const struct report_view *v, const struct report_style *style, struct str *out)
{
	const struct verdict_result *r = v->result;
	struct json j = {.out = out, .pretty = true};

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	damage_json(&j, &r->tree.damage);
	origin(&j, &r->tree.processes[r->tree.subject]);
	processes(&j, r);
	prospect_json(&j, r);
	failure(&j, r);
	recovered(&j, r);
	coverage(&j, r);
	verdict(&j, r);
	ledgers(&j, r);
	if (r->devices.first) {
		device_json(&j, "device", r->devices.first);
		json_array(&j, "other_devices");
		for (size_t i = 1; i < r->devices.count; i++)
			device_json(&j, NULL, &r->devices.list[i]);
		json_array_end(&j);
		spaces_json(&j, r);
	}
	flow_json(&j, r);
	json_array(&j, "what_if");
	for (size_t i = 0; i < r->what_ifs.count; i++) {
		json_object(&j, NULL);
		json_string(&j, "change", r->what_ifs.list[i].change);
		json_bool(&j, "fits", r->what_ifs.list[i].fits);
		json_i64(&j, "headroom_bytes", r->what_ifs.list[i].headroom);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (v->log) {
		json_object(&j, "log");
		explanation_json(&j, v->log, v->joined);
		json_object_end(&j);
	}
	json_object_end(&j);
	str_putc(out, '\n');
}

const struct format format_json = {.name = "json",
#define RESULT(member, type) .member = member##_json,
    FORMAT_RESULTS(RESULT)
#undef RESULT
};
