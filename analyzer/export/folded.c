/*
 * folded.c - Brendan Gregg's folded stacks: "root;caller;leaf BYTES", a line a stack. Read by
 * flamegraph.pl, speedscope, Perfetto, Firefox Profiler and a line of awk. Of two traces, as
 * difffolded.pl writes them: "root;caller;leaf BASE BYTES".
 */
#include <errno.h>

#include "export/export.h"
#include "util/map.h"
#include "util/vec.h"

/* One side of a difference: its stacks as text, and the value of each. */
struct folded {
	struct intern stacks;
	VEC(uint64_t) values; /* by stack: its number less 1 */
};

/* `;` separates frames, and a line ends the stack: neither may be in a name. Lines of code move
 * from one version to the next, so a difference goes by functions and files. */
static void add_name(struct str *line, const struct symbol *s, bool difference)
{
	struct symbol moved = *s;
	struct str name = {0};

	if (difference)
		moved.line = 0;
	export_frame(&name, &moved);
	for (char *p = name.text; p && *p; p++)
		if (*p == ';')
			*p = ':';
	str_safe(line, str_text(&name));
	line->failed |= name.failed;
	str_free(&name);
}

static void put_line(struct export *x, const char *stack, const uint64_t *values, int count)
{
	struct str line = {0};

	str_puts(&line, stack);
	for (int i = 0; i < count; i++)
		str_printf(&line, " %llu", (unsigned long long)values[i]);
	str_putc(&line, '\n');
	sink_str(x->out, &line);
	str_free(&line);
}

/* Adds to what the stack has so far: several differ in lines alone. */
static int keep(struct folded *f, const struct str *stack, uint64_t value)
{
	uint32_t id = intern_add(&f->stacks, str_text(stack), stack->length);

	if (stack->failed || !id || vec_reach(&f->values, id))
		return -ENOMEM;
	f->values.items[id - 1] += value;
	return 0;
}

static int folded_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	uint64_t value = s->value[x->options.measure];
	struct str stack = {0};
	int rc = 0;

	(void)err;
	if (!value)
		return 0; /* readers drop such lines */
	for (size_t i = 0; i < s->stack->count; i++) {
		if (i)
			str_putc(&stack, ';');
		add_name(&stack, &s->stack->symbols[i], x->options.difference);
	}
	if (!s->stack->count)
		str_puts(&stack, "(unknown)");
	if (x->options.difference)
		rc = keep(x->state, &stack, value);
	else
		put_line(x, str_text(&stack), &value, 1);
	x->out->failed = x->out->failed ? x->out->failed : stack.failed ? -ENOMEM : 0;
	str_free(&stack);
	return rc;
}

/* The base's stacks first, and then those that are new. */
static int folded_end(struct export *x, struct err *err)
{
	const struct folded *base = x->base ? x->base->state : NULL;
	struct folded *f = x->state;
	size_t known = base ? base->values.count : 0;

	(void)err;
	for (size_t i = 0; i < known; i++) {
		const char *stack = intern_text(&base->stacks, (uint32_t)i + 1);
		uint32_t id = intern_add(&f->stacks, stack, strlen(stack));
		uint64_t values[2] = {base->values.items[i]};

		if (!id || vec_reach(&f->values, id))
			return -ENOMEM;
		values[1] = f->values.items[id - 1];
		f->values.items[id - 1] = 0;
		put_line(x, stack, values, 2);
	}
	for (size_t i = 0; i < f->values.count; i++) {
		const uint64_t values[2] = {0, f->values.items[i]};

		if (values[1])
			put_line(x, intern_text(&f->stacks, (uint32_t)i + 1), values, 2);
	}
	return 0;
}

static void folded_fini(struct export *x)
{
	struct folded *f = x->state;

	intern_free(&f->stacks);
	vec_free(&f->values);
}

const struct exporter exporter_folded = {
    .name = "folded",
    .summary = "folded stacks: flamegraph.pl, speedscope, Perfetto, awk",
    .needs = EXPORT_SUMS,
    .one_space = true,
    .one_measure = true,
    .can_base = true,
    .state = sizeof(struct folded),
    .sum = folded_sum,
    .end = folded_end,
    .fini = folded_fini,
};
