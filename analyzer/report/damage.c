/* damage.c - see parts.h. */
#include "report/parts.h"

#include <math.h>

#include "util/text/fmt.h"

static void add_size(struct str *line, const struct trace_set_damage *d)
{
	struct fmt a;

	if (!d->bytes)
		str_puts(line, "Damaged trace, but no data is known to be missing");
	else if (d->share >= 0.005)
		str_printf(line,
		    "Damaged trace: %s, %.0f %% of the recording, are missing or damaged",
		    fmt_size(&a, d->bytes), d->share * 100);
	else
		str_printf(line,
		    "Damaged trace: %s, under 1 %% of the recording, are missing or damaged",
		    fmt_size(&a, d->bytes));
}

void damage_text(
    const struct trace_set_damage *d, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (!d->files)
		return;
	add_size(&line, d);
	if (d->to_ns)
		str_printf(&line, ", from %s to %s", fmt_duration(&a, d->from_ns),
		    fmt_duration(&b, d->to_ns));
	if (d->threads)
		str_printf(&line, ", in %u thread%s", d->threads, d->threads == 1 ? "" : "s");
	if (d->files > 1)
		str_printf(&line, ", in %u files", d->files);
	if (d->left_out)
		str_printf(&line, "; %u of them cannot be read at all", d->left_out);
	str_puts(&line, ". The rest of this report is about the part that was read; `whyoom check` "
			"lists the damage.");
	str_puts(out, term_style(style->colour, TERM_RED));
	style_wrap(out, style, 0, "%s", str_text(&line));
	str_printf(out, "%s\n", term_style(style->colour, TERM_PLAIN));
	str_free(&line);
}

void damage_json(struct json *j, const struct trace_set_damage *d)
{
	if (!d->files) {
		json_null(j, "damage");
		return;
	}
	json_object(j, "damage");
	json_u64(j, "bytes", d->bytes);
	json_real(j, "share", d->share, 6);
	json_real(j, "from_seconds", d->to_ns ? (double)d->from_ns / 1e9 : NAN, 6);
	json_real(j, "to_seconds", d->to_ns ? (double)d->to_ns / 1e9 : NAN, 6);
	json_u64_or_null(j, "threads", d->threads, d->threads);
	json_array(j, "what");
	for (unsigned kind = 0; kind < TRACE_DAMAGE_KINDS; kind++)
		if (d->kinds & 1u << kind)
			json_string(j, NULL, trace_damage_word((enum trace_damage_kind)kind));
	json_array_end(j);
	json_u64(j, "files", d->files);
	json_u64(j, "files_left_out", d->left_out);
	json_object_end(j);
}
