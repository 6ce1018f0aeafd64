/* map_table.c - a map in sentences and tables: for readers without scripts, on paper, aloud. */
#include <stdlib.h>

#include "report/html/html.h"
#include "report/html/page_parts.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define ROWS 24u /* of each table */

static void say(struct str *out, const char *text)
{
	str_puts(out, "<li>");
	html_text(out, text);
	str_puts(out, "</li>\n");
}

static const char *name_of(const struct space_map *map, const struct map_piece *p)
{
	return p->callsite == MAP_HOLE ? "a hole" : map->callsites.items[p->callsite].function;
}

/* Who has the blocks on both sides of the largest hole. */
static void say_pinned(const struct space_map *map, struct str *text)
{
	const struct map_piece *hole = NULL;
	const struct map_segment *of = NULL;
	size_t at = 0;
	struct fmt a;

	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		for (size_t k = s->first; k < s->first + s->count; k++) {
			const struct map_piece *p = &map->pieces.items[k];

			if (p->callsite != MAP_HOLE ||
			    (hole && p->end - p->start <= hole->end - hole->start))
				continue;
			hole = p;
			of = s;
			at = k;
		}
	}
	if (!hole)
		return;
	str_printf(text, "The largest hole, %s, lies between %s and %s.",
	    fmt_size(&a, hole->end - hole->start),
	    at > of->first ? name_of(map, hole - 1) : "the segment's begin",
	    at + 1 < of->first + of->count ? name_of(map, hole + 1) : "the segment's end");
}

/* "3 blocks" */
static void add_count(struct str *text, uint64_t count, const char *what)
{
	struct fmt a;

	str_printf(text, "%s %s%s", fmt_count(&a, count), what, count == 1 ? "" : "s");
}

static void say_whole(const struct space_map *map, struct str *text)
{
	struct fmt a;

	str_printf(text, "%s in ", fmt_size(&a, map->bytes));
	add_count(text, map->segments.count, "segment");
	str_printf(text, ": %s live in ", fmt_size(&a, map->live_bytes));
	add_count(text, map->live_blocks, "block");
	if (!map->holes) {
		str_puts(text, ", no hole.");
		return;
	}
	str_printf(text, ", %s in ", fmt_size(&a, map->hole_bytes));
	add_count(text, map->holes, "hole");
	if (map->holes > 1)
		str_printf(text, ", the largest with %s", fmt_size(&a, map->largest_hole));
	str_puts(text, ".");
}

static void sentences(const struct space_map *map, struct str *out)
{
	struct str text = {0};
	struct fmt a;

	str_puts(out, "<ul>\n");
	say_whole(map, &text);
	say(out, str_text(&text));
	str_clear(&text);
	if (map->request) {
		str_printf(&text, "Refused: one block of %s. %s", fmt_size(&a, map->request),
		    map->request > map->largest_hole ? "No hole is that large."
						     : "A hole is large enough.");
		say(out, str_text(&text));
		str_clear(&text);
	}
	if (map->room.found && map->room.blocks) {
		str_puts(&text, "It would fit with ");
		add_count(&text, map->room.blocks, "block");
		str_printf(&text, ", %s, out of the way.", fmt_size(&a, map->room.bytes));
		say(out, str_text(&text));
		str_clear(&text);
	}
	say_pinned(map, &text);
	if (text.length)
		say(out, str_text(&text));
	str_puts(out, "</ul>\n");
	out->failed |= text.failed;
	str_free(&text);
}

static int by_size(const void *a, const void *b, void *segments)
{
	const struct map_segment *s = segments;
	const struct map_segment *x = &s[*(const uint32_t *)a], *y = &s[*(const uint32_t *)b];
	uint64_t left = x->end - x->start, right = y->end - y->start;

	if (left != right)
		return left < right ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void segment(const struct map_segment *s, struct str *out)
{
	struct fmt a;

	str_printf(out, "<tr><th scope=\"row\"><code>0x%llx</code></th><td>%s</td>",
	    (unsigned long long)s->start, fmt_size(&a, s->end - s->start));
	str_printf(out, "<td>%s</td>", fmt_percent(&a, s->live_bytes, s->end - s->start));
	str_printf(out, "<td>%s</td>", fmt_count(&a, s->live_blocks));
	str_printf(out, "<td>%s</td>", fmt_count(&a, s->holes));
	str_printf(out, "<td>%s</td></tr>\n", fmt_size(&a, s->largest_hole));
}

static void more(size_t count, const char *what, struct str *out)
{
	struct fmt a;

	if (count > ROWS)
		str_printf(out, "<p class=\"hint\">and %s smaller %s</p>\n",
		    fmt_count(&a, count - ROWS), what);
}

static void segments(const struct space_map *map, struct str *out)
{
	uint32_t count = (uint32_t)map->segments.count;
	uint32_t *order = malloc((count + 1u) * sizeof(*order));

	if (!order) {
		out->failed = true;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	if (count)
		qsort_r(order, count, sizeof(*order), by_size, map->segments.items);
	str_puts(out, "<table><thead><tr><th scope=\"col\">Segment</th><th scope=\"col\">Size"
		      "</th><th scope=\"col\">Live</th><th scope=\"col\">Blocks</th><th "
		      "scope=\"col\">Holes</th><th scope=\"col\">Largest "
		      "hole</th></tr></thead><tbody>\n");
	for (uint32_t i = 0; i < num_least(count, ROWS); i++)
		segment(&map->segments.items[order[i]], out);
	str_puts(out, "</tbody></table>\n");
	more(count, "segments", out);
	free(order);
}

static void sites(const struct space_map *map, struct str *out)
{
	char where[256];
	struct fmt a;

	str_puts(out, "<table><thead><tr><th scope=\"col\">Call site</th><th scope=\"col\">Live"
		      "</th><th scope=\"col\">Blocks</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < num_least(map->callsites.count, ROWS); i++) {
		const struct map_callsite *c = &map->callsites.items[i];

		str_puts(out, "<tr><th scope=\"row\"><span class=\"name\">");
		html_text(out, c->function);
		str_puts(out, "</span> <span class=\"where\">");
		html_text(out, style_where(where, sizeof(where), c->file, c->line, NULL));
		str_printf(out, "</span></th><td>%s</td>", fmt_size(&a, c->bytes));
		str_printf(out, "<td>%s</td></tr>\n", fmt_count(&a, c->blocks));
	}
	str_puts(out, "</tbody></table>\n");
	more(map->callsites.count, "call sites", out);
}

void map_table(const struct space_map *map, struct str *out)
{
	sentences(map, out);
	str_puts(out, "<div class=\"scroll\">\n");
	sites(map, out);
	str_puts(out, "</div>\n<div class=\"scroll\">\n");
	segments(map, out);
	str_puts(out, "</div>\n");
}
