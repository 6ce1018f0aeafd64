/* view.c - see view.h. */
#include "reduce/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

/* Count an event that leaves `kept_bytes` of the class `kept_class`. */
static void apply(
    struct amounts *a, const struct record_event *e, int64_t kept_bytes, uint32_t kept_class)
{
	if (e->class < RECORD_ADDRESS)
		a->live += (uint64_t)e->bytes;
	a->out[e->class] += e->bytes;
	a->out[kept_class] -= kept_bytes;
}

/* A mapping that is cut at another one's end may leave a negative sum. */
static uint64_t out_of(const struct amounts *a, uint32_t class)
{
	return a->out[class] > 0 ? (uint64_t)a->out[class] : 0;
}

static uint64_t out_of_memory(const struct amounts *a)
{
	return out_of(a, RECORD_HEAP) + out_of(a, RECORD_LARGE) + out_of(a, RECORD_ARENA) +
	       out_of(a, RECORD_MAPPING);
}

static double resident_part(const struct event *e, uint64_t live)
{
	uint64_t anonymous, rss = event_level_value(e, TRACE_LEVEL_RSS);

	if (!event_level(e, TRACE_LEVEL_RSS_ANON, &anonymous))
		anonymous = num_less(rss, event_level_value(e, TRACE_LEVEL_RSS_FILE) +
					      event_level_value(e, TRACE_LEVEL_RSS_SHMEM));
	return anonymous < live ? (double)anonymous / (double)live : 1;
}

struct rewrite {
	const struct amounts *now, *moment;
	double part; /* the last measured resident share */
	uint64_t resident, resident_moment; /* resident bytes left out, now and at the moment */
	uint64_t heap, mapped; /* bytes left out of malloc's two parts */
	uint64_t most, told; /* peaks so far: resident bytes as recorded, and as lowered */
	int64_t tighter; /* bytes by which the limit of address space is lower in addition */
	uint32_t device_cuda; /* class of the device that the record's space is on, or 0 */
};

/* Divides the bytes left out between heap and mappings as the allocator had them: its threshold
 * moves. */
static void split_heap(struct rewrite *w, const struct event *e)
{
	uint64_t used = event_level_value(e, TRACE_LEVEL_MALLOC_USED),
		 mapped = event_level_value(e, TRACE_LEVEL_MALLOC_MMAP);
	uint64_t all = out_of(w->now, RECORD_HEAP) + out_of(w->now, RECORD_LARGE);

	w->mapped = num_least(out_of(w->now, RECORD_LARGE), mapped);
	w->heap = num_least(all - w->mapped, used ? used : UINT64_MAX);
	w->mapped = num_least(all - w->heap, mapped);
}

static uint64_t share(uint64_t out, uint64_t value, uint64_t all)
{
	return all ? (uint64_t)((double)out * ((double)value / (double)all)) : 0;
}

static uint64_t tighter(const struct rewrite *w, uint64_t limit)
{
	return w->tighter > 0 ? num_less(limit, (uint64_t)w->tighter)
			      : limit + (uint64_t)-w->tighter;
}

static uint64_t told(struct rewrite *w, const struct event *e, uint32_t key, uint64_t v)
{
	uint64_t memory = out_of_memory(w->now), limit = out_of_memory(w->moment);
	uint64_t arenas = out_of(w->now, RECORD_ARENA);
	uint64_t device = w->device_cuda ? out_of(w->now, w->device_cuda) : 0;
	uint64_t device_limit = w->device_cuda ? out_of(w->moment, w->device_cuda) : 0;

	switch (key) {
	case TRACE_LEVEL_VSIZE:
	case TRACE_LEVEL_VSIZE_PEAK:
		return num_less(v, memory + out_of(w->now, RECORD_ADDRESS));
	case TRACE_LEVEL_LIMIT_AS:
		return tighter(w, num_less(v, limit + out_of(w->moment, RECORD_ADDRESS)));
	case TRACE_LEVEL_DATA:
		return num_less(v, memory);
	case TRACE_LEVEL_LIMIT_DATA:
		return tighter(w, num_less(v, limit));
	case TRACE_LEVEL_VIRT_ANON:
		return num_less(v, memory - num_least(memory, w->heap));
	case TRACE_LEVEL_VIRT_HEAP:
		return num_less(v, w->heap);
	case TRACE_LEVEL_RSS_PEAK:
		return num_less(v, w->most - num_least(w->most, w->told));
	case TRACE_LEVEL_RSS:
	case TRACE_LEVEL_RSS_ANON:
	case TRACE_LEVEL_PSS:
	case TRACE_LEVEL_PRIVATE_DIRTY:
	case TRACE_LEVEL_CG_CURRENT:
	case TRACE_LEVEL_CG_ANON:
	case TRACE_LEVEL_CG_PEAK:
		return num_less(v, w->resident);
	case TRACE_LEVEL_CG_MAX:
	case TRACE_LEVEL_CG_HIGH:
	case TRACE_LEVEL_SYS_TOTAL:
		return num_less(v, w->resident_moment);
	case TRACE_LEVEL_SYS_AVAILABLE:
		return num_less(v + w->resident, w->resident_moment);
	case TRACE_LEVEL_MALLOC_ARENA:
	case TRACE_LEVEL_MALLOC_USED:
		return num_less(v, w->heap);
	case TRACE_LEVEL_MALLOC_MMAP:
		return num_less(v, w->mapped);
	case TRACE_LEVEL_PYTHON_ARENAS:
	case TRACE_LEVEL_PYTHON_USED:
	case TRACE_LEVEL_PYTHON_FREE:
		return num_less(
		    v, share(arenas, v, event_level_value(e, TRACE_LEVEL_PYTHON_ARENAS)));
	case TRACE_LEVEL_DEV_FREE:
	case TRACE_LEVEL_DEV_FREE_BEFORE:
		return num_less(v + device, device_limit);
	case TRACE_LEVEL_DEV_TOTAL:
		return num_less(v, device_limit);
	case TRACE_LEVEL_ALLOCATED:
		return num_less(v, e->space && e->space < RECORD_SPACES_MAX
				       ? out_of(w->now, RECORD_SPACES + e->space)
				       : 0);
	default:
		return v;
	}
}

/* Returns the class of the device that a torch or pool space lies on, or the device's own. */
static uint32_t device_class(const struct record *r, uint32_t space)
{
	const char *name = space ? r->feed.space(r->feed.self, space) : NULL, *number;

	number = name ? strchr(name, ':') : NULL;
	if (!number)
		return 0;
	for (uint32_t id = 1; id < RECORD_SPACES_MAX; id++) {
		const char *other = r->feed.space(r->feed.self, id);

		if (other && !strncmp(other, "cuda:", 5) && !strcmp(other + 4, number))
			return RECORD_SPACES + id;
	}
	return 0;
}

/* Lowers the levels of one source, the process or its supervisor; each has a peak of its own. */
static int rewrite(struct view *v, struct event *e, struct rewrite *w)
{
	struct event_level *to;
	uint64_t rss = event_level_value(e, TRACE_LEVEL_RSS);

	if (!e->level_count)
		return 0;
	to = arena_alloc(&v->arena, e->level_count * sizeof(*to));
	if (!to)
		return -ENOMEM;
	if (rss)
		w->part = resident_part(e, w->now->live);
	w->resident = (uint64_t)((double)out_of_memory(w->now) * w->part);
	w->resident_moment = (uint64_t)((double)out_of_memory(w->moment) * w->part);
	split_heap(w, e);
	w->device_cuda = device_class(v->record, e->space);
	if (rss > w->most)
		w->most = rss;
	if (num_less(rss, w->resident) > w->told)
		w->told = num_less(rss, w->resident);
	for (uint32_t i = 0; i < e->level_count; i++)
		to[i] = (struct event_level){
		    e->levels[i].key, told(w, e, e->levels[i].key, e->levels[i].value)};
	e->levels = to;
	return 0;
}

/* A step is left out with its block. */
static bool is_left(const struct view *v, uint32_t unit)
{
	uint32_t chain = v->record->units.items[unit].chain;

	return v->kept[unit] && (!chain || v->kept[chain]);
}

/* Returns the kept ALLOC of the event's block. */
static uint32_t alloc_of(const struct view *v, uint32_t index)
{
	const struct record_event *e = &v->record->events.items[index];

	return v->heirs[e->kind == EV_ALLOC ? index : e->partner];
}

static uint64_t callsite_of(const struct view *v, uint32_t alloc)
{
	return v->callsites[alloc] ? v->callsites[alloc] : v->record->events.items[alloc].address;
}

/* Addresses from here on are free in each program: the kernel gives them out from either end. */
#define CALLSITES 0x600000000000u
#define CALLSITE_BYTES 4096u

/* Without the realloc the block stays at an old address that another block may have: it gets a new
 * one. */
static void inherit(struct view *v, uint32_t index, bool kept)
{
	const struct record_event *e = &v->record->events.items[index];
	uint32_t heir = e->partner && !kept ? v->heirs[e->partner - 1] : index;

	v->heirs[index] = heir;
	if (heir == index || v->callsites[heir] || index >= v->record->moment)
		return;
	v->callsites[heir] = v->next_callsite;
	v->next_callsite += v->record->events.items[heir].size / CALLSITE_BYTES * CALLSITE_BYTES +
			    2 * CALLSITE_BYTES;
}

static uint32_t class_left(const struct view *v, uint32_t index)
{
	const struct record_event *e = &v->record->events.items[index];

	return record_is_block(e->kind) ? v->record->events.items[alloc_of(v, index)].class
					: e->class;
}

static int64_t bytes_left(const struct view *v, uint32_t index)
{
	const struct record_event *e = &v->record->events.items[index];
	int64_t size;

	if (!record_is_block(e->kind))
		return e->bytes;
	size = (int64_t)v->record->events.items[alloc_of(v, index)].size;
	return e->kind == EV_FREE ? -size : size;
}

/* The bytes left out at each event with levels. */
struct snapshots {
	VEC(struct amounts) own, outside;
};

static int walk(struct view *v, struct snapshots *s)
{
	const struct record *r = v->record;
	struct amounts now = {{0}, 0};
	uint64_t left, lost = 0;
	size_t outside = 0;
	int rc = 0;

	for (size_t i = 0; i <= r->events.count && !rc; i++) {
		const struct record_event *e = &r->events.items[i];
		bool kept;

		if (i == r->moment) {
			v->moment = now;
			v->moment_live = now.live - lost;
		}
		for (; outside < r->outside.count && !rc &&
		       (i == r->events.count || r->outside.items[outside].time_ns < e->time_ns);
		     outside++)
			rc = vec_push(&s->outside, now);
		if (i == r->events.count || rc)
			break;
		kept = is_left(v, e->unit);
		if (e->kind == EV_ALLOC)
			inherit(v, (uint32_t)i, kept);
		apply(&now, e, kept ? bytes_left(v, (uint32_t)i) : 0, class_left(v, (uint32_t)i));
		lost = out_of_memory(&now);
		left = now.live - lost;
		if (i < r->moment && left > v->peak_live)
			v->peak_live = left;
		if (!kept)
			continue;
		rc = vec_push(&v->order, (uint32_t)i);
		if (!rc && e->rich && r->rich.items[e->rich - 1].level_count)
			rc = vec_push(&s->own, now);
	}
	return rc;
}

static int tell_own(struct view *v, const struct snapshots *s)
{
	const struct record *r = v->record;
	struct rewrite w = {
	    .moment = &v->moment, .part = 1, .tighter = (int64_t)r->room - (int64_t)v->room};
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < v->order.count && !rc; i++) {
		const struct record_event *e = &r->events.items[v->order.items[i]];
		struct event copy;

		if (!e->rich || !r->rich.items[e->rich - 1].level_count)
			continue;
		copy = r->rich.items[e->rich - 1];
		w.now = &s->own.items[n++];
		rc = rewrite(v, &copy, &w);
		if (!rc)
			rc = vec_push(&v->rich, copy);
	}
	return rc;
}

static int tell_outside(struct view *v, const struct snapshots *s)
{
	const struct record *r = v->record;
	struct rewrite w = {
	    .moment = &v->moment, .part = 1, .tighter = (int64_t)r->room - (int64_t)v->room};
	struct rewrite others = w;
	uint32_t pid = r->feed.facts(r->feed.self)->pid;
	int rc = 0;

	for (size_t i = 0; i < r->outside.count && !rc; i++) {
		struct event e = r->outside.items[i].e;
		bool own = e.u.child.pid == pid || !e.u.child.pid;

		w.now = others.now = &s->outside.items[i];
		if (e.kind == EV_LEVEL && e.space == TRACE_SPACE_HOST) {
			if (own) {
				rc = rewrite(v, &e, &w);
			} else if (event_level_value(&e, TRACE_LEVEL_CG_CURRENT)) {
				/* Another process; its group is the same. */
				others.part = w.part;
				rc = rewrite(v, &e, &others);
			}
		}
		if (!rc && v->kept[r->outside.items[i].unit])
			rc = vec_push(&v->outside, e);
	}
	return rc;
}

TUNED(uint64_t, ROOM_BYTES, 1u << 20, "allocators round a request up by at most a MiB or so");

/* Returns the room under the limit at the refusal. It may be anything between the need so far and
 * the refused request: takes the middle, unless the recorded room is far from both. */
static uint64_t room_of(const struct view *v)
{
	const struct record *r = v->record;
	uint64_t need = num_less(v->peak_live, v->moment_live), between;

	if (!r->centred || r->requested < ROOM_BYTES || need >= r->requested)
		return r->room;
	between = r->requested - need;
	if (r->room > need + between / 4 && r->room < r->requested - between / 4)
		return r->room;
	return need + between / 2;
}

static void tell_info(struct view *v, const char *key, int64_t less)
{
	const char *text = record_info(v->record, key);
	uint32_t at = 0;

	if (!less || !text || *text < '0' || *text > '9')
		return;
	while (at < v->info_count && strcmp(v->infos[at].key, key) != 0)
		at++;
	snprintf(v->infos[at].key, sizeof(v->infos[at].key), "%s", key);
	snprintf(v->infos[at].value, sizeof(v->infos[at].value), "%" PRIu64,
	    (uint64_t)((int64_t)strtoull(text, NULL, 10) - less));
	v->info_count += at == v->info_count;
}

int view_make(const struct record *record, const uint8_t *kept, struct view *out)
{
	struct snapshots s = {{0}, {0}};
	int64_t memory;
	int rc;

	memset(out, 0, sizeof(*out));
	out->record = record;
	out->kept = kept;
	memcpy(out->infos, record->infos, sizeof(out->infos));
	out->info_count = record->info_count;
	out->serials = calloc(record->events.count + 1, sizeof(*out->serials));
	out->live = calloc(record->events.count + 1, 1);
	out->heirs = calloc(record->events.count + 1, sizeof(*out->heirs));
	out->callsites = calloc(record->events.count + 1, sizeof(*out->callsites));
	out->next_callsite = record->next_callsite ? record->next_callsite : CALLSITES;
	rc = out->serials && out->live && out->heirs && out->callsites ? walk(out, &s) : -ENOMEM;
	out->room = room_of(out);
	if (!rc)
		rc = tell_own(out, &s);
	if (!rc)
		rc = tell_outside(out, &s);
	vec_free(&s.own);
	vec_free(&s.outside);
	memory = (int64_t)out_of_memory(&out->moment) + (int64_t)record->room - (int64_t)out->room;
	tell_info(out, "limit.as", memory + (int64_t)out_of(&out->moment, RECORD_ADDRESS));
	tell_info(out, "limit.data", memory);
	out->facts = *record->feed.facts(record->feed.self);
	return rc;
}

void view_fini(struct view *v)
{
	vec_free(&v->order);
	vec_free(&v->rich);
	vec_free(&v->outside);
	arena_free(&v->arena);
	free(v->serials);
	free(v->live);
	free(v->heirs);
	free(v->callsites);
}

/* The block's acquisitions have their new indexes already. */
static void settle_block(const struct view *v, struct record *r, uint32_t index,
    const uint32_t *moved, struct record_event *e)
{
	const struct record_event *of;

	if (!record_is_block(e->kind))
		return;
	if (e->kind == EV_ALLOC) {
		e->partner = e->partner ? moved[v->heirs[e->partner - 1]] + 1 : 0;
		e->address = v->callsites[index] ? v->callsites[index] : e->address;
		return;
	}
	e->partner = moved[v->heirs[e->partner]];
	of = &r->events.items[e->partner];
	e->address = of->address;
	e->size = of->size;
	e->class = of->class;
	e->bytes = e->kind == EV_FREE ? -of->bytes : of->bytes;
}

static int settle_events(struct view *v, struct record *r, uint32_t *moved)
{
	uint32_t moment = (uint32_t)v->order.count;
	size_t n = 0, rich = 0;

	for (size_t i = 0; i < r->units.count; i++) {
		r->units.items[i].events = 0;
		r->units.items[i].leaves &= v->kept[i];
	}
	for (size_t i = v->order.count; i-- > 0 && v->order.items[i] >= r->moment;)
		moment = (uint32_t)i;
	for (; n < v->order.count; n++) {
		struct record_event e = r->events.items[v->order.items[n]];
		struct record_unit *u = &r->units.items[e.unit];

		moved[v->order.items[n]] = (uint32_t)n;
		if (!u->events++)
			u->first = (uint32_t)n;
		settle_block(v, r, v->order.items[n], moved, &e);
		if (e.rich && r->rich.items[e.rich - 1].level_count) {
			struct event *to = &r->rich.items[e.rich - 1];

			to->levels = (const struct event_level *)(void *)arena_copy(&r->arena,
			    v->rich.items[rich++].levels, to->level_count * sizeof(*to->levels));
			if (!to->levels)
				return -ENOMEM;
		}
		r->events.items[n] = e;
	}
	r->events.count = n;
	r->moment = moment;
	return 0;
}

static int settle_outside(struct view *v, struct record *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->outside.count; i++) {
		struct record_outside o = r->outside.items[i];

		if (!v->kept[o.unit])
			continue;
		r->units.items[o.unit].events = 1;
		o.e = v->outside.items[n];
		if (o.e.level_count) {
			o.e.levels = (const struct event_level *)(void *)arena_copy(
			    &r->arena, o.e.levels, o.e.level_count * sizeof(*o.e.levels));
			if (!o.e.levels)
				return -ENOMEM;
		}
		r->outside.items[n++] = o;
	}
	r->outside.count = n;
	return 0;
}

int view_settle(struct view *v, struct record *record)
{
	uint32_t *moved = malloc((record->events.count + 1) * sizeof(*moved));
	int rc = moved ? settle_events(v, record, moved) : -ENOMEM;

	if (!rc)
		rc = settle_outside(v, record);
	memcpy(record->infos, v->infos, sizeof(record->infos));
	record->info_count = v->info_count;
	record->room = v->room;
	record->next_callsite = v->next_callsite;
	free(moved);
	view_fini(v);
	memset(v, 0, sizeof(*v));
	return rc;
}

static struct block block_of(const struct view *v, uint32_t index)
{
	const struct record_event *e = &v->record->events.items[index];

	return (struct block){.address = callsite_of(v, index),
	    .size = e->size,
	    .birth_ns = e->time_ns,
	    .serial = v->serials[index],
	    .stack = e->stack,
	    .thread = e->thread,
	    .task = e->task};
}

static void give_block(
    struct view *v, uint32_t index, const struct record_event *e, struct event *out)
{
	uint32_t of = alloc_of(v, index);

	if (e->kind == EV_ALLOC) {
		v->serials[index] = (uint32_t)++v->serial;
		if (e->partner) {
			v->old = block_of(v, v->heirs[e->partner - 1]);
			out->old = &v->old;
		}
	}
	v->live[of] = e->kind != EV_FREE;
	v->block = block_of(v, of);
	out->block = &v->block;
	out->address = v->block.address;
	out->size = v->block.size;
}

static int next_event(void *self, struct event *out, struct err *err)
{
	struct view *v = self;
	const struct record_event *e;
	uint32_t index;

	(void)err;
	if (v->at == v->order.count)
		return 0;
	index = v->order.items[v->at++];
	e = &v->record->events.items[index];
	if (e->rich) {
		*out = v->record->rich.items[e->rich - 1];
		if (out->level_count)
			*out = v->rich.items[v->rich_at++];
		return 1;
	}
	*out = (struct event){.kind = (enum event_kind)e->kind,
	    .api = e->api,
	    .flags = e->flags,
	    .thread = e->thread,
	    .task = e->task,
	    .stack = e->stack,
	    .time_ns = e->time_ns,
	    .address = e->address,
	    .size = e->size};
	give_block(v, index, e, out);
	return 1;
}

static int rewind_view(void *self, struct err *err)
{
	struct view *v = self;

	(void)err;
	v->at = v->rich_at = 0;
	v->serial = 0;
	memset(v->live, 0, v->record->events.count);
	return 0;
}

static size_t symbols_of(void *self, uint32_t stack, const struct symbol **out)
{
	const struct feed *feed = &((struct view *)self)->record->feed;

	return feed->symbols(feed->self, stack, out);
}

static const char *info_of(void *self, const char *key)
{
	const struct view *v = self;

	for (uint32_t i = 0; i < v->info_count; i++)
		if (!strcmp(v->infos[i].key, key))
			return v->infos[i].value;
	return record_info(v->record, key);
}

static const struct trace_facts *facts_of(void *self)
{
	return &((struct view *)self)->facts;
}

static const char *space_of(void *self, uint32_t id)
{
	const struct feed *feed = &((struct view *)self)->record->feed;

	return feed->space ? feed->space(feed->self, id) : NULL;
}

static int each_live_of(void *self, int (*fn)(void *arg, const struct block *b), void *arg)
{
	const struct view *v = self;
	int rc = 0;

	for (size_t i = 0; i < v->at && !rc; i++) {
		uint32_t index = v->order.items[i];
		struct block b;

		if (!v->live[index])
			continue;
		b = block_of(v, index);
		rc = fn(arg, &b);
	}
	return rc;
}

static int path_of(void *self, uint32_t stack, struct stack_path *path)
{
	return feed_path(&((struct view *)self)->record->feed, stack, path);
}

struct feed view_feed(struct view *v)
{
	return (struct feed){.self = v,
	    .next = next_event,
	    .rewind = rewind_view,
	    .symbols = symbols_of,
	    .info = info_of,
	    .facts = facts_of,
	    .space = space_of,
	    .each_live = each_live_of,
	    .path = path_of};
}

static int next_outside(void *self, struct event *out, struct err *err)
{
	struct view *v = self;

	(void)err;
	if (v->outside_at == v->outside.count)
		return 0;
	*out = v->outside.items[v->outside_at++];
	return 1;
}

static int rewind_outside(void *self, struct err *err)
{
	(void)err;
	((struct view *)self)->outside_at = 0;
	return 0;
}

static const struct trace_facts *facts_outside(void *self)
{
	const struct feed *feed = &((struct view *)self)->record->supervisor;

	return feed->facts(feed->self);
}

struct feed view_outside(struct view *v)
{
	return (struct feed){
	    .self = v, .next = next_outside, .rewind = rewind_outside, .facts = facts_outside};
}
