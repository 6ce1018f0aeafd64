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
}

void site_fini(struct site *s)
{
	if (s->frozen)
		site_fini(s->frozen);
	free(s->frozen);
	free(s->course);
	if (s->cohorts != &s->own)
		free(s->cohorts);
}

struct site_course site_course(const struct site *s)
{
	struct site_course course = {.pile.none = !s->live_count};

	if (s->course)
		return *s->course;
	if (!s->total_count)
		return course;
	course.pile.high = 1;
	course.pile.bytes = s->total_bytes;
	course.pile.since_ns = s->own.time_ns;
	course.order.acquired = !s->ended_count;
	if (s->ended_count) {
		course.order.serial = s->own.serial;
		course.order.life_ns = s->life_ns;
		course.order.ascending = course.order.turns = 1;
	}
	return course;
}

/* From here on it is kept. NULL: no memory. */
static struct site_course *keep_course(struct site *s)
{
	struct site_course course;

	if (s->course)
		return s->course;
	course = site_course(s);
	s->course = malloc(sizeof(*s->course));
	if (s->course)
		*s->course = course;
	return s->course;
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

static void pile_add(struct site *s, uint64_t time_ns, uint64_t count)
{
	struct site_course *c = s->course;

	if (c->pile.none) {
		c->pile.none = false;
		c->pile.high = c->pile.bytes = 0;
		c->pile.before = s->total_count - count;
		c->pile.since_ns = time_ns;
	}
	if (s->live_count > c->pile.high)
		c->pile.high = s->live_count;
	if (s->live_bytes > c->pile.bytes)
		c->pile.bytes = s->live_bytes;
}

static void pile_take(struct site *s, uint64_t time_ns)
{
	struct site_course *c = s->course;

	if (c->pile.none || s->live_count > c->pile.high / PILE_LEFT_PART)
		return;
	c->pile.none = true;
	if (c->pile.high < PILE_LEAST)
		return;
	c->pile.times++;
	if (c->pile.bytes > c->pile.largest)
		c->pile.largest = c->pile.bytes;
	c->pile.ended_ns = time_ns;
}

int site_acquire(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	uint64_t size = blocks.size;
	struct cohort *c;

	if ((s->total_count || blocks.count != 1) && !keep_course(s))
		return -ENOMEM;
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
	c->count += blocks.count;
	c->bytes += blocks.bytes;
	if (size > c->max)
		c->max = size;
	if (size < c->min)
		c->min = size;
	s->live_bytes += blocks.bytes;
	s->live_count += blocks.count;
	s->live_variance += blocks.variance;
	s->total_bytes += blocks.bytes;
	s->total_count += blocks.count;
	if (s->live_bytes > s->peak_bytes)
		s->peak_bytes = s->live_bytes;
	if (size > s->largest)
		s->largest = size;
	if (s->course) {
		s->course->order.acquired = true;
		pile_add(s, time_ns, blocks.count);
	}
	return 0;
}

void site_regrow(struct site *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total)
{
	struct site_course *c = keep_course(s);

	s->regrown++;
	if (!c)
		return;
	if (!c->object.serial || c->object.serial != from) {
		c->object.first = c->object.acquired = from_bytes;
		c->object.before = num_less(total, bytes + from_bytes);
	}
	c->object.serial = serial;
	c->object.acquired += bytes;
	c->object.until = total;
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

void site_release(struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns,
    struct alike blocks, bool whole)
{
	struct cohort *c = cohort_of(s, serial);
	uint64_t life = num_less(time_ns, birth_ns);

	s->live_bytes = num_less(s->live_bytes, blocks.bytes);
	s->live_variance = s->live_bytes ? s->live_variance - blocks.variance : 0;
	if (c && c->freed_bytes + blocks.bytes <= c->bytes)
		c->freed_bytes += blocks.bytes;
	if (!whole)
		return;
	s->live_count = num_less(s->live_count, blocks.count);
	if (s->course)
		pile_take(s, time_ns);
	if (c && c->freed_count + blocks.count <= c->count)
		c->freed_count += blocks.count;
	s->freed_count += blocks.count;
	s->life_ns += life * blocks.count;
	if (life > s->longest_life_ns)
		s->longest_life_ns = life;
}

void site_end(struct site *s, uint64_t serial, struct alike blocks, uint64_t life_ns)
{
	struct site_course *c = s->course;

	s->ended_count += blocks.count;
	if (blocks.size > s->ended_largest)
		s->ended_largest = blocks.size;
	if (!c)
		return;
	if (serial == c->object.serial)
		c->object.serial = 0;
	c->order.ascending += serial > c->order.serial ? blocks.count : 0;
	c->order.turns += c->order.acquired ? blocks.count : 0;
	c->order.serial = serial;
	c->order.life_ns = life_ns;
	c->order.acquired = false;
}

void site_restore(
    struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns, struct alike blocks)
{
	struct cohort *c = cohort_of(s, serial);

	(void)keep_course(s); /* which lives again says no less than that it was given back */
	s->live_bytes += blocks.bytes;
	s->live_count += blocks.count;
	s->live_variance += blocks.variance;
	s->freed_count = num_less(s->freed_count, blocks.count);
	s->life_ns = num_less(s->life_ns, num_less(time_ns, birth_ns) * blocks.count);
	if (c) {
		c->freed_bytes = num_less(c->freed_bytes, blocks.bytes);
		c->freed_count = num_less(c->freed_count, blocks.count);
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
	struct site_course *course;
	struct cohort *cohorts;
	uint32_t room;

	if (!copy) {
		copy = malloc(sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		site_init(copy, s->stack, s->kind);
		s->frozen = copy;
	}
	if (make_room(copy, s->used) || (s->course && !keep_course(copy)))
		return -ENOMEM;
	course = copy->course;
	cohorts = copy->cohorts;
	room = copy->room;
	*copy = *s;
	copy->frozen = NULL;
	copy->course = course;
	if (s->course)
		*course = *s->course;
	copy->cohorts = cohorts;
	copy->room = room;
	if (s->used)
		memcpy(cohorts, s->cohorts, s->used * sizeof(*cohorts));
	s->frozen_epoch = epoch;
	return 0;
}
