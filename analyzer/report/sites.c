/* sites.c - the places behind the bytes, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "report/style.h"
#include "util/fmt.h"
#include "util/json.h"

static const char *const names[] = {"live", "peak", "total", "growth", "leaked"};

int sites_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

struct ranked {
	const struct place *place;
	uint64_t key;
};

static uint64_t key_of(const struct place *p, enum sites_by by)
{
	switch (by) {
	case SITES_LIVE:
		return p->live_bytes;
	case SITES_PEAK:
		return p->peak_bytes;
	case SITES_TOTAL:
		return p->total_bytes;
	case SITES_GROWTH:
		/* By blocks that got larger, or by more of them. */
		if (p->size.grows)
			return p->size.last - p->size.first;
		return p->keep.stays ? p->keep.bytes - p->keep.before : 0;
	case SITES_LEAKED:
		return p->keep.stays ? p->keep.bytes : 0;
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static struct ranked *rank(const struct sites_view *v, size_t *count)
{
	struct ranked *list = malloc((v->places->count + 1u) * sizeof(*list));

	*count = 0;
	for (uint32_t i = 0; list && i < v->places->count; i++) {
		uint64_t key = key_of(&v->places->list[i], v->by);

		if (key)
			list[(*count)++] = (struct ranked){&v->places->list[i], key};
	}
	if (list)
		qsort(list, *count, sizeof(*list), by_key);
	if (v->limit && *count > v->limit)
		*count = v->limit;
	return list;
}

static size_t frames(const struct sites_view *v, const struct place *p, const struct symbol **out)
{
	return p->stack ? v->model->feed.symbols(v->model->feed.self, p->stack, out) : 0;
}

void report_sites_text(
    const struct sites_view *v, const struct report_style *style, struct str *out)
{
	size_t count;
	struct ranked *list = rank(v, &count);
	unsigned name = style->columns > 72 ? style->columns - 46 : 26;
	struct fmt a, b, c;

	if (!list) {
		out->failed = true;
		return;
	}
	if (name > 70)
		name = 70;
	str_printf(out, "%s%s at %s%s: %s lived, of %s blocks and mappings acquired in all%s\n",
	    term_style(style->colour, TERM_BOLD), names[v->by],
	    v->at[0] >= '0' && v->at[0] <= '9' ? "" : "the ", v->at,
	    fmt_size(&a, v->places->live_bytes + v->places->map_bytes),
	    fmt_count(&b, v->model->total_count), term_style(style->colour, TERM_PLAIN));
	style_cell(out, style, names[v->by], 11, true);
	style_cell(out, style, "blocks", 12, true);
	style_cell(out, style, "largest", 11, true);
	str_puts(out, "  ");
	style_cell(out, style, "function", name, false);
	str_puts(out, "\n");
	for (size_t i = 0; i < count; i++) {
		const struct place *p = list[i].place;
		const struct symbol *symbols = NULL;
		char where[256];
		struct str function = {0};

		style_cell(out, style, fmt_size(&a, list[i].key), 11, true);
		style_cell(out, style,
		    fmt_count(&b, v->by == SITES_TOTAL ? p->total_count : p->live_count), 12, true);
		style_cell(out, style, fmt_size(&c, p->largest), 11, true);
		str_printf(&function, "%s  %s", p->function,
		    style_where(where, sizeof(where), p->file, p->line, NULL));
		str_puts(out, "  ");
		style_cell(out, style, str_text(&function), name + 10, false);
		while (out->length && out->text[out->length - 1] == ' ')
			out->text[--out->length] = '\0';
		str_putc(out, '\n');
		str_free(&function);
		for (size_t n = style->verbose ? frames(v, p, &symbols) : 0; n-- > 0;) {
			if (!symbols[n].function)
				continue;
			str_puts(out, "                                      ");
			str_safe(out, symbols[n].function);
			str_puts(out, "  ");
			str_safe(out, style_where(where, sizeof(where), symbols[n].file,
					  symbols[n].line, symbols[n].module));
			str_putc(out, '\n');
		}
	}
	if (!count)
		str_puts(out, "  none\n");
	free(list);
}

void report_sites_json(const struct sites_view *v, struct str *out)
{
	struct json j = {.out = out, .pretty = true};
	size_t count;
	struct ranked *list = rank(v, &count);

	if (!list) {
		out->failed = true;
		return;
	}
	json_object(&j, NULL);
	json_u64(&j, "schema", 1);
	json_string(&j, "at", v->at);
	json_string(&j, "by", names[v->by]);
	json_u64(&j, "live_bytes", v->places->live_bytes + v->places->map_bytes);
	json_array(&j, "sites");
	for (size_t i = 0; i < count; i++) {
		const struct place *p = list[i].place;
		const struct symbol *symbols = NULL;

		json_object(&j, NULL);
		json_string(&j, "function", p->function);
		json_string(&j, "file", p->file);
		if (p->line)
			json_u64(&j, "line", p->line);
		else
			json_null(&j, "line");
		json_u64(&j, "bytes", list[i].key);
		json_u64(&j, "live_bytes", p->live_bytes);
		json_u64(&j, "live_blocks", p->live_count);
		json_u64(&j, "peak_bytes", p->peak_bytes);
		json_u64(&j, "total_bytes", p->total_bytes);
		json_u64(&j, "total_blocks", p->total_count);
		json_u64(&j, "largest_bytes", p->largest);
		json_bool(&j, "blocks_grow", p->size.grows);
		json_bool(&j, "blocks_stay", p->keep.stays);
		json_array(&j, "stack");
		for (size_t n = frames(v, p, &symbols); n-- > 0;) {
			json_object(&j, NULL);
			json_string(
			    &j, "function", symbols[n].function ? symbols[n].function : "?");
			json_string(
			    &j, "file", symbols[n].file ? symbols[n].file : symbols[n].module);
			if (symbols[n].line)
				json_u64(&j, "line", symbols[n].line);
			else
				json_null(&j, "line");
			json_object_end(&j);
		}
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
	free(list);
}
