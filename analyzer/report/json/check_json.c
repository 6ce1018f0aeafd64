/* check_json.c - the result of `whyoom check` as JSON: check-schema.json. */
#include <stdio.h>

#include "report/format.h"
#include "report/unrecorded.h"
#include "util/text/json.h"

static const char *end_word(const struct trace_facts *f)
{
	if (f->running)
		return "running";
	switch (f->end_how) {
	case TRACE_END_EXIT:
		return "exit";
	case TRACE_END_SIGNAL:
		return "signal";
	case TRACE_END_EXEC:
		return "exec";
	case TRACE_END_DETACHED:
		return "detached";
	}
	return "unknown";
}

static void put_checkpoint_json(
    struct json *j, const struct trace_checkpoint_facts *c, const struct trace_replaced *r)
{
	json_object(j, "checkpoint");
	json_u64(j, "number", c->number);
	json_u64(j, "damaged", c->damaged);
	json_u64(j, "unfinished_chunks", c->unfinished);
	json_real(j, "until_seconds", (double)c->until_ns / 1e9, 6);
	json_u64(j, "periods", r->periods);
	json_u64(j, "trace_bytes", r->trace_bytes);
	json_u64(j, "acquired", r->acquired);
	json_u64(j, "acquired_bytes", r->acquired_bytes);
	json_u64(j, "released", r->released);
	json_u64(j, "released_bytes", r->released_bytes);
	json_u64(j, "left_out", r->left_out);
	json_object_end(j);
}

static void put_rights_json(struct json *j, const struct trace_rights_facts *r)
{
	json_object(j, "rights");
	json_object(j, "given_up_seconds");
	for (uint32_t i = 0; i < TRACE_RIGHT_KINDS; i++)
		if (r->given_up_ns[i])
			json_real(j, trace_right_key(i), (double)r->given_up_ns[i] / 1e9, 6);
	json_object_end(j);
	json_real(j, "stopped_seconds", (double)r->stopped_ns / 1e9, 6);
	json_u64(j, "children", r->children);
	json_string(j, "reason", r->stopped_ns || r->children ? trace_right_key(r->reason) : NULL);
	json_object_end(j);
}

static void put_place_json(struct json *j, const struct trace_damage_place *p)
{
	bool known = p->offset || p->kind == TRACE_DAMAGE_HEADER;

	json_object(j, NULL);
	json_string(j, "what", trace_damage_word(p->kind));
	json_u64_or_null(j, "offset", p->offset, known);
	json_u64(j, "bytes", p->bytes);
	json_u64_or_null(j, "thread", p->thread, p->thread);
	json_u64_or_null(j, "sequence", p->sequence, p->thread);
	json_real(j, "from_seconds", (double)p->from_ns / 1e9, 6);
	json_real(j, "to_seconds", (double)p->to_ns / 1e9, 6);
	json_object_end(j);
}

static void put_damage_json(struct json *j, const struct trace_damage *d)
{
	if (!d->count) {
		json_null(j, "damage");
		return;
	}
	json_object(j, "damage");
	json_u64(j, "bytes", d->bytes);
	json_real(j, "share", d->share, 6);
	json_real(j, "from_seconds", (double)d->from_ns / 1e9, 6);
	json_real(j, "to_seconds", (double)d->to_ns / 1e9, 6);
	json_u64_or_null(j, "threads", d->threads, d->threads);
	json_array(j, "places");
	for (size_t i = 0; i < d->count; i++)
		put_place_json(j, &d->places[i]);
	json_array_end(j);
	json_u64(j, "more_places", d->more);
	json_object_end(j);
}

static void put_trace_json(struct json *j, struct trace *t, const struct check_tally *tally)
{
	const struct trace_facts *f = trace_facts(t);
	const struct trace_counts *counts = trace_counts(t);
	const struct trace_thread *threads;
	size_t count = trace_threads(t, &threads);
	char key[24];

	json_object(j, NULL);
	json_u64(j, "pid", f->pid);
	json_u64(j, "image", f->image);
	json_string(j, "trace", f->path);
	json_string(j, "exe", f->exe);
	snprintf(key, sizeof(key), "%u.%u", f->major, f->minor);
	json_string(j, "format", key);
	json_u64(j, "events", counts->events);
	json_u64(j, "dropped", f->dropped_total);
	json_object(j, "dropped_by");
	for (size_t i = 0; i < TRACE_DROP_REASONS; i++) {
		const char *known = check_drop_key(i);

		snprintf(key, sizeof(key), "reason_%zu", i);
		if (f->dropped[i])
			json_u64(j, known ? known : key, f->dropped[i]);
	}
	json_object_end(j);
	json_u64(j, "dropped_bytes", f->dropped_bytes);
	json_bool(j, "budget_reached", f->budget);
	json_bool(j, "disk_bound_reached", f->disk_bound);
	json_bool(j, "small", trace_is_small(t));
	json_u64(j, "torn_chunks", f->torn_chunks);
	json_u64(j, "bad_checksums", f->bad_checksums);
	json_u64(j, "unknown_records", f->unknown_records);
	put_damage_json(j, &f->damage);
	json_bool(j, "whole", check_is_whole(f, tally));
	json_bool(j, "complete", check_is_complete(f, tally));
	json_string(j, "error", tally->cut ? tally->why.text : NULL);
	json_object(j, "end");
	json_string(j, "how", end_word(f));
	if (!f->running && (f->end_how == TRACE_END_EXIT || f->end_how == TRACE_END_SIGNAL))
		json_u64(j, "code", f->end_code);
	json_object_end(j);
	json_real(j, "seconds", (double)f->last_ns / 1e9, 6);
	json_u64(j, "repairs", counts->repairs);
	json_u64(j, "unmatched_frees", counts->unmatched_frees);
	json_u64(j, "double_allocs", counts->double_allocs);
	json_u64(j, "stacks", trace_stack_limit(t) - 1);
	json_u64(j, "maps", tally->maps);
	json_u64(j, "unmaps", tally->unmaps);
	json_u64(j, "failed", tally->failed);
	json_u64(j, "marks", tally->marks);
	json_u64(j, "requests", tally->requests);
	json_u64(j, "open_requests", tally->open_requests);
	json_u64(j, "tasks", counts->tasks);
	put_checkpoint_json(j, &f->checkpoint, &counts->replaced);
	json_u64(j, "paused_bytes", f->paused_bytes);
	json_u64(j, "brief_stacks", f->brief_stacks);
	json_u64(j, "untold", f->untold);
	put_rights_json(j, &f->rights);
	json_u64(j, "unrecorded", f->unrecorded);
	json_array(j, "unrecorded_programs");
	for (size_t i = 0; i < f->unrecorded_programs; i++) {
		json_object(j, NULL);
		json_string(j, "path", f->unrecorded_program[i].path);
		json_string(j, "why", unrecorded_key(f->unrecorded_program[i].why));
		json_u64(j, "count", f->unrecorded_program[i].count);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "threads");
	for (size_t i = 0; i < count; i++) {
		json_object(j, NULL);
		json_u64(j, "tid", threads[i].tid);
		json_string(j, "name", threads[i].name);
		json_u64(j, "allocs", threads[i].allocs);
		json_u64(j, "frees", threads[i].frees);
		json_object_end(j);
	}
	json_array_end(j);
	json_array(j, "spaces");
	json_object(j, NULL);
	json_string(j, "space", "host");
	json_u64(j, "allocs", tally->allocs);
	json_u64(j, "frees", tally->frees);
	json_u64(j, "live_blocks", tally->live_blocks);
	json_u64(j, "live_bytes", tally->live_bytes);
	json_u64(j, "most_live_blocks", tally->most_live);
	json_object_end(j);
	for (size_t i = 0; i < tally->spaces.count; i++) {
		const struct check_space *sp = &tally->spaces.items[i];

		json_object(j, NULL);
		json_string(j, "space", sp->name);
		json_u64(j, "allocs", sp->allocs);
		json_u64(j, "frees", sp->frees);
		json_u64(j, "live_blocks", sp->live_blocks);
		json_u64(j, "live_bytes", sp->live_bytes);
		json_u64(j, "most_live_blocks", sp->most_live);
		json_u64(j, "most_live_bytes", sp->most_bytes);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_set_json(struct json *j, const struct trace_set *set)
{
	json_object(j, NULL);
	json_string(j, "path", set->path);
	if (set->account.known) {
		json_u64(j, "disk_bound", set->account.bound);
		json_u64(j, "disk_held", set->account.held);
	}
	json_array(j, "empty");
	for (size_t i = 0; i < set->empty_count; i++)
		json_string(j, NULL, set->empty[i]);
	json_array_end(j);
	json_u64(j, "files_left_out", set->left_out);
	json_u64(j, "bytes_left_out", set->left_out_bytes);
	json_object_end(j);
}

void check_json(const struct check_view *v, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};
	const struct check_tally *tally = v->tallies;

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_array(&j, "processes");
	for (size_t i = 0; i < v->set_count; i++) {
		for (size_t k = 0; k < v->sets[i].count; k++)
			put_trace_json(&j, v->sets[i].images[k], &tally[k]);
		tally += check_trace_count(&v->sets[i]);
	}
	json_array_end(&j);
	json_array(&j, "directories");
	for (size_t i = 0; i < v->set_count; i++)
		put_set_json(&j, &v->sets[i]);
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
}
