#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "util/map.h"

enum { KEYS = 5000 };

/* Against a plain array: put, find and remove in a pseudo-random order. */
static void agrees_with_an_array(void **state)
{
	static uint64_t value[KEYS];
	static bool there[KEYS];
	struct map map = {0};
	uint32_t seed = 1;
	size_t count = 0;

	assert_null(map_find(&map, 1));
	assert_false(map_remove(&map, 1));
	for (unsigned step = 1; step < 200000; step++) {
		seed = seed * 1664525 + 1013904223;
		size_t i = (seed >> 8) % KEYS;
		uint64_t key = (uint64_t)i << 44 | i, *found = map_find(&map, key);

		assert_int_equal(found != NULL, there[i]);
		if (found)
			assert_true(*found == value[i]);
		if (seed >> 31) {
			found = map_put(&map, key);
			assert_non_null(found);
			if (!there[i])
				assert_true(*found == 0);
			*found = value[i] = step;
			count += !there[i];
			there[i] = true;
		} else {
			assert_int_equal(map_remove(&map, key), there[i]);
			count -= there[i];
			there[i] = false;
		}
		assert_int_equal(map.count, count);
	}
	map_clear(&map);
	for (size_t i = 0; i < KEYS; i++)
		assert_null(map_find(&map, (uint64_t)i << 44 | i));
	map_free(&map);
}

static void strings_get_dense_ids(void **state)
{
	struct intern in = {0};
	char text[32];

	for (uint32_t i = 1; i <= 3000; i++) {
		int n = snprintf(text, sizeof(text), "name-%u", i);
		assert_int_equal(intern_add(&in, text, (size_t)n), i);
	}
	for (uint32_t i = 1; i <= 3000; i++) {
		int n = snprintf(text, sizeof(text), "name-%u", i);
		assert_int_equal(intern_add(&in, text, (size_t)n), i);
		assert_string_equal(intern_text(&in, i), text);
	}
	/* Bytes count, not text up to a NUL. */
	assert_int_equal(intern_add(&in, "a\0b", 3), 3001);
	assert_int_equal(intern_add(&in, "a\0c", 3), 3002);
	assert_int_equal(intern_add(&in, "", 0), 3003);
	assert_null(intern_text(&in, 0));
	assert_null(intern_text(&in, 3004));
	intern_free(&in);
}

static void hashes_of_bytes_differ(void **state)
{
	const char text[] = "0123456789abcdef0123456789abcdef";

	map_seed();
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		assert_true(map_hash_bytes(text, n) == map_hash_bytes(text, n));
		assert_true(map_hash_bytes(text, n) != map_hash_bytes(text, n + 1));
		assert_true(map_hash_bytes(text, 16) == map_hash_bytes(text + 16, 16));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(agrees_with_an_array),
	    cmocka_unit_test(strings_get_dense_ids),
	    cmocka_unit_test(hashes_of_bytes_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
