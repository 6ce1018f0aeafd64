/* sites.c - the call sites behind the bytes, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "util/text/fmt.h"
#include "util/text/json.h"

static const char *const names[] = {"live", "peak", "total", "growth", "leaked"};

int sites_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

struct ranked {
	const struct callsite *callsite;
	uint64_t key;
};

static uint64_t key_of(const struct callsite *p, enum sites_by by)
{
	switch (by) {
	case SITES_LIVE:
		return p->facts.live_bytes;
	case SITES_PEAK:
		return p->facts.peak_bytes;
	case SITES_TOTAL:
		return p->facts.total_bytes;
	case SITES_GROWTH:
		/* Growth is in larger blocks, or in more of them. */
		if (p->size.grows)
			return p->size.last - p->size.first;
		return p->survivors.stays ? p->survivors.bytes - p->survivors.before : 0;
	case SITES_LEAKED:
		return p->survivors.stays ? p->survivors.bytes : 0;
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return x->callsite < y->callsite ? -1 : x->callsite > y->callsite;
}

static struct ranked *rank(const struct sites_view *v, size_t *count)
{
	struct ranked *list = malloc((v->callsites->count + 1u) * sizeof(*list));

	*count = 0;
	for (uint32_t i = 0; list && i < v->callsites->count; i++) {
		uint64_t key = key_of(&v->callsites->list[i], v->by);

		if (key)
			list[(*count)++] = (struct ranked){&v->callsites->list[i], key};
	}
	if (list)
		qsort(list, *count, sizeof(*list), by_key);
	if (v->limit && *count > v->limit)
		*count = v->limit;
	return list;
}

static size_t frames(
    const struct sites_view *v, const struct callsite *p, const struct symbol **out)
{
	return p->stack ? v->model->feed.symbols(v->model->feed.self, p->stack, out) : 0;
}

/* The function and its source position share the columns that the numbers leave. */
struct columns {
	unsigned bytes, blocks, largest; /* widths; 0: left out */
	unsigned name;
};

static struct columns layout(const struct report_style *style)
{
	struct columns c = {.bytes = 11, .blocks = 12, .largest = 11};
	unsigned fixed;

	/* Narrow terminals lose the least important columns first. */
	if (style->columns < 72)
		c.largest = 0;
	if (style->columns < 52)
		c.blocks = 0;
	fixed = c.bytes + c.blocks + c.largest + 2;
	c.name = style->columns > fixed + 10 ? style->columns - fixed : 10;
	if (c.name > 90)
		c.name = 90;
	return c;
}

static void headings(const struct sites_view *v, const struct report_style *style,
    const struct columns *c, struct str *out)
{
	struct fmt a, b;

	style_title(out, style, "%s at %s%s: %s in use, %s blocks and mappings acquired in all",
	    names[v->by], v->at[0] >= '0' && v->at[0] <= '9' ? "" : "the ", v->at,
	    fmt_size(&a, v->callsites->live_bytes + v->callsites->map_bytes),
	    fmt_count(&b, v->model->total.count));
	style_cell(out, style, names[v->by], c->bytes, true);
	if (c->blocks)
		style_cell(out, style, "blocks", c->blocks, true);
	if (c->largest)
		style_cell(out, style, "largest", c->largest, true);
	str_puts(out, "  function\n");
}

void sites_text(const struct sites_view *v, const struct report_style *style, struct str *out)
{
	struct columns columns = layout(style);
	size_t count;
	struct ranked *list = rank(v, &count);
	struct fmt a;

	if (!list) {
		out->failed = true;
		return;
	}
	damage_text(&v->damage, style, out);
	headings(v, style, &columns, out);
	for (size_t i = 0; i < count; i++) {
		const struct callsite *p = list[i].callsite;
		struct stack_view stack = {0};

		style_cell(out, style, fmt_size(&a, list[i].key), columns.bytes, true);
		if (columns.blocks)
			style_cell(out, style,
			    fmt_count(&a,
				v->by == SITES_TOTAL ? p->facts.total_count : p->facts.live_count),
			    columns.blocks, true);
		if (columns.largest)
			style_cell(
			    out, style, fmt_size(&a, p->facts.largest), columns.largest, true);
		str_puts(out, "  ");
		style_line(out, style, p->function, p->file, p->line, columns.name);
		style_end(out);
		if (!style->verbose)
			continue;
		stack.count = frames(v, p, &stack.symbols);
		if (stack.count)
			frames_write(out, style, &stack, stack.count - 1, 200, columns.bytes + 2);
	}
	if (!count)
		str_puts(out, "  none\n");
	free(list);
}

void sites_json(const struct sites_view *v, const struct report_style *style, struct str *out)
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
	damage_json(&j, &v->damage);
	json_string(&j, "at", v->at);
	json_string(&j, "by", names[v->by]);
	json_u64(&j, "live_bytes", v->callsites->live_bytes + v->callsites->map_bytes);
	json_array(&j, "sites");
	for (size_t i = 0; i < count; i++) {
		const struct callsite *p = list[i].callsite;
		struct stack_view stack = {0};

		json_object(&j, NULL);
		json_string(&j, "function", p->function);
		json_string(&j, "file", p->file);
		json_u64_or_null(&j, "line", p->line, p->line);
		json_u64(&j, "bytes", list[i].key);
		json_u64(&j, "live_bytes", p->facts.live_bytes);
		json_u64(&j, "live_blocks", p->facts.live_count);
		json_u64(&j, "peak_bytes", p->facts.peak_bytes);
		json_u64(&j, "total_bytes", p->facts.total_bytes);
		json_u64(&j, "total_blocks", p->facts.total_count);
		json_u64(&j, "largest_bytes", p->facts.largest);
		json_bool(&j, "blocks_grow", p->size.grows);
		json_bool(&j, "blocks_stay", p->survivors.stays);
		stack.count = frames(v, p, &stack.symbols);
		report_stack_json(&j, "stack", &stack);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	str_putc(out, '\n');
	free(list);
}
