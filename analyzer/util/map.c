#include "util/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "util/vec.h"

uint64_t map_seed_value;

void map_seed(void)
{
	uint64_t seed = 0;

	if (map_seed_value)
		return;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		seed = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ull ^ (uint64_t)getpid() << 32 ^
		       (uintptr_t)&seed;
	}
	map_seed_value = seed | 1;
}

uint64_t map_hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = map_seed_value ^ bytes, word;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	word = 0;
	memcpy(&word, p, bytes);
	return map_hash(h ^ word * 0xd6e8feb86659fd93ull);
}

/* Find the key's slot, or the free slot where it belongs. */
static size_t map_at(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, i = map_hash(key) & mask;

	while (map->used[i] && map->slots[i].key != key)
		i = (i + 1) & mask;
	return i;
}

uint64_t *map_find(const struct map *map, uint64_t key)
{
	size_t i;

	if (!map->count)
		return NULL;
	i = map_at(map, key);
	return map->used[i] ? &map->slots[i].value : NULL;
}

static int map_resize(struct map *map, size_t capacity)
{
	struct map old = *map, new = {.capacity = capacity, .count = old.count};

	map_seed();
	new.slots = calloc(capacity, sizeof(*new.slots));
	new.used = calloc(capacity, 1);
	if (!new.slots || !new.used) {
		free(new.slots);
		free(new.used);
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.capacity; i++) {
		if (!old.used[i])
			continue;
		size_t at = map_at(&new, old.slots[i].key);
		new.used[at] = 1;
		new.slots[at] = old.slots[i];
	}
	free(old.slots);
	free(old.used);
	*map = new;
	return 0;
}

uint64_t *map_put(struct map *map, uint64_t key)
{
	size_t i;

	if (map->count >= map->capacity - map->capacity / 4 &&
	    map_resize(map, map->capacity ? map->capacity * 2 : 16))
		return NULL;
	i = map_at(map, key);
	if (!map->used[i]) {
		map->used[i] = 1;
		map->slots[i] = (struct map_slot){.key = key};
		map->count++;
	}
	return &map->slots[i].value;
}

bool map_remove(struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1, i, next, home;

	if (!map->count)
		return false;
	i = map_at(map, key);
	if (!map->used[i])
		return false;
	/* Close the gap: move back the keys that probed past this slot. */
	for (next = (i + 1) & mask; map->used[next]; next = (next + 1) & mask) {
		home = map_hash(map->slots[next].key) & mask;
		if (((next - home) & mask) >= ((next - i) & mask)) {
			map->slots[i] = map->slots[next];
			i = next;
		}
	}
	map->used[i] = 0;
	map->count--;
	return true;
}

void map_clear(struct map *map)
{
	if (map->used)
		memset(map->used, 0, map->capacity);
	map->count = 0;
}

void map_free(struct map *map)
{
	free(map->slots);
	free(map->used);
	*map = (struct map){0};
}

static int intern_rehash(struct intern *in, size_t size)
{
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t id = 1; id <= in->count; id++) {
		size_t i = in->items[id - 1].hash & (size - 1);
		while (table[i])
			i = (i + 1) & (size - 1);
		table[i] = (uint32_t)id;
	}
	free(in->table);
	in->table = table;
	in->table_size = size;
	return 0;
}

uint32_t intern_add(struct intern *in, const char *text, size_t bytes)
{
	uint64_t hash;
	size_t i;
	char *copy;

	map_seed();
	if (in->count >= in->table_size / 2 &&
	    intern_rehash(in, in->table_size ? in->table_size * 2 : 64))
		return 0;
	hash = map_hash_bytes(text, bytes);
	for (i = hash & (in->table_size - 1); in->table[i]; i = (i + 1) & (in->table_size - 1)) {
		const struct intern_item *item = &in->items[in->table[i] - 1];
		if (item->hash == hash && item->bytes == bytes && !memcmp(item->text, text, bytes))
			return in->table[i];
	}
	if (in->count >= UINT32_MAX - 1 || vec_reserve(in, in->count + 1))
		return 0;
	copy = arena_copy(&in->arena, text, bytes);
	if (!copy)
		return 0;
	in->items[in->count++] = (struct intern_item){.text = copy, .bytes = bytes, .hash = hash};
	in->table[i] = (uint32_t)in->count;
	return (uint32_t)in->count;
}

const char *intern_text(const struct intern *in, uint32_t id)
{
	return id && id <= in->count ? in->items[id - 1].text : NULL;
}

void intern_free(struct intern *in)
{
	arena_free(&in->arena);
	free(in->items);
	free(in->table);
	*in = (struct intern){0};
}
