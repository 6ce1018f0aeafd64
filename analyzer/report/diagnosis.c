/* diagnosis.c - see diagnosis.h. */
#include "report/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>

#define CHECKS (sizeof(((struct diagnosis *)0)->checks) / sizeof(struct diagnosis_check))

void diagnosis_add(
    struct diagnosis *d, const char *name, enum diagnosis_status status, const char *format, ...)
{
	struct diagnosis_check *c = &d->checks[d->count < CHECKS ? d->count++ : CHECKS - 1];
	va_list args;

	*c = (struct diagnosis_check){.name = name, .status = status};
	va_start(args, format);
	vsnprintf(c->fact, sizeof(c->fact), format, args);
	va_end(args);
}

void diagnosis_way_out(struct diagnosis *d, const char *format, ...)
{
	struct diagnosis_check *c = &d->checks[d->count - 1];
	va_list args;

	va_start(args, format);
	vsnprintf(c->way_out, sizeof(c->way_out), format, args);
	va_end(args);
}

enum diagnosis_status diagnosis_worst(const struct diagnosis *d)
{
	enum diagnosis_status worst = DIAGNOSIS_OK;

	for (size_t i = 0; i < d->count; i++)
		if (d->checks[i].status > worst)
			worst = d->checks[i].status;
	return worst;
}

const char *diagnosis_word(enum diagnosis_status status)
{
	static const char *const words[] = {"ok", "warn", "fail"};

	return words[status];
}

void diagnosis_summary(const struct diagnosis *d, struct str *out)
{
	enum diagnosis_status worst = diagnosis_worst(d);
	const char *between = ": ";

	if (worst == DIAGNOSIS_FAIL) {
		str_printf(out, "whyoom will not work here");
		for (size_t i = 0; i < d->count; i++)
			if (d->checks[i].status == DIAGNOSIS_FAIL) {
				str_printf(out, ": %s", d->checks[i].fact);
				return;
			}
	}
	str_printf(out, *d->program ? "whyoom will work here, with %s" : "whyoom will work here",
	    d->program);
	if (worst == DIAGNOSIS_OK)
		return;
	str_printf(out, *d->program ? "; its limits" : ", with limits");
	for (size_t i = 0; i < d->count; i++)
		if (d->checks[i].status == DIAGNOSIS_WARN) {
			str_printf(out, "%s%s", between, d->checks[i].name);
			between = ", ";
		}
}
