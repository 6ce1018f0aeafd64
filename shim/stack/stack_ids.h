/*
 * stack_ids.h - the ids of the stacks that were met lately, by hash. A stack that is not met again
 * while STACK_IDS_RECENT others are is forgotten; when it comes back it gets another id and is
 * defined again, which readers take for the same stack. Any thread, no locks.
 */
#ifndef SHIM_STACK_IDS_H
#define SHIM_STACK_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lockfree_map.h"
#include "stack/stack_hash.h"

/* Entries of the recent table at first; the tables turn when five eighths are in use. Importing a
 * large library makes a million stacks that are not met again: remembering them all took 64 MiB,
 * and clearing these a tenth of the time that was added. */
#define STACK_IDS_RECENT (1u << 18) /* 4 MiB */
#define STACK_IDS_RECENT_MAX (1u << 21) /* 34 MiB */
#define STACK_IDS_MAX (1u << 22) /* 68 MiB, nearly four million stacks; where none is forgotten */

/* Hash of a stack -> its id; see stack_ids_value(). The recent table, and the one before it. */
extern struct lockfree_map stack_ids_recent __attribute__((visibility("hidden")));

/*
 * The key is one 64-bit hash; the upper half of the value is 32 bits of a second hash, so 96 bits
 * decide whether two stacks are equal. A trace that uses all 2^32 ids merges two different stacks
 * with probability 2^63 / 2^96 = 2^-33; one with a million stacks with 2^-57. No adversary matters:
 * whoever chooses return addresses controls the program anyway.
 */
static inline uint64_t stack_ids_value(struct stack_hash h, uint32_t id)
{
	return (h.b >> 32) << 32 | id;
}

static inline bool stack_ids_match(uint64_t key, uint64_t value, uint64_t wanted)
{
	const struct stack_hash *h = (const struct stack_hash *)(uintptr_t)wanted;

	return key == h->a && value >> 32 == h->b >> 32;
}

/* Returns the value of a stack that is not in the recent table; 0: it was not met lately. */
uint64_t stack_ids_find_before(const struct stack_hash *h);

/* Returns the value of a stack; 0: it has none. Pre: h->a is not 0. `doubtful`: it may well be new,
 * so that it pays to look first whether it can be in the table. */
static inline __attribute__((always_inline)) uint64_t stack_ids_find(
    const struct stack_hash *h, bool doubtful)
{
	uint64_t key, value;

	if (doubtful && !lockfree_map_may_have(&stack_ids_recent, h->a))
		return stack_ids_find_before(h);
	value = lockfree_map_get(&stack_ids_recent, h->a, (uintptr_t)h, stack_ids_match, &key);
	return __builtin_expect(value != 0, 1) ? value : stack_ids_find_before(h);
}

/* Asks for the memory that stack_ids_put() of this stack will need. */
static inline void stack_ids_prefetch(struct stack_hash h)
{
	lockfree_map_prefetch(&stack_ids_recent, h.a);
}

/* Remembers a new stack. `forget`: older ones may be forgotten for it. */
void stack_ids_put(struct stack_hash h, uint32_t id, bool forget);

/* Allocates the table. Returns 0 or -ENOMEM. */
int stack_ids_init(void);
static inline bool stack_ids_ready(void)
{
	return atomic_load_explicit(&stack_ids_recent.table, memory_order_relaxed);
}
void stack_ids_fork_child(void);
uint64_t stack_ids_bytes(void);

#endif
