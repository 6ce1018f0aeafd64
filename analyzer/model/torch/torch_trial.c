#include "model/torch/torch_parts.h"

#include <errno.h>
#include <string.h>

#include "util/num.h"

#define OWN_ADDRESSES (1ull << 60) /* above all addresses of a device */
#define UNKNOWN_MEMORY (1ull << 40)

/* --- the device --- */

static void part(struct torch_trial *t, uint64_t recorded, uint64_t modelled)
{
	if (t->differs)
		return;
	t->differs = true;
	t->recorded = recorded;
	t->modelled = modelled;
}

/* Find the next recorded call of the step's thread that matches the model's call in kind, size and
 * (unless 0) address, or a refusal of that size. */
static struct torch_call *next_call(
    struct torch_trial *t, enum torch_call_kind kind, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < t->record->calls.count; i++) {
		struct torch_call *c = &t->record->calls.items[i];

		if (c->thread != t->step->block.thread || c->size != size ||
		    (c->used && !t->change))
			continue;
		if (c->kind == kind && (!address || c->address == address))
			return c;
		if (c->kind == TORCH_REFUSE && kind != TORCH_RESERVE && !t->change)
			return c;
	}
	return NULL;
}

static void note_taken(void *arg, const struct range *range)
{
	(void)range;
	*(bool *)arg = true;
}

/* The lowest gap with room; the simulated device chooses the same way. */
struct gap {
	uint64_t at, size;
	bool found;
};

static void look(void *arg, const struct range *range)
{
	struct gap *p = arg;

	if (p->found || range->end <= p->at)
		return;
	if (range->start >= p->at && range->start - p->at >= p->size)
		p->found = true;
	else
		p->at = range->end;
}

static uint64_t lowest(struct torch_trial *t, uint64_t size)
{
	struct gap p = {.at = t->first_address ? t->first_address : OWN_ADDRESSES, .size = size};

	/* No smaller gap existed below here, and none has appeared since. */
	if (t->full_until && size >= t->full_size)
		p.at = t->full_until;
	ranges_within(&t->taken, p.at, UINT64_MAX, look, &p);
	if (p.found)
		return p.at;
	t->full_size = size;
	t->full_until = p.at;
	return p.at;
}

/* Choose an address: the recorded one, if it is free, until the trial parts from the record. */
static bool settle(struct torch_trial *t, uint64_t hint, uint64_t size, uint64_t *address)
{
	bool taken = !hint;
	uint64_t at = hint;

	if (hint)
		ranges_within(&t->taken, hint, hint + size, note_taken, &taken);
	t->parted |= taken;
	if (t->parted && t->change)
		at = lowest(t, size);
	else if (taken)
		at = t->next_address;
	if (at > UINT64_MAX - size)
		return false;
	if (!t->first_address)
		t->first_address = at;
	if (at == t->next_address)
		t->next_address += size;
	*address = at;
	return ranges_add(&t->taken, &(struct range){.start = at, .end = at + size}) == 0;
}

static void note_given(struct torch_trial *t, uint64_t address)
{
	bool too = false;

	for (size_t i = 0; i < t->record->calls.count && !too; i++)
		too = t->record->calls.items[i].kind == TORCH_GIVE &&
		      t->record->calls.items[i].address == address;
	t->parted |= !too;
}

static bool has_room(const struct torch_trial *t, uint64_t size)
{
	return t->used <= t->room && size <= t->room - t->used;
}

static bool take(void *arg, uint64_t size, uint64_t *address)
{
	struct torch_trial *t = arg;
	struct torch_call *c = next_call(t, TORCH_TAKE, 0, size);

	if (t->change) {
		if (!has_room(t, size))
			return false;
	} else if (!c) {
		if (t->step->block.refused)
			return false;
		part(t, 0, size);
	} else {
		c->used = true;
		if (c->kind == TORCH_REFUSE)
			return false;
	}
	if (!settle(t, c ? c->address : 0, size, address))
		return false;
	t->used += size;
	return true;
}

static void give(void *arg, uint64_t address, uint64_t size)
{
	struct torch_trial *t = arg;

	t->used -= size;
	if (t->change && !t->parted)
		note_given(t, address);
	t->full_until = 0;
	ranges_cut(&t->taken, address, address + size, NULL, NULL);
}

static bool reserve(void *arg, uint64_t size, uint64_t *address)
{
	struct torch_trial *t = arg;
	struct torch_call *c = NULL;

	/* The driver may round: any range of this step matches. */
	for (size_t i = 0; i < t->record->calls.count && !c; i++)
		if (t->record->calls.items[i].kind == TORCH_RESERVE &&
		    t->record->calls.items[i].thread == t->step->block.thread &&
		    t->record->calls.items[i].size >= size)
			c = &t->record->calls.items[i];
	return settle(t, c ? c->address : 0, size, address);
}

static void unreserve(void *arg, uint64_t address, uint64_t size)
{
	struct torch_trial *t = arg;

	t->full_until = 0;
	ranges_cut(&t->taken, address, address + size, NULL, NULL);
}

static bool map_page(void *arg, uint64_t address, uint64_t size)
{
	struct torch_trial *t = arg;
	struct torch_call *c;

	if (t->change) {
		if (!has_room(t, size))
			return false;
	} else {
		c = next_call(t, TORCH_MAP, address, size);
		if (!c && t->step->block.refused)
			return false;
		if (!c)
			part(t, 0, size);
		else
			c->used = true;
		if (c && c->kind == TORCH_REFUSE)
			return false;
	}
	t->used += size;
	return true;
}

static void unmap_page(void *arg, uint64_t address, uint64_t size)
{
	struct torch_trial *t = arg;

	(void)address;
	t->used -= size;
}

/* --- a trial --- */

static uint64_t scaled(uint64_t value, uint64_t to, uint64_t from)
{
	return from ? (uint64_t)((double)value / (double)from * (double)to) : value;
}

int torch_trial_init(struct torch_trial *t, struct torch_record *record,
    const struct torch_streams *streams, const struct caching_settings *settings,
    const struct torch_change *change)
{
	struct caching_config config;

	memset(t, 0, sizeof(*t));
	t->record = record;
	t->streams = streams;
	t->change = change;
	t->settings = change && change->settings ? *change->settings : *settings;
	t->same_split = t->settings.max_split == settings->max_split;
	t->memory = change && change->memory ? change->memory : streams->memory;
	t->next_address = OWN_ADDRESSES;
	t->outcome.headroom = INT64_MAX;
	ranges_init(&t->taken);
	t->allowed = streams->allowed;
	if (t->settings.memory_fraction > 0 && t->settings.memory_fraction < 1 && t->memory)
		t->allowed = (uint64_t)(t->settings.memory_fraction * (double)t->memory);
	else if (t->allowed != UINT64_MAX && t->memory != streams->memory)
		t->allowed = scaled(t->allowed, t->memory, streams->memory);
	config = (struct caching_config){.settings = t->settings,
	    .memory = t->memory ? t->memory : UNKNOWN_MEMORY,
	    .allowed = t->allowed,
	    .driver = {t, take, give, reserve, unreserve, map_page, unmap_page}};
	return caching_allocator_new(&config, &t->allocator);
}

void torch_trial_fini(struct torch_trial *t)
{
	caching_allocator_free(t->allocator);
	map_free(&t->held);
	vec_free(&t->due);
	vec_free(&t->late);
	map_free(&t->late_at);
	ranges_fini(&t->taken);
}

/* --- blocks that are released earlier than recorded --- */

static uint64_t later(uint64_t time_ns, uint64_t by)
{
	return time_ns < UINT64_MAX - by ? time_ns + by : UINT64_MAX;
}

static int push_due(struct torch_trial *t, struct torch_due due)
{
	size_t at = t->due.count;
	int rc = vec_push(&t->due, due);

	for (; !rc && at; at = (at - 1) / 2) {
		struct torch_due *up = &t->due.items[(at - 1) / 2];

		if (up->time_ns <= due.time_ns)
			break;
		t->due.items[at] = *up;
		*up = due;
	}
	return rc;
}

static struct torch_due pop_due(struct torch_trial *t)
{
	struct torch_due first = t->due.items[0], last = t->due.items[--t->due.count];
	size_t at = 0, child;

	for (; (child = 2 * at + 1) < t->due.count; at = child) {
		if (child + 1 < t->due.count &&
		    t->due.items[child + 1].time_ns < t->due.items[child].time_ns)
			child++;
		if (last.time_ns <= t->due.items[child].time_ns)
			break;
		t->due.items[at] = t->due.items[child];
	}
	t->due.items[at] = last;
	return first;
}

/* A tag holds the block's stack and its request. */
static uint64_t tag_of(const struct torch_block *b)
{
	return b->serial << 32 | b->stack;
}

/* `tag` 0: any block. */
static void release(struct torch_trial *t, uint64_t address, uint64_t tag)
{
	const struct torch_rewrite *w = t->change ? &t->change->rewrite : NULL;
	uint64_t *slot = map_find(&t->held, address), size;
	struct caching_block *b;

	if (!slot)
		return;
	b = (struct caching_block *)(uintptr_t)*slot;
	if (tag && b->tag != tag)
		return;
	tag = b->tag;
	size = b->size;
	map_remove(&t->held, address);
	caching_allocator_release(t->allocator, b);
	if (w && w->released)
		w->released(w->arg, (uint32_t)tag, size);
}

/* --- blocks that are requested later than recorded --- */

static void release_late(struct torch_trial *t, struct torch_late *late)
{
	const struct torch_rewrite *w = &t->change->rewrite;
	uint64_t size;

	late->gone = true;
	if (!late->block)
		return;
	size = late->block->size;
	caching_allocator_release(t->allocator, late->block);
	late->block = NULL;
	if (w->released)
		w->released(w->arg, late->step.block.stack, size);
}

/* Put off the recorded release of the block at that address by the block's own delay. */
static int put_off_release(struct torch_trial *t, uint64_t address, uint64_t time_ns, bool *was)
{
	uint64_t *slot = t->late_at.count ? map_find(&t->late_at, address) : NULL;
	struct torch_due due;

	*was = slot;
	if (!slot)
		return 0;
	due = (struct torch_due){.late = (uint32_t)*slot};
	due.time_ns = later(time_ns, t->late.items[due.late - 1].delay);
	map_remove(&t->late_at, address);
	return push_due(t, due);
}

static int put_off(struct torch_trial *t, uint64_t delay)
{
	const struct torch_block *b = &t->step->block;
	uint64_t *slot;
	bool was;
	int rc = b->refused ? 0 : put_off_release(t, b->address, b->time_ns, &was);

	if (!rc)
		rc = vec_push(&t->late,
		    (struct torch_late){
			.step = *t->step, .where = t->where, .delay = delay, .end = t->end});
	if (!rc)
		rc = push_due(t, (struct torch_due){.time_ns = later(b->time_ns, delay),
				     .late = (uint32_t)t->late.count,
				     .ask = true});
	if (rc || b->refused)
		return rc;
	slot = map_put(&t->late_at, b->address);
	if (!slot)
		return -ENOMEM;
	*slot = t->late.count;
	return 0;
}

static int request(struct torch_trial *t);

static int ask_late(struct torch_trial *t, uint32_t index)
{
	const struct torch_step *step = t->step;
	struct caching_where where = t->where;
	/* request() adds none. */
	struct torch_late *late = &t->late.items[index - 1];
	int rc;

	t->step = &late->step;
	t->where = late->where;
	t->asking = index;
	rc = request(t);
	if (late->gone)
		release_late(t, late);
	t->asking = 0;
	t->step = step;
	t->where = where;
	return rc;
}

/* Do everything that is due by then, in order. */
static int expire(struct torch_trial *t, uint64_t now)
{
	int rc = 0;

	while (!rc && !t->stopped && t->due.count && t->due.items[0].time_ns <= now) {
		struct torch_due due = pop_due(t);

		if (due.end && !t->change->shift.ends(t->change->shift.arg, due.tag >> 32))
			continue;
		if (!due.late)
			release(t, due.address, due.tag);
		else if (due.ask)
			rc = ask_late(t, due.late);
		else
			release_late(t, &t->late.items[due.late - 1]);
	}
	return rc;
}

/* --- steps --- */

static void set_room(struct torch_trial *t, uint64_t least)
{
	uint64_t recorded = t->streams->memory;

	t->room = UINT64_MAX;
	if (t->memory)
		t->room = torch_record_room(t->record, t->memory, t->change->given_back);
	if (!least || !recorded)
		return;
	/* The device had this room; the room changes as much as the device's size. */
	if (t->memory >= recorded)
		least += t->memory - recorded;
	else
		least = least > recorded - t->memory ? least - (recorded - t->memory) : 0;
	t->room = num_most(t->room, least);
}

static uint64_t limit(const struct torch_trial *t)
{
	return t->room < t->allowed ? t->room : t->allowed;
}

static int64_t left(uint64_t have, uint64_t want)
{
	if (have >= want)
		return have - want > INT64_MAX ? INT64_MAX : (int64_t)(have - want);
	return want - have > INT64_MAX ? INT64_MIN : -(int64_t)(want - have);
}

static void note_refusal(struct torch_trial *t, uint64_t size)
{
	struct torch_outcome *o = &t->outcome;
	struct caching_stats s;

	caching_allocator_stats(t->allocator, &s);
	o->refused = true;
	o->refusal = (struct torch_refusal){.block = t->step->block,
	    .size = size,
	    .segment = caching_segment_size(&t->settings, size),
	    .reserved = s.reserved,
	    .allocated = s.allocated,
	    .idle = s.idle,
	    .largest_hole = caching_largest_hole(t->allocator, t->where, size),
	    .room = limit(t) > s.reserved ? limit(t) - s.reserved : 0};
	t->stopped = !t->step->block.refused;
}

static void note_granted(struct torch_trial *t)
{
	struct caching_stats s;
	int64_t room;

	caching_allocator_stats(t->allocator, &s);
	room = left(limit(t), s.reserved - s.idle);
	if (room < t->outcome.headroom)
		t->outcome.headroom = room;
	if (!t->step->block.refused)
		return;
	t->outcome.granted_refusals++;
	t->outcome.refused = false;
	if (t->change && t->change->shift.granted)
		t->change->shift.granted(t->change->shift.arg, t->step->block.serial);
}

/* Release the step's block that many ns after its request, if it is still live then. */
static int push_release(struct torch_trial *t, uint64_t ns, bool end)
{
	const struct torch_block *as = &t->step->block;
	uint64_t delay = t->asking ? t->late.items[t->asking - 1].delay : 0;
	uint64_t at = later(later(as->time_ns, delay), ns);

	if (at == UINT64_MAX)
		return 0;
	return push_due(t, (struct torch_due){.time_ns = at,
			       .address = as->address,
			       .tag = tag_of(as),
			       .late = t->asking,
			       .end = end});
}

/* Make the requests that follow a refused one. 0, -ENOMEM or CACHING_REFUSED. */
static int go_on(struct torch_trial *t)
{
	const struct torch_rewrite *w = t->change ? &t->change->rewrite : NULL;
	uint64_t size = w && w->further ? w->further(w->arg, &t->step->block) : 0;
	struct caching_block *b;
	int rc;

	if (!size)
		return 0;
	rc = caching_allocator_request(
	    t->allocator, t->where, caching_round(&t->settings, size), &b);
	if (rc == CACHING_REFUSED)
		note_refusal(t, size);
	if (rc)
		return rc;
	note_granted(t);
	caching_allocator_release(t->allocator, b);
	return 0;
}

static int hold(struct torch_trial *t, struct caching_block *b)
{
	const struct torch_block *as = &t->step->block;
	const struct torch_rewrite *w = t->change ? &t->change->rewrite : NULL;
	uint64_t life = w && w->life ? w->life(w->arg, as) : UINT64_MAX, *slot;
	int rc;

	if (t->asking) {
		t->late.items[t->asking - 1].block = b;
	} else {
		release(t, as->address, 0); /* its release was not recorded */
		slot = map_put(&t->held, as->address);
		if (!slot)
			return -ENOMEM;
		*slot = (uint64_t)(uintptr_t)b;
		b->tag = tag_of(as);
	}
	rc = push_release(t, life, false);
	return rc ? rc
		  : push_release(t, t->asking ? t->late.items[t->asking - 1].end : t->end, true);
}

static int request(struct torch_trial *t)
{
	const struct torch_rewrite *w = t->change ? &t->change->rewrite : NULL;
	uint64_t size = t->same_split ? t->step->asked : t->step->block.size, wanted;
	struct caching_block *b;
	int rc;

	if (w && w->size) {
		wanted = w->size(w->arg, &t->step->block);
		if (!wanted) {
			/* The dropped request cannot be refused. */
			t->outcome.granted_refusals += t->step->block.refused;
			t->outcome.refused &= !t->step->block.refused;
			return 0;
		}
		if (wanted != t->step->block.size)
			size = caching_round(&t->settings, wanted);
	}
	t->outcome.requests++;
	rc = caching_allocator_request(t->allocator, t->where, size, &b);
	if (rc == CACHING_REFUSED) {
		note_refusal(t, size);
		return 0;
	}
	if (rc)
		return rc;
	if (t->step->block.refused) {
		/* The record has no release of it: its work went no further. */
		rc = go_on(t);
		if (!rc)
			note_granted(t);
		caching_allocator_release(t->allocator, b);
		return rc == CACHING_REFUSED ? 0 : rc;
	}
	note_granted(t);
	return hold(t, b);
}

static int take_request(struct torch_trial *t)
{
	const struct torch_shift *shift = t->change ? &t->change->shift : NULL;
	const struct torch_block *b = &t->step->block;
	uint64_t delay = 0;
	bool was;
	int rc;

	t->end = UINT64_MAX;
	if (shift && shift->delay)
		delay = shift->delay(shift->arg, b, &t->end);
	if (delay)
		return put_off(t, delay);
	rc = put_off_release(t, b->address, b->time_ns, &was);
	return rc ? rc : request(t);
}

static int take_release(struct torch_trial *t)
{
	const struct torch_block *b = &t->step->block;
	bool was;
	int rc = put_off_release(t, b->address, b->time_ns, &was);

	if (!rc && !was)
		release(t, b->address, 0);
	return rc;
}

/* Tell the observer, who asks the same of another allocator. */
static void tell(struct torch_trial *t, enum torch_ask_kind kind)
{
	const struct torch_block *b = &t->step->block;

	if (t->change && t->change->told)
		t->change->told(
		    t->change->told_arg, &(struct torch_ask){.kind = kind,
					     .serial = b->serial,
					     .address = b->address,
					     .size = t->same_split ? t->step->asked : b->size,
					     .pool = t->where.pool,
					     .stream = t->where.stream,
					     .room = t->room});
}

void torch_trial_retire(struct torch_trial *t, uint64_t pool)
{
	caching_allocator_retire_pool(t->allocator, pool);
	if (t->change && t->change->told)
		t->change->told(t->change->told_arg,
		    &(struct torch_ask){.kind = TORCH_ASK_RETIRE, .pool = pool, .room = t->room});
}

int torch_trial_step(struct torch_trial *t, const struct torch_step *step,
    struct caching_where where, bool flush, uint64_t least)
{
	int rc = 0;

	t->step = step;
	t->where = where;
	if (t->change)
		set_room(t, least);
	if (flush)
		tell(t, TORCH_ASK_FLUSH);
	tell(t, step->kind == TORCH_REQUEST ? TORCH_ASK_BLOCK : TORCH_ASK_RELEASE);
	if (t->stopped)
		return 0;
	rc = expire(t, step->block.time_ns);
	if (!rc && flush && !t->stopped)
		rc = caching_allocator_flush(t->allocator);
	if (rc || t->stopped)
		return rc;
	return step->kind == TORCH_REQUEST ? take_request(t) : take_release(t);
}

int torch_trial_finish(struct torch_trial *t)
{
	struct torch_outcome *o = &t->outcome;
	struct caching_stats s;
	int rc;

	t->step = NULL;
	rc = t->change && t->change->shift.delay ? expire(t, UINT64_MAX) : 0;
	if (rc)
		return rc;
	caching_allocator_stats(t->allocator, &s);
	o->peak_allocated = s.peak_allocated;
	o->peak_reserved = s.peak_reserved;
	o->end_allocated = s.allocated;
	o->end_reserved = s.reserved;
	o->memory = t->memory;
	o->allowed = t->allowed;
	o->fits = !o->refused;
	if (o->refused)
		o->headroom = left(o->refusal.room + o->refusal.idle, o->refusal.segment);
	else if (o->headroom == INT64_MAX && t->change)
		o->headroom = left(limit(t), 0);
	return 0;
}
