/* prospect_json.c - what lies ahead of a process that still runs. */
#include <math.h>

#include "report/parts.h"

static void seconds(struct json *j, const char *key, double value)
{
	json_real(j, key, isinf(value) ? NAN : value, 3); /* null: none is in sight */
}

static void space(struct json *j, const struct prospect_space *s)
{
	static const char *const states[] = {[FORECAST_UNKNOWN] = "unknown",
	    [FORECAST_STEADY] = "steady",
	    [FORECAST_GROWS] = "grows"};
	const struct forecast *f = &s->forecast;

	json_object(j, NULL);
	json_string(j, "space", s->name);
	json_string(j, "state", states[f->state]);
	json_u64(j, "live_bytes", s->live_bytes);
	json_u64_or_null(j, "left_bytes", s->left, s->limited);
	json_real(j, "bytes_per_second", f->state == FORECAST_UNKNOWN ? NAN : f->rate, 3);
	seconds(j, "expected_seconds", f->seconds);
	seconds(j, "soonest_seconds", f->soonest);
	seconds(j, "latest_seconds", f->latest);
	json_bool(j, "alarm", f->alarm);
	json_object_end(j);
}

void prospect_json(struct json *j, const struct verdict_result *r)
{
	if (!r->prospect.running) {
		json_null(j, "prospect");
		return;
	}
	json_object(j, "prospect");
	json_real(j, "seconds", (double)r->prospect.now_ns / 1e9, 6);
	json_array(j, "spaces");
	for (size_t i = 0; i < r->prospect.count; i++)
		space(j, &r->prospect.spaces[i]);
	json_array_end(j);
	json_object_end(j);
}
