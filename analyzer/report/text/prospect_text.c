/* prospect_text.c - what lies ahead of a process that still runs, where there is a trend. */
#include "report/parts.h"
#include "util/text/fmt.h"

void prospect_sentence(const struct prospect_space *s, struct str *out)
{
	struct fmt f;

	str_puts(out, s->name);
	str_puts(out, ": ");
	prospect_when(&s->forecast, out);
	str_puts(out, " at ");
	prospect_rate(s->forecast.rate, out);
	str_printf(out, ", %s are left", fmt_size(&f, s->left));
}

void prospect_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	for (size_t i = 0; i < r->prospect.count; i++) {
		const struct prospect_space *s = &r->prospect.spaces[i];
		struct str text = {0};

		if (s->forecast.state != FORECAST_GROWS)
			continue;
		prospect_sentence(s, &text);
		style_wrap(
		    out, style, 2, "%s%s.", s->forecast.alarm ? "Alarm: " : "", str_text(&text));
		str_free(&text);
	}
}
