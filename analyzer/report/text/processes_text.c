/*
 * processes_text.c - the processes of a run beside each other: who held what of the host and of
 * each GPU when one of them ran out.
 */
#include "report/parts.h"

#include <stdlib.h>
#include <string.h>

#include "util/text/fmt.h"

#define COLUMNS_MAX 9u /* the host and eight GPUs; narrower terminals show fewer */
#define CELL 11u
#define NAME_MIN 24u
/* Processes that hold no more of everything than this part are added up; where all are asked for,
 * those that hold nothing, as who had ended before. */
#define SMALL 100u

struct table {
	const struct verdict_result *r;
	const struct report_style *style;
	uint32_t gpus[COLUMNS_MAX]; /* of each column; GPU_NONE: the host */
	uint64_t sums[COLUMNS_MAX];
	unsigned count, name;
	bool resident; /* the host's column is of resident bytes */
};

static uint64_t held(const struct table *t, const struct process *p, uint32_t gpu)
{
	uint64_t bytes = 0;

	if (gpu == GPU_NONE && t->resident)
		return p->resident;
	for (size_t i = 0; i < p->memory_count; i++)
		if (p->memory[i].gpu == gpu)
			bytes += p->memory[i].held;
	return bytes;
}

static void add_column(struct table *t, uint32_t gpu)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->gpus[i] == gpu)
			return;
	if (t->count < COLUMNS_MAX)
		t->gpus[t->count++] = gpu;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct table layout(const struct verdict_result *r, const struct report_style *st)
{
	struct table t = {.r = r, .style = st, .resident = true, .gpus = {GPU_NONE}, .count = 1};
	unsigned fit;

	for (size_t i = 0; i < r->tree.count; i++) {
		const struct process *p = &r->tree.processes[i];

		if (p->memory_count && p->memory[0].held && !p->resident)
			t.resident = false;
		for (size_t k = 1; k < p->memory_count; k++)
			add_column(&t, p->memory[k].gpu);
	}
	qsort(t.gpus + 1, t.count - 1, sizeof(*t.gpus), by_number);
	fit = st->columns > NAME_MIN + CELL ? (st->columns - NAME_MIN) / CELL : 1;
	if (t.count > fit)
		t.count = fit;
	t.name = st->columns > t.count * CELL ? st->columns - t.count * CELL : NAME_MIN;
	for (size_t i = 0; i < r->tree.count; i++)
		for (unsigned c = 0; c < t.count; c++)
			t.sums[c] += held(&t, &r->tree.processes[i], t.gpus[c]);
	return t;
}

static bool is_small(const struct table *t, size_t i)
{
	const struct process *p = &t->r->tree.processes[i];

	if (i == t->r->tree.subject || p->refused_ns)
		return false;
	for (unsigned c = 0; c < t->count; c++)
		if (held(t, p, t->gpus[c]) > (t->style->verbose ? 0 : t->sums[c] / SMALL))
			return false;
	return true;
}

static void cells(
    const struct table *t, struct str *out, const char *name, const uint64_t values[COLUMNS_MAX])
{
	struct fmt a;

	style_cell(out, t->style, name, t->name, false);
	for (unsigned c = 0; c < t->count; c++)
		style_cell(out, t->style, values[c] ? fmt_size(&a, values[c]) : "-", CELL, true);
	style_end(out);
}

static void head(const struct table *t, struct str *out)
{
	struct str text = {0};

	/* Resident bytes were sampled, unlike the ledger's. */
	style_heading(out, t->style, "Processes %s%s",
	    t->resident ? "in the last sample before the " : "at the ",
	    t->r->failure.kind != FAILURE_NONE ? "failure" : "peak");
	style_blanks(out, t->name);
	for (unsigned c = 0; c < t->count; c++) {
		str_clear(&text);
		if (t->gpus[c] == GPU_NONE)
			str_puts(&text, t->resident ? "resident" : "host");
		else
			str_printf(&text, "GPU %u", t->gpus[c]);
		style_cell(out, t->style, str_text(&text), CELL, true);
	}
	style_end(out);
	str_free(&text);
}

static void name_of(const struct table *t, size_t i, struct str *name)
{
	const struct process *p = &t->r->tree.processes[i];
	const char *program = p->cmdline, *slash;
	size_t n = strcspn(program, " ");
	struct fmt a;

	str_printf(name, "%s%u ", i == t->r->tree.subject ? "* " : "  ", p->pid);
	if ((t->r->tree.elsewhere.device ? p->pid == t->r->failure.pid : i == t->r->tree.subject) &&
	    t->r->failure.kind != FAILURE_NONE)
		str_puts(name, "failed: ");
	else if (p->late_ns)
		str_printf(name, "%s later: ", fmt_duration(&a, p->late_ns));
	else if (p->refused_ns)
		str_puts(name, "was refused: ");
	slash = memrchr(program, '/', n);
	str_puts(name, slash ? slash + 1 : program);
}

bool processes_matter(const struct verdict_result *r)
{
	struct table t = layout(r, &(struct report_style){.columns = 200});
	size_t large = 0;

	for (size_t i = 0; i < r->tree.count; i++)
		large += !is_small(&t, i);
	return large > 1;
}

void processes_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	struct table t = layout(r, style);
	uint64_t values[COLUMNS_MAX], others[COLUMNS_MAX] = {0};
	struct str name = {0};
	size_t small = 0;

	head(&t, out);
	for (size_t i = 0; i < r->tree.count; i++) {
		bool merged = is_small(&t, i);

		small += merged;
		for (unsigned c = 0; c < t.count; c++) {
			values[c] = held(&t, &r->tree.processes[i], t.gpus[c]);
			others[c] += merged ? values[c] : 0;
		}
		if (merged)
			continue;
		str_clear(&name);
		name_of(&t, i, &name);
		cells(&t, out, str_text(&name), values);
	}
	str_clear(&name);
	str_printf(&name, "  %zu more", small);
	if (small)
		cells(&t, out, str_text(&name), others);
	cells(&t, out, "  total", t.sums);
	str_free(&name);
}
