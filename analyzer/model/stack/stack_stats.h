/*
 * stack_stats.h - statistics of one call stack: live and total blocks, sizes of blocks over time,
 * and the survivors of each generation. Constant work for an event; memory is bounded by a fixed
 * number of cohorts.
 */
#ifndef ANALYZER_MODEL_STACK_STATS_H
#define ANALYZER_MODEL_STACK_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Consecutive acquisitions of one stack. At first each cohort has one acquisition; when all cohorts
 * are used, neighbours are merged, and each then stands for twice as many. Sizes in order of
 * occurrence show growth however its steps are spread over time; the survivors of each cohort show
 * whether old blocks were ever released. */
struct cohort {
	uint64_t serial; /* must be first: of its first block; a release finds the cohort by it */
	uint64_t time_ns, last_ns; /* births of its first and last block */
	uint64_t count, bytes; /* acquired */
	uint64_t max, min; /* its largest block, and its smallest */
	uint64_t freed_count, freed_bytes;
	uint64_t summed_count, summed_bytes; /* part of these, from stack_stats_add_freed() */
};
#define STACK_STATS_COHORTS 64u

enum stack_stats_kind {
	STACK_STATS_HEAP, /* malloc's family */
	STACK_STATS_MAP, /* the program's own private anonymous mappings */
	STACK_STATS_SHARED, /* shared memory: anonymous, of a memfd, of /dev/shm, System V's */
	STACK_STATS_FILE, /* of files, whose memory written pages are */
	STACK_STATS_COPY, /* of files, but written pages are the process's own; charged as data */
	STACK_STATS_STACK, /* thread stacks */
	STACK_STATS_RESERVED, /* no access: address space only */
	STACK_STATS_KINDS
};
static inline bool stack_stats_is_file(enum stack_stats_kind kind)
{
	return kind == STACK_STATS_FILE || kind == STACK_STATS_COPY;
}

/* An object is a block with its later sizes from realloc(). This is the latest that still grows. */
struct stack_stats_object {
	uint64_t serial; /* of its latest block; 0: none */
	uint64_t first; /* of its first block, if no other came between */
	uint64_t acquired; /* bytes of all its blocks */
	uint64_t before, until; /* bytes that the process had acquired at its begin, and now */
};

/* The order in which blocks are released. */
struct stack_stats_order {
	uint64_t serial, life_ns; /* of the latest released block */
	uint64_t ascending; /* released after a block that is older */
	uint64_t turns; /* releases with an acquisition since the previous release */
};

/* The current build-up: several blocks live at once until nearly all of them are released. */
struct stack_stats_buildup {
	uint64_t high, bytes; /* peaks of blocks and bytes */
	uint64_t before; /* total_count at its begin */
	uint64_t since_ns; /* birth of its first block */
};
/* Build-ups that ended. */
struct stack_stats_buildups {
	uint32_t times; /* their number */
	uint32_t records; /* part of them, clearly larger than all before */
	uint64_t ended_ns; /* end of the latest */
	uint64_t first, largest; /* peak bytes: of the first; of the largest */
};

/* The latest blocks in a row, each at least as large as the block before it. */
struct stack_stats_run {
	uint64_t first, last; /* bytes of the first and the last of them */
	uint64_t before; /* bytes of the largest block before the first; 0: there was none */
	uint64_t rises; /* blocks of them that are larger than the one before */
};

/* How acquisitions and releases follow each other. */
struct stack_stats_course {
	struct stack_stats_object object;
	struct stack_stats_run run;
	struct stack_stats_order order;
	struct stack_stats_buildup buildup;
	bool acquired, no_buildup; /* as in struct stack_stats_more */
};

/* Facts that few stacks have. */
struct stack_stats_rare {
	double live_variance; /* of live_bytes, if they are an estimate */
	double peak_live_variance; /* of peak_live_bytes */
	uint64_t regrown; /* blocks acquired by realloc of a smaller block */
	struct stack_stats_object object;
	struct stack_stats_buildups buildups;
};

/* A cohort of one block, which needs only size, birth, and whether it was released. Times of 48
 * bits last three days. */
struct single {
	uint32_t serial; /* as in struct cohort */
	uint32_t bytes : 30;
	uint32_t freed : 1; /* released as a whole */
	uint32_t
	    at_peak : 1; /* in struct stack_stats_few: it lived at the process's high-water mark */
	uint32_t time_low;
	uint16_t time_high;
} __attribute__((packed, aligned(2)));

/* A cohort of a stack with sums that fit into these fields: see stack_stats_is_narrow(). Nearly all
 * stacks stay that small. */
struct narrow_cohort {
	uint64_t time_ns : 48, count : 16;
	uint64_t last_ns : 48, freed_count : 16;
	uint32_t serial, bytes, max, min, freed_bytes;
} __attribute__((packed, aligned(4)));

/* The statistics of a stack as a whole. */
struct stack_stats_more {
	uint64_t live_bytes, live_count, total_bytes, total_count, freed_count;
	uint64_t largest; /* block */
	/* live at the process's high-water mark: see `marked` */
	uint64_t peak_live_bytes, peak_live_count;
	uint64_t peak_bytes; /* peak of this stack alone */
	uint64_t life_ns, longest_life_ns; /* life_ns: sum over freed blocks */
	/* Objects that were released, as in struct stack_stats_object. */
	uint64_t ended_count, ended_largest;
	struct stack_stats_order order;
	struct stack_stats_buildup buildup;
	struct stack_stats_run run;
	uint64_t stride : 46; /* acquisitions in a cohort */
	uint64_t used : 8, room : 8; /* cohorts */
	uint64_t acquired : 1; /* acquired since the latest release */
	uint64_t no_buildup : 1; /* the next block begins a build-up */
	/* The cohorts, in one of three widths. */
	struct single *singles;
	struct narrow_cohort *narrow;
	struct cohort *cohorts;
	struct stack_stats_rare *rare; /* NULL: no such facts */
	struct stack_stats_then *then; /* see stack_stats_frozen(); NULL: never frozen */
};

/*
 * How a stack is stored. Most stacks acquire one block, most others a few, and some programs have
 * as many stacks as blocks. So one block is stored in place, a few as the minimum from which all
 * else follows (struct stack_stats_few), and only more as struct stack_stats_more, with cohorts of
 * three widths.
 *
 * The gain: peak memory (MiB) and CPU seconds of `whyoom report` on three recordings:
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
	STACK_STATS_EMPTY, /* no acquisition yet */
	STACK_STATS_LIVES, /* one block, live */
	STACK_STATS_FREED, /* one block, released as a whole */
	STACK_STATS_ENDED, /* the same, and an object ended with it */
	STACK_STATS_FEW,
	STACK_STATS_MANY,
};

/* Need not be aligned to more than 4. */
struct stack_stats {
	uint32_t stack : 28;
	uint32_t form : 3; /* enum stack_stats_form */
	uint32_t at_peak : 1; /* one block: it lived at the process's high-water mark */
	uint32_t bytes : 28; /* one block: its size */
	/* changed since that mark, and stores the live bytes of then; otherwise the live bytes are
	 * those of the mark */
	uint32_t marked : 1;
	uint32_t kind : 3; /* enum stack_stats_kind */
	union {
		struct {
			uint32_t serial, time_low, life_low;
			uint16_t time_high, life_high;
		}; /* one block: its birth */
		struct {
			unsigned char kept[sizeof(
			    void *)]; /* struct stack_stats_few, struct stack_stats_more */
			uint32_t live_bytes, peak_bytes; /* a few blocks */
		};
	};
};

#define STACK_STATS_TIME_MAX ((1ull << 48) - 1)
#define STACK_STATS_SINGLE_MAX ((1u << 30) - 1) /* bytes */

/* A few blocks, each a single that lives or was released as a whole; the rest follows from them.
 * Sums fit into 32 bits, counts into 4. */
#define STACK_STATS_FEW_BLOCKS 15u
#define STACK_STATS_FEW_MAX                                                                        \
	((1u << 28) - 1) /* bytes; also the limit of a single block in place                       \
			  */
enum few_time { FEW_LIFE, FEW_LONGEST_LIFE, FEW_ORDER_LIFE, FEW_TIMES };

struct stack_stats_few {
	struct stack_stats_rare *rare; /* from here on as in struct stack_stats_more */
	uint32_t ended_largest, order_serial, buildup_bytes;
	uint32_t used : 4, live_count : 4, ended_count : 4;
	uint32_t ascending : 4, turns : 4;
	uint32_t buildup_high : 4, buildup_before : 4; /* count of blocks before the build-up */
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

/* Prefetch the stack's other memory; call it some stacks ahead. */
static inline void stack_stats_ask(const struct stack_stats *s)
{
	if (s->form >= STACK_STATS_FEW)
		__builtin_prefetch(stack_stats_few_of(s));
}

/* The statistics at the begin of a failure. */
struct stack_stats_then {
	struct stack_stats stats;
	uint64_t epoch;
};

/* Return all statistics: the stored ones, or *own filled. Valid until the stack changes. */
const struct stack_stats_more *stack_stats_view(
    const struct stack_stats *s, struct stack_stats_more *own);
/* Return the rare facts; all zero if none is stored. */
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

static inline uint32_t stack_stats_used(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->form != STACK_STATS_EMPTY;
	return s->form == STACK_STATS_FEW ? stack_stats_few_of(s)->used
					  : stack_stats_more_of(s)->used;
}

uint64_t stack_stats_largest_of_few(const struct stack_stats_few *few);
static inline uint64_t stack_stats_largest(const struct stack_stats *s)
{
	if (s->form < STACK_STATS_FEW)
		return s->bytes;
	return s->form == STACK_STATS_FEW ? stack_stats_largest_of_few(stack_stats_few_of(s))
					  : stack_stats_more_of(s)->largest;
}

void stack_stats_init(struct stack_stats *s, uint32_t stack, enum stack_stats_kind kind);
void stack_stats_fini(struct stack_stats *s);

/* Blocks of one size that come and go together: in a sample, those behind one block. */
struct alike {
	uint64_t size; /* of each block */
	uint64_t count, bytes; /* of all blocks */
	double variance; /* of `bytes`; 0 if each block was recorded */
};
#define ALIKE_ONE(size) ((struct alike){size, 1, size, 0})

/* Add blocks. 0 or -ENOMEM, which leaves the stack as it was. */
int stack_stats_acquire(
    struct stack_stats *s, uint64_t serial, uint64_t time_ns, struct alike blocks);
/* Release blocks. `whole`: they are gone; else one block lost blocks.bytes at one of its ends. */
void stack_stats_release(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks, bool whole);
/* Call after the release of whole blocks, unless realloc() moved them: the objects have ended. */
void stack_stats_end(struct stack_stats *s, uint64_t serial, struct alike blocks, uint64_t life_ns);
/* Note that block `serial` replaced the smaller block `from`. `total`: bytes that the process has
 * acquired, including this block. */
void stack_stats_regrow(struct stack_stats *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total);
/* Add blocks that were allocated and freed before a checkpoint, at an unknown time. blocks.size is
 * the largest size and stands for all. 0 or -ENOMEM, which leaves the stack as it was. */
int stack_stats_add_freed(struct stack_stats *s, uint64_t serial, uint64_t time_ns,
    struct alike blocks, uint64_t life_ns, uint64_t longest_ns);
/* Take a release back. */
void stack_stats_restore(struct stack_stats *s, uint64_t serial, uint64_t birth_ns,
    uint64_t time_ns, struct alike blocks);
/* Note that a hole split one block into two. */
void stack_stats_split(struct stack_stats *s, uint64_t serial);

/* The functions below read a stack of any form. */
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

/* Return how many of its freed blocks realloc() moved. The number of enlarged ones is no less,
 * since the first block of an object may be another stack's. Only blocks of the heap end or are
 * enlarged.
 */
static inline uint64_t stack_stats_moved_count(const struct stack_stats *s)
{
	uint64_t regrown = stack_stats_rare(s)->regrown;
	uint64_t freed = stack_stats_freed_count(s), ended = stack_stats_ended_count(s);
	uint64_t moved = freed > ended ? freed - ended : 0;

	return regrown < moved ? regrown : moved;
}

/* Keep live bytes as the high-water mark's. Call before the first change since that mark. */
void stack_stats_mark_peak(struct stack_stats *s);
/* Return the live bytes and blocks at the mark; the stack is marked. */
void stack_stats_at_peak(const struct stack_stats *s, uint64_t *bytes, uint64_t *count);

/* Return the statistics at the begin of failure `epoch`; NULL: unchanged since. */
static inline const struct stack_stats *stack_stats_frozen(
    const struct stack_stats *s, uint64_t epoch)
{
	const struct stack_stats_then *then =
	    s->form == STACK_STATS_MANY ? stack_stats_more_of(s)->then : NULL;

	return then && then->epoch == epoch ? &then->stats : NULL;
}

/* Keep a copy of the statistics for stack_stats_frozen(). 0 or -ENOMEM. */
int stack_stats_freeze(struct stack_stats *s, uint64_t epoch);

#endif
