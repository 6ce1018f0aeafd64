/*
 * lockfree_map.h - an open-addressed map from a non-zero 64-bit key to a non-zero 64-bit value, in
 * the shim's own memory. Entries are written once and never change, so a look-up takes no lock and
 * never retries. It may miss an entry that is just being written, or was written while the map
 * grew. So callers must be able to compute a value again: the map is a cache of facts, not a
 * ledger.
 *
 * Any thread, signal handlers included, at any time. The first thread that comes grows the map;
 * others do not wait. Outgrown tables stay mapped because a reader may be in one; together they are
 * smaller than the present one, unless entries were dropped (keep).
 */
#ifndef SHIM_LOCKFREE_MAP_H
#define SHIM_LOCKFREE_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lockfree_map_entry {
	_Atomic uint64_t key, value;
};

struct lockfree_map_table {
	struct lockfree_map_table *outgrown; /* the previous table */
	size_t bytes; /* of this mapping */
	uint64_t mask;
	_Atomic uint64_t used;
	_Atomic bool last; /* cannot grow: at its limit, or no memory */
	struct lockfree_map_entry entries[]; /* behind them a sieve: a byte for each entry */
};

struct lockfree_map {
	_Atomic(struct lockfree_map_table *) table;
	atomic_flag growing;
	_Atomic uint64_t max_entries; /* a power of two */
	uint64_t (*hash)(uint64_t key); /* its low bits choose the entry */
	/* false: drop the key when the map grows; NULL: keep all keys */
	bool (*keep)(uint64_t key);
};

#define LOCKFREE_MAP_INIT(max, hash_function, keep_function)                                       \
	{                                                                                          \
		.growing = ATOMIC_FLAG_INIT, .max_entries = (max), .hash = (hash_function),        \
		.keep = (keep_function)                                                            \
	}

/* Begin with room for `entries`, a power of two. False: no memory. */
bool lockfree_map_init(struct lockfree_map *map, uint64_t entries);

/* Store a pair. False: no room. A key that is already stored is stored a second time. */
bool lockfree_map_put(struct lockfree_map *map, uint64_t key, uint64_t value);

/* Forget everything. Only while no other thread can use the map: in the child of a fork. */
void lockfree_map_clear_alone(struct lockfree_map *map);

/* True once the table has reached max_entries and is as full as a table may be before it grows. */
bool lockfree_map_full(const struct lockfree_map *map);

/*
 * Make the map's table that of `past`, and begin afresh with an empty one: past's former table if
 * it has the same size. `past` is only read and never grows. Look-ups that race with it miss
 * entries, or meet a key beside the value of another: match() must tell these by the value, too.
 * False: no memory, or another thread is at it; nothing changes.
 */
bool lockfree_map_turn(struct lockfree_map *map, struct lockfree_map *past);

/* Free all tables; the map is empty. Only while no other thread can use the map. */
void lockfree_map_free_alone(struct lockfree_map *map);

size_t lockfree_map_bytes(const struct lockfree_map *map);

/* Eight bits for the keys whose search begins at an entry; clear: there is no such key. Looking
 * there first saves most searches in vain, which mostly wait for memory. */
static inline _Atomic uint8_t *lockfree_map_sieve(struct lockfree_map_table *t, uint64_t hash)
{
	return (_Atomic uint8_t *)&t->entries[t->mask + 1] + (hash & t->mask);
}

static inline bool lockfree_map_may_have(struct lockfree_map *map, uint64_t hash)
{
	struct lockfree_map_table *t = atomic_load_explicit(&map->table, memory_order_acquire);

	return t && atomic_load_explicit(lockfree_map_sieve(t, hash), memory_order_relaxed) >>
			    (hash >> 61) &
			1;
}

/* Ask for the memory that a put of this key will need. */
static inline void lockfree_map_prefetch(struct lockfree_map *map, uint64_t hash)
{
	struct lockfree_map_table *t = atomic_load_explicit(&map->table, memory_order_acquire);

	if (t)
		__builtin_prefetch(&t->entries[hash & t->mask], 1);
}

/*
 * Return the first value that match() accepts and its key in *found; 0: none. `hash` is map->hash()
 * of the wanted key. match() is inlined.
 */
static inline __attribute__((always_inline)) uint64_t lockfree_map_get(struct lockfree_map *map,
    uint64_t hash, uint64_t wanted, bool (*match)(uint64_t key, uint64_t value, uint64_t wanted),
    uint64_t *found)
{
	struct lockfree_map_table *t = atomic_load_explicit(&map->table, memory_order_acquire);

	if (__builtin_expect(!t, 0))
		return 0;
	/* Never full (table_put): an empty entry ends the search. */
	for (uint64_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		uint64_t key = atomic_load_explicit(&t->entries[i].key, memory_order_acquire);
		uint64_t value;

		if (!key)
			return 0;
		value = atomic_load_explicit(&t->entries[i].value, memory_order_acquire);
		if (value && match(key, value, wanted)) {
			*found = key;
			return value;
		}
	}
}

#endif
