/* A trend is told from a jump, from a sawtooth and from a filled room. */
#include "model/unit.h"

#include "model/heap/peak_trend.h"

/* Live bytes after each of equal pieces of work. */
static uint64_t trend(uint64_t (*live)(uint32_t i), uint32_t pieces)
{
	struct peak_trend r = {0};
	uint64_t peak = 0;

	for (uint32_t i = 0; i < pieces; i++) {
		if (live(i * 64 / pieces) > peak)
			peak = live(i * 64 / pieces);
		peak_trend_note(&r, (i + 1) * 5000ull, peak);
		assert_true(r.used <= PEAK_TREND_MARKS);
	}
	return peak_trend_added(&r, peak);
}

static uint64_t rising(uint32_t i)
{
	return i * 1000;
}

static uint64_t one_jump(uint32_t i)
{
	return i < 50 ? 20000 : 60000;
}

static uint64_t sawtooth(uint32_t i)
{
	return 40000 + i * 7919 % 8192;
}

static uint64_t filled(uint32_t i)
{
	return i < 32 ? i * 2000 : 64000;
}

static void test_trend(void **state)
{
	const uint32_t pieces[] = {64, 100, 1000, 12345};

	for (size_t i = 0; i < 4; i++) {
		uint64_t up = trend(rising, pieces[i]);

		assert_true(up >= 50000 && up <= 72000);
		assert_int_equal(trend(one_jump, pieces[i]), 0);
		assert_int_equal(trend(sawtooth, pieces[i]), 0);
		assert_int_equal(trend(filled, pieces[i]), 0);
	}
	assert_int_equal(trend(rising, 3), 0);
	(void)state;
}

/* One acquisition of any size fills at most the room that there is. */
static void test_huge(void **state)
{
	struct peak_trend r = {0};

	peak_trend_note(&r, 1ull << 62, 1ull << 62);
	assert_true(r.used <= PEAK_TREND_MARKS && r.stride > 0);
	peak_trend_note(&r, UINT64_MAX, UINT64_MAX);
	assert_true(r.used <= PEAK_TREND_MARKS);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_trend), cmocka_unit_test(test_huge)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
