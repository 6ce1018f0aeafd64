/* stack_stats_kept.c - expands and reads a stack of any form. See stack_stats_kept.h. */
#include "model/stack/stack_stats_kept.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "util/num.h"

static const struct stack_stats_rare nothing_rare;

_Static_assert(sizeof(struct stack_stats) == 24, "there may be as many as blocks");
_Static_assert(sizeof(struct single) == 14, "and of these more");

void stack_stats_init(struct stack_stats *s, uint32_t stack, enum stack_stats_kind kind)
{
	memset(s, 0, sizeof(*s));
	s->stack = stack & ((1u << 28) - 1);
	s->kind = kind & 7u;
}

static void free_more(struct stack_stats_more *more)
{
	if (more->then)
		stack_stats_fini(&more->then->stats);
	free(more->then);
	free(more->rare);
	free(more->singles);
	free(more->narrow);
	free(more->cohorts);
	free(more);
}

void stack_stats_fini(struct stack_stats *s)
{
	if (s->form == STACK_STATS_FEW) {
		free(stack_stats_few_of(s)->rare);
		free(stack_stats_few_of(s));
	} else if (s->form == STACK_STATS_MANY) {
		free_more(stack_stats_more_of(s));
	}
}

/* Expand a stack of at most one block. */
static void open_one(const struct stack_stats *s, struct stack_stats_more *out)
{
	bool freed = stack_stats_one_freed(s), ended = s->form == STACK_STATS_ENDED;
	uint64_t bytes = s->bytes;

	*out = (struct stack_stats_more){.stride = 1, .no_buildup = s->form != STACK_STATS_LIVES};
	if (s->form == STACK_STATS_EMPTY)
		return;
	out->used = out->total_count = 1;
	out->total_bytes = out->largest = out->peak_bytes = bytes;
	out->live_count = !freed;
	out->live_bytes = freed ? 0 : bytes;
	out->freed_count = freed;
	out->life_ns = out->longest_life_ns = stack_stats_one_life(s);
	out->peak_live_count = s->at_peak;
	out->peak_live_bytes = s->at_peak ? bytes : 0;
	out->ended_count = ended;
	out->ended_largest = ended ? bytes : 0;
	out->acquired = !ended;
	stack_stats_run_on(&out->run, bytes, 0);
	out->buildup = (struct stack_stats_buildup){
	    .high = 1, .bytes = bytes, .since_ns = stack_stats_one_time(s)};
	if (ended)
		out->order = (struct stack_stats_order){s->serial, out->life_ns, 1, 1};
}

static struct single single_of(const struct stack_stats *s)
{
	struct single one = single_make(s->serial, stack_stats_one_time(s), s->bytes);

	one.freed = stack_stats_one_freed(s);
	return one;
}

uint64_t stack_stats_largest_of_few(const struct stack_stats_few *few)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < few->used; i++)
		largest = num_most(largest, few->singles[i].bytes);
	return largest;
}

static void open_few(const struct stack_stats *s, struct stack_stats_more *out)
{
	struct stack_stats_few *few = stack_stats_few_of(s);
	uint64_t largest = 0;

	*out = (struct stack_stats_more){
	    .live_bytes = s->live_bytes,
	    .live_count = few->live_count,
	    .total_count = few->used,
	    .freed_count = (uint64_t)few->used - few->live_count,
	    .largest = stack_stats_largest_of_few(few),
	    .peak_bytes = s->peak_bytes,
	    .life_ns = few_time(few, FEW_LIFE),
	    .longest_life_ns = few_time(few, FEW_LONGEST_LIFE),
	    .ended_count = few->ended_count,
	    .ended_largest = few->ended_largest,
	    .order = {few->order_serial, few_time(few, FEW_ORDER_LIFE), few->ascending, few->turns},
	    .buildup = {few->buildup_high, few->buildup_bytes, few->buildup_before,
		single_time(few->singles[few->buildup_before])},
	    .stride = 1,
	    .used = few->used,
	    .acquired = few->acquired,
	    .no_buildup = few->no_buildup,
	    .singles = few->singles,
	    .rare = few->rare,
	};
	for (uint32_t i = 0; i < few->used; i++) {
		stack_stats_run_on(&out->run, few->singles[i].bytes, largest);
		largest = num_most(largest, few->singles[i].bytes);
		out->total_bytes += few->singles[i].bytes;
		out->peak_live_bytes += few->singles[i].at_peak ? few->singles[i].bytes : 0;
		out->peak_live_count += few->singles[i].at_peak;
	}
}

static void begin_few(struct stack_stats_few *few, const struct stack_stats *s)
{
	bool freed = stack_stats_one_freed(s), ended = s->form == STACK_STATS_ENDED;

	memset(few, 0, offsetof(struct stack_stats_few, singles));
	few->used = 1;
	few->singles[0] = single_of(s);
	few->singles[0].at_peak = s->at_peak;
	few->live_count = !freed;
	few->buildup_bytes = s->bytes;
	few->ended_count = few->ascending = few->turns = ended;
	few->ended_largest = ended ? s->bytes : 0;
	few->order_serial = ended ? s->serial : 0;
	few_set_time(few, FEW_ORDER_LIFE, ended ? stack_stats_one_life(s) : 0);
	few_set_time(few, FEW_LIFE, stack_stats_one_life(s));
	few_set_time(few, FEW_LONGEST_LIFE, stack_stats_one_life(s));
	few->buildup_high = 1;
	few->acquired = !ended;
	few->no_buildup = freed;
}

/* Return the room for `used` blocks, in sizes that malloc() distinguishes. */
static uint32_t few_room(uint32_t used)
{
	static const uint8_t room[STACK_STATS_FEW_BLOCKS + 1] = {
	    2, 2, 2, 3, 4, 6, 6, 9, 9, 9, 12, 12, 12, 15, 15, 15};

	return room[used];
}

static size_t few_bytes(uint32_t room)
{
	return offsetof(struct stack_stats_few, singles) + room * sizeof(struct single);
}

struct stack_stats_few *stack_stats_few_room(struct stack_stats *s)
{
	struct stack_stats_few *few;
	uint64_t live;
	uint32_t used;

	if (s->form == STACK_STATS_EMPTY || s->form == STACK_STATS_MANY)
		return NULL;
	if (s->form == STACK_STATS_FEW) {
		few = stack_stats_few_of(s);
		used = few->used;
		if (used < few_room(used) || used == STACK_STATS_FEW_BLOCKS)
			return used < STACK_STATS_FEW_BLOCKS ? few : NULL;
		few = realloc(few, few_bytes(few_room(used + 1)));
		if (few)
			stack_stats_keep_at(s, STACK_STATS_FEW, few);
		return few;
	}
	few = malloc(few_bytes(few_room(1)));
	if (!few)
		return NULL;
	begin_few(few, s);
	live = stack_stats_live_bytes(s);
	stack_stats_keep_at(s, STACK_STATS_FEW, few);
	s->live_bytes = (uint32_t)live;
	s->peak_bytes = s->bytes;
	return few;
}

struct stack_stats_more *stack_stats_begin_more(struct stack_stats *s)
{
	struct stack_stats_more *more = malloc(sizeof(*more));
	struct single *singles;
	uint32_t room;

	if (!more)
		return NULL;
	if (s->form == STACK_STATS_FEW)
		open_few(s, more);
	else
		open_one(s, more);
	room = more->used < 2 ? 2 : more->used;
	singles = malloc(room * sizeof(*singles));
	if (!singles) {
		free(more);
		return NULL;
	}
	if (s->form == STACK_STATS_FEW) {
		memcpy(singles, more->singles, more->used * sizeof(*singles));
		free(stack_stats_few_of(s));
	} else {
		singles[0] = single_of(s);
	}
	more->singles = singles;
	more->room = room & 0xff;
	stack_stats_keep_at(s, STACK_STATS_MANY, more);
	return more;
}

static struct cohort cohort_of_single(struct single one)
{
	return (struct cohort){.serial = one.serial,
	    .time_ns = single_time(one),
	    .last_ns = single_time(one),
	    .count = 1,
	    .bytes = one.bytes,
	    .max = one.bytes,
	    .min = one.bytes,
	    .freed_count = one.freed,
	    .freed_bytes = one.freed ? one.bytes : 0};
}

struct stack_stats_more *stack_stats_begin_cohorts(struct stack_stats *s)
{
	struct stack_stats_more *more = stack_stats_keep(s);
	struct single *singles;

	if (!more || !stack_stats_is_narrow(more->total_count, more->total_bytes))
		return more ? stack_stats_begin_wide(s) : NULL;
	more->narrow = malloc(more->room * sizeof(*more->narrow));
	if (!more->narrow)
		return NULL;
	singles = more->singles;
	more->singles = NULL;
	for (uint32_t i = 0; i < more->used; i++) {
		struct cohort c = cohort_of_single(singles[i]);

		cohort_put(more, i, &c);
	}
	free(singles);
	return more;
}

struct stack_stats_more *stack_stats_begin_wide(struct stack_stats *s)
{
	struct stack_stats_more *more = stack_stats_keep(s);
	struct cohort *cohorts = more ? malloc(more->room * sizeof(*cohorts)) : NULL;

	if (!cohorts)
		return NULL;
	for (uint32_t i = 0; i < more->used; i++)
		cohorts[i] = more->singles ? cohort_of_single(more->singles[i])
					   : cohort_of_narrow(&more->narrow[i]);
	free(more->singles);
	free(more->narrow);
	more->singles = NULL;
	more->narrow = NULL;
	more->cohorts = cohorts;
	return more;
}

struct stack_stats_rare *stack_stats_keep_rare(struct stack_stats_rare **rare)
{
	if (!*rare)
		*rare = calloc(1, sizeof(**rare));
	return *rare;
}

int stack_stats_make_room(struct stack_stats_more *more)
{
	uint32_t room =
	    more->room < STACK_STATS_COHORTS / 2 ? more->room * 2u : STACK_STATS_COHORTS;
	void *grown;

	if (more->singles && (grown = realloc(more->singles, room * sizeof(*more->singles))))
		more->singles = grown;
	else if (more->narrow && (grown = realloc(more->narrow, room * sizeof(*more->narrow))))
		more->narrow = grown;
	else if (more->cohorts && (grown = realloc(more->cohorts, room * sizeof(*more->cohorts))))
		more->cohorts = grown;
	else
		return -ENOMEM;
	more->room = room & 0xff;
	return 0;
}

const struct stack_stats_more *stack_stats_view(
    const struct stack_stats *s, struct stack_stats_more *own)
{
	if (s->form == STACK_STATS_MANY)
		return stack_stats_more_of(s);
	if (s->form == STACK_STATS_FEW)
		open_few(s, own);
	else
		open_one(s, own);
	return own;
}

const struct stack_stats_rare *stack_stats_rare(const struct stack_stats *s)
{
	const struct stack_stats_rare *rare =
	    s->form == STACK_STATS_MANY	 ? stack_stats_more_of(s)->rare
	    : s->form == STACK_STATS_FEW ? stack_stats_few_of(s)->rare
					 : NULL;

	return rare ? rare : &nothing_rare;
}

struct stack_stats_course stack_stats_course(const struct stack_stats *s)
{
	struct stack_stats_more own;
	const struct stack_stats_more *more = stack_stats_view(s, &own);

	return (struct stack_stats_course){.object = stack_stats_rare(s)->object,
	    .run = more->run,
	    .order = more->order,
	    .buildup = more->buildup,
	    .acquired = more->acquired,
	    .no_buildup = more->no_buildup};
}

const struct cohort *stack_stats_cohort(
    const struct stack_stats *s, uint32_t number, struct cohort *own)
{
	if (s->form == STACK_STATS_MANY && !stack_stats_more_of(s)->singles) {
		if (stack_stats_more_of(s)->cohorts)
			return &stack_stats_more_of(s)->cohorts[number];
		*own = cohort_of_narrow(&stack_stats_more_of(s)->narrow[number]);
		return own;
	}
	*own =
	    cohort_of_single(s->form == STACK_STATS_MANY  ? stack_stats_more_of(s)->singles[number]
			     : s->form == STACK_STATS_FEW ? stack_stats_few_of(s)->singles[number]
							  : single_of(s));
	return own;
}

void stack_stats_at_peak(const struct stack_stats *s, uint64_t *bytes, uint64_t *count)
{
	const struct stack_stats_few *few;

	if (s->form == STACK_STATS_MANY) {
		*bytes = stack_stats_more_of(s)->peak_live_bytes;
		*count = stack_stats_more_of(s)->peak_live_count;
		return;
	}
	*bytes = s->form != STACK_STATS_FEW && s->at_peak ? s->bytes : 0;
	*count = s->form != STACK_STATS_FEW && s->at_peak;
	if (s->form != STACK_STATS_FEW)
		return;
	few = stack_stats_few_of(s);
	for (uint32_t i = 0; i < few->used; i++) {
		*bytes += few->singles[i].at_peak ? few->singles[i].bytes : 0;
		*count += few->singles[i].at_peak;
	}
}
