/* doctor_json.c - the result of `whyoom doctor` as JSON: doctor-schema.json. */
#include "report/format.h"
#include "util/text/json.h"

void doctor_json(const struct diagnosis *d, const struct report_style *style, struct str *out)
{
	static const char *const works[] = {
	    [DIAGNOSIS_OK] = "yes", [DIAGNOSIS_WARN] = "with limits", [DIAGNOSIS_FAIL] = "no"};
	struct json j = {.out = out, .pretty = true};
	struct str summary = {0};

	diagnosis_summary(d, &summary);
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "works", works[diagnosis_worst(d)]);
	json_string(&j, "summary", str_text(&summary));
	json_string(&j, "program", *d->program ? d->program : NULL);
	json_array(&j, "checks");
	for (size_t i = 0; i < d->count; i++) {
		const struct diagnosis_check *c = &d->checks[i];

		json_object(&j, NULL);
		json_string(&j, "check", c->name);
		json_string(&j, "status", diagnosis_word(c->status));
		json_string(&j, "fact", c->fact);
		json_string(&j, "way_out", *c->way_out ? c->way_out : NULL);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
	str_free(&summary);
}
