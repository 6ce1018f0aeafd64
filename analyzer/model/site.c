/* site.c - see site.h. Owns the arithmetic of cohorts; knows nothing of events. */
#include "model/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

void site_init(struct site *s, uint32_t stack, enum site_kind kind)
{
	memset(s, 0, sizeof(*s));
	s->stack = stack;
	s->kind = kind;
	s->stride = 1;
	s->cohorts = &s->own;
	s->room = 1;
	s->pile.none = true;
}

void site_fini(struct site *s)
{
	if (s->frozen)
		site_fini(s->frozen);
	free(s->frozen);
	if (s->cohorts != &s->own)
		free(s->cohorts);
}

/* Room for so many cohorts. */
static int make_room(struct site *s, uint32_t room)
{
	bool own = s->cohorts == &s->own;
	struct cohort *grown;

	if (room <= s->room)
		return 0;
	grown = realloc(own ? NULL : s->cohorts, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	if (own)
		*grown = s->own;
	s->cohorts = grown;
	s->room = room;
	return 0;
}

static void merge_pairs(struct site *s)
{
	uint32_t to = 0;

	for (uint32_t from = 0; from < s->used; from += 2, to++) {
		struct cohort c = s->cohorts[from];

		if (from + 1 < s->used) {
			const struct cohort *d = &s->cohorts[from + 1];
			c.last_ns = d->last_ns;
			c.count += d->count;
			c.bytes += d->bytes;
			c.freed_count += d->freed_count;
			c.freed_bytes += d->freed_bytes;
			if (d->max > c.max)
				c.max = d->max;
			if (d->min < c.min)
				c.min = d->min;
		}
		s->cohorts[to] = c;
	}
	s->used = to;
	s->stride *= 2;
}

static int open_cohort(struct site *s)
{
	if (s->used == SITE_COHORTS)
		merge_pairs(s);
	if (s->used && s->cohorts[s->used - 1].count < s->stride)
		return 0; /* the merged last one still has room */
	if (s->used == s->room && make_room(s, s->room * 2))
		return -ENOMEM;
	memset(&s->cohorts[s->used++], 0, sizeof(*s->cohorts));
	return 0;
}

/* Fewer at once are no pile; of one that was given back no more than such a part is left. */
#define PILE_LEAST 4u
#define PILE_LEFT_PART 16u

static void pile_add(struct site *s, uint64_t time_ns)
{
	if (s->pile.none) {
		s->pile.none = false;
		s->pile.high = s->pile.bytes = 0;
		s->pile.before = s->total_count - 1;
		s->pile.since_ns = time_ns;
	}
	if (s->live_count > s->pile.high)
		s->pile.high = s->live_count;
	if (s->live_bytes > s->pile.bytes)
		s->pile.bytes = s->live_bytes;
}

static void pile_take(struct site *s, uint64_t time_ns)
{
	if (s->pile.none || s->live_count > s->pile.high / PILE_LEFT_PART)
		return;
	s->pile.none = true;
	if (s->pile.high < PILE_LEAST)
		return;
	s->pile.times++;
	if (s->pile.bytes > s->pile.largest)
		s->pile.largest = s->pile.bytes;
	s->pile.ended_ns = time_ns;
}

int site_acquire(struct site *s, uint64_t serial, uint64_t time_ns, uint64_t size)
{
	struct cohort *c;

	if (!s->used || s->cohorts[s->used - 1].count >= s->stride) {
		int rc = open_cohort(s);
		if (rc)
			return rc;
	}
	c = &s->cohorts[s->used - 1];
	if (!c->count) {
		c->serial = serial;
		c->time_ns = time_ns;
		c->min = size;
	}
	c->last_ns = time_ns;
	c->count++;
	c->bytes += size;
	if (size > c->max)
		c->max = size;
	if (size < c->min)
		c->min = size;
	s->live_bytes += size;
	s->live_count++;
	s->total_bytes += size;
	s->total_count++;
	if (s->live_bytes > s->peak_bytes)
		s->peak_bytes = s->live_bytes;
	if (size > s->largest)
		s->largest = size;
	s->order.acquired = true;
	pile_add(s, time_ns);
	return 0;
}

void site_regrow(struct site *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total)
{
	s->regrown++;
	if (!s->object.serial || s->object.serial != from) {
		s->object.first = s->object.acquired = from_bytes;
		s->object.before = num_less(total, bytes + from_bytes);
	}
	s->object.serial = serial;
	s->object.acquired += bytes;
	s->object.until = total;
}

/* The cohort that a block of this serial was born in; NULL: none. */
static struct cohort *cohort_of(struct site *s, uint64_t serial)
{
	uint32_t low = 0, high = s->used;

	if (!high)
		return NULL;
	if (serial >= s->cohorts[high - 1].serial)
		return &s->cohorts[high - 1];
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		if (s->cohorts[mid].serial <= serial)
			low = mid;
		else
			high = mid;
	}
	return &s->cohorts[low];
}

void site_release(
    struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns, uint64_t size, bool whole)
{
	struct cohort *c = cohort_of(s, serial);
	uint64_t life = num_less(time_ns, birth_ns);

	s->live_bytes = num_less(s->live_bytes, size);
	if (c && c->freed_bytes + size <= c->bytes)
		c->freed_bytes += size;
	if (!whole)
		return;
	s->live_count = num_less(s->live_count, 1);
	pile_take(s, time_ns);
	if (c && c->freed_count < c->count)
		c->freed_count++;
	s->freed_count++;
	s->life_ns += life;
	if (life > s->longest_life_ns)
		s->longest_life_ns = life;
}

void site_end(struct site *s, uint64_t serial, uint64_t size, uint64_t life_ns)
{
	s->ended_count++;
	if (size > s->ended_largest)
		s->ended_largest = size;
	if (serial == s->object.serial)
		s->object.serial = 0;
	s->order.ascending += serial > s->order.serial;
	s->order.turns += s->order.acquired;
	s->order.serial = serial;
	s->order.life_ns = life_ns;
	s->order.acquired = false;
}

void site_restore(
    struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns, uint64_t size)
{
	struct cohort *c = cohort_of(s, serial);

	s->live_bytes += size;
	s->live_count++;
	s->freed_count = num_less(s->freed_count, 1);
	s->life_ns = num_less(s->life_ns, num_less(time_ns, birth_ns));
	if (c) {
		c->freed_bytes = num_less(c->freed_bytes, size);
		c->freed_count = num_less(c->freed_count, 1);
	}
}

void site_split(struct site *s, uint64_t serial)
{
	struct cohort *c = cohort_of(s, serial);

	s->live_count++;
	if (c)
		c->count++;
}

int site_freeze(struct site *s, uint64_t epoch)
{
	struct site *copy = s->frozen;
	struct cohort *cohorts;
	uint32_t room;

	if (!copy) {
		copy = malloc(sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		site_init(copy, s->stack, s->kind);
		s->frozen = copy;
	}
	if (make_room(copy, s->used))
		return -ENOMEM;
	cohorts = copy->cohorts;
	room = copy->room;
	*copy = *s;
	copy->frozen = NULL;
	copy->cohorts = cohorts;
	copy->room = room;
	if (s->used)
		memcpy(cohorts, s->cohorts, s->used * sizeof(*cohorts));
	s->frozen_epoch = epoch;
	return 0;
}
