/* device_json.c - see device.h. */
#include "report/device.h"
#include "report/frames.h"

static void sites(struct json *j, const struct device_report *d)
{
	json_array(j, "sites");
	for (size_t i = 0; i < d->site_count; i++) {
		const struct device_site *s = &d->sites[i];

		json_object(j, NULL);
		json_string(j, "function", s->function);
		json_string(j, "file", s->file);
		json_u64_or_null(j, "line", s->line, s->line);
		json_u64(j, "bytes", s->bytes);
		json_u64(j, "blocks", s->blocks);
		report_stack_json(j, "stack", &s->stack);
		json_object_end(j);
	}
	json_array_end(j);
}

void device_json(struct json *j, const struct device_report *d)
{
	json_object(j, "device");
	json_string(j, "space", d->device);
	json_string(j, "at", d->failed ? "failure" : "peak");
	json_real(j, "seconds", (double)d->time_ns / 1e9, 6);
	json_u64_or_null(j, "free_bytes", d->free, d->free_known);
	json_u64_or_null(j, "total_bytes", d->total, d->free_known);
	json_u64(j, "explained_bytes", d->explained);
	json_u64_or_null(j, "others_bytes", d->others, d->others_known);
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
	sites(j, d);
	json_object_end(j);
}
