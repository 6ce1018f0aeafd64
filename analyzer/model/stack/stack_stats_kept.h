/*
 * stack_stats_kept.h - the forms of a stack (enum stack_stats_form) and how one becomes the next.
 * Only for stack_stats.c.
 */
#ifndef ANALYZER_MODEL_STACK_STATS_KEPT_H
#define ANALYZER_MODEL_STACK_STATS_KEPT_H

#include "model/stack/stack_stats.h"

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

/* Pre: stack_stats_is_single() holds. */
static inline struct single single_make(uint64_t serial, uint64_t time_ns, uint64_t bytes)
{
	return (struct single){.serial = (uint32_t)serial,
	    .bytes = (uint32_t)bytes & STACK_STATS_SINGLE_MAX,
	    .time_low = (uint32_t)time_ns,
	    .time_high = (uint16_t)(time_ns >> 32)};
}

/* True when struct single can hold each of these blocks, and they have at most `most` bytes. */
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

/* Add a block to the run, or begin a new run with it. `largest`: of all blocks before it. */
static inline void stack_stats_run_on(struct stack_stats_run *run, uint64_t bytes, uint64_t largest)
{
	if (bytes < run->last || !run->last)
		*run = (struct stack_stats_run){.first = bytes, .before = largest};
	else
		run->rises += bytes > run->last;
	run->last = bytes;
}

/* Change to STACK_STATS_FEW with room for a block. NULL: no memory, too many, or another form. */
struct stack_stats_few *stack_stats_few_room(struct stack_stats *s);
/* Change to STACK_STATS_MANY. NULL: no memory. */
struct stack_stats_more *stack_stats_begin_more(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY ? stack_stats_more_of(s) : stack_stats_begin_more(s);
}
/* The same, with cohorts of any number of blocks. */
struct stack_stats_more *stack_stats_begin_cohorts(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep_cohorts(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY && !stack_stats_more_of(s)->singles
		   ? stack_stats_more_of(s)
		   : stack_stats_begin_cohorts(s);
}
/* The same, with cohorts of full width. */
struct stack_stats_more *stack_stats_begin_wide(struct stack_stats *s);
static inline struct stack_stats_more *stack_stats_keep_wide(struct stack_stats *s)
{
	return s->form == STACK_STATS_MANY && stack_stats_more_of(s)->cohorts
		   ? stack_stats_more_of(s)
		   : stack_stats_begin_wide(s);
}

/* True when the cohorts of a stack with these totals may be narrow. */
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

/* Pre: the cohorts are no singles. */
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

/* Apply `change`, an inline function, to a cohort; in place if it has full width. */
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

/* Return the rare facts, created at first use. NULL: no memory. */
struct stack_stats_rare *stack_stats_keep_rare(struct stack_stats_rare **rare);
/* Make room for one more cohort, of at most STACK_STATS_COHORTS. 0 or -ENOMEM. */
int stack_stats_make_room(struct stack_stats_more *more);

#endif
