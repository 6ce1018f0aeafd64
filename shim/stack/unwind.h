/*
 * unwind.h - the native frames of the calling thread, outermost first, kept from walk to walk. A
 * walk goes outwards only as far as frames have changed; for the rest it checks that the words
 * which the earlier walk read are the same. One struct unwind per thread, no locks; shares only the
 * CFI cache and the module table. Signal-safe as long as a thread does not enter it twice.
 */
#ifndef SHIM_UNWIND_H
#define SHIM_UNWIND_H

#include "stack/eh_frame.h"
#include "stack/readable.h"
#include "stack/stack.h"
#include "stack/stack_hash.h"

/* More frames than 8 MiB of stack hold in real programs; see unwind_walk() for deeper ones. */
#define UNWIND_FRAMES_MAX (1u << 18)

/* A frame's registers at its call. Holds only what a check of the outer frames reads. */
struct link {
	uintptr_t sp, pc;
#if defined(__aarch64__)
	/* address and value of the word that holds this return address, signature included */
	uintptr_t ra_at, ra;
#endif
};

/* The rest of a frame. */
typedef uint32_t frame_words __attribute__((vector_size(16), aligned(8)));
struct frame {
	struct stack_hash hash; /* of the frames up to here without the shim's */
	union {
		struct {
			/* first frame of the run that is checked like this one; flags */
			uint32_t run;
			/* end of its checks, which begin where the outer frame's end */
			uint32_t checks_end;
			uint32_t shim_frames; /* how many frames up to here are the shim's */
			/* as in the trace: module << 3 | exact << 2 | type, or an END frame */
			uint32_t tag;
		};
		frame_words words; /* all four, for one store */
	};
	uintptr_t fp; /* valid under RUN_FP_USED */
};

/* The words that led out of the run's frames are in the list of checks. In other runs the only such
 * word is the return address, at the place that the outer frame's link gives. */
#define RUN_CHECKS (1u << 31)
#define RUN_FP_USED (1u << 30) /* the outer frames depend on fp */
#define RUN_FIRST (RUN_FP_USED - 1)

#define FRAME_EXACT 4u

/* A frame of the walk in progress. */
struct fresh {
	struct link link;
	uint64_t info; /* tag and flags, see unwind_plain.h */
	/* not of plain frames: */
	uintptr_t fp;
	uint32_t checks, checks_end; /* count and end of the checks that its step listed */
};

/* A word that the walk read. */
struct check {
	const uintptr_t *at;
	uintptr_t value;
};

/* The thread's own cache of plain rows by return address: sets of four ways, each a cache line on
 * x86-64. */
#define NEAR_BITS 9
#define NEAR_WAYS 4

struct near_row {
	uintptr_t pc; /* 0: none */
	uint64_t info; /* as in struct fresh, with the CFA */
#if defined(__aarch64__)
	int64_t ra; /* offset of the return address from the CFA */
#endif
};

struct unwind {
	struct link *all_links; /* a sentinel that no stack pointer reaches, then the links */
	struct link *links; /* outermost first */
	struct frame *frames; /* outermost first */
	struct check *checks; /* the outermost frame's first */
	uint32_t count, links_room, frames_room, checks_room;
	uint32_t left_out; /* frames that are missing in the middle, see unwind_walk() */
	struct fresh *fresh; /* innermost first */
	struct check *fresh_checks;
	uint32_t fresh_room, fresh_checks_room;
	bool grown; /* unwind_bytes() has changed; the owner clears it */
	uint64_t generation; /* of the modules at the walk; 0: frames must not be reused */
	struct readable memory;
	/* working memory of the slow paths, as the host's stack may be small */
	struct cfi_work cfi;
	struct cfi_expr expr;
	uint64_t full_walks; /* a count, for tests */
	uint64_t near_generation; /* of the modules, when `near` was emptied */
	struct near_row near[1 << NEAR_BITS][NEAR_WAYS] __attribute__((aligned(64)));
};

/* Counts the frames up to frame i without the shim's. */
static inline uint32_t unwind_listed(const struct unwind *u, uint32_t i)
{
	return i + 1 - u->frames[i].shim_frames;
}

/* Walks the stack from `start`. *kept: how many outermost frames are those of the last walk. Of
 * more than UNWIND_FRAMES_MAX frames the outer and inner halves remain. False: no memory; the next
 * walk starts afresh. */
bool unwind_walk(struct unwind *u, const struct stack_start *start, uint32_t *kept);

void unwind_free(struct unwind *u);
size_t unwind_bytes(const struct unwind *u);

/* Steps out of the frame at *at with the rules interpreted anew for all registers, beginning at
 * this function's own frame. *at becomes the outer frame on STEP_OK. */
struct unwind_state {
	uintptr_t pc, sp, fp;
	bool exact;
};
enum unwind_step { STEP_OK, STEP_ROOT, STEP_NO_CFI, STEP_BAD };
enum unwind_step unwind_full_step(struct unwind *u, struct unwind_state *at);

/* Strips the signature from a return address. */
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
