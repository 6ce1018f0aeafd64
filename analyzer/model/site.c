/* site.c - see site.h. Owns the arithmetic of cohorts; knows nothing of events. */
#include "model/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"

const struct site_rare site_nothing_rare;

void site_init(struct site *s, uint32_t stack, enum site_kind kind)
{
	memset(s, 0, sizeof(*s));
	s->stack = stack;
	s->kind = (uint8_t)kind;
}

void site_fini(struct site *s)
{
	if (!s->many)
		return;
	if (s->more->then)
		site_fini(&s->more->then->site);
	free(s->more->then);
	free(s->more->rare);
	free(s->more->singles);
	free(s->more->cohorts);
	free(s->more);
}

struct site_course site_course(const struct site *s)
{
	struct site_course course = {.no_pile = !site_live_count(s)};

	if (s->many)
		return (struct site_course){.object = site_rare(s)->object,
		    .order = s->more->order,
		    .pile = s->more->pile,
		    .acquired = s->more->acquired,
		    .no_pile = s->more->no_pile};
	if (!s->used)
		return course;
	course.pile.high = 1;
	course.pile.bytes = s->total_bytes;
	course.pile.since_ns = s->time_ns;
	course.acquired = !s->ended;
	if (s->ended) {
		course.order.serial = s->serial;
		course.order.life_ns = s->life_ns;
		course.order.ascending = course.order.turns = 1;
	}
	return course;
}

/* What its one block says, as one of several. */
static struct single single_of(const struct site *s)
{
	return (struct single){
	    .serial = s->serial, .time_ns = s->time_ns, .bytes = s->total_bytes, .freed = s->freed};
}

static struct cohort cohort_of_single(struct single one)
{
	return (struct cohort){.serial = one.serial,
	    .time_ns = one.time_ns,
	    .last_ns = one.time_ns,
	    .count = 1,
	    .bytes = one.bytes,
	    .max = one.bytes,
	    .min = one.bytes,
	    .freed_count = one.freed,
	    .freed_bytes = one.freed ? one.bytes : 0};
}

const struct cohort *site_cohort(const struct site *s, uint32_t number, struct cohort *own)
{
	if (s->many && !s->more->singles)
		return &s->more->cohorts[number];
	*own = cohort_of_single(s->many ? s->more->singles[number] : single_of(s));
	return own;
}

/* Room for so many cohorts. */
static int make_room(struct site *s, uint32_t room)
{
	struct site_more *more = s->more;
	bool singles = more->singles;
	void *grown;

	if (room <= s->room)
		return 0;
	grown = realloc(singles ? (void *)more->singles : more->cohorts,
	    room * (singles ? sizeof(*more->singles) : sizeof(*more->cohorts)));
	if (!grown)
		return -ENOMEM;
	if (singles)
		more->singles = grown;
	else
		more->cohorts = grown;
	s->room = (uint8_t)room;
	return 0;
}

static struct site_more *begin_keeping(struct site *s)
{
	const struct site_course course = site_course(s);
	struct site_more *more;
	struct single *singles;

	more = malloc(sizeof(*more));
	singles = malloc(2 * sizeof(*singles));
	if (!more || !singles) {
		free(more);
		free(singles);
		return NULL;
	}
	singles[0] = single_of(s);
	*more = (struct site_more){.live_bytes = site_live_bytes(s),
	    .live_count = site_live_count(s),
	    .total_count = s->used,
	    .freed_count = s->freed,
	    .largest = s->total_bytes,
	    .peak_bytes = s->total_bytes,
	    .longest_life_ns = s->life_ns,
	    .ended_count = site_ended_count(s),
	    .ended_largest = site_ended_largest(s),
	    .order = course.order,
	    .pile = course.pile,
	    .stride = 1,
	    .acquired = course.acquired,
	    .no_pile = course.no_pile,
	    .singles = singles};
	site_at_peak(s, &more->peak_live_bytes, &more->peak_live_count);
	s->room = 2;
	s->many = true;
	s->more = more;
	return more;
}

/* From here on all is kept. NULL: no memory. */
static inline struct site_more *keep(struct site *s)
{
	return s->many ? s->more : begin_keeping(s);
}

/* What few have, made where there is none. NULL: no memory. */
static struct site_rare *keep_rare(struct site_more *more)
{
	if (!more->rare)
		more->rare = calloc(1, sizeof(*more->rare));
	return more->rare;
}

static struct site_more *begin_cohorts(struct site *s)
{
	struct site_more *more = keep(s);
	struct cohort *cohorts;

	if (!more)
		return NULL;
	cohorts = malloc(s->room * sizeof(*cohorts));
	if (!cohorts)
		return NULL;
	for (uint32_t i = 0; i < s->used; i++)
		cohorts[i] = cohort_of_single(more->singles[i]);
	free(more->singles);
	more->singles = NULL;
	more->cohorts = cohorts;
	return more;
}

/* The same, and cohorts as such. */
static inline struct site_more *keep_cohorts(struct site *s)
{
	return s->many && !s->more->singles ? s->more : begin_cohorts(s);
}

void site_mark_peak(struct site *s, uint64_t epoch)
{
	s->peak_epoch = epoch;
	if (s->many) {
		s->more->peak_live_bytes = s->more->live_bytes;
		s->more->peak_live_count = s->more->live_count;
		if (s->more->rare)
			s->more->rare->peak_live_variance = s->more->rare->live_variance;
	} else {
		s->at_peak = s->used && !s->freed;
	}
}

/* A cohort of what went in a period is of its own for as long as it stands for more than two of the
 * others: or else what came since would have them all be one. */
#define WENT_COHORTS (SITE_COHORTS / 4)

static bool stands_alone(const struct site *s, const struct cohort *c)
{
	return c->went_count && c->count > 2 * s->more->stride;
}

static void merge_pairs(struct site *s)
{
	uint32_t to = 0, alone = 0;

	for (uint32_t i = 0; i < s->used; i++)
		alone += stands_alone(s, &s->more->cohorts[i]);
	for (uint32_t from = 0; from < s->used; from++, to++) {
		struct cohort c = s->more->cohorts[from];

		if (from + 1 < s->used &&
		    (alone > WENT_COHORTS ||
			(!stands_alone(s, &c) && !stands_alone(s, &s->more->cohorts[from + 1])))) {
			const struct cohort *d = &s->more->cohorts[++from];
			c.last_ns = d->last_ns;
			c.count += d->count;
			c.bytes += d->bytes;
			c.freed_count += d->freed_count;
			c.freed_bytes += d->freed_bytes;
			c.went_count += d->went_count;
			c.went_bytes += d->went_bytes;
			if (d->max > c.max)
				c.max = d->max;
			if (d->min < c.min)
				c.min = d->min;
		}
		s->more->cohorts[to] = c;
	}
	s->used = (uint8_t)to;
	s->more->stride *= 2;
}

static int open_cohort(struct site *s)
{
	if (s->used == SITE_COHORTS)
		merge_pairs(s);
	if (s->used && s->more->cohorts[s->used - 1].count < s->more->stride)
		return 0; /* the merged last one still has room */
	if (s->used == s->room && make_room(s, s->room * 2u))
		return -ENOMEM;
	memset(&s->more->cohorts[s->used++], 0, sizeof(*s->more->cohorts));
	return 0;
}

static void cohort_add(struct cohort *c, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	if (!c->count) {
		c->serial = serial;
		c->time_ns = time_ns;
		c->min = blocks.size;
	}
	c->last_ns = time_ns;
	c->count += blocks.count;
	c->bytes += blocks.bytes;
	if (blocks.size > c->max)
		c->max = blocks.size;
	if (blocks.size < c->min)
		c->min = blocks.size;
}

/* Fewer at once are no pile; of one that was given back no more than such a part is left. */
#define PILE_LEAST 4u
#define PILE_LEFT_PART 16u

static void pile_add(struct site_more *more, uint64_t time_ns, uint64_t count)
{
	struct site_pile *pile = &more->pile;

	if (more->no_pile) {
		more->no_pile = false;
		pile->high = pile->bytes = 0;
		pile->before = more->total_count - count;
		pile->since_ns = time_ns;
	}
	if (more->live_count > pile->high)
		pile->high = more->live_count;
	if (more->live_bytes > pile->bytes)
		pile->bytes = more->live_bytes;
}

static void pile_take(struct site_more *more, uint64_t time_ns)
{
	const struct site_pile *pile = &more->pile;
	struct site_rare *rare;

	if (more->no_pile || more->live_count > pile->high / PILE_LEFT_PART)
		return;
	more->no_pile = true;
	rare = pile->high < PILE_LEAST ? NULL : keep_rare(more);
	if (!rare)
		return;
	rare->piles.times++;
	if (pile->bytes > rare->piles.largest)
		rare->piles.largest = pile->bytes;
	rare->piles.ended_ns = time_ns;
}

/* That much more, or less, of the variance of what lives. 0 or -ENOMEM. */
static int add_variance(struct site_more *more, double variance)
{
	if (variance == 0)
		return 0;
	if (!keep_rare(more))
		return -ENOMEM;
	more->rare->live_variance += variance;
	return 0;
}

/* Whether nothing is to be said of them but what struct single does. */
static bool is_single(struct alike blocks)
{
	return blocks.count == 1 && blocks.bytes == blocks.size && blocks.bytes <= INT64_MAX;
}

/* Puts them into the last cohort, or the next. */
static int add_to_cohorts(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	struct site_more *more = s->more;

	if (more->singles && s->used < SITE_COHORTS && is_single(blocks)) {
		if (s->used == s->room && make_room(s, s->room * 2u))
			return -ENOMEM;
		more->singles[s->used++] =
		    (struct single){.serial = serial, .time_ns = time_ns, .bytes = blocks.bytes};
		return 0;
	}
	if (!keep_cohorts(s))
		return -ENOMEM;
	if (!s->used || more->cohorts[s->used - 1].count >= more->stride) {
		int rc = open_cohort(s);
		if (rc)
			return rc;
	}
	cohort_add(&more->cohorts[s->used - 1], serial, time_ns, blocks);
	return 0;
}

int site_acquire(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	uint64_t size = blocks.size;
	struct site_more *more;

	if (!s->many && !s->used && is_single(blocks) && blocks.variance == 0) {
		s->serial = serial;
		s->time_ns = time_ns;
		s->used = 1;
		s->total_bytes = size;
		return 0;
	}
	more = keep(s);
	if (!more || (blocks.variance != 0 && !keep_rare(more)) ||
	    add_to_cohorts(s, serial, time_ns, blocks) || add_variance(more, blocks.variance))
		return -ENOMEM;
	more->live_bytes += blocks.bytes;
	more->live_count += blocks.count;
	s->total_bytes += blocks.bytes;
	more->total_count += blocks.count;
	if (more->live_bytes > more->peak_bytes)
		more->peak_bytes = more->live_bytes;
	if (size > more->largest)
		more->largest = size;
	more->acquired = true;
	pile_add(more, time_ns, blocks.count);
	return 0;
}

int site_went(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks,
    uint64_t life_ns, uint64_t longest_ns)
{
	struct site_more *more = keep_cohorts(s);
	struct cohort *c;

	if (!more || open_cohort(s))
		return -ENOMEM;
	c = &more->cohorts[s->used - 1];
	cohort_add(c, serial, time_ns, blocks);
	c->freed_count += blocks.count;
	c->freed_bytes += blocks.bytes;
	c->went_count += blocks.count;
	c->went_bytes += blocks.bytes;
	s->total_bytes += blocks.bytes;
	more->total_count += blocks.count;
	more->freed_count += blocks.count;
	s->life_ns += life_ns;
	if (longest_ns > more->longest_life_ns)
		more->longest_life_ns = longest_ns;
	if (blocks.size > more->largest)
		more->largest = blocks.size;
	return 0;
}

void site_regrow(struct site *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total)
{
	struct site_more *more = keep(s);
	struct site_rare *rare = more ? keep_rare(more) : NULL;
	struct site_object *object;

	if (!rare)
		return;
	rare->regrown++;
	object = &rare->object;
	if (!object->serial || object->serial != from) {
		object->first = object->acquired = from_bytes;
		object->before = num_less(total, bytes + from_bytes);
	}
	object->serial = serial;
	object->acquired += bytes;
	object->until = total;
}

/* The cohort that a block of this serial was born in, of at least one. */
static uint32_t cohort_of(const struct site *s, uint64_t serial)
{
	const struct site_more *more = s->more;
	uint32_t low = 0, high = s->used;
	const char *first;
	size_t each;

	first = more->singles ? (const void *)more->singles : more->cohorts;
	each = more->singles ? sizeof(*more->singles) : sizeof(*more->cohorts);
#define SERIAL_OF(i) (*(const uint64_t *)(const void *)(first + (i)*each))
	if (serial >= SERIAL_OF(high - 1))
		return high - 1;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;
		if (SERIAL_OF(mid) <= serial)
			low = mid;
		else
			high = mid;
	}
#undef SERIAL_OF
	return low;
}

/* Whether the cohort says that just these lived, as one: then `freed` may say all. */
static bool was_single(const struct site *s, uint32_t at, struct alike blocks)
{
	const struct site_more *more = s->more;

	return more->singles && blocks.count == 1 && blocks.bytes == more->singles[at].bytes;
}

static void take_from_cohort(struct site *s, uint64_t serial, struct alike blocks, bool whole)
{
	uint32_t at = s->used ? cohort_of(s, serial) : 0;
	struct cohort *c;

	if (whole && s->used && was_single(s, at, blocks)) {
		s->more->singles[at].freed = true;
		return;
	}
	if (!keep_cohorts(s) || !s->used)
		return;
	c = &s->more->cohorts[at];
	if (c->freed_bytes + blocks.bytes <= c->bytes)
		c->freed_bytes += blocks.bytes;
	if (whole && c->freed_count + blocks.count <= c->count)
		c->freed_count += blocks.count;
}

void site_release(struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns,
    struct alike blocks, bool whole)
{
	uint64_t life = num_less(time_ns, birth_ns);
	struct site_more *more;

	if (!s->many && whole && s->used && !s->freed && blocks.count == 1 &&
	    blocks.bytes == s->total_bytes) {
		s->freed = true;
		s->life_ns = life;
		return;
	}
	more = keep(s);
	if (!more) /* no memory: what comes next says so */
		return;
	take_from_cohort(s, serial, blocks, whole);
	more->live_bytes = num_less(more->live_bytes, blocks.bytes);
	if (more->live_bytes)
		(void)add_variance(more, -blocks.variance);
	else if (more->rare)
		more->rare->live_variance = 0;
	if (!whole)
		return;
	more->live_count = num_less(more->live_count, blocks.count);
	pile_take(more, time_ns);
	more->freed_count += blocks.count;
	s->life_ns += life * blocks.count;
	if (life > more->longest_life_ns)
		more->longest_life_ns = life;
}

void site_end(struct site *s, uint64_t serial, struct alike blocks, uint64_t life_ns)
{
	struct site_more *more;
	struct site_order *order;

	if (!s->many && !s->ended && s->freed && blocks.count == 1 &&
	    blocks.size == s->total_bytes) {
		s->ended = true;
		return;
	}
	more = keep(s);
	if (!more)
		return;
	more->ended_count += blocks.count;
	if (blocks.size > more->ended_largest)
		more->ended_largest = blocks.size;
	if (more->rare && serial == more->rare->object.serial)
		more->rare->object.serial = 0;
	order = &more->order;
	order->ascending += serial > order->serial ? blocks.count : 0;
	order->turns += more->acquired ? blocks.count : 0;
	order->serial = serial;
	order->life_ns = life_ns;
	more->acquired = false;
}

void site_restore(
    struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns, struct alike blocks)
{
	struct site_more *more = keep(s); /* which lives again says no less than that it went */
	struct cohort *c;
	uint32_t at;

	if (!more)
		return;
	more->live_bytes += blocks.bytes;
	more->live_count += blocks.count;
	(void)add_variance(more, blocks.variance);
	more->freed_count = num_less(more->freed_count, blocks.count);
	s->life_ns = num_less(s->life_ns, num_less(time_ns, birth_ns) * blocks.count);
	if (!s->used)
		return;
	at = cohort_of(s, serial);
	if (was_single(s, at, blocks)) {
		more->singles[at].freed = false;
	} else if (keep_cohorts(s)) {
		c = &more->cohorts[at];
		c->freed_bytes = num_less(c->freed_bytes, blocks.bytes);
		c->freed_count = num_less(c->freed_count, blocks.count);
	}
}

void site_split(struct site *s, uint64_t serial)
{
	struct site_more *more = keep_cohorts(s);

	if (!more)
		return;
	more->live_count++;
	if (s->used)
		more->cohorts[cohort_of(s, serial)].count++;
}

/* To one that was made before, of a site that is kept as a whole; but for what was frozen of it. */
static int copy_to(struct site *copy, const struct site *s)
{
	struct site_more *more = s->more->singles ? keep(copy) : keep_cohorts(copy);
	struct site_more own;
	uint8_t room;

	if (!more || make_room(copy, s->used) || (s->more->rare && !keep_rare(more)))
		return -ENOMEM;
	own = *more;
	room = copy->room;
	*copy = *s;
	copy->more = more;
	copy->room = room;
	*more = *s->more;
	more->then = NULL;
	more->singles = own.singles;
	more->cohorts = own.cohorts;
	more->rare = own.rare;
	if (s->more->rare)
		*more->rare = *s->more->rare;
	if (more->singles)
		memcpy(more->singles, s->more->singles, s->used * sizeof(*more->singles));
	else
		memcpy(more->cohorts, s->more->cohorts, s->used * sizeof(*more->cohorts));
	return 0;
}

int site_freeze(struct site *s, uint64_t epoch)
{
	struct site_then *then = s->many ? s->more->then : NULL;
	bool whole = s->many;

	if (!then) {
		then = malloc(sizeof(*then));
		if (!then)
			return -ENOMEM;
		if (whole)
			site_init(&then->site, s->stack, s->kind);
		else
			then->site = *s;
		then->epoch = 0;
		if (!keep(s)) {
			free(then);
			return -ENOMEM;
		}
		s->more->then = then;
	}
	if (whole && copy_to(&then->site, s))
		return -ENOMEM;
	then->epoch = epoch;
	return 0;
}
