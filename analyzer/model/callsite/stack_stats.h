/*
 * stack_stats.h - what one call stack acquired: how much lives, how much there was, how large its
 * blocks were over time, and how many of each generation still live. Constant work for an event;
 * memory is bounded by a fixed number of cohorts.
 */
#ifndef ANALYZER_MODEL_SITE_H
#define ANALYZER_MODEL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Consecutive acquisitions of one site. A site starts with one acquisition in each cohort; when all
 * are used, neighbours are merged, so that each then stands for twice as many. Size by order of
 * occurrence shows growth from step to step however the steps are spread over time, and what is
 * left of each cohort shows whether the old ones were ever released.
 */
struct cohort {
	uint64_t serial; /* the first field: of its first block, by which a release finds it */
	uint64_t time_ns, last_ns; /* births of its first and last block, since the trace's start */
	uint64_t count, bytes; /* acquired */
	uint64_t max, min; /* its largest block, and its smallest */
	uint64_t freed_count, freed_bytes;
	uint64_t went_count, went_bytes; /* of these, what site_went() told */
};
#define SITE_COHORTS 64u

enum site_kind {
	SITE_HEAP, /* malloc and its kin */
	SITE_MAP, /* private anonymous mappings of the program's own */
	SITE_SHARED, /* shared memory: anonymous, of a memfd, of /dev/shm, System V's */
	SITE_FILE, /* of files: what is written to them is the files' */
	SITE_COPY, /* of files, but what is written there is the process' own; charged as data */
	SITE_STACK, /* thread stacks */
	SITE_RESERVED, /* no access: address space only */
	SITE_KINDS
};
static inline bool site_is_file(enum site_kind kind)
{
	return kind == SITE_FILE || kind == SITE_COPY;
}

/* A block that realloc() moves goes on as the next one: an object. This is the latest that still
 * grows. */
struct site_object {
	uint64_t serial; /* of its latest block; 0: there is none */
	uint64_t first; /* what it was enlarged from, as far as nothing came between */
	uint64_t acquired; /* bytes of all its blocks */
	uint64_t before, until; /* what the process had acquired when it began, and by now */
};

/* In which order they are given back. */
struct site_order {
	uint64_t serial, life_ns; /* of the one given back last */
	uint64_t ascending; /* given back after one that was acquired before it */
	uint64_t turns; /* given back with an acquisition since the one before */
};

/* Several lived at once, and then next to none of them: the present one, */
struct site_pile {
	uint64_t high, bytes; /* most at once */
	uint64_t before; /* total_count when it began */
	uint64_t since_ns; /* birth of its first */
};
/* and those that were given back. */
struct site_piles {
	uint32_t times; /* that one was */
	uint32_t records; /* of them, clearly larger than all before */
	uint64_t ended_ns; /* the latest */
	uint64_t first, largest; /* most bytes at once: of the first, of any */
};

/* How its acquisitions and releases follow each other. */
struct site_course {
	struct site_object object;
	struct site_order order;
	struct site_pile pile;
	bool acquired, no_pile; /* as of struct site_more */
};

/* What few sites have. */
struct site_rare {
	double live_variance; /* of live_bytes, as far as that is an estimate */
	double peak_live_variance; /* of peak_live_bytes */
	uint64_t regrown; /* acquired by realloc of a smaller block */
	struct site_object object;
	struct site_piles piles;
};

/* A cohort of one block, as long as no more is to be said of any of a site's. Times of 48 bits are
 * three days. */
struct single {
	uint32_t serial; /* as in struct cohort */
	uint32_t bytes : 30;
	uint32_t freed : 1; /* as a whole */
	uint32_t at_peak : 1; /* of struct site_few: it lived at the process' high-water mark */
	uint32_t time_low;
	uint16_t time_high;
} __attribute__((packed, aligned(2)));

/* A cohort as long as the sums of all of them fit into such a one's: see site_is_narrow(). A
 * program has thousands of stacks that acquire this and that, and few that acquire very much. */
struct narrow_cohort {
	uint64_t time_ns : 48, count : 16;
	uint64_t last_ns : 48, freed_count : 16;
	uint32_t serial, bytes, max, min, freed_bytes;
} __attribute__((packed, aligned(4)));

/* What is known of a site as a whole. */
struct site_more {
	uint64_t live_bytes, live_count, total_bytes, total_count, freed_count;
	uint64_t largest; /* block */
	/* live at the process' high-water mark: see `marked` */
	uint64_t peak_live_bytes, peak_live_count;
	uint64_t peak_bytes; /* of this site alone */
	uint64_t life_ns, longest_life_ns; /* life_ns: sum over freed blocks */
	/* Objects that were given back, as struct site_object says. */
	uint64_t ended_count, ended_largest;
	struct site_order order;
	struct site_pile pile;
	uint64_t stride : 46; /* acquisitions a cohort */
	uint64_t used : 8, room : 8; /* cohorts */
	uint64_t acquired : 1; /* since the last one given back */
	uint64_t no_pile : 1; /* the next one begins a pile */
	/* The cohorts, in one of these three. */
	struct single *singles;
	struct narrow_cohort *narrow;
	struct cohort *cohorts;
	struct site_rare *rare; /* NULL: nothing of that */
	struct site_then *then; /* see site_frozen(); NULL: it never was */
};

/*
 * Of most stacks there is one block, of most of the others a few, and of some programs as many
 * stacks as blocks. So there are three forms: of one block what it says by itself is in the site,
 * of a few the least from which the rest follows (struct site_few), and else all is kept.
 */
enum site_form {
	SITE_EMPTY, /* nothing was acquired yet */
	SITE_LIVES, /* its one block does; */
	SITE_FREED, /* was given back as a whole; */
	SITE_ENDED, /* and that was the end of an object */
	SITE_FEW,
	SITE_MANY,
};

/* Where it lies it need not be aligned to more than 4. */
struct site {
	uint32_t stack : 28;
	uint32_t form : 3; /* enum site_form */
	uint32_t at_peak : 1; /* of one block: it lived at the process' high-water mark */
	uint32_t bytes : 28; /* of its one block */
	uint32_t marked : 1; /* it has changed since that mark, and says what lived then; else what
				lives did */
	uint32_t kind : 3; /* enum site_kind */
	union {
		struct {
			uint32_t serial, time_low, life_low;
			uint16_t time_high, life_high;
		}; /* of its one block */
		struct {
			unsigned char kept[sizeof(void *)]; /* struct site_few, struct site_more */
			uint32_t live_bytes, peak_bytes; /* of a few */
		};
	};
};

#define SITE_TIME_MAX ((1ull << 48) - 1)
#define SITE_SINGLE_MAX ((1u << 30) - 1) /* bytes */

/* A few blocks, each a single, and each went as a whole or not at all: what there was follows from
 * them. Their sums fit into 32 bits, their numbers into 4. */
#define SITE_FEW_BLOCKS 15u
#define SITE_FEW_MAX ((1u << 28) - 1) /* bytes, and where it is the only one */
enum few_time { FEW_LIFE, FEW_LONGEST_LIFE, FEW_ORDER_LIFE, FEW_TIMES };

struct site_few {
	struct site_rare *rare; /* the following as of struct site_more */
	uint32_t ended_largest, order_serial, pile_bytes;
	uint32_t used : 4, live_count : 4, ended_count : 4;
	uint32_t ascending : 4, turns : 4;
	uint32_t pile_high : 4, pile_before : 4; /* the first of the pile is that one's next */
	uint32_t acquired : 1, no_pile : 1;
	uint32_t time_low[FEW_TIMES];
	uint16_t time_high[FEW_TIMES];
	struct single singles[];
};

static inline struct site_more *site_more_of(const struct site *s)
{
	struct site_more *more;

	memcpy(&more, s->kept, sizeof(more));
	return more;
}

static inline struct site_few *site_few_of(const struct site *s)
{
	struct site_few *few;

	memcpy(&few, s->kept, sizeof(few));
	return few;
}

/* What a site keeps elsewhere is asked for, some sites before it is looked at. */
static inline void site_ask(const struct site *s)
{
	if (s->form >= SITE_FEW)
		__builtin_prefetch(site_few_of(s));
}

/* As it was when a failure began. */
struct site_then {
	struct site site;
	uint64_t epoch;
};

/* All of it, as if all were kept: `own` is where that is put which is not. Valid until the site
 * changes. */
const struct site_more *site_view(const struct site *s, struct site_more *own);
/* All zero where nothing of that is kept. */
const struct site_rare *site_rare(const struct site *s);

static inline uint64_t site_live_bytes(const struct site *s)
{
	if (s->form < SITE_FEW)
		return s->form == SITE_LIVES ? s->bytes : 0;
	return s->form == SITE_FEW ? s->live_bytes : site_more_of(s)->live_bytes;
}

static inline uint64_t site_live_count(const struct site *s)
{
	if (s->form < SITE_FEW)
		return s->form == SITE_LIVES;
	return s->form == SITE_FEW ? site_few_of(s)->live_count : site_more_of(s)->live_count;
}

/* Cohorts. */
static inline uint32_t site_used(const struct site *s)
{
	if (s->form < SITE_FEW)
		return s->form != SITE_EMPTY;
	return s->form == SITE_FEW ? site_few_of(s)->used : site_more_of(s)->used;
}

uint64_t site_largest_of_few(const struct site_few *few);
/* Its largest block. */
static inline uint64_t site_largest(const struct site *s)
{
	if (s->form < SITE_FEW)
		return s->bytes;
	return s->form == SITE_FEW ? site_largest_of_few(site_few_of(s)) : site_more_of(s)->largest;
}

void site_init(struct site *s, uint32_t stack, enum site_kind kind);
void site_fini(struct site *s);

/* Blocks alike that come and go as one: of a sample, those that one of them stands for. */
struct alike {
	uint64_t size; /* of each */
	uint64_t count, bytes; /* of all */
	double variance; /* of `bytes`, 0 where each was recorded */
};
#define ALIKE_ONE(size) ((struct alike){size, 1, size, 0})

/* 0 or -ENOMEM, which leaves the site as it was. */
int site_acquire(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks);
/* `whole`: the blocks are gone; otherwise one lost `size` bytes at one of its ends. */
void site_release(struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns,
    struct alike blocks, bool whole);
/* After that of whole blocks that realloc() did not only move: the objects have ended. */
void site_end(struct site *s, uint64_t serial, struct alike blocks, uint64_t life_ns);
/* Its block `serial` took the place of a smaller one, `from`; by now the process has acquired
 * `total` bytes, this block's included. */
void site_regrow(struct site *s, uint64_t from, uint64_t from_bytes, uint64_t serial,
    uint64_t bytes, uint64_t total);
/* So many came and went, in the time before a checkpoint, and it is not known when; the largest of
 * them now. It stands for all their sizes. 0 or -ENOMEM, which leaves the site as it was. */
int site_went(struct site *s, uint64_t serial, uint64_t time_ns, struct alike blocks,
    uint64_t life_ns, uint64_t longest_ns);
/* Takes a release back. */
void site_restore(
    struct site *s, uint64_t serial, uint64_t birth_ns, uint64_t time_ns, struct alike blocks);
/* A hole split one block into two. */
void site_split(struct site *s, uint64_t serial);

/* The following, whether they are kept or not. */
struct site_course site_course(const struct site *s);
/* One of site_used(); *own is where it is put when it is not kept as such. */
const struct cohort *site_cohort(const struct site *s, uint32_t number, struct cohort *own);

#define SITE_READ(field)                                                                           \
	static inline uint64_t site_##field(const struct site *s)                                  \
	{                                                                                          \
		struct site_more own;                                                              \
                                                                                                   \
		return site_view(s, &own)->field;                                                  \
	}
SITE_READ(total_bytes)
SITE_READ(total_count)
SITE_READ(freed_count)
SITE_READ(life_ns)
SITE_READ(longest_life_ns)
SITE_READ(peak_bytes)
SITE_READ(ended_count)
SITE_READ(ended_largest)
#undef SITE_READ

/* Before it changes, where it is not `marked`: it holds what it held at that mark. */
void site_mark_peak(struct site *s);
/* What lived at the mark, of one that is marked. */
void site_at_peak(const struct site *s, uint64_t *bytes, uint64_t *count);

/* As it was when the latest failure of that number began; NULL: it did not change since. */
static inline const struct site *site_frozen(const struct site *s, uint64_t epoch)
{
	const struct site_then *then = s->form == SITE_MANY ? site_more_of(s)->then : NULL;

	return then && then->epoch == epoch ? &then->site : NULL;
}

/* Keeps a copy of the site's present state for site_frozen(). 0 or -ENOMEM. */
int site_freeze(struct site *s, uint64_t epoch);

#endif
