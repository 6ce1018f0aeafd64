/*
 * map.h - hash tables: 64-bit keys to 64-bit values, and strings to small ids. The hash is seeded
 * by the system once a process, so that no input can choose collisions; results must not depend on
 * the order of a table.
 */
#ifndef ANALYZER_UTIL_MAP_H
#define ANALYZER_UTIL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

extern uint64_t map_seed_value; /* 0: not seeded yet */
void map_seed(void);

/* Hash an integer. Call map_seed() before. */
static inline uint64_t map_hash(uint64_t key)
{
	key ^= map_seed_value;
	key *= 0x9e3779b97f4a7c15ull;
	key ^= key >> 32;
	key *= 0xd6e8feb86659fd93ull;
	return key ^ key >> 29;
}
uint64_t map_hash_bytes(const void *data, size_t bytes);

struct map_slot {
	uint64_t key, value;
};
struct map {
	struct map_slot *slots;
	uint8_t *used;
	size_t count, capacity; /* a power of two, 0 at first */
};

/* Points to the value; NULL: no such key. Valid until the map changes. */
uint64_t *map_find(const struct map *map, uint64_t key);
/* Points to the value, which is 0 for a new key; NULL: no memory. */
uint64_t *map_put(struct map *map, uint64_t key);
bool map_remove(struct map *map, uint64_t key);
void map_clear(struct map *map);
void map_free(struct map *map);

/* Strings to ids: 1 for the first, then 2 and so on. */
struct intern {
	struct arena arena;
	struct intern_item {
		const char *text;
		size_t bytes;
		uint64_t hash;
	} * items; /* items[id - 1] */
	size_t count, capacity;
	uint32_t *table;
	size_t table_size;
};

/* Return the id of a text, and copy a new one. 0: no memory. */
uint32_t intern_add(struct intern *intern, const char *text, size_t bytes);
/* The text of an id, NUL-terminated; NULL: unknown id. */
const char *intern_text(const struct intern *intern, uint32_t id);
void intern_free(struct intern *intern);

#endif
