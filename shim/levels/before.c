/* before.c - see before.h. A tree of three levels, whose leaves are bitmaps. */
#include "levels/before.h"

#include <stdint.h>

#include "base/shim_state.h"
#include "base/sys.h"
#include "loaded/symbols.h"
#include "whyoom/trace.h"

/* Bits of an address, from below: within a block's least distance to the next one (`shift`), then
 * those of a leaf, of a branch and of the root. User addresses have 47 or 48 bits. */
#define LEAF_BITS 22
#define BRANCH_BITS 11
#define ROOT_BITS 12
#define LEAF_WORDS (1u << LEAF_BITS >> 6)

struct branch {
	uint64_t *leaves[1u << BRANCH_BITS];
};

static struct branch *root[1u << ROOT_BITS];
static unsigned shift = 4;
static bool counts; /* this trace has the levels */
static uint64_t freed_bytes, freed_blocks;

/* The latest release of a block from before by this thread, which may not happen. */
static __thread struct {
	const void *block;
	uint64_t size;
} latest __attribute__((tls_model("initial-exec")));

static void *child(void **place, uint64_t bytes, bool make)
{
	void *there = __atomic_load_n(place, __ATOMIC_ACQUIRE), *fresh;

	if (there || !make)
		return there;
	fresh = sys_pages(bytes);
	if (!fresh || __atomic_compare_exchange_n(
			  place, &there, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	sys_pages_free(fresh, bytes); /* another thread was faster */
	return there;
}

/* Return the word with the bit of an address; NULL: there is none, or no memory for it. */
static uint64_t *word_of(uintptr_t address, uint64_t *bit, bool make)
{
	uint64_t at = (uint64_t)address >> shift;
	uint64_t r = at >> (LEAF_BITS + BRANCH_BITS);
	uint64_t b = at >> LEAF_BITS & ((1u << BRANCH_BITS) - 1);
	struct branch *branch;
	uint64_t *leaf;

	if (r >> ROOT_BITS)
		return NULL;
	branch = child((void **)&root[r], sizeof(*branch), make);
	leaf = branch ? child((void **)&branch->leaves[b], LEAF_WORDS * 8, make) : NULL;
	*bit = 1ull << (at & 63);
	return leaf ? &leaf[at >> 6 & (LEAF_WORDS - 1)] : NULL;
}

static void forget_leaf(uint64_t **leaf)
{
	uint64_t *old = *leaf;

	*leaf = NULL;
	sys_pages_free(old, LEAF_WORDS * 8);
}

void before_begin(void)
{
	for (unsigned r = 0; r < 1u << ROOT_BITS; r++)
		for (unsigned b = 0; root[r] && b < 1u << BRANCH_BITS; b++)
			if (root[r]->leaves[b])
				forget_leaf(&root[r]->leaves[b]);
	shift = shim.owner_is_libc ? 4 : 3;
	freed_bytes = freed_blocks = 0;
	counts = true;
}

void before_acquired(const void *block)
{
	uint64_t bit, *word = word_of((uintptr_t)block, &bit, true);

	if (word)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
}

static void count(uint64_t bytes, uint64_t blocks)
{
	__atomic_fetch_add(&freed_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&freed_blocks, blocks, __ATOMIC_RELAXED);
}

bool before_released(const void *block, bool foreign)
{
	uint64_t bit, *word = word_of((uintptr_t)block, &bit, false);

	latest.block = NULL;
	if (word && __atomic_load_n(word, __ATOMIC_RELAXED) & bit &&
	    __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED) & bit)
		return false;
	latest.size = foreign || !real.malloc_usable_size
			  ? 0
			  : real.malloc_usable_size((void *)(uintptr_t)block);
	latest.block = block;
	count(latest.size, 1);
	return true;
}

bool before_unreleased(const void *block)
{
	if (latest.block != block) {
		before_acquired(block);
		return false;
	}
	latest.block = NULL;
	count(-latest.size, -1ull);
	return true;
}

void before_forked(void)
{
	counts = false;
}

unsigned before_levels(struct level *out)
{
	unsigned n;

	if (!counts)
		return 0;
	n = level_put(
	    out, 0, TRACE_LEVEL_BEFORE_FREED, __atomic_load_n(&freed_bytes, __ATOMIC_RELAXED));
	return level_put(out, n, TRACE_LEVEL_BEFORE_FREED_BLOCKS,
	    __atomic_load_n(&freed_blocks, __ATOMIC_RELAXED));
}
