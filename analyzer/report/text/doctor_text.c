/* doctor_text.c - the result of `whyoom doctor`, for a person. */
#include <stdio.h>

#include "report/format.h"

#define WIDTH 96u /* longer lines are hard to read, however wide the terminal is */
#define INDENT 18

static enum term_style tone(enum diagnosis_status status)
{
	return status == DIAGNOSIS_OK	  ? TERM_GREEN
	       : status == DIAGNOSIS_WARN ? TERM_YELLOW
					  : TERM_RED;
}

/* Text of the system, of which a terminal must not become a victim. */
static void put(struct str *out, const struct report_style *style, const char *head,
    unsigned indent, const char *text)
{
	struct str safe = {0};

	str_safe(&safe, text);
	style_item(out, style, head, indent, "%s", str_text(&safe));
	str_free(&safe);
}

void doctor_text(const struct diagnosis *d, const struct report_style *style, struct str *out)
{
	struct report_style s = *style;
	struct str summary = {0};

	if (s.columns > WIDTH)
		s.columns = WIDTH;
	diagnosis_summary(d, &summary);
	str_puts(out, term_style(s.colour, tone(diagnosis_worst(d))));
	put(out, &s, "", 0, str_text(&summary));
	str_puts(out, term_style(s.colour, TERM_PLAIN));
	str_free(&summary);
	for (size_t i = 0; i < d->count; i++) {
		const struct diagnosis_check *c = &d->checks[i];
		char head[64];

		snprintf(head, sizeof(head), "  %s%-4s%s  %-10s",
		    term_style(s.colour, tone(c->status)), diagnosis_word(c->status),
		    term_style(s.colour, TERM_PLAIN), c->name);
		put(out, &s, head, INDENT, c->fact);
		if (*c->way_out)
			put(out, &s, s.unicode ? "                  → " : "                  > ",
			    INDENT + 2, c->way_out);
	}
}
