/*
 * folded.c - Brendan Gregg's folded stacks: "root;caller;leaf BYTES", a line a stack. Read by
 * flamegraph.pl, speedscope, Perfetto, Firefox Profiler and a line of awk.
 */
#include "export/export.h"

/* `;` separates frames, and a line ends the stack: neither may be in a name. */
static void add_name(struct str *line, const struct symbol *s)
{
	struct str name = {0};

	export_frame(&name, s);
	for (char *p = name.text; p && *p; p++)
		if (*p == ';')
			*p = ':';
	str_safe(line, str_text(&name));
	line->failed |= name.failed;
	str_free(&name);
}

static int folded_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	uint64_t value = s->value[x->options.measure];
	struct str line = {0};

	(void)err;
	if (!value)
		return 0; /* readers drop such lines */
	for (size_t i = 0; i < s->stack->count; i++) {
		if (i)
			str_putc(&line, ';');
		add_name(&line, &s->stack->symbols[i]);
	}
	if (!s->stack->count)
		str_puts(&line, "(unknown)");
	str_printf(&line, " %llu\n", (unsigned long long)value);
	sink_str(x->out, &line);
	str_free(&line);
	return 0;
}

const struct exporter exporter_folded = {
    .name = "folded",
    .summary = "folded stacks: flamegraph.pl, speedscope, Perfetto, awk",
    .needs = EXPORT_SUMS,
    .one_space = true,
    .one_measure = true,
    .sum = folded_sum,
};
