#include "verdict/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/blame.h"
#include "model/callsite/callsite.h"
#include "model/model.h"
#include "model/space/space_map.h"
#include "model/torch/caching_allocator.h"
#include "model/torch/torch_replay.h"
#include "util/num.h"
#include "util/text/str.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/ledger/classes.h"
#include "verdict/ledger/ledger.h"

bool device_failed(const struct verdict_result *r)
{
	const struct device_failure *f = spaces_failure(r->model->spaces);

	if (!f)
		return false;
	if (r->failure.kind == FAILURE_NONE)
		return true;
	/* A kill comes after all refusals. */
	return !failure_is_kill(r->failure.kind) && f->time_ns >= r->failure.time_ns;
}

static bool is_of_device(const struct space *sp)
{
	return sp->kind != SPACE_OTHER && sp->kind <= SPACE_TORCH;
}

/* Return the driver's space, which contains all others; if not recorded, the first other one. */
static const struct space *main_space(const struct spaces *s, uint32_t device)
{
	const struct space *best = spaces_of(s, SPACE_CUDA, device);

	for (uint32_t i = 0; i < s->count && !best; i++)
		if (is_of_device(s->list[i]) && s->list[i]->device == device)
			best = s->list[i];
	return best;
}

/* Return a device's weight: the device that refused comes first, then those that held most. */
static uint64_t weight(const struct spaces *s, const struct device_failure *f, uint32_t device)
{
	const struct space *refused = f ? s->list[f->space] : NULL;

	return refused && is_of_device(refused) && refused->device == device
		   ? UINT64_MAX
		   : main_space(s, device)->model->peak.bytes;
}

static int list_devices(const struct spaces *s, const struct device_failure *f, struct devices *out)
{
	struct device_report *list = calloc(s->count + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct space *sp = s->list[i];
		size_t at = n;

		if (!is_of_device(sp) || main_space(s, sp->device) != sp)
			continue;
		for (; at && weight(s, f, list[at - 1].number) < weight(s, f, sp->device); at--)
			list[at] = list[at - 1];
		list[at] = (struct device_report){.number = sp->device};
		snprintf(list[at].device, sizeof(list[at].device), "cuda:%u", sp->device);
		n++;
	}
	list[0].failed = f;
	out->list = list;
	out->first = n ? list : NULL;
	out->count = n;
	return 0;
}

/* Return the call site's own frame in its stack; frames further in are the allocator's. */
static size_t frame_of(const struct stack_view *v, const char *function, uint32_t line)
{
	for (size_t i = v->count; i-- > 0;)
		if (v->symbols[i].function && strcmp(v->symbols[i].function, function) == 0 &&
		    v->symbols[i].line == line)
			return i;
	return v->count ? v->count - 1 : 0;
}

static void stats_list(struct device_report *d, struct feed feed, const struct callsites *callsites)
{
	const struct callsite *left[DEVICE_STACK_STATS_LIST] = {NULL};

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		for (size_t k = 0; k < DEVICE_STACK_STATS_LIST && p && p->facts.live_bytes; k++)
			if (!left[k] || left[k]->facts.live_bytes < p->facts.live_bytes) {
				const struct callsite *next = left[k];

				left[k] = p;
				p = next;
			}
	}
	for (size_t k = 0; k < DEVICE_STACK_STATS_LIST && left[k]; k++)
		d->stats_list[d->stack_stats_count++] =
		    (struct device_stack_stats){.function = left[k]->function,
			.file = left[k]->file,
			.line = left[k]->line,
			.bytes = left[k]->facts.live_bytes,
			.blocks = left[k]->facts.live_count,
			.stack = stack_view_of(&feed, left[k]->stack)};
	for (size_t k = 0; k < d->stack_stats_count; k++)
		d->stats_list[k].frame = frame_of(
		    &d->stats_list[k].stack, d->stats_list[k].function, d->stats_list[k].line);
}

static void largest_blocks(struct device_report *d, const struct space_map *map)
{
	for (size_t i = 0; i < map->pieces.count; i++) {
		const struct map_piece *p = &map->pieces.items[i];
		const struct map_callsite *stats;

		if (p->callsite == MAP_HOLE)
			continue;
		stats = &map->callsites.items[p->callsite];
		for (size_t k = 0; k < d->stack_stats_count; k++) {
			struct device_stack_stats *s = &d->stats_list[k];

			if (s->line == stats->line && strcmp(s->function, stats->function) == 0 &&
			    strcmp(s->file ? s->file : "", stats->file ? stats->file : "") == 0 &&
			    s->largest < p->end - p->start)
				s->largest = p->end - p->start;
		}
	}
}

static void levels(struct device_report *d, const struct spaces *s, const struct space *cuda,
    const struct space *torch)
{
	if (torch)
		d->reserved_known = levels_get(&torch->model->measured.levels, TRACE_LEVEL_RESERVED,
					&d->reserved) &&
				    levels_get(&torch->model->measured.levels,
					TRACE_LEVEL_ALLOCATED, &d->allocated);
	if (!cuda)
		return;
	d->free_known = levels_get(&cuda->model->measured.levels, TRACE_LEVEL_DEV_FREE, &d->free) &&
			levels_get(&cuda->model->measured.levels, TRACE_LEVEL_DEV_TOTAL, &d->total);
	d->explained = spaces_explained(s, cuda->device);
	d->others_known = spaces_others(s, cuda, &d->others);
	if (cuda->device < DEVICES_MAX && s->outside[cuda->device].total) {
		d->own = s->outside[cuda->device].own;
		d->own_known = s->outside[cuda->device].own_known;
	}
}

/* Take what other recorded processes held there, if nobody saw as much from outside. */
static void recorded_others(const struct verdict_result *r, struct device_report *d)
{
	uint32_t gpu = r->trace ? trace_gpu(r->trace, d->number) : d->number;

	if (d->failed && d->free_known && gpu < DEVICES_MAX)
		d->others =
		    num_most(d->others, num_least(r->tree.gpu_others[gpu],
					    num_less(num_less(d->total, d->free), d->explained)));
	if (d->free_known)
		d->unattributed = (int64_t)(d->total - d->free - d->explained - d->others);
}

bool device_is_torch(const struct device_report *d)
{
	return strncmp(d->space, "torch", 5) == 0;
}

/* Return PyTorch's own limit, if it refused without asking a device that has room. */
static uint64_t cap_of(struct feed feed, const struct device_report *d)
{
	struct caching_settings settings;
	uint64_t most;

	if (!d->failed || !device_is_torch(d) || d->segment || !d->free_known || !d->explained)
		return 0;
	torch_replay_settings(feed, &settings);
	most = d->segment_bytes + caching_segment_size(&settings, d->requested);
	if (d->free < most - d->segment_bytes)
		return 0;
	if (settings.memory_fraction > 0 && settings.memory_fraction < 1)
		most = (uint64_t)(settings.memory_fraction * (double)d->total) + 1;
	return most > d->segment_bytes ? most - 1 : d->segment_bytes;
}

/* Return PyTorch's space, if there is one: the driver does not know what its segments contain. */
static const struct space *inner_space(const struct spaces *s, uint32_t device)
{
	const struct space *torch = spaces_of(s, SPACE_TORCH, device);

	return torch ? torch : spaces_of(s, SPACE_CUDA, device);
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
 * hole, or an empty segment, then belongs to another stream, or sizes that are kept apart. What a
 * CUDA graph's own pool has free is for its replays.
 *
 * d->hidden_bytes are live, but look like holes.
 */
static void slack_rows(struct device_report *d, const struct space_map *map)
{
	struct ledger *l = &d->ledger;
	uint64_t usable = 0, pinned = 0, apart = 0, graphs = 0, rest = d->hidden_bytes;
	uint64_t wanted = d->failed && device_is_torch(d) ? d->requested : 0;

	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		for (size_t k = s->first; k < s->first + s->count; k++) {
			const struct map_piece *p = &map->pieces.items[k];
			uint64_t size = p->end - p->start;

			if (p->callsite != MAP_HOLE)
				continue;
			if (s->captured)
				graphs += size;
			else if (wanted && (!s->live_blocks || size >= wanted))
				apart += size;
			else if (!d->failed || !s->live_blocks)
				usable += size;
			else
				pinned += size;
		}
	}
	take_from(&graphs, &rest);
	take_from(&pinned, &rest);
	take_from(&apart, &rest);
	take_from(&usable, &rest);
	ledger_row(l, "live, not known one by one", d->hidden_bytes - rest);
	ledger_row(l, "CUDA graphs' own pools, free", graphs);
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
	if (cuda->before.known) {
		ledger_row(l, LEDGER_BEFORE, num_least(cuda->before.bytes, rest));
		rest = num_less(rest, cuda->before.bytes);
	}
	context = contexts(cuda, d, &alone);
	ledger_row(l,
	    alone ? "CUDA context and modules" : "CUDA context, modules and other processes",
	    context < rest ? context : rest);
	ledger_row(l, "other processes", d->others);
	ledger_row(l, LEDGER_FREE, available);
	l->limit = LIMIT_DEVICE;
	l->limit_bytes = d->total;
	if (cuda->model->measured.levels.time_ns[TRACE_LEVEL_DEV_FREE] < d->time_ns)
		l->age_ns = d->time_ns - cuda->model->measured.levels.time_ns[TRACE_LEVEL_DEV_FREE];
}

/* Put every byte of the device in exactly one row of d->ledger; if PyTorch's own limit refused,
 * every byte that PyTorch may take of it. `map` and `callsites` are of PyTorch's blocks there, or
 * else of the driver's; both may be NULL. With `ranking`, the call sites are the judged ones; NULL:
 * divide their bytes by shape alone. 0 or -ENOMEM. */
static int account(const struct verdict_result *r, struct device_report *d, const struct model *m,
    const struct space_map *map, const struct callsites *callsites, const struct ranking *ranking)
{
	const struct space *main = inner_space(m->spaces, d->number);
	const struct space *cuda = spaces_of(m->spaces, SPACE_CUDA, d->number);
	enum role *roles = callsites ? framework_roles(r, main->model, callsites) : NULL;
	const struct space_map *torch = d->torch ? map : NULL;
	uint64_t own = torch ? torch->live_bytes : cuda ? cuda->model->blocks.bytes : 0;
	struct ledger *l = &d->ledger;
	struct classes classes;
	int rc = -ENOMEM;

	if (!callsites || roles)
		rc = classes_make(&(struct classes_input){.callsites = callsites,
				      .roles = roles,
				      .candidates = ranking ? ranking->list : NULL,
				      .candidate_count = ranking ? ranking->count : 0,
				      .undecided = ranking && r->verdict.cause == CAUSE_UNKNOWN,
				      .device = true,
				      .attached = m->base.attached,
				      .heap_bytes = own},
		    &classes);
	free(roles);
	if (rc)
		return rc;
	*l = (struct ledger){
	    .pid = r->failure.pid, .space = d->device, .limit = LIMIT_UNKNOWN, .at = d->at};
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		ledger_row(l, class_name(i), classes.of[i].heap + classes.of[i].maps);
	ledger_row(l, "other live blocks", classes.heap_other + classes.maps_other);
	if (d->reserved_known && map && d->time_ns <= replaced_until_ns(&m->feed))
		d->hidden_bytes = num_less(d->allocated, map->live_bytes);
	if (torch)
		slack_rows(d, torch);
	if (d->capped) {
		/* PyTorch's own limit charges only PyTorch's memory. */
		l->limit = LIMIT_TORCH;
		l->limit_bytes = d->capped;
		if (m->base.attached && torch && d->reserved_known)
			ledger_row(l, LEDGER_BEFORE, num_less(d->reserved, segments_of(torch)));
		ledger_row(l, LEDGER_FREE, num_less(d->capped, ledger_sum(l)));
	} else {
		if (torch)
			ledger_row(l, "non-PyTorch", num_less(d->explained, segments_of(torch)));
		else
			ledger_row(l, "pools and graphs", num_less(d->explained, own));
		if (d->free_known && d->free <= d->total)
			device_rows(d, cuda);
		else
			l->limit_bytes = ledger_sum(l);
	}
	ledger_close(l);
	return 0;
}

static int describe(const struct verdict_result *r, struct device_report *d, struct feed feed,
    const struct model *m, struct err *err)
{
	const struct spaces *s = m->spaces;
	const struct space *cuda = spaces_of(s, SPACE_CUDA, d->number);
	const struct space *torch = spaces_of(s, SPACE_TORCH, d->number);
	const struct space *main = inner_space(s, d->number);
	struct callsites *callsites = NULL;
	struct space_map map = {0};
	int rc = 0;

	d->torch = torch;
	levels(d, s, cuda, torch);
	recorded_others(r, d);
	if (main) {
		rc = callsites_new(main->model, AT_END, &callsites, err);
		if (rc)
			return rc;
		rc = space_map_make(m, main, d->failed ? d->requested : 0, &map);
		if (rc)
			goto out;
		stats_list(d, feed, callsites);
		largest_blocks(d, &map);
		d->segments = map.segments.count;
		d->segment_bytes = map.bytes;
		d->live_bytes = torch ? map.live_bytes : cuda->model->blocks.bytes;
		d->live_blocks = torch ? map.live_blocks : cuda->model->blocks.count;
		d->holes = map.holes;
		d->hole_bytes = map.hole_bytes;
		d->largest_hole = map.largest_hole;
		d->room = torch && map.room.found;
		d->room_blocks = map.room.blocks;
		d->room_bytes = map.room.bytes;
	}
	d->capped = cap_of(feed, d);
	rc = account(r, d, m, main ? &map : NULL, callsites, NULL);
out:
	callsites_free(callsites);
	space_map_fini(&map);
	return rc ? err_set(err, rc, "no memory for the device's map") : 0;
}

int device_account(
    const struct verdict_result *r, struct device_report *d, const struct model *then)
{
	const struct space *main = inner_space(then->spaces, d->number);
	struct space_map map = {0};
	int rc;

	if (!main || strcmp(main->name, d->space) != 0)
		return 0;
	rc = space_map_make(then, main, d->requested, &map);
	if (!rc)
		rc = account(r, d, then, &map, r->callsites, &r->ranking);
	space_map_fini(&map);
	return rc;
}

static size_t blamed(struct feed feed, const struct stack_view *v)
{
	struct blame_context context = {.malloc_owner = feed.info(feed.self, "malloc.owner"),
	    .interpreter = feed_interpreter(&feed)};
	int at = v->count ? blame_frame(&context, v->symbols, v->count) : -1;

	return at >= 0 ? (size_t)at : v->count ? v->count - 1 : 0;
}

static void refused(struct device_report *d, struct feed feed, const struct spaces *s,
    const struct device_failure *f)
{
	struct stack_view stack = stack_view_of(&feed, f->stack);

	memcpy(d->space, s->list[f->space]->name, sizeof(d->space));
	if (f->below != SPACE_NONE)
		memcpy(d->below, s->list[f->below]->name, sizeof(d->below));
	d->requested = f->size;
	d->segment = f->segment;
	d->attempts = f->count;
	d->api = f->label ? f->label : f->api;
	d->above = f->flags & TRACE_FAILED_ABOVE;
	d->frame = blamed(feed, &stack);
}

static void coverage(struct arena *words, struct device_report *d, const struct feed *feed)
{
	const char *driver = feed->info(feed->self, "cuda.driver");
	const char *missed = feed->info(feed->self, "cuda.missed");
	const char *torch = feed->info(feed->self, "torch.blocks");
	struct str text = {0};

	str_printf(&text, "%s%s%s", driver ? driver : "recorded", missed ? "; missed: " : "",
	    missed ? missed : "");
	d->cuda = text.failed ? "recorded" : arena_copy(words, str_text(&text), text.length);
	str_free(&text);
	d->torch_blocks = torch ? torch : d->torch ? "recorded" : NULL;
}

static int list_spaces(const struct spaces *all, const struct spaces *then, struct devices *out)
{
	out->spaces = calloc(all->count + 1, sizeof(*out->spaces));
	if (!out->spaces)
		return -ENOMEM;
	for (uint32_t i = 0; i < all->count; i++) {
		const struct space *sp = all->list[i], *at = spaces_find(then, sp->name);

		if (sp->model->total.count)
			out->spaces[out->space_count++] = (struct space_report){.name = sp->name,
			    .live_bytes = at ? at->model->blocks.bytes : 0,
			    .live_blocks = at ? at->model->blocks.count : 0,
			    .peak_bytes = sp->model->peak.bytes,
			    .peak_ns = sp->model->peak.time_ns};
	}
	return 0;
}

/* Report one device, from the model at its moment. f: NULL, no device refused. */
static int report_device(const struct verdict_result *r, struct device_report *d, struct feed feed,
    const struct model *then, const struct device_failure *f, struct err *err)
{
	const struct spaces *s = r->model->spaces;
	const struct space *sp = main_space(s, d->number);
	int rc;

	d->at = f ? "failure" : "peak";
	d->time_ns = f ? f->time_ns : sp->model->peak.time_ns;
	d->retried = s->retried_total;
	d->other_results = s->other_results;
	if (sp->kind == SPACE_CUDA) {
		d->samples = sp->samples;
		d->sample_count = sp->sample_count;
	}
	if (d->failed)
		refused(d, feed, s, f);
	rc = describe(r, d, feed, then, err);
	d->peak_reserved = sp->model->peak.bytes;
	return rc;
}

static const char *innermost(struct feed feed, uint32_t stack)
{
	struct stack_view v = stack_view_of(&feed, stack);

	return v.count ? v.symbols[v.count - 1].function : NULL;
}

/* True if the driver's refusal stands for PyTorch's, which PyTorch does not record during a graph's
 * capture: the function that asked also asked for PyTorch's live segments. */
static bool asked_by_torch(
    struct feed feed, const struct spaces *then, const char *space, uint32_t stack)
{
	const struct space *cuda = spaces_find(then, space);
	const char *asked = innermost(feed, stack), *function;

	if (!asked || !cuda || cuda->kind != SPACE_CUDA)
		return false;
	for (uint32_t i = 0; i < then->used; i++) {
		const struct space_block *b = spaces_block(then, i);

		if (!b->used || b->space != cuda->index || !b->torch)
			continue;
		function = innermost(feed, b->block.stack);
		if (function && strcmp(function, asked) == 0)
			return true;
	}
	return false;
}

/* Turn the driver's refusal into PyTorch's, of a block of unknown size. */
static bool as_torch(
    struct feed feed, const struct spaces *s, const struct spaces *then, struct device_failure *f)
{
	const struct space *torch = spaces_of(s, SPACE_TORCH, s->list[f->space]->device);

	if (!torch || !asked_by_torch(feed, then, s->list[f->space]->name, f->stack))
		return false;
	f->below = f->space;
	f->segment = f->size;
	f->space = torch->index;
	return true;
}

/* Where none refused, each device is described at its own peak. */
int device_read(
    struct verdict_result *r, struct feed feed, struct device_refusal *refusal, struct err *err)
{
	struct devices *out = &r->devices;
	const struct spaces *s = r->model->spaces;
	const struct device_failure *f = s && device_failed(r) ? spaces_failure(s) : NULL;
	struct model *then = NULL;
	int rc;

	*refusal = (struct device_refusal){NULL};
	if (!s)
		return 0;
	rc = list_devices(s, f, out);
	for (size_t i = 0; i < out->count && !rc; i++) {
		const struct space *sp = main_space(s, out->list[i].number);
		uint64_t event = f ? f->event : sp->peak_event;

		/* After a failure all stand at the same moment. */
		if (!f || !i) {
			model_free(then);
			then = NULL;
			rc = feed_until_spaces(feed, event ? event : UINT64_MAX, &then, err);
		}
		if (!rc && f && !i) {
			refusal->failure = *f;
			out->list[0].unsaid = as_torch(feed, s, then->spaces, &refusal->failure);
			f = &refusal->failure;
		}
		if (!rc)
			rc = report_device(r, &out->list[i], feed, then, f, err);
		if (!rc)
			coverage(&r->arena, &out->list[i], &r->model->feed);
		if (!rc && !i)
			rc = list_spaces(s, then->spaces, out);
	}
	if (!rc && f && out->first) {
		refusal->then = then;
		then = NULL;
	}
	model_free(then);
	return rc;
}
