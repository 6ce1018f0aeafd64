#include "verdict/device/device_ledger.h"

#include <string.h>

#include "util/num.h"
#include "verdict/ledger/classes.h"
#include "verdict/ledger/ledger.h"

static void live_rows(struct ledger *l, const struct classes *c)
{
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		ledger_row(l, class_name(i), c->of[i].heap + c->of[i].maps);
	ledger_row(l, "other live blocks", c->heap_other + c->maps_other);
}

static void take_from(uint64_t *bytes, uint64_t *wanted)
{
	uint64_t taken = num_least(*bytes, *wanted);

	*bytes -= taken;
	*wanted -= taken;
}

/*
 * Divide PyTorch's free memory by whether it was usable. Without a failure PyTorch can hand out all
 * of it. If the driver refused another's request, PyTorch can give back segments without blocks.
 * Before PyTorch itself refuses, it tries all holes and gives back empty segments: a large enough
 * hole, or an empty segment, then belongs to another stream, a CUDA graph, or sizes that are kept
 * apart.
 *
 * `hidden` is d->hidden_bytes: these live bytes look like holes.
 */
static void slack_rows(
    struct ledger *l, const struct space_map *map, bool failed, uint64_t refused, uint64_t hidden)
{
	uint64_t usable = 0, pinned = 0, apart = 0, rest = hidden;

	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		for (size_t k = s->first; k < s->first + s->count; k++) {
			const struct map_piece *p = &map->pieces.items[k];
			uint64_t size = p->end - p->start;

			if (p->callsite != MAP_HOLE)
				continue;
			if (refused && (!s->live_blocks || size >= refused))
				apart += size;
			else if (!failed || !s->live_blocks)
				usable += size;
			else
				pinned += size;
		}
	}
	take_from(&pinned, &rest);
	take_from(&apart, &rest);
	take_from(&usable, &rest);
	ledger_row(l, "live, not known one by one", hidden - rest);
	ledger_row(l, "PyTorch slack, can be used", usable);
	ledger_row(l, "PyTorch slack, kept apart", apart);
	ledger_row(l, "PyTorch slack, fragmented", pinned);
}

/* Return how far contexts and code lowered free memory. *alone: without other processes'. */
static uint64_t contexts(const struct space *cuda, const struct device_report *d, bool *alone)
{
	int64_t bytes = cuda->context_bytes + cuda->module_bytes;

	if (cuda->first_context.known) {
		uint64_t unexplained = cuda->first_context.unexplained, others = d->others;

		*alone = cuda->first_context.others_known || d->others_known;
		if (cuda->first_context.others_known)
			others = cuda->first_context.others;
		/* The others were not sampled yet, but this process was later. */
		else if (cuda->overhead_known)
			others = num_less(
			    unexplained, num_less(cuda->overhead, bytes > 0 ? (uint64_t)bytes : 0));
		bytes += (int64_t)num_less(unexplained, others);
	}
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Return the driver's last number, updated by later events. */
static uint64_t free_now(const struct space *cuda, const struct device_report *d)
{
	uint64_t then = cuda->last_sample.explained, now = num_less(d->free + then, d->explained);

	if (!cuda->last_sample.total)
		return d->free;
	return now < d->total ? now : d->total;
}

static uint64_t segments_of(const struct space_map *map)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < map->segments.count; i++)
		if (map->segments.items[i].acquired)
			sum += map->segments.items[i].end - map->segments.items[i].start;
	return sum;
}

/* Add rows for all of the device: PyTorch's part and the others'. */
static void device_rows(struct device_report *d, const struct space *cuda)
{
	struct ledger *l = &d->ledger;
	uint64_t available = free_now(cuda, d), context, rest;
	bool alone = true;

	rest = num_less(num_less(d->total - available, d->explained), d->others);
	context = contexts(cuda, d, &alone);
	ledger_row(l,
	    alone ? "CUDA context and modules" : "CUDA context, modules and other processes",
	    context < rest ? context : rest);
	ledger_row(l, "other processes", d->others);
	ledger_row(l, "free", available);
	l->limit = LIMIT_DEVICE;
	l->limit_bytes = d->total;
	if (cuda->model->measured.levels.time_ns[TRACE_LEVEL_DEV_FREE] < d->time_ns)
		l->age_ns = d->time_ns - cuda->model->measured.levels.time_ns[TRACE_LEVEL_DEV_FREE];
}

static uint64_t sum_of(const struct ledger *l)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < l->row_count; i++)
		sum += l->rows[i].bytes;
	return sum;
}

int device_ledger_make(struct device_report *d, const struct device_ledger_input *in)
{
	const struct space *cuda = spaces_of(in->model->spaces, SPACE_CUDA, in->device);
	uint64_t own = d->torch && in->map ? in->map->live_bytes
		       : cuda		   ? cuda->model->blocks.bytes
					   : 0;
	const struct classes_input lives = {.callsites = in->callsites,
	    .roles = in->roles,
	    .candidates = in->candidates,
	    .candidate_count = in->candidate_count,
	    .device = true,
	    .heap_bytes = own};
	struct ledger *l = &d->ledger;
	struct classes classes;
	int rc = classes_make(&lives, &classes);

	if (rc)
		return rc;
	memset(l, 0, sizeof(*l));
	l->space = d->device;
	l->limit = LIMIT_UNKNOWN;
	l->at = d->at;
	live_rows(l, &classes);
	if (d->reserved_known && in->map && d->time_ns <= replaced_until_ns(&in->model->feed))
		d->hidden_bytes = num_less(d->allocated, in->map->live_bytes);
	if (d->torch && in->map)
		slack_rows(l, in->map, d->failed, in->request, d->hidden_bytes);
	if (d->capped) {
		/* PyTorch's own limit charges only PyTorch's memory. */
		l->limit = LIMIT_TORCH;
		l->limit_bytes = d->capped;
		ledger_row(l, "free", num_less(d->capped, sum_of(l)));
		ledger_close(l);
		return 0;
	}
	if (d->torch && in->map)
		ledger_row(l, "non-PyTorch", num_less(d->explained, segments_of(in->map)));
	else
		ledger_row(l, "pools and graphs", num_less(d->explained, own));
	if (d->free_known && d->free <= d->total)
		device_rows(d, cuda);
	else
		l->limit_bytes = sum_of(l);
	ledger_close(l);
	return 0;
}
