/*
 * plan.h - the allocations of a process as a program for another process: the planner (planner.c)
 * writes it into a file, and the player (player_main.c) maps and runs it.
 *
 * The operations of a thread are in the order of the record. Threads wait for each other by epochs:
 * in an epoch, parts of several threads run side by side, which touch no block of each other and
 * move little memory; an epoch begins when all parts of earlier ones are done. So no block is
 * released before it was acquired, and at the samples, which have an epoch of their own, exactly
 * the recorded blocks are live.
 *
 * Both ends run on one machine: native byte order, no version.
 */
#ifndef ANALYZER_REPLAY_PLAN_H
#define ANALYZER_REPLAY_PLAN_H

#include <stdint.h>

#define PLAN_MAGIC 0x6e616c706d6f6f77ull

enum plan_what {
	PLAN_MALLOC,
	PLAN_CALLOC,
	PLAN_ALIGNED, /* .shift: log2 of the alignment */
	PLAN_REALLOC, /* the slot's block becomes .size; .shift: enum plan_kind of the old one */
	PLAN_FREE, /* .shift: the same */
	PLAN_MAP, /* anonymous, private; .shift: enum plan_access */
	PLAN_AT, /* .size: offset in the slot's mapping for the next operation */
	PLAN_UNMAP, /* .size bytes of the slot's mapping */
	PLAN_ADVISE, /* the same; .shift: the advice */
	PLAN_SAMPLE, /* .slot: its number; .shift: 1, the record has one, too; alone in its epoch */
	PLAN_SPAWN, /* .slot: the thread that begins */
	PLAN_EXIT, /* the thread ends after its last part; without it the thread stays, and so does
		    * its allocator's cache */
};
#define PLAN_WHAT 0x3f
#define PLAN_REFUSED 0x80 /* the record refused it; a granted block is released at once */
#define PLAN_LAST 0x40 /* the refusal that the program did not recover from */

/* Only PLAN_MEMORY counts as live and is touched. */
enum plan_access { PLAN_MEMORY, PLAN_STACK, PLAN_RESERVED };

/* Live blocks, by how much of them is likely to be written to. */
enum plan_kind { PLAN_BLOCK, PLAN_ZEROED, PLAN_MAPPING, PLAN_KINDS };
#define PLAN_SIZES 3u
#define PLAN_CLASSES (1 + PLAN_KINDS * PLAN_SIZES) /* the small ones are the first */
#define PLAN_LARGE 65536u

static inline uint32_t plan_class(enum plan_kind kind, uint64_t size)
{
	if (size < PLAN_LARGE)
		return 0;
	return 1 + kind * PLAN_SIZES + (size >= 1u << 20) + (size >= 8u << 20);
}

static inline enum plan_kind plan_kind(uint32_t class)
{
	return class ? (enum plan_kind)((class - 1) / PLAN_SIZES) : PLAN_BLOCK;
}

struct plan_op {
	uint32_t slot;
	uint32_t size_low;
	uint16_t size_high;
	uint8_t what; /* enum plan_what, PLAN_REFUSED, PLAN_LAST */
	uint8_t shift;
};

static inline uint64_t plan_size(const struct plan_op *op)
{
	return (uint64_t)op->size_high << 32 | op->size_low;
}
#define PLAN_SIZE_MAX ((1ull << 48) - 1)

#define PLAN_NONE UINT32_MAX

/* The operations of one thread in one epoch. Parts are ordered by epoch: when `before` parts are
 * done, the parts from index `before` on that have the same `before` can run. */
struct plan_part {
	uint64_t first; /* operation */
	uint32_t count, thread;
	uint32_t before;
	uint32_t next; /* of the same thread, or PLAN_NONE: it ends */
};

struct plan_header {
	uint64_t magic;
	uint32_t threads; /* 0 is the one that main() runs in */
	uint32_t slots, samples, parts;
	uint64_t ops;
	uint64_t parts_at, ops_at,
	    firsts_at; /* offsets in the file; firsts: uint32_t, a thread's first part */
};

/* --- the other file, shared: input and output of the player --- */

/* GROUP: as RESIDENT, but the player is in a cgroup, and moves its limit with .beside. */
enum play_limit {
	PLAY_LIMIT_NONE,
	PLAY_LIMIT_AS,
	PLAY_LIMIT_DATA,
	PLAY_LIMIT_RESIDENT,
	PLAY_LIMIT_GROUP
};

/* The part of a block of each class that is written to, in 1/256 of its pages from its beginning;
 * small blocks are written to completely. */
struct play_touch {
	uint16_t share[PLAN_CLASSES];
	uint16_t none; /* 1: nothing is touched */
};

enum play_state {
	PLAY_STARTING,
	PLAY_RUNNING,
	PLAY_DONE, /* to the end of the plan */
	PLAY_REFUSED, /* a request was refused that the record was granted: .op */
	PLAY_REFUSED_LAST, /* the request that the record ends with: .op */
	PLAY_KILLED, /* the limit of resident memory was reached: .sample */
	PLAY_OTHER_ALLOCATOR, /* malloc is not the expected one: nothing was done */
	PLAY_BROKEN, /* the player itself could not go on: .code is errno */
};

struct play_sample {
	/* Input: bytes taken in addition to the replayed blocks, as the limit counts them. */
	uint64_t beside;
	uint64_t limit; /* of the process, from here on; UINT64_MAX: none, 0: as it was */
	uint64_t due_ns; /* not before that time after the start */
	/* Output, of the process; resident is private memory, as the replay uses no files. */
	uint64_t resident, size, data;
	uint64_t live; /* bytes of the replayed blocks and mappings */
	uint64_t touched; /* of these, written to */
	/* As the allocator reports them, 0: it does not: taken from the system, in use. */
	uint64_t held, used;
};

struct play {
	/* Input. */
	char expected[16]; /* part of the name of the file that malloc must be in */
	uint32_t limit_kind; /* enum play_limit */
	uint32_t hold; /* 1: stop at the failure, for a debugger */
	uint32_t hold_at_end; /* 1: also stop at the end */
	/* 1: the parts of an epoch run one after the other, for a replay to be the same each time.
	 */
	uint32_t in_turn;
	uint64_t limit;
	/* PLAY_LIMIT_RESIDENT is looked at only where the record has a sample, before this one. */
	uint32_t seldom;
	/* 1: what is resident decides nothing, and large blocks are written to only where the
	 * record has a sample, while there is no limit, or where clearly more lives than before.
	 */
	uint32_t sparse;
	uint32_t group_version; /* of PLAY_LIMIT_GROUP's */
	uint64_t stack; /* bytes of a thread's; 0: as few as it needs */
	uint64_t near; /* bytes: so much more of the last refused request may be granted first */
	uint64_t
	    lend; /* bytes: so much above the limit what the record was granted may come first */
	struct play_touch touch;
	/* Tells. */
	uint32_t state; /* enum play_state */
	int32_t code;
	uint64_t op; /* the operation that was refused, counted over the whole plan */
	uint64_t requested; /* its size */
	uint32_t sample; /* the latest one */
	uint32_t by_kernel; /* 1: PLAY_KILLED was the kernel's doing, by what follows .sample */
	uint32_t granted_last; /* 1: the last refusal of the record was none here, nor was more */
	uint64_t later; /* granted of it before it was refused */
	uint64_t lent; /* of .lend, what was needed */
	uint64_t refused_again; /* of the record's refusals */
	uint64_t ns; /* that the operations took, without what measuring did */
	uint64_t base_resident; /* before the first */
	char allocator[128]; /* the file that malloc is in */
	char libc[16]; /* version of the C library */
	struct play_sample samples[];
};

#endif
