/*
 * cfi_cache.h - the cache of CFI rows: by pc, how to get from a frame to its outer frame, packed
 * into 64 bits. A row belongs to a module id and is true while that module is live, so nothing
 * needs to be removed when a library is unloaded. Lock-free, signal-safe.
 */
#ifndef SHIM_CFI_CACHE_H
#define SHIM_CFI_CACHE_H

#include "base/lockfree_map.h"
#include "stack/eh_frame.h"

/*
 *  0..2   enum row_kind: where the CFA comes from
 *  3..4   enum row_fp: where the outer frame pointer register is
 *  5      always 1: a row is not zero
 *  8..23  return address at CFA + 8 * this (signed)
 * 24..39  frame pointer at CFA, or at fp, + 8 * this (signed)
 *         (ROW_FP_SAME: the return address once more, so that there is always one to read)
 * 40..63  CFA offset / 8 (signed)
 * ROW_NO_CFI and ROW_SIGNAL outside all modules: 8..39 are the module generation of the row.
 */
enum row_kind {
	ROW_SP = 0, /* CFA = sp + offset */
	ROW_FP = 1, /* CFA = fp + offset */
	ROW_AT_FP = 2, /* CFA = the word at fp + offset, in functions that realign their stack */
	ROW_ROOT = 3, /* no outer frame */
	ROW_SIGNAL = 4,
	ROW_FULL = 5, /* needs other registers: unwind_full.c */
	ROW_NO_CFI = 6,
};

enum row_fp { ROW_FP_SAME = 0, ROW_FP_AT_CFA = 1, ROW_FP_AT_FP = 2 };

#define ROW_VALID 0x20u
#define ROW_FP_SHIFT 3

static inline unsigned row_kind(uint64_t row)
{
	return row & 7;
}

static inline unsigned row_fp(uint64_t row)
{
	return row >> ROW_FP_SHIFT & 3;
}

/* True: the CFA comes from sp or fp, and the outer frame pointer is unchanged or at the CFA. */
static inline bool row_plain(uint64_t row)
{
	return (row & (ROW_VALID | 6 | 2 << 3)) == ROW_VALID;
}

static inline int64_t row_ra_offset(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 8) * 8;
}

static inline int64_t row_fp_offset(uint64_t row)
{
	return (int64_t)(int16_t)(row >> 24) * 8;
}

static inline int64_t row_cfa_offset(uint64_t row)
{
	return ((int64_t)row >> 40) * 8;
}

#define ROW_PC_MASK 0xffffffffffffu

extern struct map cfi_cache_map __attribute__((visibility("hidden")));

static inline uint64_t cfi_cache_hash(uint64_t pc)
{
	return (pc & ROW_PC_MASK) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static inline bool cfi_cache_match(uint64_t key, uint64_t row, uint64_t pc)
{
	if ((key & ROW_PC_MASK) != pc)
		return false; /* also where pc has more bits than addresses have */
	return __builtin_expect(key >> 48 != 0, 1)
		   ? module_live((uint32_t)(key >> 48))
		   : (uint32_t)(row >> 8) == (uint32_t)modules_generation();
}

/* Returns the cached row for an address within an instruction, and its module; 0: none. */
static inline uint64_t cfi_cache_find(uintptr_t pc, uint32_t *module)
{
	uint64_t key, row = map_get(&cfi_cache_map, cfi_cache_hash(pc), pc, cfi_cache_match, &key);

	if (row)
		*module = (uint32_t)(key >> 48);
	return row;
}

/* Works out the row of an address and caches it. `work` and `expr` are scratch. Never 0. */
uint64_t cfi_cache_make(
    uintptr_t pc, struct cfi_work *work, struct cfi_expr *expr, uint32_t *module);

/* Says whether the code at pc returns from a signal handler. For code without CFI. */
bool cfi_cache_is_sigreturn(uintptr_t pc);

int cfi_cache_init(void);
void cfi_cache_fork_child(void);
size_t cfi_cache_bytes(void);

#endif
