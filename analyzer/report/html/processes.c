/* processes.c - the processes of a run beside each other: a table of all, and the data of those
 * that matter: the one that the report is about, those that failed, and the largest. */
#include "report/html/page_parts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/html/html.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "verdict/verdict.h"

#define PROCESSES_DRAWN 7u /* beside the report's */
#define PROCESSES_FIRST 12u /* of the table; the others are folded away */
#define PROCESSES_LISTED 400u
#define NAME_BYTES 200u /* of a command line in the table */
/* Of all data as text; with the style, the script and the first screen a page has 2 MiB at most. */
#define DATA_BYTES (1536u << 10)
/* A process that held less of everything than this part of the largest one is not drawn. */
#define SMALL_PART 1000u

static uint64_t peak_of(const struct process *p)
{
	uint64_t most = 0;

	for (size_t i = 0; i < p->memory_count; i++)
		most = num_most(most, p->memory[i].peak);
	return most;
}

static bool has_failed(const struct process *p)
{
	return p->refused_ns || (p->how == END_SIGNAL && p->code != SIGTERM && p->code != SIGINT);
}

struct row {
	const struct process *process;
	size_t index;
	uint64_t weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

/* All processes: the report's first, then those that failed, then the largest. The caller frees
 * the list; NULL: no memory. */
static struct row *rows_of(const struct process_tree *tree)
{
	struct row *rows = malloc((tree->count + 1) * sizeof(*rows));

	for (size_t i = 0; i < tree->count && rows; i++) {
		const struct process *p = &tree->processes[i];

		rows[i] = (struct row){p, i, num_least(peak_of(p), UINT64_MAX / 4)};
		if (has_failed(p))
			rows[i].weight += UINT64_MAX / 4;
		if (i == tree->subject)
			rows[i].weight += UINT64_MAX / 2;
	}
	if (rows)
		qsort(rows, tree->count, sizeof(*rows), by_weight);
	return rows;
}

static struct trace *trace_of(const struct trace_set *set, const struct process *p)
{
	for (size_t i = 0; i < set->count; i++)
		if (str_same(trace_facts(set->images[i])->path, p->trace))
			return set->images[i];
	return NULL;
}

/* Judge and draw one process. 0; 1: it cannot be drawn; -ENOMEM. */
static int draw(
    const struct trace_set *set, struct trace *t, struct page_process *out, struct err *err)
{
	struct trace_set one = *set;
	struct verdict_result r;
	struct page *page = NULL;
	int rc;

	one.images = &t;
	one.count = 1;
	rc = verdict_of_set(&one, NULL, &r, err);
	if (rc)
		return rc == -ENOMEM ? rc : 1;
	rc = page_gather_one(&r, NULL, &page, err);
	if (!rc) {
		str_puts(&out->cause, cause_name(r.verdict.cause));
		str_puts(&out->summary, r.verdict.summary ? r.verdict.summary : "");
		out->packed = page->packed;
		page->packed = (struct str){0};
		page_free(page);
	}
	verdict_fini(&r);
	return rc && rc != -ENOMEM ? 1 : rc;
}

static void fini(struct page_process *p)
{
	str_free(&p->packed);
	str_free(&p->cause);
	str_free(&p->summary);
}

int processes_gather(struct page *page, const struct trace_set *set, struct err *err)
{
	const struct process_tree *tree = &page->r->tree;
	struct row *rows = rows_of(tree);
	uint64_t bytes = page->packed.length, least = 0;
	int rc = rows ? 0 : err_set(err, -ENOMEM, "no memory for the page");

	for (size_t i = 0; i < tree->count && rows; i++)
		least = num_most(least, peak_of(rows[i].process) / SMALL_PART);
	for (size_t i = 1; i < tree->count && rc >= 0 && page->others.count < PROCESSES_DRAWN;
	     i++) {
		struct page_process other = {.index = rows[i].index};
		struct trace *t = trace_of(set, rows[i].process);

		if (!t || (peak_of(rows[i].process) <= least && !has_failed(rows[i].process)))
			continue;
		rc = draw(set, t, &other, err);
		if (!rc && bytes + other.packed.length > DATA_BYTES)
			rc = 1;
		if (!rc && vec_push(&page->others, other))
			rc = err_set(err, -ENOMEM, "no memory for the page");
		if (rc)
			fini(&other);
		else
			bytes += other.packed.length;
	}
	free(rows);
	return rc < 0 ? rc : 0;
}

void processes_fini(struct page *page)
{
	for (size_t i = 0; i < page->others.count; i++)
		fini(&page->others.items[i]);
	vec_free(&page->others);
}

void page_blocks(const struct page *page, struct str *out)
{
	for (size_t i = 0; i <= page->others.count; i++) {
		const struct str *packed = i ? &page->others.items[i - 1].packed : &page->packed;

		str_puts(out, "<script type=\"application/octet-stream\" id=\"d");
		if (i)
			str_printf(out, "%zu", i);
		str_puts(out, "\">");
		str_add(out, str_text(packed), packed->length);
		str_puts(out, "</script>\n");
	}
}

static uint64_t held_of(const struct process *p, bool host)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->memory_count; i++)
		if ((p->memory[i].gpu == GPU_NONE) == host)
			bytes += p->memory[i].held;
	return bytes;
}

static void end_cell(const struct process *p, struct str *out)
{
	const char *name = p->how == END_SIGNAL && p->code < 65 ? sigabbrev_np((int)p->code) : NULL;

	if (p->refused_ns)
		str_puts(out, "<em>✕ out of memory</em>");
	else if (p->how == END_SIGNAL)
		str_printf(out, "<em>✕ killed%s%s</em>", name ? ", SIG" : "", name ? name : "");
	else if (p->how == END_EXIT)
		str_printf(out, "exit %u", p->code);
	else
		str_puts(out, p->how == END_RUNNING ? "running" : "unknown");
}

/* The number of its data in the page, from 0; -1: it has none. */
static int block_of(const struct page *page, size_t index)
{
	if (index == page->r->tree.subject)
		return 0;
	for (size_t i = 0; i < page->others.count; i++)
		if (page->others.items[i].index == index)
			return (int)i + 1;
	return -1;
}

/* A command line as it fits into a table. */
static void name_text(const struct process *p, struct str *out)
{
	struct str line = {0}, begin = {0};
	size_t end = NAME_BYTES;

	str_safe(&line, p->cmdline && *p->cmdline ? p->cmdline : "(unknown)");
	if (line.length > end) {
		while (end && ((unsigned char)str_text(&line)[end] & 0xc0) == 0x80)
			end--;
		str_add(&begin, str_text(&line), end);
		str_puts(&begin, "…");
	}
	html_escape(out, str_text(begin.length ? &begin : &line));
	str_free(&line);
	str_free(&begin);
}

static void name_cell(const struct page *page, const struct row *row, int block, struct str *out)
{
	const struct process *p = row->process;
	const struct verdict *v = &page->r->verdict;

	str_printf(out, "<th scope=\"row\"><span class=\"process\">%u</span> <code>", p->pid);
	name_text(p, out);
	str_puts(out, "</code>");
	if (block >= 0) {
		str_printf(out, "<p class=\"hint says\"><b>%s</b>: ",
		    block ? str_text(&page->others.items[block - 1].cause) : cause_name(v->cause));
		html_text(
		    out, block ? str_text(&page->others.items[block - 1].summary) : v->summary);
		str_puts(out, "</p>");
	}
	str_puts(out, "</th>");
}

static void row_of(const struct page *page, const struct row *row, bool gpus, struct str *out)
{
	const struct process *p = row->process;
	int block = block_of(page, row->index);
	struct fmt a, b;

	if (block >= 0)
		str_printf(out, "<tr data-process=\"%d\">", block);
	else
		str_puts(out, "<tr>");
	name_cell(page, row, block, out);
	str_printf(out, "<td>%s</td>", fmt_size(&a, held_of(p, true)));
	if (gpus)
		str_printf(out, "<td>%s</td>", fmt_size(&a, held_of(p, false)));
	str_printf(
	    out, "<td>%s</td><td>%s</td>", fmt_size(&a, peak_of(p)), fmt_count(&b, p->events));
	str_printf(out, "<td>%s</td><td>", fmt_duration(&a, num_ns(p->seconds)));
	end_cell(p, out);
	str_puts(out, "</td></tr>\n");
}

static void some_rows(
    const struct page *page, const struct row *rows, size_t count, bool gpus, struct str *out)
{
	str_printf(out,
	    "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Processes\"><table>"
	    "<thead><tr><th scope=\"col\">Process</th><th scope=\"col\">At the %s</th>%s<th "
	    "scope=\"col\">Held at most</th><th scope=\"col\">Events</th><th "
	    "scope=\"col\">Lasted</th><th scope=\"col\">End</th></tr></thead><tbody>\n",
	    page->r->failure.kind != FAILURE_NONE ? "failure" : "peak",
	    gpus ? "<th scope=\"col\">Of GPUs</th>" : "");
	for (size_t i = 0; i < count; i++)
		row_of(page, &rows[i], gpus, out);
	str_puts(out, "</tbody></table></div>\n");
}

static void write_table(const struct page *page, const struct row *rows, struct str *out)
{
	const struct process_tree *tree = &page->r->tree;
	const char *at = page->r->failure.kind != FAILURE_NONE ? "failure" : "peak";
	uint64_t small = 0, all = 0;
	bool gpus = false;
	struct fmt a, b;

	for (size_t i = 0; i < tree->count; i++) {
		gpus |= held_of(rows[i].process, false) > 0;
		all += held_of(rows[i].process, true);
		small += i >= PROCESSES_LISTED ? held_of(rows[i].process, true) : 0;
	}
	str_printf(out,
	    "<section id=\"processes\"><h2>Processes <small>%s; at the %s they held %s of the "
	    "host together. The pictures below show %s</small></h2>\n",
	    fmt_count(&a, tree->count), at, fmt_size(&b, all),
	    page->others.count + 1 < tree->count ? "those whose verdict is said: the one that the "
						   "report is about, and of the others "
						   "those that failed or held most"
						 : "any of them");
	some_rows(page, rows, num_least(tree->count, PROCESSES_FIRST), gpus, out);
	if (tree->count > PROCESSES_FIRST) {
		uint32_t more =
		    (uint32_t)num_least(tree->count, PROCESSES_LISTED) - PROCESSES_FIRST;

		str_printf(out, "<details><summary>%u more</summary>\n", more);
		some_rows(page, rows + PROCESSES_FIRST, more, gpus, out);
		str_puts(out, "</details>\n");
	}
	if (tree->count > PROCESSES_LISTED)
		str_printf(out,
		    "<p class=\"hint\">%s smaller ones are not listed: at the %s they held %s of "
		    "the "
		    "host.</p>\n",
		    fmt_count(&a, tree->count - PROCESSES_LISTED), at, fmt_size(&b, small));
	str_puts(out, "</section>\n");
}

void page_processes(const struct page *page, struct str *out)
{
	struct row *rows = page->r->tree.count > 1 ? rows_of(&page->r->tree) : NULL;

	if (rows)
		write_table(page, rows, out);
	out->failed |= !rows && page->r->tree.count > 1;
	free(rows);
}
