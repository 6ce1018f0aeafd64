/* replay_text.c - see format.h. */
#include <inttypes.h>
#include <string.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/text/style.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define FRAMES 4u

static void what_failed(const struct replay_point *p, struct str *line)
{
	struct fmt a, b, c;

	if (p->requested)
		str_printf(line, "%s refused", fmt_size(&a, p->requested));
	else
		str_puts(line,
		    p->kind == failure_kind_name(FAILURE_OOM_KILL) ? "killed" : "at its limit");
	str_printf(
	    line, " after %s, at event %s", fmt_duration(&b, p->time_ns), fmt_count(&c, p->event));
}

static void point(struct str *out, const struct report_style *style, const char *head,
    const struct replay_point *p, bool stack)
{
	struct str line = {0};

	if (p->failed)
		what_failed(p, &line);
	else
		str_puts(&line, "ended without a failure");
	style_item(out, style, head, 12, "%s", str_text(&line));
	if (stack && p->words.count)
		frames_write(out, style, &p->words, p->frame, FRAMES, 12);
	str_free(&line);
}

static void same_request(
    const struct replay_result *r, const struct report_style *style, struct str *out)
{
	uint64_t later = r->row_count ? r->rows[0].later : 0;
	struct str line = {0};
	struct fmt a;

	str_puts(&line,
	    r->original.requested ? "the same request is refused" : "fails at the same event");
	if (later)
		str_printf(&line, ", after another %s", fmt_size(&a, later));
	if (r->row_count && r->rows[0].lent)
		str_printf(
		    &line, ", exceeding the limit by %s on the way", fmt_size(&a, r->rows[0].lent));
	style_item(out, style, "  replayed  ", 12, "%s", str_text(&line));
	str_free(&line);
}

static void answer(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	struct fmt a;

	point(out, style, "  recorded  ", &r->original, true);
	if (r->same && r->original.failed && r->replayed.event == r->original.event)
		same_request(r, style, out);
	else
		point(out, style, "  replayed  ", &r->replayed, !r->same);
	if (r->lasts_ns)
		str_putc(out, '\n');
	if (r->lasts_ns == UINT64_MAX)
		style_wrap(out, style, 2,
		    "Nothing grew in the second half of the record, so this memory would last.");
	else if (r->lasts_ns)
		style_wrap(out, style, 2,
		    "At the pace of the second half of the record, this memory would last another "
		    "%s.",
		    fmt_duration(&a, r->lasts_ns));
}

/* The last one is not cut. A narrow terminal has fewer. */
enum { CELL_NAME, CELL_LIVE, CELL_RESIDENT, CELL_UNUSED, CELL_END, CELL_FAILS, CELLS };

static void cells(struct str *out, const struct report_style *style, const char *const texts[CELLS])
{
	static const struct {
		unsigned width, from; /* shown from so many columns on */
	} columns[CELL_FAILS] = {{10, 0}, {11, 0}, {11, 0}, {9, 60}, {12, 72}};

	str_puts(out, "  ");
	for (size_t i = 0; i < CELL_FAILS; i++)
		if (style->columns >= columns[i].from)
			style_cell(out, style, texts[i], columns[i].width, i > 0);
	str_printf(out, "  %s\n", texts[CELL_FAILS]);
}

static void row(const struct replay_row *r, const struct report_style *style, struct str *out)
{
	struct fmt live, resident, unused, end, event;
	struct str failed = {0};
	const char *texts[CELLS] = {r->name};

	if (*r->missing) {
		style_item(out, style, "  ", 12, "%s", r->missing);
		return;
	}
	if (r->failed.failed)
		str_puts(&failed, fmt_count(&event, r->failed.event));
	else
		str_puts(&failed, r->granted ? "never (granted)" : "never");
	texts[CELL_LIVE] = fmt_size(&live, r->peak_live);
	texts[CELL_RESIDENT] = fmt_size(&resident, r->peak_resident);
	texts[CELL_UNUSED] =
	    fmt_percent(&unused, num_less(r->peak_resident, r->touched), r->peak_resident);
	texts[CELL_END] = fmt_size(&end, r->end_resident);
	texts[CELL_FAILS] = str_text(&failed);
	cells(out, style, texts);
	str_free(&failed);
}

static void allocators(
    const struct replay_result *r, const struct report_style *style, struct str *out)
{
	const char *const head[] = {
	    "allocator", "live", "resident", "unused", "at the end", "fails at event"};

	style_heading(out, style, "Peak by allocator");
	cells(out, style, head);
	for (size_t i = 0; i < r->row_count; i++)
		row(&r->rows[i], style, out);
}

static void shares(const struct replay_result *r, struct str *line)
{
	static const char *const names[PLAN_KINDS] = {"large blocks", "zeroed blocks", "mappings"};
	const char *before =
	    "To fit the first half of the resident curve, the replay writes to this much of ";

	for (int k = 0; k < PLAN_KINDS; k++) {
		if (r->shares[k] < 0)
			continue;
		str_printf(line, "%s%s: %.0f %%", before, names[k], r->shares[k] * 100);
		before = ", ";
	}
	str_puts(line, line->length ? "." : "All live blocks were small.");
}

static void second_half(const struct replay_result *r, struct str *line)
{
	struct fmt a, b, c;

	str_printf(line, " The second half peaks at %s", fmt_size(&a, r->curve.recorded));
	if (r->curve.told)
		str_printf(line, ", in the replay at %s (%+.1f %%).",
		    fmt_size(&b, r->curve.replayed), r->curve.deviation * 100);
	else
		str_printf(line,
		    "; the first half says too little about it: the replay peaks between %s and "
		    "%s.",
		    fmt_size(&b, r->curve.least), fmt_size(&c, r->curve.most));
}

static void basis(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a;

	style_heading(out, style, "How");
	if (!r->touched)
		str_puts(&line, "The replay wrote to no memory.");
	else if (!r->touch.samples)
		str_puts(
		    &line, "The replay wrote to every page, as the trace has no resident sizes.");
	else
		shares(r, &line);
	if (r->curve.known && r->touched)
		second_half(r, &line);
	style_wrap(out, style, 2, "%s", str_text(&line));
	str_free(&line);
	if (r->limit_bytes && r->original.failed)
		style_wrap(out, style, 2,
		    "In addition the replay takes %s, the memory measured at the failure that is "
		    "not replayed.",
		    fmt_size(&a, r->beside));
	if (r->speed > 0)
		style_wrap(
		    out, style, 2, "The requests came at %g times the recorded speed.", r->speed);
	if (r->limit_by && !strcmp(r->limit_by, "cgroup"))
		style_wrap(out, style, 2,
		    "The limit is that of a cgroup of its own, and the kernel kills.");
	else if (r->limit_by && !strcmp(r->limit_by, "emulated"))
		style_wrap(out, style, 2,
		    "The replay ends itself when as much is resident: the kill is emulated.");
	for (size_t i = 0; i < r->note_count; i++)
		style_wrap(out, style, 2, "%s", r->notes[i]);
}

static void device(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	struct fmt a, b;

	style_heading(out, style, "How");
	if (r->asked_driver)
		style_wrap(out, style, 2,
		    "The %s requests and releases were repeated on %s, with as much memory taken "
		    "as other processes held.",
		    fmt_count(&a, r->driver.events),
		    r->driver.simulated ? "a simulated device" : r->driver.device);
	else if (r->match.kind == TORCH_MATCH_IDENTICAL)
		style_wrap(out, style, 2,
		    "PyTorch's %s requests went to the model of its allocator, which took the same "
		    "%s segments as PyTorch.",
		    fmt_count(&a, r->match.requests), fmt_count(&b, r->match.segments));
	else
		style_wrap(out, style, 2,
		    "PyTorch's %s requests went to the model of its allocator, whose reserved "
		    "memory is off by up to %.1f %%: do not rely on it.",
		    fmt_count(&a, r->match.requests), r->match.deviation * 100);
	style_wrap(out, style, 2, r->headroom < 0 ? "%s were missing." : "%s were left.",
	    fmt_size(&a, (uint64_t)(r->headroom < 0 ? -r->headroom : r->headroom)));
}

static void torch_row(struct str *out, const struct report_style *style, const char *name,
    const struct through_refusal *f, uint64_t reserved)
{
	struct fmt a, b, c, d;

	if (f->serial)
		style_item(out, style, "  - ", 4,
		    "%s reserves up to %s, and refuses %s at event %s, with %s in blocks", name,
		    fmt_size(&a, reserved), fmt_size(&b, f->size), fmt_count(&c, f->serial),
		    fmt_size(&d, f->allocated));
	else
		style_item(out, style, "  - ", 4, "%s reserves up to %s, and refuses nothing", name,
		    fmt_size(&a, reserved));
}

/* Other settings, or the allocator itself: what each comes to. */
static void torch(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	const struct through_answer *own = &r->torch.own;
	struct through_refusal f = replay_refusal(&r->torch.model);
	struct str line = {0};

	style_heading(out, style, "PyTorch's allocator, %s",
	    r->torch.settings && *r->torch.settings ? r->torch.settings : "with its own settings");
	torch_row(out, style, "its model", &f, r->torch.model.peak_reserved);
	if (!r->torch.through)
		return;
	str_printf(&line, "PyTorch %s itself, on %s%s,", own->torch,
	    own->simulated ? "a simulated device" : "", own->simulated ? "" : own->device);
	torch_row(out, style, str_text(&line), &own->refused, own->peak_reserved);
	str_free(&line);
	if (r->torch.agree)
		style_wrap(out, style, 2, "Both agree.");
	else
		style_wrap(out, style, 2,
		    "They do not agree: the peak of reserved memory in the model is off by %+.2f "
		    "%%.",
		    r->torch.deviation * 100);
}

static void title(const struct replay_result *r, struct str *line)
{
	struct fmt f;

	if (r->memory || r->changed) {
		str_printf(line, "With %s%s%s it %s", r->memory ? fmt_size(&f, r->memory) : "",
		    r->memory && r->changed ? " and " : "", r->changed ? r->torch.settings : "",
		    !r->replayed.failed ? "does not fail"
		    : r->same		? "fails where it failed"
					: "fails elsewhere");
		return;
	}
	if (!r->original.failed && !r->replayed.failed)
		str_puts(line, "Replayed: nothing failed, as in the record");
	else
		str_puts(line, r->same		    ? "Reproduced: it fails where it failed"
			       : r->replayed.failed ? "Not reproduced: it fails elsewhere"
						    : "Not reproduced: it does not fail");
	if (r->limit_bytes && r->limit_kind == LIMIT_NONE)
		str_printf(line, ", with %s resident", fmt_size(&f, r->limit_bytes));
	else if (r->limit_bytes)
		str_printf(line, ", under %s of %s", limit_kind_name(r->limit_kind),
		    fmt_size(&f, r->limit_bytes));
}

void replay_text(const struct replay_result *r, const struct report_style *style, struct str *out)
{
	struct str line = {0};

	title(r, &line);
	style_title(out, style, "%s", str_text(&line));
	answer(r, style, out);
	if (r->modelled) {
		if (r->torch.asked)
			torch(r, style, out);
		device(r, style, out);
	} else {
		allocators(r, style, out);
		basis(r, style, out);
	}
	str_free(&line);
}
