/* lengths.c - reads which blocks each worker made, and for which request. See lengths.h. */
#include "model/request/lengths.h"

#include <errno.h>
#include <string.h>

#include "model/request/request.h"

struct reader {
	struct lengths *out;
	struct requests *requests;
	const char *space; /* NULL: the host */
	uint32_t space_id; /* 0: not met yet */
	uint64_t moment_ns, serial;
	struct map stacks, workers; /* value: 1 + index */
	struct map units; /* request's serial to 1 + index */
	VEC(uint32_t) label_of; /* by unit: 1 + its newest label */
	struct map held; /* device: address to 1 + block */
	bool marked;
};

/* --- requests that say how long their inputs are --- */

static int add_label(struct reader *d, uint32_t unit, double length)
{
	int rc = vec_push(&d->out->labels, (struct lengths_label){.length = length, .unit = unit});

	d->label_of.items[unit] = (uint32_t)d->out->labels.count;
	return rc;
}

static int unit_of(struct reader *d, const struct request_run *q, uint32_t *out)
{
	uint64_t *at = map_put(&d->units, q->serial);
	int rc = 0;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		rc = vec_push(&d->out->units, 0.0);
		if (!rc)
			rc = vec_push(&d->label_of, 0u);
		if (rc)
			return rc;
		*at = d->out->units.count;
		/* Blocks made before the mark belong to the same input. */
		rc = add_label(d, (uint32_t)*at - 1, 0);
	}
	*out = (uint32_t)*at - 1;
	return rc;
}

static int note_length(struct reader *d, const struct event *e)
{
	const uint64_t *at = map_find(&d->requests->by_id, e->u.mark.id);
	double length = (double)e->u.mark.tokens;
	struct lengths_label *label;
	uint32_t unit;
	int rc;

	if (!at || !e->u.mark.tokens)
		return 0;
	rc = unit_of(d, &d->requests->open[*at], &unit);
	if (rc)
		return rc;
	d->marked = true;
	if (length > d->out->units.items[unit])
		d->out->units.items[unit] = length;
	label = &d->out->labels.items[d->label_of.items[unit] - 1];
	if (label->length == length)
		return 0;
	if (label->length)
		return add_label(d, unit, length);
	label->length = length;
	return 0;
}

static int label_of(struct reader *d, uint32_t thread, uint32_t task, uint32_t *out)
{
	const struct lane *l = requests_lane(d->requests, thread, task);
	const struct request_run *q = l ? requests_of_lane(d->requests, l) : NULL;
	uint32_t unit;
	int rc;

	*out = 0;
	if (!q)
		return 0;
	rc = unit_of(d, q, &unit);
	if (!rc)
		*out = d->label_of.items[unit];
	return rc;
}

/* --- blocks --- */

static int stack_stats_of(struct reader *d, uint32_t stack, uint64_t size, uint32_t *out)
{
	uint64_t *at = map_put(&d->stacks, stack);
	struct lengths_stack *s;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (vec_push(&d->out->stacks,
			(struct lengths_stack){
			    .stack = stack, .least = UINT64_MAX, .only_refused = true}))
			return -ENOMEM;
		*at = d->out->stacks.count;
	}
	s = &d->out->stacks.items[*at - 1];
	s->largest = size > s->largest ? size : s->largest;
	s->least = size < s->least ? size : s->least;
	*out = (uint32_t)*at - 1;
	return 0;
}

static int add_block(struct reader *d, const struct event *e, uint64_t serial, uint64_t size)
{
	struct lengths_block b = {.serial = serial, .size = size, .refused = e->kind == EV_FAILED};
	uint64_t *worker = map_put(&d->workers, event_worker(e->thread, e->task));
	struct lengths *l = d->out;
	int rc;

	if (!worker || l->blocks.count >= UINT32_MAX / 2)
		return -ENOMEM;
	if (!*worker)
		*worker = ++l->workers;
	b.worker = (uint32_t)*worker - 1;
	rc = stack_stats_of(d, e->stack, size, &b.stack);
	if (!rc)
		rc = label_of(d, e->thread, e->task, &b.label);
	if (!rc)
		rc = vec_push(&l->ops, (uint32_t)l->blocks.count << 1);
	if (!rc)
		rc = vec_push(&l->blocks, b);
	if (!rc && !b.refused)
		l->stacks.items[b.stack].only_refused = false;
	if (!rc && b.refused)
		l->refused = (uint32_t)l->blocks.count;
	return rc;
}

static int on_host(struct reader *d, const struct event *e)
{
	const struct block *b = e->block;
	size_t i;

	if (e->kind == EV_FAILED && e->space == TRACE_SPACE_HOST && e->time_ns == d->moment_ns)
		return add_block(d, e, UINT64_MAX, e->size);
	if (!b || b->size < LENGTHS_SMALL)
		return 0;
	if (e->kind == EV_ALLOC)
		return add_block(d, e, b->serial, b->size);
	if (e->kind != EV_FREE && e->kind != EV_UNFREE)
		return 0;
	i = lengths_find(d->out, b->serial);
	return i == SIZE_MAX
		   ? 0
		   : vec_push(&d->out->ops, (uint32_t)i << 1 | (e->kind == EV_FREE ? 1u : 0u));
}

static int on_device(struct reader *d, const struct event *e, const struct feed *feed)
{
	const char *name;
	uint64_t *at;
	int rc;

	if (!d->space_id && e->space && feed->space) {
		name = feed->space(feed->self, e->space);
		if (name && strcmp(name, d->space) == 0)
			d->space_id = e->space;
	}
	if (!d->space_id)
		return 0;
	if (e->kind == EV_SPACE_FREE && (!e->space || e->space == d->space_id)) {
		at = map_find(&d->held, e->address);
		rc = at ? vec_push(&d->out->ops, (uint32_t)(*at - 1) << 1 | 1u) : 0;
		map_remove(&d->held, e->address);
		return rc;
	}
	/* Count requests as torch_record.c does. */
	if (e->space != d->space_id || !e->size ||
	    (e->kind != EV_SPACE_ALLOC && e->kind != EV_FAILED))
		return 0;
	rc = add_block(d, e, ++d->serial, e->size);
	if (rc || e->kind == EV_FAILED)
		return rc;
	at = map_put(&d->held, e->address);
	if (!at)
		return -ENOMEM;
	/* Its release was not recorded. */
	if (*at)
		rc = vec_push(&d->out->ops, (uint32_t)(*at - 1) << 1 | 1u);
	*at = d->out->blocks.count;
	return rc;
}

static int on_event(struct reader *d, const struct event *e, const struct feed *feed)
{
	int rc = e->kind == EV_OUTSIDE ? 0 : requests_passed(d->requests, e);

	if (rc)
		return rc;
	if (e->kind == EV_MARK)
		return e->u.mark.phase == TRACE_MARK_LENGTH ? note_length(d, e) : 0;
	return d->space ? on_device(d, e, feed) : on_host(d, e);
}

static int read_all(struct reader *d, struct feed *feed, struct err *err)
{
	struct event e;
	int rc = feed->rewind(feed->self, err), more;

	while (!rc && (more = feed->next(feed->self, &e, err)) != 0) {
		if (more < 0)
			return more;
		/* Releases after the moment, while the process ends, do not matter. */
		if (e.time_ns > d->moment_ns)
			return 0;
		rc = on_event(d, &e, feed);
		if (rc)
			return err_set(err, rc, "no memory for the blocks");
		if (d->out->refused && !d->space)
			return 0;
	}
	return rc;
}

/* --- where a refused request would have been --- */

/* The failure is reported by another function of the allocator than a success. So stacks match when
 * they differ only in this many innermost frames. */
#define OWN_FRAMES 8u

static bool same_frame(const struct symbol *a, const struct symbol *b)
{
	if (a->id && b->id)
		return a->id == b->id;
	return a->line == b->line && strcmp(a->function, b->function) == 0;
}

static int find_alike(const struct lengths *l, const struct feed *feed, uint32_t *stats)
{
	const struct symbol *own;
	size_t depth = feed->symbols(feed->self, l->stacks.items[*stats].stack, &own), most = 0;
	struct stack_path path = {0};
	uint32_t best = *stats;
	int rc = 0;

	for (uint32_t i = 0; i < l->stacks.count && !rc; i++) {
		size_t same = 0;

		if (l->stacks.items[i].only_refused)
			continue;
		rc = feed_path(feed, l->stacks.items[i].stack, &path);
		while (!rc && same < depth && same < path.count &&
		       same_frame(&own[same], &path.symbols[same]))
			same++;
		if (same > most && same + OWN_FRAMES >= depth) {
			most = same;
			best = i;
		}
	}
	trace_path_fini(&path);
	*stats = best;
	return rc;
}

static int callsite_refused(struct lengths *l, const struct feed *feed)
{
	uint32_t from = UINT32_MAX, to = 0;
	int rc = 0;

	for (size_t i = 0; i < l->blocks.count && !rc; i++) {
		struct lengths_block *b = &l->blocks.items[i];
		struct lengths_stack *s;

		if (!b->refused || !l->stacks.items[b->stack].only_refused)
			continue;
		if (b->stack != from) {
			from = to = b->stack;
			rc = find_alike(l, feed, &to);
		}
		s = &l->stacks.items[to];
		b->stack = to;
		s->largest = b->size > s->largest ? b->size : s->largest;
		s->least = b->size < s->least ? b->size : s->least;
	}
	return rc;
}

int lengths_read(
    struct feed feed, const char *space, uint64_t moment_ns, struct lengths *out, struct err *err)
{
	struct reader d = {.out = out, .space = space, .moment_ns = moment_ns};
	int rc;

	memset(out, 0, sizeof(*out));
	d.requests = requests_new(NULL, NULL);
	rc = d.requests ? read_all(&d, &feed, err)
			: err_set(err, -ENOMEM, "no memory for the requests");
	if (!rc) {
		out->source = d.marked ? LENGTHS_MARKED : LENGTHS_SIZES;
		rc = callsite_refused(out, &feed);
		if (!rc)
			rc = lengths_judge(out);
		if (rc)
			err_set(err, rc, "no memory for the blocks");
	}
	requests_free(d.requests);
	map_free(&d.stacks);
	map_free(&d.workers);
	map_free(&d.units);
	map_free(&d.held);
	vec_free(&d.label_of);
	return rc;
}

void lengths_fini(struct lengths *l)
{
	vec_free(&l->blocks);
	vec_free(&l->ops);
	vec_free(&l->labels);
	vec_free(&l->units);
	vec_free(&l->before);
	vec_free(&l->stacks);
}

size_t lengths_find(const struct lengths *l, uint64_t serial)
{
	size_t low = 0, high = l->blocks.count;

	/* For a device the list holds all blocks, by serial. */
	if (serial && serial <= high && l->blocks.items[serial - 1].serial == serial)
		return serial - 1;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->blocks.items[mid].serial < serial)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->blocks.count && l->blocks.items[low].serial == serial ? low : SIZE_MAX;
}
