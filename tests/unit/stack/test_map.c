/* test_map.c - many threads use the lock-free map and the tables above it. Also built with the
 * thread sanitizer if the compiler has it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/lockfree_map.h"

#define THREADS 4

static uint64_t hash(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static bool match(uint64_t key, uint64_t value, uint64_t wanted)
{
	(void)value;
	return key == wanted;
}

static _Atomic uint64_t dead_below;

static bool keep(uint64_t key)
{
	return key >= atomic_load(&dead_below);
}

static uint64_t get(struct lockfree_map *map, uint64_t key)
{
	uint64_t found = 0, value = lockfree_map_get(map, hash(key), key, match, &found);

	assert_true(!value || found == key);
	return value;
}

/* A value computed from its key, so that a wrong pair shows. */
static uint64_t value_of(uint64_t key)
{
	return key * 3 + 1;
}

static void test_grows(void **state)
{
	struct lockfree_map map = LOCKFREE_MAP_INIT(1u << 20, hash, NULL);

	assert_int_equal(get(&map, 5), 0); /* before it is there */
	assert_false(lockfree_map_put(&map, 5, 6));
	assert_true(lockfree_map_init(&map, 64));
	for (uint64_t k = 1; k <= 100000; k++) {
		assert_int_equal(get(&map, k), 0);
		assert_true(lockfree_map_put(&map, k, value_of(k)));
		assert_int_equal(get(&map, k), value_of(k));
	}
	for (uint64_t k = 1; k <= 100000; k++)
		assert_int_equal(get(&map, k), value_of(k));
	assert_in_range(lockfree_map_bytes(&map), 100000 * 16, 100000 * 16 * 7);
	lockfree_map_clear_alone(&map);
	for (uint64_t k = 1; k <= 1000; k++)
		assert_int_equal(get(&map, k), 0);
	assert_true(lockfree_map_put(&map, 7, 8));
	assert_int_equal(get(&map, 7), 8);
}

static void test_full(void **state)
{
	struct lockfree_map map = LOCKFREE_MAP_INIT(1024, hash, NULL);
	unsigned stored = 0;

	assert_true(lockfree_map_init(&map, 256));
	for (uint64_t k = 1; k <= 5000; k++)
		stored += lockfree_map_put(&map, k, value_of(k));
	assert_in_range(stored, 900, 1023);
	/* every search ends, for present and for absent keys */
	for (uint64_t k = 1; k <= 10000; k++) {
		uint64_t v = get(&map, k);

		assert_true(v == 0 || v == value_of(k));
	}
}

static void test_dead_entries(void **state)
{
	struct lockfree_map map = LOCKFREE_MAP_INIT(4096, hash, keep);

	assert_true(lockfree_map_init(&map, 1024));
	/* ten times its capacity, of which only the newest live: it never fills */
	for (uint64_t k = 1; k <= 40000; k++) {
		atomic_store(&dead_below, k > 300 ? k - 300 : 0);
		assert_true(lockfree_map_put(&map, k, value_of(k)));
		assert_int_equal(get(&map, k), value_of(k));
	}
}

struct shared {
	struct lockfree_map map;
	_Atomic uint64_t missed, wrong, refused;
} shared = {.map = LOCKFREE_MAP_INIT(1u << 20, hash, NULL)};

static void *racer(void *arg)
{
	uint64_t r = (uintptr_t)arg * 7919 + 1;

	for (int i = 0; i < 60000; i++) {
		uint64_t k, v;

		r = r * UINT64_C(6364136223846793005) + 1442695040888963407u;
		k = 1 + (r >> 33) % 20000;
		v = get(&shared.map, k);
		if (v && v != value_of(k))
			shared.wrong++;
		if (!v) {
			shared.missed++;
			/* refused while another thread grows the table */
			shared.refused += !lockfree_map_put(&shared.map, k, value_of(k));
		}
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	assert_true(lockfree_map_init(&shared.map, 64));
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, racer, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.wrong, 0);
	/* while it grows, a bounded number of entries may be lost or stored twice */
	assert_in_range(shared.missed - shared.refused, 19000, 60000);
	for (uint64_t k = 1; k <= 20000; k++)
		assert_true(get(&shared.map, k) == 0 || get(&shared.map, k) == value_of(k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_grows),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_dead_entries),
	    cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
