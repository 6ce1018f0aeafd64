/* device_json.c - see device.h. */
#include "report/device.h"

static void number(struct json *j, const char *key, uint64_t value, bool known)
{
	if (known)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

static void sites(struct json *j, const struct device_report *d)
{
	json_array(j, "sites");
	for (size_t i = 0; i < d->site_count; i++) {
		const struct device_site *s = &d->sites[i];

		json_object(j, NULL);
		json_string(j, "function", s->function);
		json_string(j, "file", s->file);
		number(j, "line", s->line, s->line);
		json_u64(j, "bytes", s->bytes);
		json_u64(j, "blocks", s->blocks);
		json_array(j, "stack");
		for (size_t n = s->stack.count; n-- > 0;) {
			const struct symbol *f = &s->stack.symbols[n];

			json_object(j, NULL);
			json_string(j, "function", f->function ? f->function : "?");
			json_string(j, "file", f->file ? f->file : f->module);
			number(j, "line", f->line, f->line);
			json_object_end(j);
		}
		json_array_end(j);
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
	number(j, "free_bytes", d->free, d->free_known);
	number(j, "total_bytes", d->total, d->free_known);
	json_u64(j, "explained_bytes", d->explained);
	number(j, "others_bytes", d->others, d->others_known);
	if (d->free_known)
		json_i64(j, "unattributed_bytes", d->unattributed);
	else
		json_null(j, "unattributed_bytes");
	number(j, "reserved_bytes", d->reserved, d->reserved_known);
	number(j, "allocated_bytes", d->allocated, d->reserved_known);
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
