/*
 * pool.c - see pool.h. A line that calls into a library makes blocks of many kinds, so there each
 * stack is judged by itself. Work between the blocks speaks against one go, since it may be that of
 * many requests; unless the blocks come from inside a single call, because the allocations that the
 * call makes before and after them do not come again between them.
 */
#include "detect/pool.h"

#include "detect/purpose.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(unsigned, LARGE_PART, 20u,
    "a pool is at least a twentieth of the memory, or nobody would look at it");
TUNED(unsigned, FILLED_BLOCKS, 4u,
    "for each block kept: itself, the copy that it was filled from, and a list");
TUNED(unsigned, LIST_PART, 32u, "the list is small beside the blocks");
TUNED(unsigned, COPY_LIVES, 2u, "a copy lives until about the next one");
TUNED(unsigned, SOURCE_PART, 4u,
    "a block is filled from bytes that become floats, four times as large");
TUNED(unsigned, UNLIKE_TIMES, 4u,
    "a pool in one piece is larger than any block before; a request's own is within a doubling or "
    "two");
TUNED(unsigned, LATER_BLOCKS, 4u, "four large blocks after the first call are a pool of their own");

static bool is_uniform(const struct callsite *p)
{
	return p->facts.freed_count == 0 && callsite_is_uniform(p);
}

static uint32_t first_large(const struct callsite *p)
{
	uint32_t first = 0;

	while (first < p->facts.step_count && p->facts.steps[first].max <= p->facts.largest / 2)
		first++;
	return first;
}

/* Return the call site as if its first `first` steps had not been. */
static struct callsite from_step(const struct callsite *p, uint32_t first)
{
	struct callsite later = *p;

	later.facts.freed_count = 0;
	later.facts.step_count = p->facts.step_count - first;
	later.facts.steps = &p->facts.steps[first];
	later.facts.first_ns = later.facts.steps[0].time_ns;
	return later;
}

/* Copy the call site from its first large block on. What a call does only once (an import, a table
 * of its own) is on the same line, but no block of the pool, and takes less time than the pool:
 * what took longer, or piled up and was released several times, were other requests, and one large
 * block is the next of these. Blocks that keep coming with each request stay. False: nothing to
 * leave out. */
static bool without_first_call(const struct callsite *p, struct callsite *out)
{
	uint64_t went = 0, bytes = 0;
	uint32_t first = first_large(p);

	if (!first || first == p->facts.step_count || p->buildup.times > 1 ||
	    callsite_large_blocks(p) < LATER_BLOCKS ||
	    p->facts.steps[first].time_ns - p->facts.first_ns >
		p->facts.last_ns - p->facts.steps[first].time_ns)
		return false;
	for (uint32_t i = first; i < p->facts.step_count; i++) {
		went += p->facts.steps[i].freed_count;
		bytes += p->facts.steps[i].freed_bytes;
	}
	if (went > callsite_large_blocks(p) || bytes > p->facts.largest / LIST_PART)
		return false;
	*out = from_step(p, first);
	return true;
}

static bool is_called_in(
    const struct feed *feed, const struct callsite *p, const struct callsite *caller)
{
	const struct symbol *symbols;
	size_t count = p->stack ? feed->symbols(feed->self, p->stack, &symbols) : 0;

	for (size_t i = 0; i < count; i++)
		if (str_same(symbols[i].function, caller->function) &&
		    str_same(symbols[i].file, caller->file))
			return true;
	return false;
}

/* Return the bytes that the program's own functions released beside it since its first block, as
 * steps of their own, too small to fill a block from. What its function calls is a part of the
 * filling, and so is what its callers do; unless they returned between its blocks and released
 * something each time, as requests that leave one block each. */
static uint64_t worked_beside(const struct scene *scene, const struct callsite *p)
{
	const struct feed *feed = &scene->model->feed;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < scene->callsites->count; i++) {
		const struct callsite *o = &scene->callsites->list[i];
		uint64_t here = 0, count = 0;

		if (o->owner != OWNER_USER || o->facts.largest >= p->facts.largest / SOURCE_PART ||
		    callsite_is_import(o))
			continue;
		for (uint32_t k = 0; k < o->facts.step_count; k++)
			if (o->facts.steps[k].time_ns >= p->facts.first_ns) {
				here += o->facts.steps[k].freed_bytes;
				count += o->facts.steps[k].freed_count;
			}
		if (here && !is_called_in(feed, o, p) &&
		    (!is_called_in(feed, p, o) ||
			(p->call.open == OPEN_CALL_NO && count >= callsite_large_blocks(p) / 2)))
			bytes += here;
	}
	return bytes;
}

/* True if a request of the call site was refused in that time. */
static bool was_refused(const struct scene *scene, uint32_t callsite, uint64_t from, uint64_t until)
{
	const struct model *m = scene->model;

	for (size_t i = 0; i < m->refusals.count; i++) {
		const struct failure *f = &m->refusals.list[i];

		if (f->time_ns >= from && f->time_ns < until &&
		    callsites_of_stack(scene->callsites, STACK_STATS_HEAP, f->stack) == callsite)
			return true;
	}
	return false;
}

/* Copy the call site since its last try: a program that is refused the rest of a pool releases its
 * part, and starts the next try anew. False: no earlier try. */
static bool without_tries(const struct scene *scene, const struct callsite *p, struct callsite *out)
{
	uint32_t callsite = (uint32_t)(p - scene->callsites->list), first = p->facts.step_count;
	uint64_t left = 0;

	while (first && !p->facts.steps[first - 1].freed_count)
		first--;
	if (!first || first == p->facts.step_count)
		return false;
	/* The step in which this try began holds a part of it. */
	for (uint32_t i = 0; i + 1 < first; i++)
		left += p->facts.steps[i].bytes - p->facts.steps[i].freed_bytes;
	if (left > p->facts.live_bytes / LIST_PART ||
	    !was_refused(scene, callsite, p->facts.first_ns, p->facts.steps[first].time_ns))
		return false;
	*out = from_step(p, first);
	return true;
}

/* True if the same line made nothing else but a copy to fill each block from, or the list of them,
 * and nothing else was done since the first block: a request would leave more traces. */
static bool is_filled(const struct scene *scene, const struct callsite *p)
{
	uint64_t early = 0, given_back = p->facts.total_bytes - p->facts.live_bytes;
	uint32_t first = first_large(p);

	/* All blocks were kept from the first on; single requests would have freed theirs. */
	for (uint32_t i = first; i < first + (p->facts.step_count - first) / 2; i++)
		early += p->facts.steps[i].bytes - p->facts.steps[i].freed_bytes;
	return !scene->space && early >= p->facts.live_bytes / 4 && callsite_is_uniform(p) &&
	       (given_back <= p->facts.live_bytes / LIST_PART ||
		   p->facts.life_ns * p->facts.live_count <=
		       COPY_LIVES * (p->facts.last_ns - p->facts.first_ns) *
			   p->facts.freed_count) &&
	       p->facts.freed_count <= p->facts.live_count + 2 &&
	       given_back <= p->facts.live_bytes + 2 * p->facts.largest &&
	       worked_beside(scene, p) <= p->facts.live_bytes / LIST_PART &&
	       scene_made_no_more(scene, p, FILLED_BLOCKS * (p->facts.live_count + 1));
}

static bool is_uniform_stack_stats(const struct stack_stats *s)
{
	return s->kind == STACK_STATS_HEAP && stack_stats_freed_count(s) == 0 &&
	       stack_stats_live_count(s) &&
	       callsite_blocks_alike(
		   stack_stats_largest(s), stack_stats_live_count(s), stack_stats_live_bytes(s));
}

/* Return the bytes acquired between two moments, by the steps; `kept`: only live ones. */
static double acquired(const struct callsite *p, uint64_t from, uint64_t until, bool kept)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		const struct step *s = &p->facts.steps[i];
		uint64_t start = s->time_ns > from ? s->time_ns : from;
		uint64_t end = s->last_ns < until ? s->last_ns : until;
		double bytes = (double)(kept ? s->bytes - s->freed_bytes : s->bytes);

		if (start > end)
			continue;
		sum += s->last_ns > s->time_ns
			   ? bytes * (double)(end - start) / (double)(s->last_ns - s->time_ns)
			   : bytes;
	}
	return sum;
}

/* True if another line's blocks belong to the same pool: keys beside values, each with a list of
 * its own that was enlarged a few times. The interpreter's arenas are alike, whatever they hold. */
static bool is_alike(const struct callsite *o, const struct callsite *p)
{
	return o->facts.largest == p->facts.largest &&
	       (is_uniform(o) || (callsite_is_uniform(o) && !o->arena_share.any &&
				     o->facts.freed_count <= o->facts.live_count + 2 &&
				     o->facts.total_bytes - o->facts.live_bytes <=
					 o->facts.live_bytes / LIST_PART));
}

/* True if a line's blocks have one size, and its names say that they are room: two such lines are
 * parts of one pool, whatever the size of each, as with a slot's cache beside its state. */
static bool is_room(const struct scene *scene, uint32_t callsite)
{
	const struct callsite *p = &scene->callsites->list[callsite];

	return callsite_is_uniform(p) && !p->arena_share.any &&
	       p->facts.total_bytes - p->facts.live_bytes <= p->facts.live_bytes / LIST_PART &&
	       purpose_of(scene, callsite) == PURPOSE_ROOM;
}

/* True if blocks of other lines come between its own, as with a layer's parameters of several
 * sizes, or with what requests leave between their work; a pool's blocks come one after the
 * other. */
static bool is_interleaved(const struct scene *scene, uint32_t callsite, const struct callsite *p)
{
	const struct callsites *callsites = scene->callsites;
	bool of_room = is_room(scene, callsite);
	double alike = 0, others = 0;

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *o = &callsites->list[i];

		*(i == callsite || is_alike(o, p) || (of_room && is_room(scene, i)) ? &alike
										    : &others) +=
		    acquired(o, p->facts.first_ns, p->facts.last_ns, false);
	}
	return others > alike / 4;
}

static bool enough(const struct scene *scene, uint64_t bytes, uint64_t blocks)
{
	return blocks <= POOL_BLOCKS && bytes >= scene_live(scene) / LARGE_PART;
}

static bool in_one_go(const struct scene *scene, uint64_t first_ns, uint64_t last_ns)
{
	return last_ns - first_ns <= scene->callsites->moment_ns / POOL_GO_PART;
}

static bool of_callsite(const struct scene *scene, const struct stack_stats *s, uint32_t callsite)
{
	return s->kind == STACK_STATS_HEAP &&
	       callsites_of_stack(scene->callsites, STACK_STATS_HEAP, s->stack) == callsite;
}

static uint64_t born_first(const struct stack_stats *s)
{
	struct cohort own;

	return stack_stats_cohort(s, 0, &own)->time_ns;
}

static uint64_t born_last(const struct stack_stats *s)
{
	struct cohort own;

	return stack_stats_cohort(s, stack_stats_used(s) - 1, &own)->last_ns;
}

static bool made_within(const struct stack_stats *s, uint64_t from, uint64_t until)
{
	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		if (c->count && c->time_ns <= until && c->last_ns >= from)
			return true;
	}
	return false;
}

/* True if many stacks of the same line that released their blocks before the pool's first block do
 * not come again until the last: requests that each left one block would have repeated all of
 * them. */
static bool in_one_call(const struct scene *scene, const struct stack_stats *s, uint32_t callsite)
{
	uint32_t before = 0, again = 0;

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		const struct stack_stats *o = stack_table_number(&scene->model->stacks, i);

		if (!of_callsite(scene, o, callsite) || !stack_stats_used(o) ||
		    !stack_stats_freed_count(o) || born_first(o) >= born_first(s))
			continue;
		before++;
		again += made_within(o, born_first(s), born_last(s));
	}
	return before && before - again >= (before + 3) / 4;
}

/* True if other blocks came with them and stay, as the parameters of a layer do. */
static bool in_company(const struct scene *scene, const struct stack_stats *s)
{
	double alike = 0, others = 0;

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		const struct stack_stats *o = stack_table_number(&scene->model->stacks, i);

		if (o->kind != STACK_STATS_HEAP || !stack_stats_used(o) ||
		    !stack_stats_live_bytes(o) || !made_within(o, born_first(s), born_last(s)) ||
		    born_first(o) < born_first(s))
			continue;
		*(is_uniform_stack_stats(o) && stack_stats_largest(o) == stack_stats_largest(s)
			? &alike
			: &others) += (double)stack_stats_live_bytes(o);
	}
	return others > alike / 4;
}

static bool pool_of_stacks(const struct scene *scene, uint32_t callsite, struct pool *out)
{
	struct pool p = {.sure = 1};

	for (size_t i = 0; i < scene->model->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&scene->model->stacks, i);

		if (!of_callsite(scene, s, callsite) || !stack_stats_used(s) ||
		    !is_uniform_stack_stats(s) || stack_stats_live_count(s) < 2 ||
		    !in_one_go(scene, born_first(s), born_last(s)) || in_company(scene, s) ||
		    !in_one_call(scene, s, callsite))
			continue;
		p.bytes += stack_stats_live_bytes(s);
		p.blocks += stack_stats_live_count(s);
		p.largest = num_most(p.largest, stack_stats_largest(s));
	}
	/* The allocator's own frames differ on a refusal: the line and the size decide. */
	p.asked = scene->end.refused && callsite == scene->callsites->failed &&
		  scene->end.refused->size == p.largest;
	*out = p;
	return p.blocks && enough(scene, p.bytes, p.blocks);
}

/* True if the refused request was made there, for one more block of that size. */
static bool is_next(const struct scene *scene, uint32_t callsite, uint64_t block)
{
	return scene->end.refused && callsite == scene->callsites->failed &&
	       num_about(scene->end.refused->size, block, 16);
}

static double sure_of(const struct scene *scene, const struct callsite *p, uint64_t blocks)
{
	if (blocks <= POOL_ALIKE || in_one_go(scene, p->facts.first_ns, p->facts.last_ns))
		return 1;
	return (double)(POOL_BLOCKS - blocks) / (POOL_BLOCKS - POOL_ALIKE);
}

bool pool_at(const struct scene *scene, uint32_t callsite, struct pool *out)
{
	const struct callsites *callsites = scene->callsites;
	const struct callsite *p = &callsites->list[callsite];
	struct callsite later;
	bool filled = is_filled(scene, p);
	uint64_t blocks = callsite_large_blocks(p);
	uint32_t second = 0;

	/* Its earlier calls released all that they made: so will this one. */
	if (p->call.repeats && p->facts.freed_count > p->facts.live_count)
		return false;
	if (!scene->space && !filled && p->facts.freed_count &&
	    (without_first_call(p, &later) || without_tries(scene, p, &later)))
		p = &later;
	/* A pool that is made once more, beside the first, came in a go each time: requests that
	 * leave a block each would have left some in between, too. */
	else if (is_uniform(p) && (second = scene_second_go(scene, p))) {
		later = from_step(p, second);
		p = &later;
	}
	if (callsite_is_import(p) || callsite_is_mapped_files(p) ||
	    (scene_in_turns(scene, p) && !is_room(scene, callsite)) ||
	    scene_in_flight(scene, callsite, p->facts.live_bytes) > POOL_IN_FLIGHT)
		return false;
	if (p->facts.step_count && (is_uniform(p) || filled) &&
	    enough(scene, p->facts.live_bytes, blocks) &&
	    (in_one_go(scene, p->facts.first_ns, p->facts.last_ns) ||
		(!scene->space && (filled || scene_is_quiet_since(scene, p->facts.first_ns)))) &&
	    !is_interleaved(scene, callsite, p) && !scene_worked_between(scene, p)) {
		*out = (struct pool){.bytes = p->facts.live_bytes,
		    .blocks = blocks,
		    .largest = p->facts.largest,
		    .asked = is_next(scene, callsite, p->facts.largest),
		    .sure = second ? 1 : sure_of(scene, p, blocks)};
		return true;
	}
	return scene->space && pool_of_stacks(scene, callsite, out);
}

bool pool_is_unlike(const struct scene *scene)
{
	const struct callsites *callsites = scene->callsites;

	return callsites->list[callsites->failed].facts.largest <
		   scene->end.refused->size / UNLIKE_TIMES &&
	       !scene_worked_before(scene, callsites->moment_ns, scene->end.refused->size, 0);
}

bool pool_is_first_refused(const struct scene *scene)
{
	return scene->end.refused && scene->callsites->failed != CALLSITE_NONE &&
	       !scene_asks_for_thread(scene) &&
	       purpose_of(scene, scene->callsites->failed) == PURPOSE_ROOM && pool_is_unlike(scene);
}
