/*
 * stack_stats_kept.h - how little of a stack is kept: its forms (enum stack_stats_form), and how
 * one becomes the next. For stack_stats.c alone, which owns what is done to them.
 */
#ifndef ANALYZER_MODEL_STACK_STATS_KEPT_H
#define ANALYZER_MODEL_STACK_STATS_KEPT_H

#include "model/callsite/stack_stats.h"

static inline void stack_stats_keep_at(
    struct stack_stats *s, enum stack_stats_form form, const void *kept)
{
	s->form = form;
	memcpy(s->kept, &kept, sizeof(kept));
}

static inline uint64_t single_time(struct single one)
{
	return (uint64_t)one.time_high << 32 | one.time_low;
}

/* Of what fits: see stack_stats_is_single(). */
static inline struct single single_make(uint64_t serial, uint64_t time_ns, uint64_t bytes)
{
	return (struct single){.serial = (uint32_t)serial,
	    .bytes = (uint32_t)bytes & STACK_STATS_SINGLE_MAX,
	    .time_low = (uint32_t)time_ns,
	    .time_high = (uint16_t)(time_ns >> 32)};
}

/* Whether nothing is to be said of them but what struct single does, where there are at most so
 * many bytes. */
static inline bool stack_stats_is_single(
    uint64_t serial, uint64_t time_ns, struct alike blocks, uint64_t most)
{
	return blocks.count == 1 && blocks.bytes == blocks.size && blocks.bytes <= most &&
	       serial <= UINT32_MAX && time_ns <= STACK_STATS_TIME_MAX;
}

static inline uint64_t stack_stats_one_time(const struct stack_stats *s)
{
	return (uint64_t)s->time_high << 32 | s->time_low;
}

static inline uint64_t stack_stats_one_life(const struct stack_stats *s)
{
	return (uint64_t)s->life_high << 32 | s->life_low;
}

static inline bool stack_stats_one_freed(const struct stack_stats *s)
{
	return s->form == STACK_STATS_FREED || s->form == STACK_STATS_ENDED;
}

static inline uint64_t few_time(const struct stack_stats_few *few, enum few_time which)
{
	return (uint64_t)few->time_high[which] << 32 | few->time_low[which];
}

static inline void few_set_time(struct stack_stats_few *few, enum few_time which, uint64_t time_ns)
{
	few->time_low[which] = (uint32_t)time_ns;
	few->time_high[which] = (uint16_t)(time_ns >> 32);
}

/* From here on a few are kept, with room for one more block. NULL: no memory, or there are too many
 * already, or it has another form. */
struct stack_stats_few *stack_stats_few_room(struct stack_stats *s);
/* From here on all is kept. NULL: no memory. */
struct stack_stats_more *stack_stats_begin_more(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY ? stack_stats_more_of(s) : stack_stats_begin_more(s);
}
/* The same, and cohorts of any number of blocks. */
struct stack_stats_more *stack_stats_begin_cohorts(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep_cohorts(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY && !stack_stats_more_of(s)->singles
		   ? stack_stats_more_of(s)
		   : stack_stats_begin_cohorts(s);
}
/* The same, and cohorts that may hold whatever comes. */
struct stack_stats_more *stack_stats_begin_wide(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep_wide(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY && stack_stats_more_of(s)->cohorts
		   ? stack_stats_more_of(s)
		   : stack_stats_begin_wide(s);
}

/* Whether a stack's cohorts may be narrow that acquired so much in all. */
static inline bool stack_stats_is_narrow(uint64_t count, uint64_t bytes)
{
	return count <= UINT16_MAX && bytes <= UINT32_MAX;
}

static inline struct cohort cohort_of_narrow(const struct narrow_cohort *c)
{
	return (struct cohort){.serial = c->serial,
	    .time_ns = c->time_ns,
	    .last_ns = c->last_ns,
	    .count = c->count,
	    .bytes = c->bytes,
	    .max = c->max,
	    .min = c->min,
	    .freed_count = c->freed_count,
	    .freed_bytes = c->freed_bytes};
}

static inline struct narrow_cohort narrow_of_cohort(const struct cohort *c)
{
	return (struct narrow_cohort){.serial = (uint32_t)c->serial,
	    .time_ns = c->time_ns & STACK_STATS_TIME_MAX,
	    .last_ns = c->last_ns & STACK_STATS_TIME_MAX,
	    .count = c->count & UINT16_MAX,
	    .bytes = (uint32_t)c->bytes,
	    .max = (uint32_t)c->max,
	    .min = (uint32_t)c->min,
	    .freed_count = c->freed_count & UINT16_MAX,
	    .freed_bytes = (uint32_t)c->freed_bytes};
}

/* Of one that is no single. */
static inline struct cohort cohort_get(const struct stack_stats_more *more, uint32_t number)
{
	return more->narrow ? cohort_of_narrow(&more->narrow[number]) : more->cohorts[number];
}

static inline void cohort_put(
    const struct stack_stats_more *more, uint32_t number, const struct cohort *c)
{
	if (more->narrow)
		more->narrow[number] = narrow_of_cohort(c);
	else
		more->cohorts[number] = *c;
}

/* The same that `change`, an inline function, makes of it: a wide one is not copied. */
#define COHORT_CHANGE(more, number, change, ...)                                                   \
	do {                                                                                       \
		if ((more)->narrow) {                                                              \
			struct narrow_cohort *narrow_ = &(more)->narrow[number];                   \
			struct cohort own_ = cohort_of_narrow(narrow_);                            \
                                                                                                   \
			change(&own_, __VA_ARGS__);                                                \
			*narrow_ = narrow_of_cohort(&own_);                                        \
		} else {                                                                           \
			change(&(more)->cohorts[number], __VA_ARGS__);                             \
		}                                                                                  \
	} while (0)

/* What few have, made where there is none. NULL: no memory. */
struct stack_stats_rare *stack_stats_keep_rare(struct stack_stats_rare **rare);
/* Room for one cohort more, of STACK_STATS_COHORTS. 0 or -ENOMEM. */
int stack_stats_make_room(struct stack_stats_more *more);

#endif
