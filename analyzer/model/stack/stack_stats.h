/*
 * stack_stats.h - statistics of one call stack: how much lives, how much there was, how large its
 * blocks were over time, and how many of each generation still live. Constant work for an event;
 * memory is bounded by a fixed number of cohorts.
 */
#ifndef ANALYZER_MODEL_STACK_STATS_H
#define ANALYZER_MODEL_STACK_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Consecutive acquisitions of one stack. At first each cohort has one acquisition; when all cohorts
 * are used, neighbours are merged and each then stands for twice as many. Sizes by order of
 * occurrence show growth however the steps are spread over time; what is left of each cohort shows
 * whether old blocks were ever released.
 */
struct cohort {
	uint64_t serial; /* the first field: of its first block, by which a release finds it */
	uint64_t time_ns, last_ns; /* births of its first and last block, since the trace's start */
	uint64_t count, bytes; /* acquired */
	uint64_t max, min; /* its largest block, and its smallest */
	uint64_t freed_count, freed_bytes;
	uint64_t summed_count, summed_bytes; /* of these, what stack_stats_add_freed() told */
};
#define STACK_STATS_COHORTS 64u

enum stack_stats_kind {
	STACK_STATS_HEAP, /* malloc and its kin */
	STACK_STATS_MAP, /* private anonymous mappings of the program's own */
	STACK_STATS_SHARED, /* shared memory: anonymous, of a memfd, of /dev/shm, System V's */
	STACK_STATS_FILE, /* of files: what is written to them is the files' */
	STACK_STATS_COPY, /* of files, but what is written there is the process' own; charged as
			     data */
	STACK_STATS_STACK, /* thread stacks */
	STACK_STATS_RESERVED, /* no access: address space only */
	STACK_STATS_KINDS
};
static inline bool stack_stats_is_file(enum stack_stats_kind kind)
{
	return kind == STACK_STATS_FILE || kind == STACK_STATS_COPY;
}

/* An object is a block and what realloc() made of it. This is the latest that still grows. */
struct stack_stats_object {
	uint64_t serial; /* of its latest block; 0: there is none */
	uint64_t first; /* what it was enlarged from, as far as nothing came between */
	uint64_t acquired; /* bytes of all its blocks */
	uint64_t before, until; /* what the process had acquired when it began, and by now */
};

/* In which order blocks are released. */
struct stack_stats_order {
	uint64_t serial, life_ns; /* of the one given back last */
	uint64_t ascending; /* given back after one that was acquired before it */
	uint64_t turns; /* given back with an acquisition since the one before */
};

/* The present build-up: several blocks live at once until nearly all of them are released. */
struct stack_stats_buildup {
	uint64_t high, bytes; /* most at once */
	uint64_t before; /* total_count when it began */
	uint64_t since_ns; /* birth of its first */
};
/* Build-ups that ended. */
struct stack_stats_buildups {
	uint32_t times; /* that one was */
	uint32_t records; /* of them, clearly larger than all before */
	uint64_t ended_ns; /* the latest */
	uint64_t first, largest; /* most bytes at once: of the first, of any */
};

/* How acquisitions and releases follow each other. */
struct stack_stats_course {
	struct stack_stats_object object;
	struct stack_stats_order order;
	struct stack_stats_buildup buildup;
	bool acquired, no_buildup; /* as of struct stack_stats_more */
};

/* Facts that few stacks have. */
struct stack_stats_rare {
	double live_variance; /* of live_bytes, as far as that is an estimate */
	double peak_live_variance; /* of peak_live_bytes */
	uint64_t regrown; /* acquired by realloc of a smaller block */
	struct stack_stats_object object;
	struct stack_stats_buildups buildups;
};

/* A cohort of one block, while size, birth and one release say all of every block. Times of 48 bits
 * are three days. */
struct single {
	uint32_t serial; /* as in struct cohort */
	uint32_t bytes : 30;
	uint32_t freed : 1; /* as a whole */
	uint32_t
	    at_peak : 1; /* of struct stack_stats_few: it lived at the process' high-water mark */
	uint32_t time_low;
	uint16_t time_high;
} __attribute__((packed, aligned(2)));

/* A cohort of a stack whose sums fit into these fields: see stack_stats_is_narrow(). Nearly all
 * stacks stay that small. */
struct narrow_cohort {
	uint64_t time_ns : 48, count : 16;
	uint64_t last_ns : 48, freed_count : 16;
	uint32_t serial, bytes, max, min, freed_bytes;
} __attribute__((packed, aligned(4)));

/* What is known of a stack as a whole. */
struct stack_stats_more {
	uint64_t live_bytes, live_count, total_bytes, total_count, freed_count;
	uint64_t largest; /* block */
	/* live at the process' high-water mark: see `marked` */
	uint64_t peak_live_bytes, peak_live_count;
	uint64_t peak_bytes; /* of this stack alone */
	uint64_t life_ns, longest_life_ns; /* life_ns: sum over freed blocks */
	/* Objects that were given back, as struct stack_stats_object says. */
	uint64_t ended_count, ended_largest;
	struct stack_stats_order order;
	struct stack_stats_buildup buildup;
	uint64_t stride : 46; /* acquisitions a cohort */
	uint64_t used : 8, room : 8; /* cohorts */
	uint64_t acquired : 1; /* since the last one given back */
	uint64_t no_buildup : 1; /* the next one begins a build-up */
	/* The cohorts, in one of these three. */
	struct single *singles;
	struct narrow_cohort *narrow;
	struct cohort *cohorts;
	struct stack_stats_rare *rare; /* NULL: nothing of that */
	struct stack_stats_then *then; /* see stack_stats_frozen(); NULL: it never was */
};

/*
 * How a stack is stored. Most stacks acquire one block, most others a few, and some programs have
 * as many stacks as blocks. So one block is stored in place, a few as the least from which all else
 * follows (struct stack_stats_few), and only more as struct stack_stats_more, whose cohorts come in
 * three widths.
 *
 * What that is worth: peak memory (MiB) and CPU seconds of `whyoom report` on three recordings:
 * workloads/stacks.c (500,000 blocks, nearly each from its own stack) and two of a PyTorch server
 * (75 and 63 MB).
 *   all forms and widths             38  0.69    130  2.75    141  1.97
 *   without STACK_STATS_FEW          54  0.74    154  2.84    168  2.09
 *   and without struct single        58  0.69    167  2.81    182  2.06
 *   one block in place, one width    68  0.76    201  2.86    220  2.12
 *   only struct stack_stats_more    135  0.88    351  3.14    380  2.43
 *   and one width                   191  0.93    504  3.11    547  2.59
 * The simple form takes four times the memory and up to a third more time, so the forms stay.
 */
enum stack_stats_form {
	STACK_STATS_EMPTY, /* nothing was acquired yet */
	STACK_STATS_LIVES, /* its one block does; */
	STACK_STATS_FREED, /* was given back as a whole; */
	STACK_STATS_ENDED, /* and that was the end of an object */
	STACK_STATS_FEW,
	STACK_STATS_MANY,
};

/* Need not be aligned to more than 4. */
struct stack_stats {
	uint32_t stack : 28;
	uint32_t form : 3; /* enum stack_stats_form */
	uint32_t at_peak : 1; /* of one block: it lived at the process' high-water mark */
	uint32_t bytes : 28; /* of its one block */
	uint32_t marked : 1; /* it has changed since that mark, and says what lived then; else what
				lives did */
	uint32_t kind : 3; /* enum stack_stats_kind */
	union {
		struct {
			uint32_t serial, time_low, life_low;
			uint16_t time_high, life_high;
		}; /* of its one block */
		struct {
			unsigned char kept[sizeof(
			    void *)]; /* struct stack_stats_few, struct stack_stats_more */
			uint32_t live_bytes, peak_bytes; /* of a few */
		};
	};
};

#define STACK_STATS_TIME_MAX ((1ull << 48) - 1)
#define STACK_STATS_SINGLE_MAX ((1u << 30) - 1) /* bytes */

/* A few blocks, each a single that lives or was released as a whole; everything else follows from
 * them. Sums fit into 32 bits, counts into 4. */
#define STACK_STATS_FEW_BLOCKS 15u
#define STACK_STATS_FEW_MAX ((1u << 28) - 1) /* bytes, and where it is the only one */
enum few_time { FEW_LIFE, FEW_LONGEST_LIFE, FEW_ORDER_LIFE, FEW_TIMES };

struct stack_stats_few {
	struct stack_stats_rare *rare; /* the following as of struct stack_stats_more */
	uint32_t ended_largest, order_serial, buildup_bytes;
	uint32_t used : 4, live_count : 4, ended_count : 4;
	uint32_t ascending : 4, turns : 4;
	uint32_t buildup_high : 4,
	    buildup_before : 4; /* the first of the pile is that one's next */
	uint32_t acquired : 1, no_buildup : 1;
	uint32_t time_low[FEW_TIMES];
	uint16_t time_high[FEW_TIMES];
	struct single singles[];
};

static inline struct stack_stats_more *stack_stats_more_of(const struct stack_stats *s)
{
	struct stack_stats_more *more;

	memcpy(&more, s->kept, sizeof(more));
	return more;
}

static inline struct stack_stats_few *stack_stats_few_of(const struct stack_stats *s)
{
	struct stack_stats_few *few;

	memcpy(&few, s->kept, sizeof(few));
	return few;
}

/* Prefetch what the stack stores elsewhere; call it some stacks ahead. */
static inline void stack_stats_ask(const struct stack_stats *s)
{
	if (s->form >= STACK_STATS_FEW)
		__builtin_prefetch(stack_stats_few_of(s));
}

/* The statistics when a failure began. */
struct stack_stats_then {
	struct stack_stats stats;
	uint64_t epoch;
};

/* Return all statistics, whatever the form: the stored ones, or *own filled. Valid until the stack
 * changes. */
const struct stack_stats_more *stack_stats_view(
    const struct stack_stats *s, struct stack_stats_more *own);
/* The rare facts; all zero where none is stored. */
const struct stack_stats_rare *stack_stats_rare(const struct stack_stats *s);

static inline uint64_t stack_stats_live_bytes(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->form == STACK_STATS_LIVES ? s->bytes : 0;
	return s->form == STACK_STATS_FEW ? s->live_bytes : stack_stats_more_of(s)->live_bytes;
}

static inline uint64_t stack_stats_live_count(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->form == STACK_STATS_LIVES;
	return s->form == STACK_STATS_FEW ? stack_stats_few_of(s)->live_count
					  : stack_stats_more_of(s)->live_count;
}

/* The number of cohorts in use. */
static inline uint32_t stack_stats_used(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->form != STACK_STATS_EMPTY;
	return s->form == STACK_STATS_FEW ? stack_stats_few_of(s)->used
					  : stack_stats_more_of(s)->used;
}

uint64_t stack_stats_largest_of_few(const struct stack_stats_few *few);
/* Its largest block. */
static inline uint64_t stack_stats_largest(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->bytes;
	return s->form == STACK_STATS_FEW ? stack_stats_largest_of_few(stack_stats_few_of(s))
					  : stack_stats_more_of(s)->largest;
}

void stack_stats_init(struct stack_stats *s, uint32_t stack, enum stack_stats_kind kind);
void stack_stats_fini(struct stack_stats *s);

/* Blocks of one size that come and go as one: in a sample, those that one block stands for. */
struct alike {
	uint64_t size; /* of each */
	uint64_t count, bytes; /* of all */
	double variance; /* of `bytes`, 0 where each was recorded */
};
#define ALIKE_ONE(size) ((struct alike){size, 1, size, 0})

/* Add blocks. 0 or -ENOMEM, which leaves the stack as it was. */
int stack_stats_acquire(
    struct stack_stats *s, uint64_t serial, uint64_t time_ns, struct alike blocks);
/* Release blocks. `whole`: they are gone; otherwise one of them lost blocks.bytes at one of its
 * ends. */
void stack_stats_release(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks, bool whole);
/* Call after the release of whole blocks, unless realloc() only moved them: the objects have ended.
 * */
void stack_stats_end(struct stack_stats *s, uint64_t serial, struct alike blocks, uint64_t life_ns);
/* Block `serial` replaced the smaller block `from`. `total`: bytes that the process has acquired,
 * this block's included. */
void stack_stats_regrow(struct stack_stats *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total);
/* Add blocks that came and went before a checkpoint, at an unknown time. blocks.size is the largest
 * size and stands for all. 0 or -ENOMEM, which leaves the stack as it was. */
int stack_stats_add_freed(struct stack_stats *s, uint64_t serial, uint64_t time_ns,
    struct alike blocks, uint64_t life_ns, uint64_t longest_ns);
/* Take a release back. */
void stack_stats_restore(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks);
/* A hole split one block into two. */
void stack_stats_split(struct stack_stats *s, uint64_t serial);

/* Read from any form: */
struct stack_stats_course stack_stats_course(const struct stack_stats *s);
/* Return one of stack_stats_used() cohorts: the stored one, or *own filled. */
const struct cohort *stack_stats_cohort(
    const struct stack_stats *s, uint32_t number, struct cohort *own);

#define STACK_STATS_READ(field)                                                                    \
	static inline uint64_t stack_stats_##field(const struct stack_stats *s)                    \
	{                                                                                          \
		struct stack_stats_more own;                                                       \
                                                                                                   \
		return stack_stats_view(s, &own)->field;                                           \
	}
STACK_STATS_READ(total_bytes)
STACK_STATS_READ(total_count)
STACK_STATS_READ(freed_count)
STACK_STATS_READ(life_ns)
STACK_STATS_READ(longest_life_ns)
STACK_STATS_READ(peak_bytes)
STACK_STATS_READ(ended_count)
STACK_STATS_READ(ended_largest)
#undef STACK_STATS_READ

/* Remember what lives as what lived at the high-water mark. Call before the first change since that
 * mark. */
void stack_stats_mark_peak(struct stack_stats *s);
/* Return what lived at the mark, of a stack that is marked. */
void stack_stats_at_peak(const struct stack_stats *s, uint64_t *bytes, uint64_t *count);

/* The statistics when failure `epoch` began; NULL when they have not changed since. */
static inline const struct stack_stats *stack_stats_frozen(
    const struct stack_stats *s, uint64_t epoch)
{
	const struct stack_stats_then *then =
	    s->form == STACK_STATS_MANY ? stack_stats_more_of(s)->then : NULL;

	return then && then->epoch == epoch ? &then->stats : NULL;
}

/* Keep a copy of the present statistics for stack_stats_frozen(). 0 or -ENOMEM. */
int stack_stats_freeze(struct stack_stats *s, uint64_t epoch);

#endif
