/*
 * unwind.h - the native frames of the calling thread, outermost first, kept from walk to walk: a
 * walk goes inwards to outwards only as far as frames have changed, and checks the words that the
 * earlier walk read for the rest. One struct unwind per thread; no locks, nothing shared but the
 * caches below it. Signal-safe as long as it is not entered twice on one thread.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include "stack/eh_frame.h"
#include "stack/readable.h"
#include "stack/stack.h"
#include "stack/stack_hash.h"

/* More than 8 MiB of stack hold in all but made-up programs; see unwind_walk() for deeper ones. */
#define UNWIND_FRAMES_MAX (1u << 18)

/* Where a frame is: the registers when it was left by its call. What a check of the outer frames
 * reads, and no more. */
struct link {
	uintptr_t sp, pc;
#if defined(__aarch64__)
	/* The word that this return address is in, and that word, signature included. */
	uintptr_t ra_at, ra;
#endif
};

/* What else is known of it. */
typedef uint32_t frame_words __attribute__((vector_size(16), aligned(8)));
struct frame {
	struct stack_hash hash; /* of the frames up to here that are not the shim's */
	union {
		struct {
			/* Where the run of frames begins that are checked as this one is; flags. */
			uint32_t run;
			/* Its checks end here, and begin where the outer frame's end. */
			uint32_t checks_end;
			uint32_t ours; /* how many frames up to here are the shim's */
			/* As in the trace: module << 3 | exact << 2 | type, or an END frame. */
			uint32_t tag;
		};
		frame_words words; /* the four, to be written at once */
	};
	uintptr_t fp; /* where the way outwards depends on it */
};

/* Of a run: what led out of its frames is in the list of checks. Of others the outer frame's link
 * says it: its return address is where its link has it. */
#define RUN_CHECKS (1u << 31)
#define RUN_FP_USED (1u << 30) /* the way outwards depends on fp; if not, fp may be anything */
#define RUN_FIRST (RUN_FP_USED - 1)

#define FRAME_EXACT 4u

/* While walking. */
struct fresh {
	struct link link;
	uint64_t info; /* tag and flags, see unwind.c */
	/* Of those that walk_plain() did not leave. */
	uintptr_t fp;
	uint32_t checks, checks_end; /* those that the step out of it listed, up to here */
};

/* A word that the walk read, and what it was. */
struct check {
	const uintptr_t *at;
	uintptr_t value;
};

/* Rows that this thread has used, plain ones only, by return address: four places for each, which
 * on x86-64 are a cache line. */
#define NEAR_BITS 9
#define NEAR_WAYS 4

struct near_row {
	uintptr_t pc; /* 0: none */
	uint64_t info; /* as in struct fresh, and the CFA */
#if defined(__aarch64__)
	int64_t ra; /* where the return address is, from the CFA */
#endif
};

struct unwind {
	struct link *all_links; /* outermost first; in front one that no stack pointer reaches */
	struct link *links; /* behind that one */
	struct frame *frames; /* the same */
	struct check *checks; /* outermost frame's first */
	uint32_t count, links_room, frames_room, checks_room;
	uint32_t left_out; /* frames between frames[count / 2 - 1] and the next, see below */
	struct fresh *fresh; /* innermost first, while walking */
	struct check *fresh_checks;
	uint32_t fresh_room, fresh_checks_room;
	bool grown; /* for the owner to clear: unwind_bytes() has changed */
	uint64_t generation; /* of the modules, when frames were walked; 0: not to be used again */
	struct readable memory;
	/* Working memory of the slow paths, here because the host's stack may be small. */
	struct cfi_work cfi;
	struct cfi_expr expr;
	uint64_t full_walks; /* a count, for tests */
	uint64_t near_generation; /* of the modules, when `near` was empty */
	struct near_row near[1 << NEAR_BITS][NEAR_WAYS] __attribute__((aligned(64)));
};

/* How many of the frames up to this one are not the shim's. */
static inline uint32_t unwind_listed(const struct unwind *u, uint32_t i)
{
	return i + 1 - u->frames[i].ours;
}

/*
 * Walks. `kept` says how many outermost frames are those of the last walk. Beyond
 * UNWIND_FRAMES_MAX the middle is left out: the outer and inner halves remain. False: no memory;
 * the next walk starts afresh.
 */
bool unwind_walk(struct unwind *u, const struct stack_start *start, uint32_t *kept);

void unwind_free(struct unwind *u);
size_t unwind_bytes(const struct unwind *u);

/* One step outwards with all registers known, from this function's own frame to the frame at
 * (pc, sp), and out of it. False: cannot be done. */
struct unwind_place {
	uintptr_t pc, sp, fp;
	bool exact;
};
enum unwind_step { STEP_OK, STEP_ROOT, STEP_NO_CFI, STEP_BAD };
enum unwind_step unwind_full_step(struct unwind *u, struct unwind_place *at);

/* Without its signature, where pointers are signed. */
static inline uintptr_t unwind_strip(uintptr_t pc)
{
#if defined(__aarch64__)
	register uintptr_t x30 __asm__("x30") = pc;
	__asm__("hint #7" : "+r"(x30)); /* xpaclri; nothing on CPUs without */
	return x30;
#else
	return pc;
#endif
}

/* Offsets of registers from the stack pointer in a signal trampoline's frame. */
#if defined(__x86_64__)
#define SIGNAL_GREGS 40
#define SIGNAL_FP 120
#define SIGNAL_SP 160
#define SIGNAL_PC 168
#else
#define SIGNAL_REGS 312 /* siginfo 128, ucontext to uc_mcontext 176, fault address 8 */
#define SIGNAL_FP (SIGNAL_REGS + 29 * 8)
#define SIGNAL_SP (SIGNAL_REGS + 31 * 8)
#define SIGNAL_PC (SIGNAL_REGS + 32 * 8)
#endif

#endif
