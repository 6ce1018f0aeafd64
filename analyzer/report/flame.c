/* flame.c - what the flame graph, the call tree and the JSON of both share. See flame.h. */
#include "report/flame.h"

#include <stdlib.h>
#include <string.h>

#include "report/text/style.h"
#include "util/text/fmt.h"

const char *flame_amount(const struct flame_view *v, struct fmt *f, uint64_t amount)
{
	return strcmp(v->unit, "bytes") == 0 ? fmt_size(f, amount) : fmt_count(f, amount);
}

void flame_title(const struct flame_view *v, const struct report_style *style, struct str *out)
{
	bool live = strcmp(v->measure, "live") == 0, peak = strcmp(v->measure, "peak") == 0;
	bool seconds = v->at[0] >= '0' && v->at[0] <= '9';
	struct str moment = {0};
	struct fmt a, b;

	/* The peak is a moment of its own; other sums are of all until the moment. */
	if (!peak)
		str_printf(
		    &moment, " %s%s %s", live ? "at" : "until", seconds ? "" : " the", v->at);
	style_title(out, style, "%s%s in %s: %s in %s stack%s", live ? "live" : v->meaning,
	    str_text(&moment), v->space, flame_amount(v, &a, v->tree->nodes.items[0].sums[0]),
	    fmt_count(&b, v->stacks), v->stacks == 1 ? "" : "s");
	str_free(&moment);
}

void flame_names(const struct flame_frame *f, const struct report_style *style,
    struct str *function, struct str *place)
{
	const struct symbol *s = &f->symbol;
	const char *name = s->function ? s->function : "(unknown)";
	struct str text = {0};
	char where[512];

	str_safe(place,
	    style_where(where, sizeof(where), s->file, s->line, s->python ? NULL : s->module));
	if (s->python && place->length && strcmp(name, "<module>") == 0) {
		str_puts(function, str_text(place));
		str_clear(place);
		return;
	}
	if (s->python)
		str_puts(&text, name);
	else
		style_function(&text, style, name);
	str_safe(function, str_text(&text));
	function->failed |= text.failed;
	str_free(&text);
}

struct ranked {
	uint64_t amount;
	uint32_t node;
};

static int by_amount(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->amount != y->amount)
		return x->amount < y->amount ? 1 : -1;
	return x->node < y->node ? -1 : x->node > y->node;
}

uint32_t *flame_children(const struct flame_view *v, uint32_t node, size_t *count)
{
	const struct frame_node *nodes = v->tree->nodes.items;
	struct ranked *list;
	uint32_t *out;
	size_t n = 0;

	*count = 0;
	for (uint32_t at = nodes[node].child; at; at = nodes[at].next)
		n++;
	list = malloc((n + 1) * sizeof(*list));
	out = malloc((n + 1) * sizeof(*out));
	if (!list || !out) {
		free(list);
		free(out);
		return NULL;
	}
	n = 0;
	for (uint32_t at = nodes[node].child; at; at = nodes[at].next)
		list[n++] = (struct ranked){nodes[at].sums[0], at};
	qsort(list, n, sizeof(*list), by_amount);
	for (size_t i = 0; i < n; i++)
		out[i] = list[i].node;
	free(list);
	*count = n;
	return out;
}
