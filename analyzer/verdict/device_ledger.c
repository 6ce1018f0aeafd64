/* device_ledger.c - see device_ledger.h. */
#include "verdict/device_ledger.h"

#include <assert.h>
#include <string.h>

#include "verdict/ledger.h"

static uint64_t less(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

static void row(struct ledger *l, const char *class, uint64_t bytes)
{
	if (!bytes)
		return;
	assert(l->row_count < LEDGER_ROWS);
	l->rows[l->row_count++] = (struct ledger_row){class, bytes};
}

/* Live blocks by what the history of their sites shows. What is too small for a place, or was
 * placed twice, is with the others. */
static void live_rows(struct ledger *l, const struct places *places, uint64_t live)
{
	uint64_t grow = 0, stay = 0;

	for (uint32_t i = 0; places && i < places->count; i++) {
		const struct place *p = &places->list[i];
		uint64_t *to = p->size.grows ? &grow : p->keep.stays ? &stay : NULL;

		if (to)
			*to += p->live_bytes;
	}
	if (grow > live)
		grow = live;
	if (stay > live - grow)
		stay = live - grow;
	row(l, "PyTorch blocks of growing size", grow);
	row(l, "PyTorch blocks that stay", stay);
	row(l, "other PyTorch blocks", live - grow - stay);
}

/* Free memory that PyTorch holds: what could be handed out, or back, and what could not. */
static void slack_rows(struct ledger *l, const struct space_map *map, uint64_t request)
{
	uint64_t usable = 0, pinned = 0;

	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		for (size_t k = s->first; k < s->first + s->count; k++) {
			const struct map_piece *p = &map->pieces.items[k];
			uint64_t size = p->end - p->start;

			if (p->site != MAP_NO_SITE)
				continue;
			if (!s->live_blocks || (request && size >= request))
				usable += size;
			else
				pinned += size;
		}
	}
	row(l, "PyTorch slack, can be used", usable);
	row(l, "PyTorch slack, fragmented", pinned);
}

/* By how much contexts and code lowered the free memory. `alone`: others' memory is not in it. */
static uint64_t contexts(const struct space *cuda, const struct device_report *d, bool *alone)
{
	int64_t bytes = cuda->context_bytes + cuda->module_bytes;

	if (cuda->first_context.known) {
		uint64_t others =
		    cuda->first_context.others_known ? cuda->first_context.others : d->others;

		*alone = cuda->first_context.others_known || d->others_known;
		bytes += (int64_t)less(cuda->first_context.unexplained, others);
	}
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* What the driver said is of an earlier moment; what came and went since is known. */
static uint64_t free_now(const struct space *cuda, const struct device_report *d)
{
	uint64_t then = cuda->last_sample.explained, now = less(d->free + then, d->explained);

	if (!cuda->last_sample.total)
		return d->free;
	return now < d->total ? now : d->total;
}

void device_ledger_make(struct device_report *d, const struct model *m, uint32_t device,
    const struct space_map *map, const struct places *places, uint64_t request)
{
	const struct space *cuda = spaces_of(m->spaces, SPACE_CUDA, device);
	struct ledger *l = &d->ledger;
	uint64_t segments = 0, context = 0, sum = 0, used, rest;

	memset(l, 0, sizeof(*l));
	l->space = d->device;
	l->limit = d->free_known ? LIMIT_DEVICE : LIMIT_UNKNOWN;
	l->at = d->at;
	if (map) {
		for (size_t i = 0; i < map->segments.count; i++)
			if (map->segments.items[i].acquired)
				segments +=
				    map->segments.items[i].end - map->segments.items[i].start;
		live_rows(l, places, map->live_bytes);
		slack_rows(l, map, request);
	}
	row(l, "non-PyTorch", less(d->explained, segments));
	if (d->free_known && d->free <= d->total) {
		uint64_t available = free_now(cuda, d);
		bool alone = true;

		used = d->total - available;
		rest = less(less(used, d->explained), d->others);
		context = contexts(cuda, d, &alone);
		row(l,
		    alone ? "CUDA context and modules"
			  : "CUDA context, modules and other processes",
		    context < rest ? context : rest);
		row(l, "other processes", d->others);
		row(l, "free", available);
		l->limit_bytes = d->total;
		if (cuda->model->levels.time_ns[TRACE_LEVEL_DEV_FREE] < d->time_ns)
			l->age_ns = d->time_ns - cuda->model->levels.time_ns[TRACE_LEVEL_DEV_FREE];
	}
	for (uint32_t i = 0; i < l->row_count; i++)
		sum += l->rows[i].bytes;
	if (!d->free_known || d->free > d->total)
		l->limit_bytes = sum;
	l->unaccounted = (int64_t)(l->limit_bytes - sum);
	assert(ledger_adds_up(l));
}
