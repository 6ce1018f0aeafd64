/*
 * map_text.c - a strip for each segment, all to one scale, with what was refused drawn beside them.
 * A column shows whose most of its bytes are: a capital letter when at least half of it is live.
 */
#include <stdlib.h>
#include <string.h>

#include "report/format.h"
#include "report/parts.h"
#include "util/text/fmt.h"

#define LETTERS 12u
#define OTHERS LETTERS /* all further sites */
#define INDENT 2u
#define LINES 6u /* of what was refused */

/* --- what is drawn --- */

struct map_choice {
	size_t segment;
	size_t like; /* further segments of the same layout */
	uint64_t weight, size; /* bytes of all their holes; of each segment */
};

static int by_weight(const void *a, const void *b)
{
	const struct map_choice *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static int by_address(const void *a, const void *b)
{
	const struct map_choice *x = a, *y = b;

	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static uint64_t layout_hash(const struct space_map *map, const struct map_segment *s)
{
	uint64_t h = map_hash(s->end - s->start);

	for (size_t i = s->first; i < s->first + s->count; i++) {
		const struct map_piece *p = &map->pieces.items[i];

		h = map_hash(h ^ (p->end - s->start));
		h = map_hash(h ^ p->callsite);
	}
	return h;
}

/* Returns whether both have blocks of the same call sites and sizes at the same offsets. */
static bool same_layout(
    const struct space_map *map, const struct map_segment *a, const struct map_segment *b)
{
	if (a->end - a->start != b->end - b->start || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct map_piece *x = &map->pieces.items[a->first + i];
		const struct map_piece *y = &map->pieces.items[b->first + i];

		if (x->callsite != y->callsite || x->start - a->start != y->start - b->start ||
		    x->end - a->start != y->end - b->start)
			return false;
	}
	return true;
}

/* Folds segments of one layout into one choice, if `fold`. Returns the number of choices; -1: no
 * memory. */
static long gather(const struct space_map *map, bool fold, struct map_choice *list)
{
	const struct map_segment *segments = map->segments.items;
	struct map seen = {0};
	size_t used = 0;

	map_seed();
	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &segments[i];
		bool room = map->room.found && map->room.segment == i;
		/* The map points at the segment where room could be made, so it is never folded. */
		uint64_t *slot = fold && !room ? map_put(&seen, layout_hash(map, s)) : NULL;

		if (fold && !room && !slot) {
			map_free(&seen);
			return -1;
		}
		if (slot && *slot && same_layout(map, &segments[list[*slot - 1].segment], s)) {
			list[*slot - 1].like++;
			list[*slot - 1].weight += s->hole_bytes;
			continue;
		}
		list[used++] = (struct map_choice){.segment = i,
		    .weight = room ? UINT64_MAX : s->hole_bytes,
		    .size = s->end - s->start};
		if (slot)
			*slot = used;
	}
	map_free(&seen);
	return (long)used;
}

/* Chooses the segments to draw and returns them by address, for free(); NULL: no memory. Segments
 * where room could be made come first, then those with more free bytes, then larger ones. Segments
 * of the same layout are one choice, but with limit 0 each is its own. */
static struct map_choice *map_choose(const struct space_map *map, uint32_t limit, size_t *count)
{
	struct map_choice *list = malloc((map->segments.count + 1) * sizeof(*list));
	long n = list ? gather(map, limit, list) : -1;

	*count = 0;
	if (n < 0) {
		free(list);
		return NULL;
	}
	if (n)
		qsort(list, (size_t)n, sizeof(*list), by_weight);
	*count = limit && limit < (size_t)n ? limit : (size_t)n;
	if (*count)
		qsort(list, *count, sizeof(*list), by_address);
	return list;
}

/* --- drawing --- */

struct drawing {
	const struct map_view *v;
	const struct report_style *st;
	struct str *out;
	unsigned columns; /* of a strip */
	uint64_t unit; /* bytes of a column */
	uint64_t *cells; /* columns x (LETTERS + 1) */
	unsigned letters;
};

static enum term_style colour_of(unsigned letter)
{
	static const enum term_style colours[] = {TERM_CYAN, TERM_GREEN, TERM_YELLOW};

	return letter < OTHERS ? colours[letter % 3] : TERM_PLAIN;
}

static const char *hole_sign(const struct report_style *st)
{
	return st->unicode ? "\xc2\xb7" : ".";
}

static void sign(struct drawing *d, unsigned letter, bool full)
{
	if (letter == OTHERS)
		str_puts(d->out, full ? "#" : "+");
	else
		str_putc(d->out, (char)((full ? 'A' : 'a') + (char)letter));
}

static void put_pieces(struct drawing *d, const struct map_segment *s)
{
	for (size_t i = s->first; i < s->first + s->count; i++) {
		const struct map_piece *p = &d->v->map->pieces.items[i];
		uint64_t from = p->start - s->start, to = p->end - s->start;
		unsigned letter = p->callsite < d->letters ? p->callsite : OTHERS;

		if (p->callsite == MAP_HOLE)
			continue;
		for (uint64_t c = from / d->unit; c < d->columns && c * d->unit < to; c++) {
			uint64_t low = c * d->unit > from ? c * d->unit : from;
			uint64_t high = (c + 1) * d->unit < to ? (c + 1) * d->unit : to;

			d->cells[c * (LETTERS + 1) + letter] += high - low;
		}
	}
}

static void strip(struct drawing *d, const struct map_segment *s)
{
	uint64_t size = s->end - s->start;
	unsigned columns = (unsigned)((size + d->unit - 1) / d->unit);
	enum term_style now = TERM_PLAIN;

	if (columns > d->columns)
		columns = d->columns;
	memset(d->cells, 0, (size_t)d->columns * (LETTERS + 1) * sizeof(*d->cells));
	put_pieces(d, s);
	style_blanks(d->out, INDENT);
	str_putc(d->out, '[');
	for (unsigned c = 0; c < columns; c++) {
		const uint64_t *cell = &d->cells[(size_t)c * (LETTERS + 1)];
		uint64_t live = 0,
			 width = size - c * d->unit < d->unit ? size - c * d->unit : d->unit;
		unsigned best = 0;
		enum term_style want;

		for (unsigned k = 0; k <= LETTERS; k++) {
			live += cell[k];
			if (cell[k] > cell[best])
				best = k;
		}
		want = live ? colour_of(best) : TERM_DIM;
		if (want != now) {
			str_puts(d->out, term_style(d->st->colour, TERM_PLAIN));
			str_puts(d->out, want == TERM_PLAIN ? "" : term_style(d->st->colour, want));
			now = want;
		}
		if (live)
			sign(d, best, live * 2 >= width);
		else
			str_puts(d->out, hole_sign(d->st));
	}
	str_puts(d->out, now == TERM_PLAIN ? "" : term_style(d->st->colour, TERM_PLAIN));
	str_putc(d->out, ']');
}

/* Under the strip: where room could be made. */
static void room_line(struct drawing *d, const struct map_segment *s)
{
	const struct space_map *map = d->v->map;
	uint64_t from = map->pieces.items[map->room.first].start - s->start;
	uint64_t to = map->pieces.items[map->room.first + map->room.count - 1].end - s->start;

	style_blanks(d->out, INDENT + 1 + (unsigned)(from / d->unit));
	str_puts(d->out, term_style(d->st->colour, TERM_RED));
	for (uint64_t c = from / d->unit; c < d->columns && c * d->unit < to; c++)
		str_putc(d->out, '^');
	str_puts(d->out, term_style(d->st->colour, TERM_PLAIN));
	str_putc(d->out, '\n');
}

static void letter_of(const struct drawing *d, struct str *to, uint32_t stats)
{
	if (stats < d->letters)
		str_putc(to, (char)('A' + (char)stats));
	else
		str_safe(to, d->v->map->callsites.items[stats].function);
}

/* "2 blocks of A (1.20 MiB), 1 of B (512 KiB)" */
static void holders(const struct drawing *d, struct str *to, size_t first, size_t count)
{
	struct map_pin pins[3];
	struct fmt a, b;
	int n = map_pins(d->v->map, first, count, pins, 3);

	for (int i = 0; i < n && i < 3; i++) {
		str_printf(to, "%s%s%s of ", i ? ", " : "", fmt_count(&a, pins[i].blocks),
		    i			  ? ""
		    : pins[i].blocks == 1 ? " block"
					  : " blocks");
		letter_of(d, to, pins[i].stats);
		str_printf(to, " (%s)", fmt_size(&b, pins[i].bytes));
	}
	if (n > 3)
		str_printf(to, ", and of %d other call site%s", n - 3, n == 4 ? "" : "s");
}

static void segment(struct drawing *d, const struct map_segment *s)
{
	uint64_t size = s->end - s->start;
	unsigned columns;
	struct str text = {0};
	struct fmt a, b;

	str_printf(&text, "0x%llx  %s", (unsigned long long)s->start, fmt_size(&a, size));
	if (!s->live_blocks) {
		str_puts(&text, ", empty");
	} else if (!s->holes) {
		str_puts(&text, ", full: ");
		holders(d, &text, s->first, s->count);
	} else {
		str_printf(&text, ", %s live, %s %s; ", fmt_percent(&a, s->live_bytes, size),
		    s->holes > 1 ? "largest hole" : "hole", fmt_size(&b, s->largest_hole));
		holders(d, &text, s->first, s->count);
	}
	/* Beside a short strip, else above it. */
	columns = INDENT + 2 + (unsigned)((size + d->unit - 1) / d->unit);
	if (columns + 2 + term_columns(str_text(&text)) <= d->st->columns) {
		strip(d, s);
		str_puts(d->out, "  ");
		str_puts(d->out, str_text(&text));
	} else {
		style_wrap(d->out, d->st, INDENT, "%s", str_text(&text));
		strip(d, s);
	}
	str_putc(d->out, '\n');
	str_free(&text);
}

static void request_strip(struct drawing *d, const char *name, uint64_t bytes)
{
	uint64_t columns = (bytes + d->unit - 1) / d->unit;
	struct fmt a;

	str_printf(d->out, "  %s, %s\n", name, fmt_size_apart(&a, bytes, d->v->map->largest_hole));
	for (unsigned line = 0; columns && line < LINES; line++) {
		style_blanks(d->out, INDENT);
		str_putc(d->out, line ? ' ' : '[');
		str_puts(d->out, term_style(d->st->colour, TERM_RED));
		for (unsigned c = 0; c < d->columns && columns; c++, columns--)
			str_puts(d->out, d->st->unicode ? "\xe2\x96\x88" : "X");
		str_puts(d->out, term_style(d->st->colour, TERM_PLAIN));
		if (!columns)
			str_putc(d->out, ']');
		else if (line == LINES - 1)
			str_putc(d->out, '>');
		str_putc(d->out, '\n');
	}
}

static void legend_row(struct drawing *d, const char *head, const struct map_callsite *stats)
{
	unsigned name = d->st->columns > 40 ? d->st->columns - 32 : 8;
	struct str where = {0};
	struct fmt a, b;
	char buffer[256];

	str_puts(d->out, head);
	style_function(&where, d->st, stats->function);
	if (stats->file)
		str_printf(&where, "  %s",
		    style_where(buffer, sizeof(buffer), stats->file, stats->line, NULL));
	style_cell(d->out, d->st, str_text(&where), name > 60 ? 60 : name, false);
	style_cell(d->out, d->st, fmt_size(&a, stats->bytes), 11, true);
	style_cell(d->out, d->st, fmt_count(&b, stats->blocks), 9, true);
	str_puts(d->out, stats->blocks == 1 ? " block" : " blocks");
	style_end(d->out);
	str_free(&where);
}

static void legend(struct drawing *d)
{
	const struct space_map *map = d->v->map;
	struct map_callsite rest = {.function = "other call sites"};
	struct fmt a;
	char head[8] = "  A  ";

	if (map->callsites.count)
		style_heading(d->out, d->st, "Call sites");
	for (unsigned i = 0; i < d->letters; i++) {
		head[2] = (char)('A' + (char)i);
		legend_row(d, head, &map->callsites.items[i]);
	}
	for (size_t i = d->letters; i < map->callsites.count; i++) {
		rest.bytes += map->callsites.items[i].bytes;
		rest.blocks += map->callsites.items[i].blocks;
	}
	if (rest.blocks)
		legend_row(d, "  #  ", &rest);
	style_wrap(d->out, d->st, 2,
	    "A column is %s. Lower case, or +: more than half of it is free. %s: a hole.",
	    fmt_size(&a, d->unit), hole_sign(d->st));
}

static void summary(const struct map_view *v, const struct report_style *st, struct str *out)
{
	const struct space_map *map = v->map;
	const char *unit = map->kind == SPACE_TORCH ? "segment"
			   : map->kind == SPACE_VA  ? "reservation"
						    : "range";
	struct str text = {0};
	struct fmt a, b, c;

	style_title(out, st, "%s at %s%s, after %s", map->name,
	    strcmp(v->at, "failure") == 0 || strcmp(v->at, "peak") == 0 || strcmp(v->at, "end") == 0
		? "the "
		: "",
	    strcmp(v->at, "peak") == 0 ? "peak" : v->at, fmt_duration(&a, v->time_ns));
	str_printf(&text, "%s in %s %s%s; %s live", fmt_size(&a, map->bytes),
	    fmt_count(&b, map->segments.count), unit, map->segments.count == 1 ? "" : "s",
	    fmt_size(&c, map->live_bytes));
	str_printf(&text, " in %s block%s; %s in %s hole%s", fmt_count(&a, map->live_blocks),
	    map->live_blocks == 1 ? "" : "s", fmt_size(&c, map->hole_bytes),
	    fmt_count(&b, map->holes), map->holes == 1 ? "" : "s");
	if (map->holes)
		str_printf(&text, ", the largest with %s",
		    fmt_size_apart(
			&a, map->largest_hole, v->request ? v->request : map->largest_hole));
	str_puts(&text, ".");
	if (map->hidden_blocks)
		str_printf(&text, " Without an address: %s in %s handle%s.",
		    fmt_size(&a, map->hidden_bytes), fmt_count(&b, map->hidden_blocks),
		    map->hidden_blocks == 1 ? "" : "s");
	if (v->request) {
		str_printf(&text, " Refused: a block of %s",
		    fmt_size_apart(&a, v->request, map->largest_hole));
		if (v->segment)
			str_printf(&text, ", and a segment of %s from the level below",
			    fmt_size(&a, v->segment));
		str_puts(&text, ".");
	}
	if (v->free_known)
		str_printf(&text, " Free on the device: %s of %s.", fmt_size(&a, v->free),
		    fmt_size(&b, v->total));
	if (v->sample_count && v->samples[v->sample_count - 1].unattributed > 0)
		str_printf(&text, " In use and explained by no event: %s.",
		    fmt_size(&a, (uint64_t)v->samples[v->sample_count - 1].unattributed));
	style_wrap(out, st, 2, "%s", str_text(&text));
	str_free(&text);
}

static void room_words(struct drawing *d)
{
	const struct space_map *map = d->v->map;
	struct str text = {0};
	struct fmt a;

	if (!map->request || map->kind != SPACE_TORCH)
		return;
	if (!map->room.found)
		str_printf(&text, "No segment has %s: only a new one could hold the request.",
		    fmt_size(&a, map->request));
	else if (!map->room.blocks)
		str_printf(&text, "There is a large enough hole (^); the trace does not show why "
				  "the allocator did not use it.");
	else {
		str_printf(&text,
		    "%s would fit into the segment 0x%llx (^) with the fewest blocks out of the "
		    "way: ",
		    fmt_size(&a, map->request),
		    (unsigned long long)map->segments.items[map->room.segment].start);
		holders(d, &text, map->room.first, map->room.count);
		str_putc(&text, '.');
	}
	style_wrap(d->out, d->st, 2, "%s", str_text(&text));
	str_free(&text);
}

/* Segments that would be drawn the same. */
static void like_it(struct drawing *d, const struct map_segment *s, size_t like)
{
	struct str text = {0};
	struct fmt a, b;

	str_printf(&text, "and %s like it: %s", fmt_count(&a, like),
	    fmt_size(&b, like * (s->end - s->start)));
	if (s->holes)
		str_printf(&text, ", %s of it in holes", fmt_size(&a, like * s->hole_bytes));
	style_wrap(d->out, d->st, INDENT + 2, "%s", str_text(&text));
	str_free(&text);
}

static void left_out(struct drawing *d, const struct map_choice *shown, size_t count)
{
	const struct space_map *map = d->v->map;
	uint64_t bytes = map->bytes, holes = map->hole_bytes, left = map->segments.count;
	struct fmt a, b, c;

	for (size_t i = 0; i < count; i++) {
		const struct map_segment *s = &map->segments.items[shown[i].segment];

		left -= 1 + shown[i].like;
		bytes -= (1 + shown[i].like) * (s->end - s->start);
		holes -= (1 + shown[i].like) * s->hole_bytes;
	}
	if (!left)
		return;
	style_wrap(d->out, d->st, INDENT,
	    "and %s more: %s, %s of it in holes (--limit 0 draws all)", fmt_count(&a, left),
	    fmt_size(&b, bytes), fmt_size(&c, holes));
}

/* Bytes of a column: so that the largest of what is drawn fits. */
static uint64_t unit_of(const struct drawing *d, const struct map_choice *shown, size_t count)
{
	const struct map_view *v = d->v;
	const struct space_map *map = v->map;
	uint64_t widest = v->request > v->segment ? v->request : v->segment;
	uint64_t widest_segment = 0, lines, unit;

	/* A request that nothing could ever hold would leave no column for the rest. */
	if (widest > 2 * map->bytes && map->bytes)
		widest = 2 * map->bytes;
	for (size_t i = 0; i < count; i++)
		if (shown[i].size > widest_segment)
			widest_segment = shown[i].size;
	if (widest_segment > widest)
		widest = widest_segment;
	/* What is larger than any segment is drawn on several lines, so that these stay legible. */
	lines = widest_segment ? (widest + widest_segment - 1) / widest_segment : 1;
	lines = lines < LINES ? lines : LINES;
	unit = widest / lines > widest_segment ? widest / lines : widest_segment;
	return unit ? (unit + d->columns - 1) / d->columns : 1;
}

void map_text(const struct map_view *v, const struct report_style *style, struct str *out)
{
	const struct space_map *map = v->map;
	struct drawing d = {.v = v, .st = style, .out = out};
	size_t count;
	struct map_choice *shown = map_choose(map, v->limit, &count);

	d.columns = style->columns > 16 ? style->columns - INDENT - 3 : 8;
	d.cells = malloc((size_t)d.columns * (LETTERS + 1) * sizeof(*d.cells));
	if (!shown || !d.cells) {
		out->failed = true;
		goto out;
	}
	damage_text(&v->damage, style, out);
	d.unit = unit_of(&d, shown, count);
	d.letters = map->callsites.count < LETTERS ? (unsigned)map->callsites.count : LETTERS;
	summary(v, style, out);
	str_putc(out, '\n');
	if (v->request)
		request_strip(&d, "refused", v->request);
	if (v->segment && v->segment != v->request)
		request_strip(&d, "the segment to hold it", v->segment);
	for (size_t i = 0; i < count; i++) {
		const struct map_segment *s = &map->segments.items[shown[i].segment];

		segment(&d, s);
		if (map->room.found && map->room.segment == shown[i].segment &&
		    map->kind == SPACE_TORCH)
			room_line(&d, s);
		if (shown[i].like)
			like_it(&d, s, shown[i].like);
	}
	left_out(&d, shown, count);
	if (v->request && map->kind == SPACE_TORCH) {
		str_putc(out, '\n');
		room_words(&d);
	}
	legend(&d);
out:
	free(shown);
	free(d.cells);
}
