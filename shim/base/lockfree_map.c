/*
 * lockfree_map.c - storing, growing and clearing of lockfree_map.h. Must not wait for another
 * thread or touch the host's heap.
 */
#include "base/lockfree_map.h"

#include "base/sys.h"

static struct lockfree_map_table *table_new(uint64_t entries)
{
	size_t bytes =
	    sizeof(struct lockfree_map_table) + entries * (sizeof(struct lockfree_map_entry) + 1);
	struct lockfree_map_table *t = sys_pages_scattered(bytes);

	if (!t)
		return NULL;
	t->bytes = bytes;
	t->mask = entries - 1;
	return t;
}

static inline bool table_full(const struct lockfree_map_table *t)
{
	return atomic_load_explicit(&t->used, memory_order_relaxed) > (t->mask + 1) / 8 * 5;
}

static void table_clear(struct lockfree_map_table *t)
{
	for (uint64_t i = 0; i <= t->mask; i++) {
		atomic_store_explicit(&t->entries[i].key, 0, memory_order_relaxed);
		atomic_store_explicit(&t->entries[i].value, 0, memory_order_relaxed);
		atomic_store_explicit(lockfree_map_sieve(t, i), 0, memory_order_relaxed);
	}
	atomic_store_explicit(&t->used, 0, memory_order_relaxed);
	atomic_store_explicit(&t->last, false, memory_order_relaxed);
}

/* Two threads at one byte may lose a bit, and with it an entry, which callers allow. */
static inline void sieve_add(struct lockfree_map_table *t, uint64_t hash)
{
	_Atomic uint8_t *byte = lockfree_map_sieve(t, hash);
	uint8_t bits = atomic_load_explicit(byte, memory_order_relaxed);

	atomic_store_explicit(byte, (uint8_t)(bits | 1u << (hash >> 61)), memory_order_relaxed);
}

/* Give the key an entry of the table, for ever; the value follows. */
static bool table_put(struct lockfree_map_table *t, uint64_t hash, uint64_t key, uint64_t value)
{
	/*
	 * The count is raised before an entry is taken, and more than 15/16 of the entries are
	 * refused. However many threads race, one entry in sixteen stays empty and every search
	 * ends.
	 */
	uint64_t limit = t->mask + 1 - (t->mask + 1) / 16;

	if (atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed) >= limit) {
		atomic_fetch_sub_explicit(&t->used, 1, memory_order_relaxed);
		return false;
	}
	for (uint64_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		uint64_t old = 0;

		if (atomic_load_explicit(&t->entries[i].key, memory_order_relaxed))
			continue;
		if (atomic_compare_exchange_strong_explicit(&t->entries[i].key, &old, key,
			memory_order_acq_rel, memory_order_relaxed)) {
			atomic_store_explicit(&t->entries[i].value, value, memory_order_release);
			sieve_add(t, hash);
			return true;
		}
	}
}

bool lockfree_map_init(struct lockfree_map *map, uint64_t entries)
{
	struct lockfree_map_table *t;

	if (atomic_load_explicit(&map->table, memory_order_relaxed))
		return true;
	t = table_new(entries);
	if (!t)
		return false;
	atomic_store_explicit(&map->table, t, memory_order_release);
	return true;
}

/*
 * Entries that are stored in the old table during the copy are lost, which callers allow. A signal
 * handler that comes here on the same thread finds the flag set and continues without growing.
 */
static void map_grow(struct lockfree_map *map, struct lockfree_map_table *old)
{
	uint64_t entries = old->mask + 1, live = 0;
	struct lockfree_map_table *t;

	if (atomic_flag_test_and_set_explicit(&map->growing, memory_order_acquire))
		return;
	if (atomic_load_explicit(&map->table, memory_order_relaxed) != old)
		goto out;
	for (uint64_t i = 0; i < entries; i++) {
		uint64_t key = atomic_load_explicit(&old->entries[i].key, memory_order_acquire);

		live += key && (!map->keep || map->keep(key));
	}
	if (live > entries / 2)
		entries *= 2;
	t = entries > atomic_load_explicit(&map->max_entries, memory_order_relaxed)
		? NULL
		: table_new(entries);
	if (!t) {
		/* Not tried again: the count above reads the whole table. */
		atomic_store_explicit(&old->last, true, memory_order_relaxed);
		goto out;
	}
	for (uint64_t i = 0; i <= old->mask; i++) {
		uint64_t key = atomic_load_explicit(&old->entries[i].key, memory_order_acquire);
		uint64_t value = atomic_load_explicit(&old->entries[i].value, memory_order_acquire);

		if (key && value && (!map->keep || map->keep(key)))
			table_put(t, map->hash(key), key, value);
	}
	t->outgrown = old;
	atomic_store_explicit(&map->table, t, memory_order_release);
out:
	atomic_flag_clear_explicit(&map->growing, memory_order_release);
}

bool lockfree_map_put(struct lockfree_map *map, uint64_t key, uint64_t value)
{
	struct lockfree_map_table *t = atomic_load_explicit(&map->table, memory_order_acquire);

	if (!t)
		return false;
	if (table_full(t) && !atomic_load_explicit(&t->last, memory_order_relaxed)) {
		map_grow(map, t);
		t = atomic_load_explicit(&map->table, memory_order_acquire);
	}
	return table_put(t, map->hash(key), key, value);
}

bool lockfree_map_full(const struct lockfree_map *map)
{
	const struct lockfree_map_table *t =
	    atomic_load_explicit(&((struct lockfree_map *)map)->table, memory_order_acquire);

	return t &&
	       t->mask + 1 >= atomic_load_explicit(&((struct lockfree_map *)map)->max_entries,
				  memory_order_relaxed) &&
	       table_full(t);
}

bool lockfree_map_turn(struct lockfree_map *map, struct lockfree_map *past)
{
	struct lockfree_map_table *now, *fresh, *before;
	bool turned = false;

	if (atomic_flag_test_and_set_explicit(&map->growing, memory_order_acquire))
		return false;
	now = atomic_load_explicit(&map->table, memory_order_acquire);
	before = atomic_load_explicit(&past->table, memory_order_acquire);
	if (!now || !table_full(now))
		goto out; /* another thread was faster */
	if (before && before->mask == now->mask) {
		atomic_store_explicit(&past->table, NULL, memory_order_release);
		table_clear(before);
		fresh = before;
	} else {
		fresh = table_new(now->mask + 1);
		if (!fresh)
			goto out;
		/* a reader may still be in a table of another size */
		fresh->outgrown = before;
	}
	atomic_store_explicit(&past->table, now, memory_order_release);
	atomic_store_explicit(&map->table, fresh, memory_order_release);
	turned = true;
out:
	atomic_flag_clear_explicit(&map->growing, memory_order_release);
	return turned;
}

void lockfree_map_free_alone(struct lockfree_map *map)
{
	struct lockfree_map_table *t = atomic_exchange(&map->table, NULL);

	for (struct lockfree_map_table *old; t; t = old) {
		old = t->outgrown;
		sys_pages_free(t, t->bytes);
	}
	atomic_flag_clear_explicit(&map->growing, memory_order_relaxed);
}

void lockfree_map_clear_alone(struct lockfree_map *map)
{
	struct lockfree_map_table *t = atomic_load_explicit(&map->table, memory_order_relaxed);
	struct lockfree_map_table *fresh;

	atomic_flag_clear_explicit(&map->growing, memory_order_relaxed);
	if (!t)
		return;
	for (struct lockfree_map_table *old = t->outgrown, *next; old; old = next) {
		next = old->outgrown;
		sys_pages_free(old, old->bytes);
	}
	/* A new mapping instead of zeroing: the child then copies none of the parent's pages. */
	fresh = table_new(t->mask + 1 > 4096 ? 4096 : t->mask + 1);
	if (fresh) {
		sys_pages_free(t, t->bytes);
		t = fresh;
	} else {
		t->outgrown = NULL;
		table_clear(t);
	}
	atomic_store_explicit(&map->table, t, memory_order_release);
}

size_t lockfree_map_bytes(const struct lockfree_map *map)
{
	size_t bytes = 0;

	for (struct lockfree_map_table *t = atomic_load(&((struct lockfree_map *)map)->table); t;
	     t = t->outgrown)
		bytes += t->bytes;
	return bytes;
}
