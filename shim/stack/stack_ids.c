/*
 * stack_ids.c - see stack_ids.h. Two tables: stacks that are met move from the earlier one to the
 * recent one; when that is full the earlier one is emptied and they change places. Must not touch
 * the host's heap or wait for another thread.
 */
#include "stack/stack_ids.h"

#include <errno.h>

#define FIRST_ENTRIES 4096u
/* Where more than one in so many come back from the earlier table, or after they were forgotten,
 * the table is too small for what the program does again and again, and is doubled. */
#define RETURNS 8u

/* Of one stack in 64 the recorder notes that it was defined, to see how many come back after they
 * were forgotten. 65,536 marks are enough for the four million stacks of the largest table. */
#define SAMPLED 64u
#define MARKS 65536u

static uint64_t hash_of(uint64_t key)
{
	return key;
}

struct lockfree_map stack_ids_recent = LOCKFREE_MAP_INIT(STACK_IDS_RECENT, hash_of, NULL);
static struct lockfree_map earlier = LOCKFREE_MAP_INIT(0, hash_of, NULL);
static _Atomic uint32_t returned; /* stacks that came back since the table was last full */
static _Atomic uint16_t marks[MARKS]; /* of sampled stacks, 0: none */

/* Says whether a sampled stack was defined before; notes that it is now. */
static bool mark(const struct stack_hash *h)
{
	_Atomic uint16_t *place = &marks[h->a >> 48];
	uint16_t own = (uint16_t)(h->b >> 16) | 1;

	if (atomic_load_explicit(place, memory_order_relaxed) == own)
		return true;
	atomic_store_explicit(place, own, memory_order_relaxed);
	return false;
}

uint64_t stack_ids_find_before(const struct stack_hash *h)
{
	uint64_t key, value = 0;

	if (lockfree_map_may_have(&earlier, h->a))
		value = lockfree_map_get(&earlier, h->a, (uintptr_t)h, stack_ids_match, &key);
	if (value) {
		atomic_fetch_add_explicit(&returned, 1, memory_order_relaxed);
		stack_ids_put(*h, (uint32_t)value, true);
	} else if (__builtin_expect(h->b % SAMPLED == 0, 0) && mark(h)) {
		atomic_fetch_add_explicit(&returned, SAMPLED, memory_order_relaxed);
	}
	return value;
}

/* The recent table is full: doubles its limit, or turns the tables. */
static void make_room(bool forget)
{
	uint64_t max = atomic_load_explicit(&stack_ids_recent.max_entries, memory_order_relaxed);
	uint32_t again = atomic_exchange_explicit(&returned, 0, memory_order_relaxed);

	if (forget ? max < STACK_IDS_RECENT_MAX && again > max / 8 * 5 / RETURNS
		   : max < STACK_IDS_MAX)
		atomic_compare_exchange_strong(&stack_ids_recent.max_entries, &max, max * 2);
	else if (forget)
		lockfree_map_turn(&stack_ids_recent, &earlier);
}

void stack_ids_put(struct stack_hash h, uint32_t id, bool forget)
{
	if (__builtin_expect(lockfree_map_full(&stack_ids_recent), 0))
		make_room(forget);
	lockfree_map_put(&stack_ids_recent, h.a, stack_ids_value(h, id));
}

int stack_ids_init(void)
{
	return lockfree_map_init(&stack_ids_recent, FIRST_ENTRIES) ? 0 : -ENOMEM;
}

void stack_ids_fork_child(void)
{
	lockfree_map_clear_alone(&stack_ids_recent);
	lockfree_map_free_alone(&earlier);
	atomic_store(&stack_ids_recent.max_entries, STACK_IDS_RECENT);
	atomic_store(&returned, 0);
}

uint64_t stack_ids_bytes(void)
{
	return lockfree_map_bytes(&stack_ids_recent) + lockfree_map_bytes(&earlier);
}
