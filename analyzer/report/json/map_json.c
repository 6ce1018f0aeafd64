/* map_json.c - the map as JSON. The host's segments come without their blocks. */
#include <stdio.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "util/text/json.h"

#define PINS 8u

static void address(struct json *j, const char *key, uint64_t value)
{
	char text[24];

	/* As text: a double does not hold it. */
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	json_string(j, key, text);
}

static void pins(
    struct json *j, const char *key, const struct space_map *map, size_t first, size_t count)
{
	struct map_pin list[PINS];
	int n = map_pins(map, first, count, list, PINS);

	json_array(j, key);
	for (int i = 0; i < n && i < (int)PINS; i++) {
		json_object(j, NULL);
		json_u64(j, "site", list[i].stats);
		json_u64(j, "bytes", list[i].bytes);
		json_u64(j, "blocks", list[i].blocks);
		json_object_end(j);
	}
	json_array_end(j);
}

static void blocks(struct json *j, const struct space_map *map, const struct map_segment *s)
{
	json_array(j, "blocks");
	for (size_t i = s->first; i < s->first + s->count; i++) {
		const struct map_piece *p = &map->pieces.items[i];

		json_object(j, NULL);
		address(j, "address", p->start);
		json_u64(j, "bytes", p->end - p->start);
		if (p->callsite == MAP_HOLE) {
			json_null(j, "site");
		} else {
			json_u64(j, "site", p->callsite);
			address(j, "stream", p->stream);
			json_real(j, "seconds", (double)p->birth_ns / 1e9, 6);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

static void segments(struct json *j, const struct space_map *map)
{
	json_array(j, "segments");
	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		json_object(j, NULL);
		address(j, "address", s->start);
		json_u64(j, "bytes", s->end - s->start);
		json_bool(j, "acquired", s->acquired);
		json_bool(j, "mapped", s->mapped);
		json_u64(j, "live_bytes", s->live_bytes);
		json_u64(j, "live_blocks", s->live_blocks);
		json_u64(j, "holes", s->holes);
		json_u64(j, "hole_bytes", s->hole_bytes);
		json_u64(j, "largest_hole_bytes", s->largest_hole);
		pins(j, "held_by", map, s->first, s->count);
		if (!map->host)
			blocks(j, map, s);
		json_object_end(j);
	}
	json_array_end(j);
}

static void stats_list(struct json *j, const struct map_view *v)
{
	const struct feed *feed = &v->model->feed;

	json_array(j, "sites");
	for (size_t i = 0; i < v->map->callsites.count; i++) {
		const struct map_callsite *s = &v->map->callsites.items[i];
		struct stack_view stack = {0};

		if (s->stack)
			stack.count = feed->symbols(feed->self, s->stack, &stack.symbols);

		json_object(j, NULL);
		json_string(j, "function", s->function);
		json_string(j, "file", s->file);
		json_u64_or_null(j, "line", s->line, s->line);
		json_u64(j, "bytes", s->bytes);
		json_u64(j, "blocks", s->blocks);
		report_stack_json(j, "stack", &stack);
		json_object_end(j);
	}
	json_array_end(j);
}

void map_json(const struct map_view *v, const struct report_style *style, struct str *out)
{
	struct json j = {.out = out, .pretty = true};
	const struct space_map *map = v->map;

	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	damage_json(&j, &v->damage);
	json_u64(&j, "pid", v->pid);
	json_string(&j, "space", map->name);
	json_string(&j, "at", v->at);
	json_real(&j, "seconds", (double)v->time_ns / 1e9, 6);
	json_u64(&j, "bytes", map->bytes);
	json_u64(&j, "live_bytes", map->live_bytes);
	json_u64(&j, "live_blocks", map->live_blocks);
	json_u64(&j, "holes", map->holes);
	json_u64(&j, "hole_bytes", map->hole_bytes);
	json_u64(&j, "largest_hole_bytes", map->largest_hole);
	json_u64(&j, "hidden_bytes", map->hidden_bytes);
	json_u64(&j, "hidden_blocks", map->hidden_blocks);
	json_u64_or_null(&j, "reserved_bytes", v->reserved, v->reserved_known);
	json_u64_or_null(&j, "device_free_bytes", v->free, v->free_known);
	json_u64_or_null(&j, "device_total_bytes", v->total, v->free_known);
	json_u64_or_null(&j, "requested_bytes", v->request, v->request);
	json_u64_or_null(&j, "segment_bytes", v->segment, v->segment);
	if (map->room.found) {
		const struct map_piece *first = &map->pieces.items[map->room.first];

		json_object(&j, "room");
		json_u64(&j, "segment", map->room.segment);
		address(&j, "address", first->start);
		json_u64(&j, "bytes", first[map->room.count - 1].end - first->start);
		json_u64(&j, "live_bytes", map->room.bytes);
		json_u64(&j, "live_blocks", map->room.blocks);
		pins(&j, "held_by", map, map->room.first, map->room.count);
		json_object_end(&j);
	} else {
		json_null(&j, "room");
	}
	device_samples_json(&j, v->samples, v->sample_count);
	segments(&j, map);
	stats_list(&j, v);
	json_object_end(&j);
	str_putc(out, '\n');
}
