/* stack_stats.c - the arithmetic of cohorts; knows nothing of events. See stack_stats.h. */
#include "model/stack/stack_stats.h"

#include <errno.h>
#include <stdlib.h>

#include "model/stack/stack_stats_kept.h"
#include "util/num.h"

void stack_stats_mark_peak(struct stack_stats *s)
{
	struct stack_stats_more *more;
	struct stack_stats_few *few;

	s->marked = true;
	if (s->form == STACK_STATS_MANY) {
		more = stack_stats_more_of(s);
		more->peak_live_bytes = more->live_bytes;
		more->peak_live_count = more->live_count;
		if (more->rare)
			more->rare->peak_live_variance = more->rare->live_variance;
	} else if (s->form == STACK_STATS_FEW) {
		few = stack_stats_few_of(s);
		for (uint32_t i = 0; i < few->used; i++)
			few->singles[i].at_peak = !few->singles[i].freed;
	} else {
		s->at_peak = s->form == STACK_STATS_LIVES;
	}
}

/* While it stands for more than two others, a cohort of blocks that a checkpoint summed up stays
 * separate; otherwise all newer blocks would fall into one cohort. */
#define SUMMED_COHORTS (STACK_STATS_COHORTS / 4)

static bool stands_alone(const struct stack_stats_more *more, const struct cohort *c)
{
	return c->summed_count && c->count > 2 * more->stride;
}

static void merge_pairs(struct stack_stats_more *more)
{
	uint32_t to = 0, alone = 0;

	for (uint32_t i = 0; more->cohorts && i < more->used; i++)
		alone += stands_alone(more, &more->cohorts[i]);
	for (uint32_t from = 0; from < more->used; from++, to++) {
		bool last = from + 1 == more->used;
		struct cohort c = cohort_get(more, from), d = last ? c : cohort_get(more, from + 1);

		if (!last && (alone > SUMMED_COHORTS ||
				 (!stands_alone(more, &c) && !stands_alone(more, &d)))) {
			from++;
			c.last_ns = d.last_ns;
			c.count += d.count;
			c.bytes += d.bytes;
			c.freed_count += d.freed_count;
			c.freed_bytes += d.freed_bytes;
			c.summed_count += d.summed_count;
			c.summed_bytes += d.summed_bytes;
			c.max = num_most(c.max, d.max);
			c.min = num_least(c.min, d.min);
		}
		cohort_put(more, to, &c);
	}
	more->used = to & 0xff;
	more->stride *= 2;
}

static bool has_room(const struct stack_stats_more *more)
{
	uint32_t last = more->used - 1u;

	return more->used &&
	       (more->narrow ? more->narrow[last].count : more->cohorts[last].count) < more->stride;
}

static int open_cohort(struct stack_stats_more *more)
{
	static const struct cohort none;

	if (more->used == STACK_STATS_COHORTS)
		merge_pairs(more);
	if (has_room(more))
		return 0; /* the merged last one */
	if (more->used == more->room && stack_stats_make_room(more))
		return -ENOMEM;
	cohort_put(more, more->used++, &none);
	return 0;
}

static inline void cohort_add(
    struct cohort *c, uint64_t serial, uint64_t time_ns, struct alike blocks)
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

/* Fewer blocks at a time are no build-up; when a build-up ends, at most this part of it is left. */
#define BUILDUP_LEAST 4u
#define BUILDUP_LEFT_PART 16u

static void buildup_add(struct stack_stats_more *more, uint64_t time_ns, uint64_t count)
{
	struct stack_stats_buildup *now = &more->buildup;

	if (more->no_buildup) {
		more->no_buildup = false;
		now->high = now->bytes = 0;
		now->before = more->total_count - count;
		now->since_ns = time_ns;
	}
	if (more->live_count > now->high)
		now->high = more->live_count;
	if (more->live_bytes > now->bytes)
		now->bytes = more->live_bytes;
}

#define BUILDUP_RECORD_PART 32u /* a build-up this much larger is clearly larger */

static void buildup_end(struct stack_stats_rare *rare, uint64_t bytes, uint64_t time_ns)
{
	struct stack_stats_buildups *ended = &rare->buildups;

	if (!ended->times++)
		ended->first = bytes;
	ended->records += bytes > ended->largest + ended->largest / BUILDUP_RECORD_PART;
	if (bytes > ended->largest)
		ended->largest = bytes;
	ended->ended_ns = time_ns;
}

static void buildup_take(struct stack_stats_more *more, uint64_t time_ns)
{
	const struct stack_stats_buildup *now = &more->buildup;
	struct stack_stats_rare *rare;

	if (more->no_buildup || more->live_count > now->high / BUILDUP_LEFT_PART)
		return;
	more->no_buildup = true;
	rare = now->high < BUILDUP_LEAST ? NULL : stack_stats_keep_rare(&more->rare);
	if (!rare)
		return;
	buildup_end(rare, now->bytes, time_ns);
}

/* The same for a few blocks, each released as a whole. */
static void few_acquire(struct stack_stats *s, uint64_t serial, uint64_t time_ns, uint64_t bytes)
{
	struct stack_stats_few *few = stack_stats_few_of(s);

	if (few->no_buildup) {
		few->no_buildup = false;
		few->buildup_high = few->buildup_bytes = 0;
		few->buildup_before = few->used;
	}
	few->singles[few->used++] = single_make(serial, time_ns, bytes);
	few->live_count++;
	s->live_bytes += (uint32_t)bytes;
	if (s->live_bytes > s->peak_bytes)
		s->peak_bytes = s->live_bytes;
	if (s->live_bytes > few->buildup_bytes)
		few->buildup_bytes = s->live_bytes;
	if (few->live_count > few->buildup_high)
		few->buildup_high = few->live_count;
	few->acquired = true;
}

static void few_buildup_take(struct stack_stats_few *few, uint64_t time_ns)
{
	struct stack_stats_rare *rare;

	_Static_assert(STACK_STATS_FEW_BLOCKS < BUILDUP_LEFT_PART, "a pile of a few leaves none");
	if (few->no_buildup || few->live_count)
		return;
	few->no_buildup = true;
	rare = few->buildup_high < BUILDUP_LEAST ? NULL : stack_stats_keep_rare(&few->rare);
	if (rare)
		buildup_end(rare, few->buildup_bytes, time_ns);
}

static int add_variance(struct stack_stats_more *more, double variance)
{
	if (variance == 0)
		return 0;
	if (!stack_stats_keep_rare(&more->rare))
		return -ENOMEM;
	more->rare->live_variance += variance;
	return 0;
}

/* One test for all fields, since it runs for nearly each acquisition. */
static bool stays_narrow(
    const struct stack_stats_more *more, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	uint64_t count = more->total_count + blocks.count, bytes = more->total_bytes + blocks.bytes;

	return !((serial | blocks.size | blocks.bytes | bytes) >> 32 | time_ns >> 48 |
		 (blocks.count | count) >> 16);
}

/* Add the blocks to the last cohort, or the next, of a stack of form STACK_STATS_MANY. */
static int add_to_cohorts(
    struct stack_stats *s, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	struct stack_stats_more *more = stack_stats_more_of(s);

	if (more->singles && more->used < STACK_STATS_COHORTS &&
	    stack_stats_is_single(serial, time_ns, blocks, STACK_STATS_SINGLE_MAX)) {
		if (more->used == more->room && stack_stats_make_room(more))
			return -ENOMEM;
		more->singles[more->used++] = single_make(serial, time_ns, blocks.bytes);
		return 0;
	}
	if (!stack_stats_keep_cohorts(s) ||
	    (more->narrow && !stays_narrow(more, serial, time_ns, blocks) &&
		!stack_stats_keep_wide(s)))
		return -ENOMEM;
	if (!has_room(more)) {
		int rc = open_cohort(more);
		if (rc)
			return rc;
	}
	COHORT_CHANGE(more, more->used - 1u, cohort_add, serial, time_ns, blocks);
	return 0;
}

static int acquire_one(struct stack_stats *s, uint64_t serial, uint64_t time_ns, uint64_t bytes)
{
	s->form = STACK_STATS_LIVES;
	s->serial = (uint32_t)serial;
	s->bytes = bytes & STACK_STATS_FEW_MAX;
	s->time_low = (uint32_t)time_ns;
	s->time_high = (uint16_t)(time_ns >> 32);
	return 0;
}

int stack_stats_acquire(
    struct stack_stats *s, uint64_t serial, uint64_t time_ns, struct alike blocks)
{
	struct stack_stats_more *more;

	if (s->form != STACK_STATS_MANY && blocks.variance == 0 &&
	    stack_stats_is_single(serial, time_ns, blocks, STACK_STATS_FEW_MAX)) {
		if (s->form == STACK_STATS_EMPTY)
			return acquire_one(s, serial, time_ns, blocks.bytes);
		if (stack_stats_few_room(s)) {
			few_acquire(s, serial, time_ns, blocks.bytes);
			return 0;
		}
	}
	more = stack_stats_keep(s);
	if (!more || (blocks.variance != 0 && !stack_stats_keep_rare(&more->rare)) ||
	    add_to_cohorts(s, serial, time_ns, blocks) || add_variance(more, blocks.variance))
		return -ENOMEM;
	more->live_bytes += blocks.bytes;
	more->live_count += blocks.count;
	more->total_bytes += blocks.bytes;
	more->total_count += blocks.count;
	more->peak_bytes = num_most(more->peak_bytes, more->live_bytes);
	stack_stats_run_on(&more->run, blocks.size, more->largest);
	more->largest = num_most(more->largest, blocks.size);
	more->acquired = true;
	buildup_add(more, time_ns, blocks.count);
	return 0;
}

int stack_stats_add_freed(struct stack_stats *s, uint64_t serial, uint64_t time_ns,
    struct alike blocks, uint64_t life_ns, uint64_t longest_ns)
{
	struct stack_stats_more *more = stack_stats_keep_wide(s);
	struct cohort *c;

	if (!more || open_cohort(more))
		return -ENOMEM;
	c = &more->cohorts[more->used - 1];
	cohort_add(c, serial, time_ns, blocks);
	c->freed_count += blocks.count;
	c->freed_bytes += blocks.bytes;
	c->summed_count += blocks.count;
	c->summed_bytes += blocks.bytes;
	more->total_bytes += blocks.bytes;
	more->total_count += blocks.count;
	more->freed_count += blocks.count;
	more->life_ns += life_ns;
	more->longest_life_ns = num_most(more->longest_life_ns, longest_ns);
	more->largest = num_most(more->largest, blocks.size);
	return 0;
}

void stack_stats_regrow(struct stack_stats *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total)
{
	struct stack_stats_few *few =
	    s->form == STACK_STATS_FEW ? stack_stats_few_of(s) : stack_stats_few_room(s);
	struct stack_stats_more *more = few ? NULL : stack_stats_keep(s);
	struct stack_stats_rare *rare = few    ? stack_stats_keep_rare(&few->rare)
					: more ? stack_stats_keep_rare(&more->rare)
					       : NULL;
	struct stack_stats_object *object;

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

/* Index of the last item that is not younger than the serial. Pre: count > 0. */
#define LAST_UNTIL(items, count, serial)                                                           \
	({                                                                                         \
		uint32_t low = 0, high = (count);                                                  \
                                                                                                   \
		if ((serial) >= (items)[high - 1].serial)                                          \
			low = high - 1;                                                            \
		while (high - low > 1) {                                                           \
			uint32_t mid = low + (high - low) / 2;                                     \
			if ((items)[mid].serial <= (serial))                                       \
				low = mid;                                                         \
			else                                                                       \
				high = mid;                                                        \
		}                                                                                  \
		low;                                                                               \
	})

/* The cohort in which a block of this serial was born. Pre: there is one. */
static uint32_t cohort_of(const struct stack_stats_more *more, uint64_t serial)
{
	if (more->singles)
		return LAST_UNTIL(more->singles, more->used, serial);
	if (more->narrow)
		return LAST_UNTIL(more->narrow, more->used, serial);
	return LAST_UNTIL(more->cohorts, more->used, serial);
}

/* True when the cohort is exactly these blocks, so that `freed` tells all. */
static bool was_single(const struct stack_stats_more *more, uint32_t at, struct alike blocks)
{
	return more->singles && blocks.count == 1 && blocks.bytes == more->singles[at].bytes;
}

static inline void cohort_lose(struct cohort *c, struct alike blocks, bool whole)
{
	if (c->freed_bytes + blocks.bytes <= c->bytes)
		c->freed_bytes += blocks.bytes;
	if (whole && c->freed_count + blocks.count <= c->count)
		c->freed_count += blocks.count;
}

static inline void cohort_regain(struct cohort *c, struct alike blocks)
{
	c->freed_bytes = num_less(c->freed_bytes, blocks.bytes);
	c->freed_count = num_less(c->freed_count, blocks.count);
}

static void take_from_cohort(
    struct stack_stats *s, uint64_t serial, struct alike blocks, bool whole)
{
	struct stack_stats_more *more = stack_stats_more_of(s);
	uint32_t at = more->used ? cohort_of(more, serial) : 0;

	if (whole && more->used && was_single(more, at, blocks)) {
		more->singles[at].freed = true;
		return;
	}
	if (!stack_stats_keep_cohorts(s) || !more->used)
		return;
	COHORT_CHANGE(more, at, cohort_lose, blocks, whole);
}

/* False when the released blocks are not exactly those of one cohort. */
static bool few_release(
    struct stack_stats *s, uint64_t serial, uint64_t time_ns, uint64_t life, struct alike blocks)
{
	struct stack_stats_few *few = stack_stats_few_of(s);
	uint64_t lived = few_time(few, FEW_LIFE);
	uint32_t at = few->used - 1u;

	while (at && few->singles[at].serial > serial)
		at--;
	if (few->singles[at].freed || blocks.count != 1 || blocks.bytes != few->singles[at].bytes ||
	    life > STACK_STATS_TIME_MAX - lived)
		return false;
	few->singles[at].freed = true;
	s->live_bytes -= (uint32_t)blocks.bytes;
	few->live_count--;
	few_set_time(few, FEW_LIFE, lived + life);
	if (life > few_time(few, FEW_LONGEST_LIFE))
		few_set_time(few, FEW_LONGEST_LIFE, life);
	few_buildup_take(few, time_ns);
	return true;
}

void stack_stats_release(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks, bool whole)
{
	uint64_t life = num_less(time_ns, birth_ns);
	struct stack_stats_more *more;

	if (s->form == STACK_STATS_LIVES && whole && blocks.count == 1 &&
	    blocks.bytes == s->bytes && life <= STACK_STATS_TIME_MAX) {
		s->form = STACK_STATS_FREED;
		s->life_low = (uint32_t)life;
		s->life_high = (uint16_t)(life >> 32);
		return;
	}
	if (s->form == STACK_STATS_FEW && whole && few_release(s, serial, time_ns, life, blocks))
		return;
	more = stack_stats_keep(s);
	if (!more) /* no memory: the next call reports it */
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
	buildup_take(more, time_ns);
	more->freed_count += blocks.count;
	more->life_ns += life * blocks.count;
	more->longest_life_ns = num_most(more->longest_life_ns, life);
}

static void object_ends(struct stack_stats_rare *rare, uint64_t serial)
{
	if (rare && serial == rare->object.serial)
		rare->object.serial = 0;
}

static void few_end(struct stack_stats_few *few, uint32_t serial, uint32_t bytes, uint64_t life_ns)
{
	few->ended_count++;
	if (bytes > few->ended_largest)
		few->ended_largest = bytes;
	object_ends(few->rare, serial);
	few->ascending += serial > few->order_serial;
	few->turns += few->acquired;
	few->order_serial = serial;
	few_set_time(few, FEW_ORDER_LIFE, life_ns);
	few->acquired = false;
}

void stack_stats_end(struct stack_stats *s, uint64_t serial, struct alike blocks, uint64_t life_ns)
{
	struct stack_stats_order *order;
	struct stack_stats_more *more;

	if (s->form == STACK_STATS_FREED && blocks.count == 1 && blocks.size == s->bytes) {
		s->form = STACK_STATS_ENDED;
		return;
	}
	if (s->form == STACK_STATS_FEW && blocks.count == 1 && blocks.size <= STACK_STATS_FEW_MAX &&
	    serial <= UINT32_MAX && life_ns <= STACK_STATS_TIME_MAX &&
	    stack_stats_few_of(s)->ended_count < STACK_STATS_FEW_BLOCKS) {
		few_end(stack_stats_few_of(s), (uint32_t)serial, (uint32_t)blocks.size, life_ns);
		return;
	}
	more = stack_stats_keep(s);
	if (!more)
		return;
	more->ended_count += blocks.count;
	more->ended_largest = num_most(more->ended_largest, blocks.size);
	object_ends(more->rare, serial);
	order = &more->order;
	order->ascending += serial > order->serial ? blocks.count : 0;
	order->turns += more->acquired ? blocks.count : 0;
	order->serial = serial;
	order->life_ns = life_ns;
	more->acquired = false;
}

void stack_stats_restore(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks)
{
	struct stack_stats_more *more =
	    stack_stats_keep(s); /* a restored block needs as much room as a released one */
	uint32_t at;

	if (!more)
		return;
	more->live_bytes += blocks.bytes;
	more->live_count += blocks.count;
	(void)add_variance(more, blocks.variance);
	more->freed_count = num_less(more->freed_count, blocks.count);
	more->life_ns = num_less(more->life_ns, num_less(time_ns, birth_ns) * blocks.count);
	if (!more->used)
		return;
	at = cohort_of(more, serial);
	if (was_single(more, at, blocks))
		more->singles[at].freed = false;
	else if (stack_stats_keep_cohorts(s))
		COHORT_CHANGE(more, at, cohort_regain, blocks);
}

void stack_stats_split(struct stack_stats *s, uint64_t serial)
{
	struct stack_stats_more *more =
	    stack_stats_keep_wide(s); /* the cohorts have more blocks than were acquired */

	if (!more)
		return;
	more->live_count++;
	if (more->used)
		more->cohorts[cohort_of(more, serial)].count++;
}

/* NULL for NULL, or without memory. */
static void *copy_some(const void *from, size_t bytes)
{
	void *copy = from ? malloc(bytes) : NULL;

	return copy ? memcpy(copy, from, bytes) : NULL;
}

/* Copy all but the frozen statistics. NULL: no memory. */
static struct stack_stats_more *copy_of(const struct stack_stats_more *more)
{
	struct stack_stats_more *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *more;
	copy->room = more->used ? more->used : 1;
	copy->then = NULL;
	copy->singles = copy_some(more->singles, copy->room * sizeof(*copy->singles));
	copy->narrow = copy_some(more->narrow, copy->room * sizeof(*copy->narrow));
	copy->cohorts = copy_some(more->cohorts, copy->room * sizeof(*copy->cohorts));
	copy->rare = copy_some(more->rare, sizeof(*copy->rare));
	if ((!copy->singles && !copy->narrow && !copy->cohorts) || (more->rare && !copy->rare)) {
		free(copy->singles);
		free(copy->narrow);
		free(copy->cohorts);
		free(copy->rare);
		free(copy);
		return NULL;
	}
	return copy;
}

int stack_stats_freeze(struct stack_stats *s, uint64_t epoch)
{
	struct stack_stats then = *s; /* complete for a stack of one block */
	struct stack_stats_more *more = stack_stats_keep(s), *copy;

	if (!more)
		return -ENOMEM;
	if (then.form >= STACK_STATS_FEW) {
		copy = copy_of(more);
		if (!copy)
			return -ENOMEM;
		stack_stats_keep_at(&then, STACK_STATS_MANY, copy);
	}
	if (more->then) {
		stack_stats_fini(&more->then->stats);
	} else if (!(more->then = malloc(sizeof(*more->then)))) {
		stack_stats_fini(&then);
		return -ENOMEM;
	}
	*more->then = (struct stack_stats_then){then, epoch};
	return 0;
}
