/* device_json.c - see parts.h. */
#include "report/frames.h"
#include "report/parts.h"

static void stats_list(struct json *j, const struct device_report *d)
{
	json_array(j, "sites");
	for (size_t i = 0; i < d->stack_stats_count; i++) {
		const struct device_stack_stats *s = &d->stats_list[i];

		json_object(j, NULL);
		json_string(j, "function", s->function);
		json_string(j, "file", s->file);
		json_u64_or_null(j, "line", s->line, s->line);
		json_u64(j, "bytes", s->bytes);
		json_u64(j, "blocks", s->blocks);
		json_u64_or_null(j, "largest_bytes", s->largest, s->largest);
		report_stack_json(j, "stack", &s->stack);
		json_object_end(j);
	}
	json_array_end(j);
}

void device_samples_json(struct json *j, const struct device_sample *samples, size_t count)
{
	json_array(j, "unattributed");
	for (size_t i = 0; i < count; i++) {
		const struct device_sample *s = &samples[i];

		json_object(j, NULL);
		json_real(j, "seconds", (double)s->time_ns / 1e9, 6);
		json_i64(j, "bytes", s->unattributed);
		json_u64(j, "explained_bytes", s->explained);
		json_u64(j, "free_bytes", s->free);
		json_u64_or_null(j, "own_bytes", s->own, s->own_known);
		json_u64_or_null(j, "others_bytes", s->others, s->others_known);
		json_object_end(j);
	}
	json_array_end(j);
}

void device_json(struct json *j, const char *key, const struct device_report *d)
{
	json_object(j, key);
	json_string(j, "space", d->device);
	json_string(j, "at", d->at);
	json_real(j, "seconds", (double)d->time_ns / 1e9, 6);
	json_u64_or_null(j, "free_bytes", d->free, d->free_known);
	json_u64_or_null(j, "total_bytes", d->total, d->free_known);
	json_u64(j, "explained_bytes", d->explained);
	json_u64_or_null(j, "others_bytes", d->others, d->others_known || d->others);
	json_u64_or_null(j, "own_bytes", d->own, d->own_known);
	if (d->free_known)
		json_i64(j, "unattributed_bytes", d->unattributed);
	else
		json_null(j, "unattributed_bytes");
	json_u64_or_null(j, "reserved_bytes", d->reserved, d->reserved_known);
	json_u64_or_null(j, "allocated_bytes", d->allocated, d->reserved_known);
	json_u64(j, "segments", d->segments);
	json_u64(j, "segment_bytes", d->segment_bytes);
	json_u64(j, "live_bytes", d->live_bytes);
	json_u64(j, "live_blocks", d->live_blocks);
	json_u64(j, "holes", d->holes);
	json_u64(j, "hole_bytes", d->hole_bytes);
	json_u64(j, "largest_hole_bytes", d->largest_hole);
	if (d->failed) {
		json_u64(j, "attempts", d->attempts);
		json_string(j, "call", d->api);
		json_string(j, "below", d->below[0] ? d->below : NULL);
	}
	json_u64(j, "retried", d->retried);
	json_u64(j, "failed_otherwise", d->other_results);
	stats_list(j, d);
	device_samples_json(j, d->samples, d->sample_count);
	json_object_end(j);
}

void spaces_json(struct json *j, const struct verdict_result *r)
{
	json_array(j, "spaces");
	for (size_t i = 0; i < r->devices.space_count; i++) {
		const struct space_report *s = &r->devices.spaces[i];

		json_object(j, NULL);
		json_string(j, "space", s->name);
		json_u64(j, "live_bytes", s->live_bytes);
		json_u64(j, "live_blocks", s->live_blocks);
		json_u64(j, "peak_bytes", s->peak_bytes);
		json_real(j, "peak_seconds", (double)s->peak_ns / 1e9, 6);
		json_object_end(j);
	}
	json_array_end(j);
}
