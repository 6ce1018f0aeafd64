#include <string.h>

#include "../../util/unit.h"
#include "trace/symbols/pylines.h"

/* def f(a):			# line 10, compiled by the version named
 *     b = a + 1		# 11
 *     return [b,		# 12
 *             a]		# 13
 */
static void up_to_39(void **state)
{
	/* offsets 0-7: 11, 8-9: 12, 10-11: 13, 12-: 12 (a line delta of -1) */
	static const uint8_t table[] = {0, 1, 8, 1, 2, 1, 2, 255};

	assert_int_equal(pylines_line(0x309, 10, table, sizeof(table), -1, NULL), 10);
	assert_int_equal(pylines_line(0x308, 10, table, sizeof(table), 0, NULL), 11);
	assert_int_equal(pylines_line(0x308, 10, table, sizeof(table), 7, NULL), 11);
	assert_int_equal(pylines_line(0x309, 10, table, sizeof(table), 8, NULL), 12);
	assert_int_equal(pylines_line(0x309, 10, table, sizeof(table), 10, NULL), 13);
	assert_int_equal(pylines_line(0x309, 10, table, sizeof(table), 12, NULL), 12);
	assert_int_equal(pylines_line(0x309, 10, table, sizeof(table), 5000, NULL), 12);
	assert_int_equal(pylines_line(0x309, 10, table, 0, 4, NULL), 10);
	/* A jump of 400 lines takes several pairs without an address. */
	static const uint8_t jump[] = {4, 127, 0, 127, 0, 127, 0, 19};
	assert_int_equal(pylines_line(0x308, 1, jump, sizeof(jump), 3, NULL), 1);
	assert_int_equal(pylines_line(0x308, 1, jump, sizeof(jump), 4, NULL), 401);
}

static void of_310(void **state)
{
	/* ends 8: 11, 10: 12, 12: none, 14: 12 */
	static const uint8_t table[] = {8, 1, 2, 1, 2, 128, 2, 0};

	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), -1, NULL), 10);
	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), 0, NULL), 11);
	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), 8, NULL), 12);
	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), 10, NULL), 0);
	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), 12, NULL), 12);
	assert_int_equal(pylines_line(0x30a, 10, table, sizeof(table), 14, NULL), 0);
}

static void from_311(void **state)
{
	static const uint8_t table[] = {
	    0x80 | 0 << 3 | 0, 0x11, /* 2 bytes, line 10 */
	    0x80 | 11 << 3 | 3, 1, 2, /* 8 bytes, line 11 */
	    0x80 | 13 << 3 | 0, 4, /* 2 bytes, +2: 13 */
	    0x80 | 15 << 3 | 1, /* 4 bytes, no line */
	    0x80 | 14 << 3 | 0, 3, 0, 1, 2, /* 2 bytes, -1: 12 */
	    0x80 | 13 << 3 | 0, 0x40 | 0, 25, /* 2 bytes, +800: (0 | 25 << 6) >> 1 */
	};
	static const struct {
		int64_t offset;
		uint32_t line;
	} cases[] = {{-1, 10}, {0, 10}, {2, 11}, {9, 11}, {10, 13}, {12, 0}, {15, 0}, {16, 12},
	    {18, 812}, {20, 0}, {INT64_MAX, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t version = 0x30b; version <= 0x30e; version++)
			assert_int_equal(
			    pylines_line(version, 10, table, sizeof(table), cases[i].offset, NULL),
			    cases[i].line);
}

static void rubbish_is_harmless(void **state)
{
	uint8_t table[64];
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(table); i++) {
			seed = seed * 1664525 + 1013904223;
			table[i] = (uint8_t)(seed >> 24) | (round & 1 ? 0x80 : 0);
		}
		for (uint32_t version = 0x308; version <= 0x30e; version++)
			pylines_line(version, seed, table, seed % 65, (int64_t)(seed >> 20), NULL);
	}
}

/* Earlier reads make no difference, in any order. */
static void reading_begins_at_marks(void **state)
{
	uint8_t table[2000];
	uint32_t seed = 7;

	for (int round = 0; round < 300; round++) {
		struct pylines marks = {0};
		uint32_t version = 0x308 + (uint32_t)round % 7;

		for (size_t i = 0; i < sizeof(table); i++) {
			seed = seed * 1664525 + 1013904223;
			/* Small steps, and entries of 3.11 of two bytes. */
			table[i] = round % 3 == 0 ? (uint8_t)(seed >> 24)
				   : i % 2	  ? (uint8_t)(seed >> 30)
						  : 0x80 | 11 << 3 | (seed >> 29 & 7);
		}
		for (int question = 0; question < 40; question++) {
			int64_t offset;

			seed = seed * 1664525 + 1013904223;
			offset = (int64_t)(seed >> 16) % 9000 - 1;
			assert_int_equal(
			    pylines_line(version, 5, table, sizeof(table), offset, &marks),
			    pylines_line(version, 5, table, sizeof(table), offset, NULL));
		}
		assert_true(round % 3 == 0 || marks.count > 0);
		vec_free(&marks);
	}
}

/* CPython has a line in an int. The sum up to one that is none must not overflow. */
static void beyond_any_line(void **state)
{
	static const uint8_t far[11] = {
	    0xe8, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f};
	uint8_t table[16 * sizeof(far) + 20];

	for (size_t i = 0; i < 16; i++)
		memcpy(table + i * sizeof(far), far, sizeof(far));
	memset(table + 16 * sizeof(far), 0xe0, 20);
	for (int64_t offset = 0; offset < 80; offset++)
		assert_int_equal(pylines_line(0x30b, 1, table, sizeof(table), offset, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(up_to_39),
	    cmocka_unit_test(of_310),
	    cmocka_unit_test(from_311),
	    cmocka_unit_test(rubbish_is_harmless),
	    cmocka_unit_test(reading_begins_at_marks),
	    cmocka_unit_test(beyond_any_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
