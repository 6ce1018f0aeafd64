/*
 * live_blocks.h - the addresses of the blocks whose acquisition was recorded, where not all are:
 * only their releases are worth a record. Any thread, signal handlers included, at any time; no
 * lock.
 *
 * Whoever releases a block got it from whoever acquired it, so what known_add() stored before the
 * block was handed out is seen. An address is taken out before the real release, hence never by the
 * block that has it next.
 */
#ifndef SHIM_KNOWN_H
#define SHIM_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many known addresses share a place: neighbours share one, so that it is in the cache when the
 * blocks are. 255 stays for ever. */
#define KNOWN_PLACES 65536u
extern uint8_t known_filter[KNOWN_PLACES] __attribute__((visibility("hidden")));

static inline uint8_t *known_place(const void *block)
{
	uintptr_t at = (uintptr_t)block >> 10;

	return &known_filter[(at ^ at >> 16) % KNOWN_PLACES];
}

/* False: certainly not known. One load, no write. */
static inline bool known_maybe(const void *block)
{
	return __atomic_load_n(known_place(block), __ATOMIC_RELAXED) != 0;
}

/* How a known block was acquired, as the trace has it. */
struct known_block {
	uint64_t birth; /* ticks of its record, never 0 */
	uint64_t size;
	uint64_t mean; /* it was chosen with; 0: it stands for itself */
	uint32_t stack;
	uint32_t thread, tid; /* serial number, and the kernel's */
	uint32_t api;
};

/* False: no memory for it. What is there already of that address was released unseen: it goes. */
bool known_add(const void *block, const struct known_block *how);

/* Room for more, where little is left: later there may be no memory for it. Not in a handler. */
void known_prepare(void);

/* Takes it out; *how (may be NULL): as it was added. False: it was not known. */
bool known_take(const void *block, struct known_block *how);

/*
 * What became of known blocks in the present period: for the record of a period that is
 * replaced. Bytes are what the blocks stand for.
 */
struct known_totals {
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t live, live_bytes, most_bytes; /* now, and at the most */
	uint64_t live_sampled; /* of `live`, those that stand for others */
};
/* `mark`: a period ends here if it is followed by known_period_over() with what this returned, for
 * the sums, which go on meanwhile; else by known_period_on(). */
struct known_totals known_period(bool mark);
void known_period_over(const struct known_totals *marked);
void known_period_on(const struct known_totals *marked);

/*
 * Calls `each` for each block that is known and was acquired in this process at `until` or before;
 * what is added or taken meanwhile may be seen or not, but never half. `each` returns false to
 * stop; then so does this.
 */
bool known_each(uint64_t until,
    bool (*each)(void *arg, uint64_t address, const struct known_block *how), void *arg);

/* The block that known_each() showed so, if it is still there: from now on one of a sample by
 * `mean`; 0: not known any more, its release is like that of one that was never recorded. */
void known_thin(uint64_t address, uint64_t birth, uint64_t mean);

/* In the child of a fork, which goes on knowing what it inherited: `start`, ticks, is where its own
 * trace begins. */
void known_forked(uint64_t start);

/* Memory of the tables, bytes. */
uint64_t known_bytes(void);

#endif
