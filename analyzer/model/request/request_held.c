#include "model/request/request_held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/heap/replaced_period.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(
    unsigned, ROUND_PART, 512u, "rounds of less than this part of the lane's peak are no requests");
TUNED(unsigned, FALLEN_PART, 16u,
    "what ends leaves less than fifteen sixteenths behind, even a leak");
TUNED(unsigned, ENDED_MIN, 2u, "one lane that ended may be the program's own start");
TUNED(unsigned, TURNOVER_LANES, 8u,
    "eight releases for each lane: each has been through its work at least once");

struct reader {
	const struct requests *r;
	const struct callsites *callsites;
	struct map turned; /* stack to a time: see turnover_read() */
	struct map requests; /* request's serial, or lane: to 1 + index */
	struct map holdings; /* index << 32 | call site: to 1 + index */
	VEC(struct held_request) list;
	VEC(struct held_part) held;
	/* The last block's lane. */
	const struct lane *lane;
	bool in_hand;
	bool unended; /* none of its work was seen to end */
	uint64_t since, setup;
	/* Earlier rounds of a lane were not seen: older blocks may be left from them. */
	uint64_t seen_from;
	struct {
		uint64_t bytes, blocks;
	} * ended; /* live, of lanes that ended, by call site */
	uint64_t left[REQUESTS_KEPT]; /* bytes that each finished request's thread or task left */
};

/* A thread that serves request after request may never be seen to end one: what it keeps, as in a
 * cold cache, hides what it releases. The blocks of one stack tell instead. Once this many for each
 * lane were freed there, and at least as many as were not, a lane that made blocks there earlier
 * has finished that work. Blocks that a request drops midway come from other calls than blocks that
 * it holds. */

static int turnover_read(struct reader *d, const struct model *m)
{
	uint64_t least = TURNOVER_LANES * d->r->lanes.count;

	for (size_t i = 0; m && i < m->stacks.count; i++) {
		uint64_t live_bytes, live_count, live = 0, freed = 0, *at;
		const struct stack_stats *s =
		    model_stack_stats(m, stack_table_number(&m->stacks, i), d->callsites->moment,
			&live_bytes, &live_count);
		struct cohort own;

		if (s->kind != STACK_STATS_HEAP || stack_stats_freed_count(s) < least)
			continue;
		for (uint32_t k = stack_stats_used(s); k-- > 0;) {
			const struct cohort *c = stack_stats_cohort(s, k, &own);

			freed += c->freed_count;
			live += c->count - c->freed_count;
			if (freed < least || freed < live)
				continue;
			at = map_put(&d->turned, s->stack);
			if (!at)
				return -ENOMEM;
			*at = c->time_ns;
			break;
		}
	}
	return 0;
}

static bool is_done(struct reader *d, const struct block *b)
{
	const uint64_t *turned = d->unended ? map_find(&d->turned, b->stack) : NULL;

	return turned && b->birth_ns < *turned;
}

/* True if the lane is at work: on blocks born from *since on, and on those of its setup, until
 * *setup. *unended: no end of any of its work was seen. */
static bool in_hand(
    const struct requests *r, const struct lane *l, uint64_t *since, uint64_t *setup, bool *unended)
{
	/* A request that still holds most of what it made since its begin has not ended. */
	bool fallen = l->falling && l->high - l->low >= l->largest_fall / 2 &&
		      l->high - l->low >= num_less(l->high, l->base) / FALLEN_PART;
	uint32_t rounds = l->rounds + fallen;
	uint64_t base = fallen ? l->low_ns : l->base_ns;
	struct lanes_ended ended;

	*since = *setup = 0;
	*unended = false;
	if (requests_of_lane(r, l)) {
		*since = l->entered_ns;
		*setup = l->first_entered_ns;
		if (rounds - l->rounds_before >= REQUEST_ROUNDS && base > *since)
			*since = base;
		return true;
	}
	/* Between two requests a lane holds no work. */
	if ((l->ended && !l->refused) || l->first_entered_ns)
		return false;
	/* Similar lanes released everything at their end, whatever they kept until then. */
	ended = requests_ended(r, l->peak / REQUESTS_ALIKE);
	if (ended.clean >= ENDED_MIN && ended.clean > ended.count / 2)
		return true;
	*unended = rounds < REQUEST_ROUNDS || l->largest_fall < l->peak / ROUND_PART;
	if (*unended)
		return true;
	*since = base;
	*setup = l->setup_ns;
	return true;
}

static int request_index(struct reader *d, const struct lane *l, uint64_t since, uint32_t *out)
{
	const struct request_run *q = requests_of_lane(d->r, l);
	uint64_t key = q ? q->serial << 1 : (uint64_t)(l - d->r->lanes.items) << 1 | 1;
	uint64_t *at = map_put(&d->requests, key);

	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (vec_push(
			&d->list, (struct held_request){.lane = l,
				      .request = q,
				      .since_ns = q ? q->start_ns : num_most(since, l->first_ns)}))
			return -ENOMEM;
		*at = d->list.count;
	}
	*out = (uint32_t)*at - 1;
	return 0;
}

/* Blocks of a request may be freed a little after its end: count what is left of it. */
static void add_left(struct reader *d, const struct block *b)
{
	for (uint32_t i = 0; i < d->r->kept_count; i++) {
		const struct request_run *q = &d->r->kept[i];

		if (q->thread == b->thread && q->task == b->task && b->birth_ns >= q->start_ns &&
		    b->birth_ns <= q->end_ns)
			d->left[i] += block_bytes(b);
	}
}

/* Return the share of what ended lanes left that lies where ended work has released as many blocks:
 * in a cache with a bound. */
static double bounded(const struct reader *d)
{
	uint64_t sum = 0, of_caches = 0;

	for (uint32_t i = 0; i < d->callsites->count; i++) {
		const struct callsite *p = &d->callsites->list[i];

		sum += d->ended[i].bytes;
		if (!p->survivors.stays && !p->size.grows &&
		    p->facts.freed_count >= d->ended[i].blocks)
			of_caches += d->ended[i].bytes;
	}
	return sum ? (double)of_caches / (double)sum : 0;
}

/* A mapping is held as a block of malloc's is. */
static uint32_t callsite_of(const struct callsites *p, uint32_t stack)
{
	uint32_t callsite = callsites_of_stack(p, STACK_STATS_HEAP, stack);

	return callsite == CALLSITE_NONE ? callsites_of_mapping(p, stack) : callsite;
}

static int add(void *arg, const struct block *b)
{
	struct reader *d = arg;
	const struct callsites *p = d->callsites;
	uint32_t callsite = callsite_of(p, b->stack);
	const struct lane *l = requests_lane(d->r, b->thread, b->task);
	uint64_t *at;
	struct held_part *h;
	uint32_t request;

	if (!l)
		return 0;
	add_left(d, b);
	if (callsite == CALLSITE_NONE)
		return 0;
	if (l->ended) {
		d->ended[callsite].bytes += block_bytes(b);
		d->ended[callsite].blocks += block_count(b);
	}
	if (l != d->lane) {
		d->lane = l;
		d->in_hand = in_hand(d->r, l, &d->since, &d->setup, &d->unended);
	}
	if (!d->in_hand || (b->birth_ns < d->since && b->birth_ns > d->setup) ||
	    b->birth_ns < d->seen_from || is_done(d, b))
		return 0;
	if (request_index(d, l, d->since, &request))
		return -ENOMEM;
	at = map_put(&d->holdings, (uint64_t)request << 32 | callsite);
	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (vec_push(
			&d->held, (struct held_part){.request = request, .callsite = callsite}))
			return -ENOMEM;
		*at = d->held.count;
	}
	h = &d->held.items[*at - 1];
	h->bytes += block_bytes(b);
	h->blocks += block_count(b);
	h->first_ns = num_least(h->first_ns ? h->first_ns : UINT64_MAX, b->birth_ns);
	d->list.items[request].all += block_bytes(b);
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct held_request *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

/* Return how many ended lanes that held at least `peak` still hold much. What they left at their
 * end, as in a journal, may be gone. Only lanes without live bytes are forgotten. */
static uint64_t left_by_now(const struct requests *r, uint64_t peak)
{
	uint64_t count = 0;

	for (size_t i = 1; i < r->lanes.count; i++) {
		const struct lane *l = &r->lanes.items[i];

		count += l->ended && !l->refused && l->peak >= peak &&
			 l->live > l->peak / REQUEST_LEFT_PART;
	}
	return count;
}

static void finished_before(const struct reader *d, struct requests_held *h)
{
	const struct requests *r = h->of;

	struct lanes_ended ended = {0};

	for (uint32_t i = 0; i < r->kept_count; i++) {
		if (r->kept[i].peak < h->largest / REQUESTS_ALIKE)
			continue;
		ended.count++;
		ended.life_ns += num_less(r->kept[i].end_ns, r->kept[i].start_ns);
		ended.clean += (r->kept[i].shared ? r->kept[i].live : d->left[i]) <=
			       r->kept[i].peak / REQUEST_LEFT_PART;
	}
	if (!ended.count) {
		ended = requests_ended(r, h->largest / REQUESTS_ALIKE);
		ended.clean = num_most(ended.clean,
		    num_less(ended.count, left_by_now(r, h->largest / REQUESTS_ALIKE)));
	}
	h->finished = ended.count;
	h->left = ended.count ? 1 - (double)ended.clean / (double)ended.count : 0;
	h->left *= 1 - bounded(d);
	h->life_ns = ended.count ? ended.life_ns / ended.count : 0;
	if (h->finished)
		return;
	/* Rounds of the same lanes are finished work, too. */
	for (uint32_t i = 0; i < h->count; i++) {
		const struct lane *l = h->list[i].lane;

		if (l->rounds >= REQUEST_ROUNDS && l->largest_fall >= h->largest / REQUESTS_ALIKE)
			h->finished += l->rounds;
	}
}

static int renumber(struct requests_held *h)
{
	uint32_t *now = malloc((h->count + 1u) * sizeof(*now));

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->count; i++)
		now[h->list[i].index] = i;
	for (size_t i = 0; i < h->part_count; i++)
		h->parts[i].request = now[h->parts[i].request];
	free(now);
	return 0;
}

static int sum_up(struct reader *d, struct requests_held *h)
{
	h->of = d->r;
	h->callsites = calloc(d->callsites->count + 1u, sizeof(*h->callsites));
	h->list = d->list.items;
	h->count = (uint32_t)d->list.count;
	d->list.items = NULL;
	h->parts = d->held.items;
	h->part_count = d->held.count;
	for (uint32_t i = 0; i < h->count; i++)
		h->list[i].index = i;
	if (!h->callsites)
		return -ENOMEM;
	for (size_t i = 0; i < d->held.count; i++) {
		const struct held_part *x = &d->held.items[i];
		struct held_callsite *p = &h->callsites[x->callsite];

		p->bytes += x->bytes;
		p->blocks += x->blocks;
		p->requests++;
		p->in_one_go += requests_lane_only_makes(h->list[x->request].lane, x->first_ns);
		p->largest = num_most(p->largest, x->bytes);
	}
	for (size_t i = 0; i < d->held.count; i++) {
		struct held_callsite *p = &h->callsites[d->held.items[i].callsite];

		p->alike += d->held.items[i].bytes >= p->largest / REQUESTS_ALIKE;
	}
	for (size_t i = 0; i < d->held.count; i++)
		if (h->callsites[d->held.items[i].callsite].alike >= 2)
			h->list[d->held.items[i].request].bytes += d->held.items[i].bytes;
	if (h->count)
		qsort(h->list, h->count, sizeof(*h->list), by_bytes);
	if (renumber(h))
		return -ENOMEM;
	for (uint32_t i = 0; i < h->count; i++)
		h->sum += h->list[i].bytes;
	h->largest = h->count ? h->list[0].bytes : 0;
	for (uint32_t i = 0; i < h->count && h->largest; i++)
		h->alike += h->list[i].bytes >= h->largest / REQUESTS_ALIKE;
	finished_before(d, h);
	return 0;
}

int requests_held_read(const struct requests *r, const struct model *m,
    const struct callsites *callsites, held_each_fn each, void *self, struct requests_held *out)
{
	struct reader d = {
	    .r = r, .callsites = callsites, .seen_from = replaced_work_ns(callsites->replaced)};
	int rc;

	memset(out, 0, sizeof(*out));
	d.ended = calloc(callsites->count + 1u, sizeof(*d.ended));
	rc = d.ended ? turnover_read(&d, m) : -ENOMEM;
	if (!rc)
		rc = each(self, add, &d);
	if (!rc) {
		rc = sum_up(&d, out);
		d.held.items = NULL; /* moved to out */
	}
	free(d.ended);
	map_free(&d.turned);
	map_free(&d.requests);
	map_free(&d.holdings);
	vec_free(&d.list);
	vec_free(&d.held);
	return rc;
}

uint64_t requests_held_first(const struct requests_held *h, uint32_t callsite, uint64_t most)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < h->part_count; i++)
		if (h->parts[i].callsite == callsite && h->parts[i].request < most)
			bytes += h->parts[i].bytes;
	return bytes;
}

const char *requests_held_unit(const struct requests_held *h)
{
	uint32_t known = 0, tasks = 0;

	for (uint32_t i = 0; i < h->alike; i++) {
		known += h->list[i].request != NULL;
		tasks += h->list[i].lane->task != 0;
	}
	return known > h->alike / 2 ? "requests" : tasks > h->alike / 2 ? "tasks" : "threads";
}

void requests_held_fini(struct requests_held *h)
{
	free(h->callsites);
	free(h->list);
	free(h->parts);
	memset(h, 0, sizeof(*h));
}
