/*
 * site.h - what one call stack acquired: how much lives, how much there was, how large its blocks
 * were over time, and how many of each generation still live. Constant work for an event; memory
 * is bounded by a fixed number of cohorts.
 */
#ifndef ANALYZER_MODEL_SITE_H
#define ANALYZER_MODEL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The same of one block, as long as no more is to be said of any of a site's. */
struct single {
	uint64_t serial, time_ns; /* serial: as in struct cohort */
	uint64_t bytes : 63;
	uint64_t freed : 1; /* as a whole */
};

enum site_kind {
	SITE_HEAP, /* malloc and its kin */
	SITE_MAP, /* private anonymous mappings of the program's own */
	SITE_SHARED, /* shared memory: anonymous, of a memfd, of /dev/shm, System V's */
	SITE_FILE, /* of files, shared or not: what is written to them is the files' */
	SITE_STACK, /* thread stacks */
	SITE_RESERVED, /* no access: address space only */
	SITE_KINDS
};

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
	uint64_t times, ended_ns; /* that one was; the latest */
	uint64_t largest; /* most bytes at once of one */
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

/* What is kept from the second block on, and of what is not a whole block of its own. */
struct site_more {
	uint64_t live_bytes, live_count, total_count, freed_count;
	uint64_t largest; /* block */
	/* live at the process' high-water mark: see peak_epoch */
	uint64_t peak_live_bytes, peak_live_count;
	uint64_t peak_bytes; /* of this site alone */
	uint64_t longest_life_ns;
	/* Objects that were given back, as struct site_object says. */
	uint64_t ended_count, ended_largest;
	struct site_order order;
	struct site_pile pile;
	uint64_t stride : 62; /* acquisitions a cohort */
	uint64_t acquired : 1; /* since the last one given back */
	uint64_t no_pile : 1; /* the next one begins a pile */
	struct single *singles; /* the cohorts; NULL: they are below */
	struct cohort *cohorts;
	struct site_rare *rare; /* NULL: nothing of that */
	struct site_then *then; /* see site_frozen(); NULL: it never was */
};

/* Of most stacks there is one block, and of some programs as many stacks as blocks: what one block
 * says is not kept, see the functions below. */
struct site {
	uint32_t stack;
	uint8_t kind; /* enum site_kind */
	uint8_t used, room; /* cohorts */
	bool many : 1; /* `more` is kept. Else it acquired one block at most, of which: */
	bool freed : 1; /* it was given back as a whole */
	bool ended : 1; /* and that was the end of an object */
	bool at_peak : 1; /* it lived at the process' high-water mark: see peak_epoch */
	uint64_t total_bytes, life_ns; /* life_ns: sum over freed blocks */
	uint64_t peak_epoch; /* what is said of the mark is valid when this is the model's, else
				what lives did then */
	union {
		struct {
			uint64_t serial, time_ns; /* of its one block */
		};
		struct site_more *more;
	};
};

/* As it was when a failure began. */
struct site_then {
	struct site site;
	uint64_t epoch;
};

extern const struct site_rare site_nothing_rare;
/* All zero where nothing of that is kept. */
static inline const struct site_rare *site_rare(const struct site *s)
{
	return s->many && s->more->rare ? s->more->rare : &site_nothing_rare;
}

static inline uint64_t site_live_bytes(const struct site *s)
{
	return s->many ? s->more->live_bytes : s->freed ? 0 : s->total_bytes;
}

static inline uint64_t site_live_count(const struct site *s)
{
	return s->many ? s->more->live_count : s->used && !s->freed;
}

static inline uint64_t site_total_count(const struct site *s)
{
	return s->many ? s->more->total_count : s->used;
}

static inline uint64_t site_freed_count(const struct site *s)
{
	return s->many ? s->more->freed_count : s->freed;
}

/* Its largest block. */
static inline uint64_t site_largest(const struct site *s)
{
	return s->many ? s->more->largest : s->total_bytes;
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
/* One of s->used; *own is where it is put when it is not kept as such. */
const struct cohort *site_cohort(const struct site *s, uint32_t number, struct cohort *own);

static inline uint64_t site_ended_count(const struct site *s)
{
	return s->many ? s->more->ended_count : s->ended;
}

static inline uint64_t site_ended_largest(const struct site *s)
{
	return s->many ? s->more->ended_largest : s->ended ? s->total_bytes : 0;
}

static inline uint64_t site_peak_bytes(const struct site *s)
{
	return s->many ? s->more->peak_bytes : s->total_bytes;
}

static inline uint64_t site_longest_life_ns(const struct site *s)
{
	return s->many ? s->more->longest_life_ns : s->life_ns;
}

/* Before it changes, where the mark's number is another: it holds what it held at that mark. */
void site_mark_peak(struct site *s, uint64_t epoch);
/* What lived at the mark of the number peak_epoch. */
static inline void site_at_peak(const struct site *s, uint64_t *bytes, uint64_t *count)
{
	*bytes = s->many ? s->more->peak_live_bytes : s->at_peak ? s->total_bytes : 0;
	*count = s->many ? s->more->peak_live_count : s->at_peak;
}

/* As it was when the latest failure of that number began; NULL: it did not change since. */
static inline const struct site *site_frozen(const struct site *s, uint64_t epoch)
{
	const struct site_then *then = s->many ? s->more->then : NULL;

	return then && then->epoch == epoch ? &then->site : NULL;
}

/* Keeps a copy of the site's present state for site_frozen(). 0 or -ENOMEM. */
int site_freeze(struct site *s, uint64_t epoch);

#endif
