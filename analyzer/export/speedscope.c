/*
 * speedscope.c - speedscope's JSON: a profile for each space and measure, with samples root first
 * and a table of frames, which comes last so that it need not be known before.
 */
#include <errno.h>

#include "export/export.h"
#include "util/text/json.h"
#include "util/vec.h"

/* Its reader's recursion ends where a browser's stack does. */
#define DEEPEST 500u

struct speedscope {
	struct str frames; /* JSON, joined by commas */
	VEC(uint32_t) number_of; /* by the symbol's id: 1 + its place in `frames` */
	uint32_t frame_count, profiles;
	uint32_t unknown, cut; /* 1 + place of the made-up frames */
	VEC(uint64_t) weights; /* of the profile under way */
	uint64_t total;
};

static int speedscope_begin(struct export *x, struct err *err)
{
	(void)err;
	sink_puts(x->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			  "\"exporter\":\"whyoom@" WHYOOM_VERSION "\",\"profiles\":[");
	return 0;
}

static uint32_t new_frame(
    struct speedscope *t, const char *function, const char *file, uint32_t line)
{
	struct json j = {.out = &t->frames};

	if (t->frame_count)
		str_putc(&t->frames, ',');
	json_object(&j, NULL);
	json_string(&j, "name", function);
	if (file)
		json_string(&j, "file", file);
	if (file && line)
		json_u64(&j, "line", line);
	json_object_end(&j);
	return ++t->frame_count;
}

static int number_of(struct speedscope *t, const struct symbol *s, uint32_t *out)
{
	struct str name = {0};

	if (vec_reach(&t->number_of, s->id + 1u))
		return -ENOMEM;
	if (!t->number_of.items[s->id]) {
		export_function(&name, s);
		t->number_of.items[s->id] =
		    new_frame(t, str_text(&name), s->file ? s->file : s->module, s->line);
		str_free(&name);
	}
	*out = t->number_of.items[s->id] - 1;
	return t->frames.failed ? -ENOMEM : 0;
}

static void begin_profile(struct export *x, const struct export_space *s)
{
	struct speedscope *t = x->state;
	const char *unit = export_measure_unit(x->measure);
	struct str text = {0};

	t->weights.count = 0;
	t->total = 0;
	str_puts(&text, t->profiles++ ? ",\n" : "\n");
	str_puts(&text, "{\"type\":\"sampled\",\"name\":");
	if (s)
		export_title(&text, s, x->measure);
	else
		str_puts(&text, "\"nothing allocated\"");
	str_printf(&text, ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[",
	    str_same(unit, "bytes") ? unit : "none");
	sink_str(x->out, &text);
	str_free(&text);
}

static int speedscope_space(struct export *x, const struct export_space *s, struct err *err)
{
	(void)err;
	begin_profile(x, s);
	return 0;
}

static int add_frames(struct speedscope *t, const struct export_stack *s, struct str *text)
{
	uint32_t number;
	int rc = 0;

	if (!s->count && !t->unknown)
		t->unknown = new_frame(t, "(unknown)", NULL, 0);
	if (!s->count)
		str_printf(text, "%u", t->unknown - 1);
	for (size_t i = 0; !rc && i < s->count; i++) {
		if (s->count > DEEPEST && i == DEEPEST / 2) {
			if (!t->cut)
				t->cut = new_frame(t, "(frames left out)", NULL, 0);
			i = s->count - DEEPEST / 2;
			str_printf(text, ",%u", t->cut - 1);
		}
		rc = number_of(t, &s->symbols[i], &number);
		if (!rc)
			str_printf(text, "%s%u", i ? "," : "", number);
	}
	return rc;
}

static int speedscope_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct speedscope *t = x->state;
	struct str text = {0};
	int rc;

	(void)err;
	str_puts(&text, t->weights.count ? ",[" : "[");
	rc = add_frames(t, s->stack, &text);
	str_putc(&text, ']');
	if (!rc)
		rc = vec_push(&t->weights, s->value[x->measure]);
	if (!rc)
		sink_str(x->out, &text);
	t->total += s->value[x->measure];
	str_free(&text);
	return rc;
}

static void end_profile(struct export *x)
{
	const struct speedscope *t = x->state;

	sink_puts(x->out, "],\"weights\":[");
	for (size_t i = 0; i < t->weights.count; i++)
		sink_printf(
		    x->out, "%s%llu", i ? "," : "", (unsigned long long)t->weights.items[i]);
	sink_printf(x->out, "],\"endValue\":%llu}", (unsigned long long)t->total);
}

static int speedscope_space_end(struct export *x, const struct export_space *s, struct err *err)
{
	(void)s, (void)err;
	end_profile(x);
	return 0;
}

static int speedscope_end(struct export *x, struct err *err)
{
	struct speedscope *t = x->state;
	struct str text = {0};

	(void)err;
	if (!t->profiles) { /* it wants one */
		begin_profile(x, NULL);
		end_profile(x);
	}
	str_puts(&text, "],\n\"activeProfileIndex\":0,\"name\":");
	export_process(&text, x);
	str_puts(&text, ",\n\"shared\":{\"frames\":[");
	sink_str(x->out, &text);
	sink_str(x->out, &t->frames);
	sink_puts(x->out, "]}}\n");
	str_free(&text);
	return 0;
}

static void speedscope_fini(struct export *x)
{
	struct speedscope *t = x->state;

	str_free(&t->frames);
	vec_free(&t->number_of);
	vec_free(&t->weights);
}

const struct exporter exporter_speedscope = {
    .name = "speedscope",
    .summary = "speedscope.app: a profile for each space and measure",
    .needs = EXPORT_SUMS,
    .by_measure = true,
    .state = sizeof(struct speedscope),
    .begin = speedscope_begin,
    .space = speedscope_space,
    .sum = speedscope_sum,
    .space_end = speedscope_space_end,
    .end = speedscope_end,
    .fini = speedscope_fini,
};
