/* Histories over looks: the ring, gaps, the bound, and the levels of a sparkline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "watch/history.h"

static const struct history_key KEY = {.pid = 7, .function = "f", .file = "a.py", .line = 3};

static struct history *filled(unsigned looks, uint64_t (*at)(unsigned look))
{
	struct history *h = history_new();

	for (unsigned i = 0; i < looks; i++) {
		history_look(h, 2.0 * i);
		assert_int_equal(history_add(h, &KEY, at(i)), 0);
	}
	return h;
}

static uint64_t rising(unsigned look)
{
	return 1000 * (look + 1);
}

static uint64_t noisy(unsigned look)
{
	return 100000 + look % 2 * 900;
}

static uint64_t zero(unsigned look)
{
	(void)look;
	return 0;
}

static void test_few_looks_stand_right(void **state)
{
	struct history *h = filled(4, rising);
	uint8_t levels[6];

	(void)state;
	history_levels(h, &KEY, 6, levels);
	assert_memory_equal(levels, ((uint8_t[]){0, 0, 1, 3, 6, 8}), 6);
	history_levels(h, &KEY, 2, levels); /* the averages of two each */
	assert_memory_equal(levels, ((uint8_t[]){2, 7}), 2);
	history_free(h);
}

static void test_ring_forgets_the_oldest(void **state)
{
	struct history *h = filled(HISTORY_POINTS + 30, rising);
	uint8_t levels[8];
	double seconds;

	(void)state;
	assert_int_equal(history_change(h, &KEY, &seconds), 1000 * (int64_t)(HISTORY_POINTS - 1));
	assert_true(seconds == 2.0 * (HISTORY_POINTS - 1));
	history_levels(h, &KEY, 8, levels);
	for (unsigned i = 1; i < 8; i++)
		assert_true(levels[i] >= levels[i - 1]);
	assert_int_equal(levels[0], 1);
	assert_int_equal(levels[7], 8);
	history_free(h);
}

static void test_noise_stays_low(void **state)
{
	struct history *h = filled(50, noisy);
	uint8_t levels[50];

	(void)state;
	history_levels(h, &KEY, 50, levels);
	for (unsigned i = 0; i < 50; i++)
		assert_in_range(levels[i], 1, 2);
	history_free(h);
	h = filled(3, zero);
	history_levels(h, &KEY, 3, levels);
	assert_memory_equal(levels, ((uint8_t[]){1, 1, 1}), 3);
	history_free(h);
}

static void test_gap_counts_as_unchanged(void **state)
{
	struct history *h = history_new();
	uint8_t levels[5];
	double seconds;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		history_look(h, i);
		if (i == 0 || i == 4)
			assert_int_equal(history_add(h, &KEY, i == 4 ? 500 : 100), 0);
	}
	history_levels(h, &KEY, 5, levels);
	assert_memory_equal(levels, ((uint8_t[]){1, 1, 1, 1, 8}), 5);
	assert_int_equal(history_change(h, &KEY, &seconds), 400);
	assert_true(seconds == 4);
	history_free(h);
}

static void test_keys_are_told_apart(void **state)
{
	const struct history_key keys[] = {KEY,
	    {.pid = 8, .function = "f", .file = "a.py", .line = 3},
	    {.pid = 7, .function = "f", .file = "a.py", .line = 4},
	    {.pid = 7, .function = "fa", .file = ".py", .line = 3},
	    {.pid = 7, .function = "f", .line = 3}, {.pid = 7, .file = "f", .line = 3},
	    {.pid = 7, .space = true, .function = "f", .line = 3}};
	struct history *h = history_new();
	double seconds;

	(void)state;
	for (unsigned look = 0; look < 2; look++) {
		history_look(h, look);
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			assert_int_equal(history_add(h, &keys[i], 50 + look * (i + 1)), 0);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_int_equal(history_change(h, &keys[i], &seconds), i + 1);
	history_free(h);
}

static void test_bounded(void **state)
{
	struct history *h = history_new();
	struct history_key key = KEY;
	uint8_t level;

	(void)state;
	history_look(h, 0);
	assert_int_equal(history_add(h, &KEY, 1), 0);
	for (key.line = 1000; key.line < 1000 + HISTORY_SERIES_MAX; key.line++) {
		if (key.line % 100 == 0)
			history_look(h, key.line);
		assert_int_equal(history_add(h, &key, 1), 0);
	}
	history_levels(h, &KEY, 1, &level);
	assert_int_equal(level, 0); /* the oldest made room */
	key.line--;
	history_levels(h, &key, 1, &level);
	assert_int_equal(level, 1);
	/* What was not seen for as many looks as are kept is forgotten. */
	for (unsigned i = 0; i < HISTORY_POINTS; i++)
		history_look(h, 100 + i);
	history_levels(h, &key, 1, &level);
	assert_int_equal(level, 0);
	history_free(h);
	history_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_few_looks_stand_right),
	    cmocka_unit_test(test_ring_forgets_the_oldest),
	    cmocka_unit_test(test_noise_stays_low),
	    cmocka_unit_test(test_gap_counts_as_unchanged),
	    cmocka_unit_test(test_keys_are_told_apart),
	    cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
