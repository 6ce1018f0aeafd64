/* slices.c - see slices.h. */
#include "report/html/slices.h"

#include <errno.h>
#include <stdlib.h>

#include "util/num.h"

void slices_fini(struct slices *s)
{
	for (size_t i = 0; i <= SLICES_SITES; i++)
		free(s->sites[i]);
}

static uint32_t slice_of(const struct slices *s, uint64_t time_ns)
{
	double share = s->end_ns ? (double)time_ns / (double)s->end_ns : 0;

	return share * SLICES < SLICES ? (uint32_t)(share * SLICES) : SLICES - 1;
}

static struct slice_cell *row_of(struct slices *s, uint32_t site, uint32_t born)
{
	struct slices_site **at = &s->sites[site < SLICES_SITES ? site : SLICES_SITES];

	if (!*at)
		*at = calloc(1, sizeof(**at));
	return *at ? (*at)->cells[born] : NULL;
}

int slices_acquired(
    struct slices *s, uint32_t site, uint64_t time_ns, uint64_t bytes, uint64_t count)
{
	struct slice_cell *row = row_of(s, site, slice_of(s, time_ns));

	if (!row)
		return -ENOMEM;
	row[SLICES].bytes += bytes;
	row[SLICES].count += count;
	return 0;
}

/* A release that failed was taken back by an acquisition: then the block seems younger than it is.
 */
int slices_released(struct slices *s, uint32_t site, uint64_t birth_ns, uint64_t time_ns,
    uint64_t bytes, uint64_t count)
{
	uint32_t born = slice_of(s, birth_ns), died = slice_of(s, time_ns);

	for (; (bytes || count) && born <= died; born++) {
		struct slice_cell *row = row_of(s, site, born);
		uint64_t some, few;

		if (!row)
			return -ENOMEM;
		/* No more dies than lives: what was never acquired is damage. */
		some = num_least(bytes, row[SLICES].bytes);
		few = num_least(count, row[SLICES].count);
		row[SLICES].bytes -= some;
		row[SLICES].count -= few;
		row[died - born].bytes += some;
		row[died - born].count += few;
		bytes -= some;
		count -= few;
	}
	return 0;
}

static void write_site(const struct slices_site *site, uint32_t number, struct str *to)
{
	struct str body = {0};
	uint32_t cells = 0, before = 0;

	for (uint32_t born = 0; born < SLICES; born++)
		for (uint32_t n = 0; n <= SLICES; n++) {
			const struct slice_cell *c = &site->cells[born][n];
			uint32_t at = born * (SLICES + 1) + n;

			if (!c->bytes && !c->count)
				continue;
			block_number(&body, at - before);
			block_number(&body, c->bytes);
			block_number(&body, c->count);
			before = at;
			cells++;
		}
	block_number(to, number);
	block_number(to, cells);
	str_add(to, str_text(&body), body.length);
	to->failed |= body.failed;
	str_free(&body);
}

static uint32_t count_cells(const struct slices_site *site)
{
	uint32_t cells = 0;

	for (uint32_t born = 0; born < SLICES; born++)
		for (uint32_t n = 0; n <= SLICES; n++)
			cells += site->cells[born][n].bytes || site->cells[born][n].count;
	return cells;
}

static void add_site(struct slices_site *to, const struct slices_site *from)
{
	for (uint32_t born = 0; born < SLICES; born++)
		for (uint32_t n = 0; n <= SLICES; n++) {
			to->cells[born][n].bytes += from->cells[born][n].bytes;
			to->cells[born][n].count += from->cells[born][n].count;
		}
}

void slices_write(const struct slices *s, struct str *to)
{
	struct slices_site *rest = calloc(1, sizeof(*rest));
	struct str body = {0};
	uint32_t cells = 0, sites = 0;

	/* Call sites are numbered by size, so what is merged is small. */
	for (uint32_t i = 0; rest && i <= SLICES_SITES; i++) {
		if (!s->sites[i])
			continue;
		cells += count_cells(s->sites[i]);
		if (i == SLICES_SITES || cells > SLICES_CELLS) {
			add_site(rest, s->sites[i]);
			continue;
		}
		write_site(s->sites[i], i, &body);
		sites++;
	}
	if (rest)
		write_site(rest, SLICES_SITES, &body);
	block_number(to, s->end_ns);
	block_number(to, SLICES);
	block_number(to, sites + 1);
	str_add(to, str_text(&body), body.length);
	to->failed |= body.failed || !rest;
	free(rest);
	str_free(&body);
}
