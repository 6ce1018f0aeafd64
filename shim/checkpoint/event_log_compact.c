/*
 * event_log_compact.c - see event_log_compact.h. An acquisition and its release are dropped
 * together, once the release can no longer be taken back. A mapping that was released in part stays
 * as recorded, and so do its partial releases. Levels that lie close together in time are dropped
 * evenly over the whole history; of the other events, the oldest.
 */
#include "checkpoint/event_log_compact.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/merge_sort.h"
#include "base/record_fields.h"
#include "checkpoint/event_log.h"
#include "checkpoint/freed_stats.h"
#include "cuda/cuda_call.h"

/* Name spaces of addresses: the host's mappings, the driver's blocks, its handles, mappings of
 * handles, reserved ranges; from TORCH on, each space of PyTorch by its id. */
enum domain { NOWHERE, MAPS, DRIVER, HANDLES, SPACE_MAPS, RESERVED, TORCH };
enum role { OTHER, OPENS, CLOSES };

#define LOOK_BACK 64u /* records from a retraction back to its release */
#define STREAMS 128u
#define LATER 16u

struct item {
	uint64_t address, extra; /* extra: size of a mapping */
	uint32_t at; /* units */
	/* indices + 1 */
	uint32_t partner; /* of OPENS: its closer; of CLOSES by an mremap: the new mapping */
	uint32_t next; /* record of the same handle */
	uint32_t link; /* of a SPACE_MAP: its handle */
	int32_t references, mappings; /* of a handle */
	uint32_t domain;
	uint8_t role, class;
	uint8_t later;
	bool dead, remap;
};

struct work {
	struct event_log_compaction *k;
	struct item *items;
	uint32_t count, room;
	uint32_t *table; /* of openers: index + 1 */
	uint32_t mask;
	struct order *maps, *most; /* scratch, for `room` each; NULL */
	bool odd_maps, odd_space_maps; /* some were released in part, or overlap */
};

static struct event_log_record *record(const struct work *w, uint32_t i)
{
	return (struct event_log_record *)(void *)(w->k->records +
						   (size_t)w->items[i].at * EVENT_LOG_UNIT);
}

static unsigned fields(
    const struct event_log_record *r, union trace_fields *out, struct level *levels, unsigned room)
{
	return fields_get(r->kind, r->body, r->body + r->length, out, levels, room);
}

static uint32_t *table_slot(struct work *w, uint32_t domain, uint64_t address)
{
	uint64_t h = (address + domain) * 0x9e3779b97f4a7c15ull;
	uint32_t i = (uint32_t)(h >> 32) & w->mask;

	while (w->table[i]) {
		const struct item *it = &w->items[w->table[i] - 1];

		if (it->address == address && it->domain == domain)
			break;
		i = (i + 1) & w->mask;
	}
	return &w->table[i];
}

/* The latest opener of an address, alive or not; NULL: there is none. */
static struct item *opener(struct work *w, uint32_t domain, uint64_t address)
{
	uint32_t i = *table_slot(w, domain, address);

	return i ? &w->items[i - 1] : NULL;
}

static uint32_t domain_of(uint64_t space, uint64_t flags)
{
	uint64_t kind = space ? (space - 1) / 64 : CUDA_DEVICE;

	if (flags & TRACE_SPACE_HANDLE)
		return HANDLES;
	return kind == CUDA_TORCH ? TORCH + (uint32_t)space : kind == CUDA_VA ? RESERVED : DRIVER;
}

static struct item *set_item(
    struct work *w, uint32_t i, enum role role, uint32_t domain, uint64_t address, uint64_t extra)
{
	struct item *it = &w->items[i];

	it->role = (uint8_t)role;
	it->domain = domain;
	it->address = address;
	it->extra = extra;
	return it;
}

static void add_opener(struct work *w, struct item *it)
{
	uint32_t *slot = table_slot(w, it->domain, it->address);
	struct item *was = *slot ? &w->items[*slot - 1] : NULL;

	/* its release was not seen */
	if (was && !was->partner && (it->domain != MAPS || was->extra == it->extra))
		was->dead = it->domain != HANDLES;
	*slot = (uint32_t)(it - w->items) + 1;
}

/* Appends a record to its handle's list. */
static void add_to_handle(struct work *w, struct item *h, uint32_t i, int references)
{
	w->items[i].next = h->next;
	h->next = i + 1;
	h->references += references;
}

static void count_reference(struct work *w, uint32_t i, uint64_t value, int references, bool first)
{
	struct item *it = set_item(w, i, references > 0 ? OPENS : CLOSES, HANDLES, value, 0), *h;

	h = first ? NULL : opener(w, HANDLES, value);
	if (h) {
		add_to_handle(w, h, i, references);
		it->role = OTHER;
	} else if (references > 0) {
		it->references = references;
		add_opener(w, it);
	} else {
		it->dead = true;
	}
}

static void close_space_map(struct work *w, struct item *it, uint32_t closer)
{
	it->partner = closer + 1;
	if (it->link)
		w->items[it->link - 1].mappings--;
}

/* Closes all mappings of handles that lie in the range. */
static void space_unmap(struct work *w, uint32_t i, uint64_t address, uint64_t size)
{
	struct item *exact = opener(w, SPACE_MAPS, address);

	set_item(w, i, CLOSES, SPACE_MAPS, address, size);
	if (exact && !exact->partner && exact->extra == size) {
		close_space_map(w, exact, i);
		return;
	}
	for (uint32_t j = 0; j < i; j++) {
		struct item *m = &w->items[j];

		if (m->role != OPENS || m->domain != SPACE_MAPS || m->partner || m->dead ||
		    m->address >= address + size || m->address + m->extra <= address)
			continue;
		if (m->address >= address && m->address + m->extra <= address + size)
			close_space_map(w, m, i);
		else
			w->odd_space_maps = true;
	}
}

static void close_opener(
    struct work *w, uint32_t i, uint32_t domain, uint64_t address, uint64_t size)
{
	struct item *it = opener(w, domain, address);

	set_item(w, i, CLOSES, domain, address, size);
	if (it && !it->partner && !it->dead && (domain != MAPS || it->extra == size))
		it->partner = i + 1;
	else if (domain == MAPS)
		w->odd_maps = true;
}

/* Takes back the thread's latest release of the address, which failed. */
static void undo_release(struct work *w, uint32_t i, uint32_t domain, uint64_t address)
{
	uint32_t thread = record(w, i)->thread, j = i;

	w->items[i].dead = true;
	for (uint32_t n = 0; n < LOOK_BACK && j--; n++) {
		struct item *c = &w->items[j];

		if (c->role != CLOSES || c->dead || c->domain != domain || c->address != address ||
		    record(w, j)->thread != thread)
			continue;
		c->dead = true;
		c->role = OTHER;
		for (uint32_t o = 0; o < j; o++)
			if (w->items[o].role == OPENS && w->items[o].partner == j + 1) {
				w->items[o].partner = 0;
				if (w->items[o].link)
					w->items[w->items[o].link - 1].mappings++;
			}
		return;
	}
}

/* The new mapping of an mremap has its attributes from the old one: links the two. */
static void link_remap(struct work *w, uint32_t i)
{
	uint32_t thread = record(w, i)->thread, j = i;

	for (uint32_t n = 0; n < LOOK_BACK && j--; n++) {
		struct item *c = &w->items[j];

		if (record(w, j)->thread != thread || !c->remap || c->role != CLOSES)
			continue;
		if (!c->partner)
			c->partner = i + 1;
		return;
	}
}

/* The kinds of two columns of trace_kinds.def, so that the compiler finds one without a case. */
#define NONE(NAME)
#define PAIRED_KIND(NAME) PAIRED_##NAME = TRACE_##NAME,
#define VARIES_KIND(NAME) NONE(NAME)
#define NEVER_KIND(NAME) NONE(NAME)
#define STATE_KIND(NAME) NONE(NAME)
#define RECENT_KIND(NAME) NONE(NAME)
#define SAMPLE_KIND(NAME) NONE(NAME)
#define FAILURE_KIND(NAME) NONE(NAME)
#define CALL_KIND(NAME) NONE(NAME)
#define ADVICE_KIND(NAME) NONE(NAME)
enum paired_kind {
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) KEEP##_KIND(NAME)
#include "whyoom/trace_kinds.def"
};
#undef PAIRED_KIND
#undef VARIES_KIND
#define PAIRED_KIND(NAME) NONE(NAME)
#define VARIES_KIND(NAME) VARIES_##NAME = TRACE_##NAME,
enum varying_kind {
#define TRACE_KIND(id, NAME, KEEP, meaning, fields) KEEP##_KIND(NAME)
#include "whyoom/trace_kinds.def"
};

static void pair(struct work *w, uint32_t i)
{
	const struct event_log_record *r = record(w, i);
	struct item *it = &w->items[i], *h;
	union trace_fields f;

	if (event_log_keep[r->kind] != EVENT_LOG_PAIRED)
		return;
	fields(r, &f, NULL, 0);
	switch ((enum paired_kind)r->kind) {
	case PAIRED_SPACE_ALLOC:
		if (f.SPACE_ALLOC.flags & TRACE_SPACE_HANDLE)
			count_reference(w, i, f.SPACE_ALLOC.address, 1,
			    !(f.SPACE_ALLOC.flags & TRACE_SPACE_REFERENCE));
		else
			add_opener(w, set_item(w, i, OPENS, domain_of(f.SPACE_ALLOC.space, 0),
					  f.SPACE_ALLOC.address, 0));
		break;
	case PAIRED_SPACE_FREE:
		if (f.SPACE_FREE.flags & TRACE_SPACE_HANDLE)
			count_reference(w, i, f.SPACE_FREE.address, -1, false);
		else
			close_opener(
			    w, i, domain_of(f.SPACE_FREE.space, 0), f.SPACE_FREE.address, 0);
		break;
	case PAIRED_SPACE_UNFREE:
		if (f.SPACE_UNFREE.flags & TRACE_SPACE_HANDLE)
			count_reference(w, i, f.SPACE_UNFREE.address, 1, false);
		else
			undo_release(
			    w, i, domain_of(f.SPACE_UNFREE.space, 0), f.SPACE_UNFREE.address);
		break;
	case PAIRED_SPACE_MAP:
		set_item(w, i, OPENS, SPACE_MAPS, f.SPACE_MAP.address, f.SPACE_MAP.size);
		h = opener(w, HANDLES, f.SPACE_MAP.handle);
		if (h) {
			h->mappings++;
			it->link = (uint32_t)(h - w->items) + 1;
		}
		add_opener(w, it);
		break;
	case PAIRED_SPACE_UNMAP:
		space_unmap(w, i, f.SPACE_UNMAP.address, f.SPACE_UNMAP.size);
		break;
	case PAIRED_SPACE_UNUNMAP:
		undo_release(w, i, SPACE_MAPS, f.SPACE_UNUNMAP.address);
		break;
	case PAIRED_MAP:
		set_item(w, i, OPENS, MAPS, f.MAP.address, f.MAP.length);
		w->odd_maps |= (f.MAP.flags & TRACE_MAP_FIXED) != 0;
		if (f.MAP.flags & TRACE_MAP_REMAP)
			link_remap(w, i);
		add_opener(w, it);
		break;
	case PAIRED_UNMAP:
		it->remap = f.UNMAP.flags & TRACE_UNMAP_REMAP;
		close_opener(w, i, MAPS, f.UNMAP.address, f.UNMAP.length);
		break;
	case PAIRED_UNUNMAP:
		undo_release(w, i, MAPS, f.UNUNMAP.address);
		break;
	}
}

static enum event_log_keep class_of(const struct event_log_record *r)
{
	enum event_log_keep keep = event_log_keep[r->kind];
	union trace_fields f;

	if (keep == EVENT_LOG_PAIRED)
		return EVENT_LOG_STATE;
	if (keep != EVENT_LOG_VARIES)
		return keep;
	fields(r, &f, NULL, 0);
	switch ((enum varying_kind)r->kind) {
	case VARIES_MARK:
		return f.MARK.what == TRACE_MARK_PHASE ? EVENT_LOG_STATE : EVENT_LOG_RECENT;
	case VARIES_NOTICE:
		return f.NOTICE.what == TRACE_NOTICE_LOST || f.NOTICE.what == TRACE_NOTICE_MODULES
			   ? EVENT_LOG_RECENT
			   : EVENT_LOG_STATE;
	case VARIES_SPACE_CALL: /* without an entry point of the driver's: a sample */
		return f.SPACE_CALL.api ? EVENT_LOG_CALL : EVENT_LOG_SAMPLE;
	}
	return EVENT_LOG_STATE;
}

static uint32_t mask_for(uint32_t count)
{
	uint32_t mask = 1;

	while (mask < count * 2)
		mask = mask * 2 + 1;
	return mask;
}

size_t event_log_compact_bytes(uint32_t units)
{
	/* few records take one unit alone, most take two */
	uint64_t count = (uint64_t)units / 4 * 3 + 1;

	return scratch_piece(count * sizeof(struct item)) +
	       2 * scratch_piece((mask_for((uint32_t)count) + 1ul) * sizeof(uint32_t)) +
	       2 * scratch_piece(count * sizeof(struct order));
}

/* Moves *at to the next record and returns it; NULL: there is none. */
static const struct event_log_record *record_at(const struct work *w, uint32_t *at)
{
	for (; *at < w->k->units; ++*at) {
		const struct event_log_record *r =
		    (const void *)(w->k->records + (size_t)*at * EVENT_LOG_UNIT);

		if (r->kind)
			return *at + event_log_units(r->length) > w->k->units ? NULL : r;
	}
	return NULL;
}

/* Makes an item for each record, in order. False: no memory. */
static bool load_records(struct work *w)
{
	const struct event_log_record *r;

	w->room = 1;
	for (uint32_t at = 0; (r = record_at(w, &at)); at += event_log_units(r->length))
		w->room++;
	w->mask = mask_for(w->room);
	w->items = scratch_take(&w->k->hold, w->room * sizeof(*w->items));
	w->table = scratch_take(&w->k->hold, (w->mask + 1ul) * sizeof(*w->table));
	if (!w->items || !w->table)
		return false;
	for (uint32_t at = 0; (r = record_at(w, &at)); at += event_log_units(r->length)) {
		w->items[w->count].at = at;
		w->items[w->count++].class = (uint8_t)class_of(r);
	}
	return true;
}

/* True: the release can no longer be taken back, as its thread has recorded enough since, or time
 * has passed. */
static bool is_settled(const struct work *w, uint32_t i)
{
	return w->items[i].later >= LATER || record(w, i)->ticks <= w->k->settled;
}

/* Counts the records of the same thread that follow each, up to LATER. */
static void count_followers(struct work *w)
{
	size_t bytes = (w->mask + 1ul) * sizeof(uint32_t);
	uint32_t *counts = scratch_take(&w->k->hold, bytes);

	memset(w->table, 0, bytes);
	for (uint32_t i = w->count; counts && i--;) {
		uint32_t thread = record(w, i)->thread;
		uint32_t at = (uint32_t)((thread * 0x9e3779b97f4a7c15ull) >> 32) & w->mask;

		while (w->table[at] && w->table[at] != thread)
			at = (at + 1) & w->mask;
		w->table[at] = thread;
		w->items[i].later = (uint8_t)counts[at];
		counts[at] += counts[at] < LATER;
	}
}

/* Accounts for a block of a space that leaves the log. */
static void add_to_freed_stats(const struct work *w, uint32_t opened, uint32_t closed)
{
	const struct event_log_record *r = record(w, opened);
	union trace_fields f;

	if (r->kind != TRACE_SPACE_ALLOC)
		return;
	fields(r, &f, NULL, 0);
	freed_stats_add_space((uint32_t)f.SPACE_ALLOC.space, (uint32_t)f.SPACE_ALLOC.stack,
	    f.SPACE_ALLOC.size, r->ticks, record(w, closed)->ticks);
}

static void drop_settled_handle(struct work *w, struct item *h)
{
	bool over = h->references <= 0 && h->mappings <= 0;

	for (uint32_t i = h->next; i && over; i = w->items[i - 1].next)
		over = is_settled(w, i - 1);
	h->dead = over;
	for (uint32_t i = h->next; i; i = w->items[i - 1].next)
		w->items[i - 1].dead = over;
}

/* Drops acquisitions with their settled releases. Goes backwards, as an mremap is needed as long as
 * the mapping that it made is. */
static void drop_settled_pairs(struct work *w)
{
	count_followers(w);
	for (uint32_t i = 0; i < w->count; i++)
		if (w->items[i].role == CLOSES)
			w->items[i].dead = true;
	for (uint32_t i = w->count; i--;) {
		struct item *it = &w->items[i], *c;

		if (it->role != OPENS)
			continue;
		if (it->domain == HANDLES) {
			drop_settled_handle(w, it);
			continue;
		}
		if (!it->partner)
			continue;
		c = &w->items[it->partner - 1];
		if (is_settled(w, it->partner - 1) &&
		    (!c->remap || !c->partner || w->items[c->partner - 1].dead)) {
			it->dead = true;
			add_to_freed_stats(w, i, it->partner - 1);
		} else {
			c->dead = false;
		}
	}
}

/* Says whether a live mapping, older than `closer`, overlaps the range that it released. Pre:
 * `maps` is sorted by address; most[i] is the largest end of maps[0..i]. */
static bool overlaps_live(const struct work *w, uint32_t closer, const struct order *maps,
    const struct order *most, uint32_t n)
{
	const struct item *c = &w->items[closer];
	uint32_t low = 0, high = n;

	while (low < high) { /* the first that begins behind it */
		uint32_t middle = (low + high) / 2;

		if (maps[middle].key < c->address + c->extra)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && most[low].key > c->address) {
		const struct item *m = &w->items[maps[low].value];

		if (maps[low].value < closer && m->address + m->extra > c->address)
			return true;
	}
	return false;
}

/* Keeps each release that overlaps a live mapping. */
static void keep_partial_releases(struct work *w, uint32_t domain)
{
	size_t bytes = w->room * sizeof(struct order);
	struct order *maps, *most;
	uint32_t n = 0;
	uint64_t end = 0;

	if (!w->maps)
		w->maps = scratch_take(&w->k->hold, bytes);
	if (!w->most)
		w->most = scratch_take(&w->k->hold, bytes);
	maps = w->maps;
	most = w->most;
	for (uint32_t i = 0; maps && i < w->count; i++) {
		const struct item *it = &w->items[i];

		if (it->role == OPENS && it->domain == domain && !it->dead)
			maps[n++] = (struct order){it->address, i};
	}
	if (maps && most)
		merge_sort(maps, most, n);
	for (uint32_t i = 0; most && i < n; i++) {
		const struct item *m = &w->items[maps[i].value];

		end = m->address + m->extra > end ? m->address + m->extra : end;
		most[i].key = end;
	}
	for (uint32_t i = 0; i < w->count; i++)
		if (w->items[i].role == CLOSES && w->items[i].domain == domain &&
		    (!maps || !most || overlaps_live(w, i, maps, most, n)))
			w->items[i].dead = false;
}

static uint32_t units_of(const struct work *w, enum event_log_keep class)
{
	uint32_t units = 0;

	for (uint32_t i = 0; i < w->count; i++)
		if (w->items[i].class == class && !w->items[i].dead)
			units += event_log_units(record(w, i)->length);
	return units;
}

/* Identifies a series of levels: its owner (host, space, other process), and whether it is an
 * allocator's account. */
static uint64_t stream_of(const struct event_log_record *r)
{
	struct level levels[24];
	bool account = false;
	union trace_fields f;
	unsigned count = fields(r, &f, levels, 24);
	uint64_t subject = r->kind == TRACE_LEVEL      ? f.LEVEL.space
			   : r->kind == TRACE_LEVEL_OF ? f.LEVEL_OF.pid
						       : f.SPACE_CALL.space;

	for (unsigned i = 0; r->kind == TRACE_LEVEL && i < count; i++)
		account |= levels[i].key >= TRACE_LEVEL_MALLOC_ARENA &&
			   levels[i].key < TRACE_LEVEL_MALLOC_ARENA + 16;
	return subject << 8 | r->kind << 1 | account;
}

static void sparsify_samples(struct work *w, uint32_t most)
{
	struct {
		uint64_t key, ticks;
	} last[STREAMS];

	do {
		uint32_t streams = 0;

		for (uint32_t i = 0; i < w->count && w->k->pause; i++) {
			const struct event_log_record *r = record(w, i);
			uint64_t key;
			uint32_t s = 0;

			if (w->items[i].class != EVENT_LOG_SAMPLE || w->items[i].dead)
				continue;
			key = stream_of(r);
			while (s < streams && last[s].key != key)
				s++;
			if (s == STREAMS ||
			    (s < streams && r->ticks - last[s].ticks < w->k->pause)) {
				w->items[i].dead = true;
				continue;
			}
			last[s].key = key;
			last[s].ticks = r->ticks;
			streams += s == streams;
		}
		if (units_of(w, EVENT_LOG_SAMPLE) <= most)
			return;
		w->k->pause = w->k->pause ? w->k->pause * 2 : tick_clock.ticks_100ms + 1;
	} while (w->k->pause < 1ull << 60);
}

static void drop_record(struct work *w, uint32_t i, uint32_t *units)
{
	*units -= event_log_units(record(w, i)->length);
	w->items[i].dead = true;
	w->k->left_out += w->items[i].class != EVENT_LOG_RECENT || record(w, i)->kind == TRACE_MARK;
}

/* Marks the latest TASK of each thread, which says what the thread runs now. */
static void mark_current_tasks(struct work *w, bool *spared)
{
	memset(w->table, 0, (w->mask + 1ul) * sizeof(*w->table));
	for (uint32_t i = w->count; i--;) {
		const struct event_log_record *r = record(w, i);
		uint32_t at = (uint32_t)((r->thread * 0x9e3779b97f4a7c15ull) >> 32) & w->mask;

		if (r->kind != TRACE_TASK || w->items[i].dead)
			continue;
		while (w->table[at] && w->table[at] != r->thread)
			at = (at + 1) & w->mask;
		w->items[i].remap = !w->table[at];
		w->table[at] = r->thread;
		*spared = true;
	}
}

static void drop_oldest(struct work *w, enum event_log_keep class, uint32_t most)
{
	uint32_t units = units_of(w, class);
	bool spared = false;

	if (units > most && class == EVENT_LOG_RECENT)
		mark_current_tasks(w, &spared);
	for (uint32_t i = 0; i < w->count && units > most; i++)
		if (w->items[i].class == class && !w->items[i].dead &&
		    !(spared && w->items[i].remap))
			drop_record(w, i, &units);
}

/* Keeps the first and the last records. */
static void drop_middle(struct work *w, enum event_log_keep class, uint32_t most)
{
	uint32_t units = units_of(w, class), first = 0;

	for (uint32_t i = 0; i < w->count && units > most; i++) {
		if (w->items[i].class != class || w->items[i].dead)
			continue;
		if (first < most / 2)
			first += event_log_units(record(w, i)->length);
		else
			drop_record(w, i, &units);
	}
}

static void apply_bounds(struct work *w)
{
	uint32_t most = w->k->most, others = 0;

	sparsify_samples(w, most / 4);
	drop_oldest(w, EVENT_LOG_RECENT, most / 8);
	drop_oldest(w, EVENT_LOG_ADVICE, most / 16);
	drop_middle(w, EVENT_LOG_FAILURE, most / 16);
	drop_middle(w, EVENT_LOG_CALL, most / 16);
	for (enum event_log_keep c = EVENT_LOG_STATE + 1; c < EVENT_LOG_CLASSES; c++)
		others += units_of(w, c);
	drop_oldest(w, EVENT_LOG_STATE, others < most ? most - others : 0);
}

static void close_gaps(struct work *w)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t units = event_log_units(record(w, i)->length);

		if (w->items[i].dead)
			continue;
		memmove(w->k->records + (size_t)to * EVENT_LOG_UNIT, record(w, i),
		    (size_t)units * EVENT_LOG_UNIT);
		to += units;
	}
	w->k->units = to;
}

void event_log_compact(struct event_log_compaction *k)
{
	struct work w = {.k = k};
	uint32_t none = 0;

	if (!k->units)
		return;
	if (!load_records(&w)) {
		if (k->units > k->most) {
			k->left_out += k->units; /* an upper bound */
			k->units = 0;
			k->releases_lost = false;
		}
		scratch_end(&k->hold);
		return;
	}
	for (uint32_t i = 0; i < w.count; i++)
		pair(&w, i);
	drop_settled_pairs(&w);
	if (w.odd_maps)
		keep_partial_releases(&w, MAPS);
	if (w.odd_space_maps)
		keep_partial_releases(&w, SPACE_MAPS);
	if (k->releases_lost) {
		/* better no state than blocks that may be dead */
		for (uint32_t i = 0; i < w.count; i++)
			if (w.items[i].class == EVENT_LOG_STATE && !w.items[i].dead)
				drop_record(&w, i, &none);
		k->releases_lost = false;
	}
	apply_bounds(&w);
	close_gaps(&w);
	scratch_end(&k->hold);
}
