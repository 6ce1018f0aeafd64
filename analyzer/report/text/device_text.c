/* device_text.c - see parts.h. */
#include <string.h>

#include "report/frames.h"
#include "report/parts.h"
#include "util/text/fmt.h"

/* Columns of " up to 84.4 MiB", and from what width on there are that many to spare. */
#define SIZE 15u
#define SIZED 72u

static void request(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct device_report *d = r->devices.first;
	struct str text = {0};
	struct fmt a;

	str_printf(&text, "Refused by %s: %s", d->space,
	    fmt_size_apart(&a, d->requested, d->largest_hole));
	if (d->attempts > 1)
		str_printf(&text, ", after %s attempts", fmt_count(&a, d->attempts));
	style_heading(out, st, "%s", str_text(&text));
	str_clear(&text);
	if (d->segment) {
		str_printf(&text, "%s was asked for a segment of %s first", d->below,
		    d->free_known ? fmt_size_apart(&a, d->segment, d->free)
				  : fmt_size(&a, d->segment));
		if (d->free_known)
			str_printf(&text, "; it had %s", fmt_size_apart(&a, d->free, d->segment));
		str_puts(&text, ".");
		style_wrap(out, st, 2, "%s", str_text(&text));
	} else if (d->above) {
		style_wrap(
		    out, st, 2, "The runtime refused the request without asking the driver.");
	}
	if (r->failure.stack.count)
		frames_write(out, st, &r->failure.stack,
		    st->verbose ? r->failure.stack.count - 1 : d->frame, st->verbose ? 200 : 6, 4);
	str_free(&text);
}

/* Used without an event that says so; the ledger has names for some of it. */
static void unexplained(const struct device_report *d, struct str *text)
{
	bool unnamed = d->ledger.unaccounted == d->unattributed;
	struct fmt a;

	str_printf(text, "; no event explains %s%s (context, code, libraries%s)",
	    fmt_size(&a, (uint64_t)d->unattributed), unnamed ? ", which are unaccounted" : "",
	    d->others_known ? "" : ", other processes");
	if (!unnamed && d->ledger.unaccounted > 0)
		str_printf(
		    text, ", %s of it unaccounted", fmt_size(&a, (uint64_t)d->ledger.unaccounted));
}

static void layout(const struct device_report *d, const struct report_style *st, struct str *out)
{
	struct str text = {0};
	struct fmt a, b;

	style_heading(out, st, "What the memory of %s looked like", d->device);
	if (d->torch)
		str_printf(&text, "PyTorch reserved %s in %s segment%s; ",
		    fmt_size(&a, d->reserved_known ? d->reserved : d->segment_bytes),
		    fmt_count(&b, d->segments), d->segments == 1 ? "" : "s");
	str_printf(&text, "%s are in use in %s block%s", fmt_size(&a, d->live_bytes),
	    fmt_count(&b, d->live_blocks), d->live_blocks == 1 ? "" : "s");
	if (d->torch && d->holes) {
		str_printf(&text, "; %s are in %s hole%s", fmt_size(&a, d->hole_bytes),
		    fmt_count(&b, d->holes), d->holes == 1 ? "" : "s");
		str_printf(&text, ", the largest with %s",
		    d->failed ? fmt_size_apart(&a, d->largest_hole, d->requested)
			      : fmt_size(&a, d->largest_hole));
	}
	str_puts(&text, ".");
	if (d->free_known) {
		str_printf(&text, " The device had %s of %s free", fmt_size(&a, d->free),
		    fmt_size(&b, d->total));
		if (d->unattributed > 0)
			unexplained(d, &text);
		str_puts(&text, ".");
	}
	if (d->failed && d->room && d->room_blocks == 1)
		str_printf(&text,
		    " One live block of %s is all that keeps the request out of a segment: `whyoom "
		    "map` shows it.",
		    fmt_size(&a, d->room_bytes));
	else if (d->failed && d->room && d->room_blocks)
		str_printf(&text,
		    " %s live blocks of %s in total are all that keep the request out of a "
		    "segment: `whyoom map` shows them.",
		    fmt_count(&a, d->room_blocks), fmt_size(&b, d->room_bytes));
	style_wrap(out, st, 2, "%s", str_text(&text));
	str_free(&text);
}

/* A row of the table: bytes, blocks, their size where there is room for it, and whose they are. */
static void holder(
    const struct device_stack_stats *s, const struct report_style *st, struct str *out)
{
	unsigned left = st->columns > 40 ? st->columns - 28 : 12;
	struct str text = {0};
	char where[256];
	struct fmt a;

	str_puts(out, "  ");
	style_cell(out, st, fmt_size(&a, s->bytes), 9, true);
	str_printf(&text, "%s block%s", fmt_count(&a, s->blocks), s->blocks == 1 ? "" : "s");
	style_cell(out, st, str_text(&text), 14, true);
	str_clear(&text);
	if (st->columns >= SIZED) {
		if (s->blocks > 1 && s->largest)
			str_printf(&text, " %s %s",
			    s->bytes == s->largest * s->blocks ? "of" : "up to",
			    fmt_size(&a, s->largest));
		style_cell(out, st, str_text(&text), SIZE, false);
		str_clear(&text);
		left -= SIZE;
	}
	str_puts(out, "  ");
	style_function(&text, st, s->function);
	str_printf(&text, "  %s", style_where(where, sizeof(where), s->file, s->line, NULL));
	style_cell(out, st, str_text(&text), left, false);
	style_end(out);
	str_free(&text);
}

static void holders(const struct device_report *d, const struct report_style *st, struct str *out)
{
	if (!d->stack_stats_count)
		return;
	style_heading(out, st, "Largest call sites on the device");
	for (size_t i = 0; i < d->stack_stats_count; i++) {
		const struct device_stack_stats *s = &d->stats_list[i];

		holder(s, st, out);
		if ((i == 0 || st->verbose) && s->stack.count)
			frames_write(out, st, &s->stack,
			    st->verbose ? s->stack.count - 1 : s->frame, st->verbose ? 200 : 4, 6);
	}
}

/* Memory that is no device's own: page-locked, managed, of other processes. */
static void other_spaces(
    const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	static const struct {
		const char *name, *words;
	} kinds[] = {
	    {"managed", "managed memory"},
	    {"pinned", "page-locked host memory"},
	    {"foreign", "memory imported from other processes"},
	};
	struct str text = {0};
	struct fmt a, b, c;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		for (size_t i = 0; i < r->devices.space_count; i++) {
			const struct space_report *s = &r->devices.spaces[i];

			if (strcmp(s->name, kinds[k].name) != 0)
				continue;
			str_printf(&text, "%s%s, %s in %s block%s (at most %s)",
			    text.length ? "; " : "In addition: ", kinds[k].words,
			    fmt_size(&a, s->live_bytes), fmt_count(&b, s->live_blocks),
			    s->live_blocks == 1 ? "" : "s", fmt_size(&c, s->peak_bytes));
		}
	if (text.length) {
		str_putc(&text, '.');
		style_wrap(out, st, 2, "%s", str_text(&text));
	}
	str_free(&text);
}

void device_text(const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	if (!r->devices.first->failed && !style->verbose)
		return;
	for (size_t i = 0; i < r->devices.count; i++) {
		const struct device_report *d = &r->devices.list[i];

		if (d->failed)
			request(r, style, out);
		layout(d, style, out);
		if (!i)
			other_spaces(r, style, out);
		if (!i || style->verbose)
			holders(d, style, out);
	}
}
