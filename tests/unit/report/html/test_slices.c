/* What was born and died in which slice. */
#include "model/unit.h"

#include "report/html/slices.h"

static const struct slice_cell *cell(
    const struct slices *s, uint32_t site, uint32_t born, uint32_t further)
{
	return &s->sites[site]->cells[born][further];
}

static void test_born_and_died(void **state)
{
	struct slices s = {.end_ns = 6400};

	assert_int_equal(slices_acquired(&s, 3, 0, 100, 1), 0);
	assert_int_equal(slices_acquired(&s, 3, 150, 30, 2), 0);
	assert_int_equal(slices_acquired(&s, 3, 6399, 9, 1), 0);
	assert_int_equal(slices_acquired(&s, 1000, 6500, 4, 1), 0); /* the rest; after the end */
	assert_int_equal(slices_released(&s, 3, 0, 250, 100, 1), 0);
	assert_int_equal(slices_released(&s, 3, 150, 160, 10, 1), 0);
	assert_int_equal(cell(&s, 3, 0, 2)->bytes, 100);
	assert_int_equal(cell(&s, 3, 0, SLICES)->bytes, 0);
	assert_int_equal(cell(&s, 3, 1, 0)->bytes, 10);
	assert_int_equal(cell(&s, 3, 1, SLICES)->bytes, 20);
	assert_int_equal(cell(&s, 3, 1, SLICES)->count, 1);
	assert_int_equal(cell(&s, 3, SLICES - 1, SLICES)->bytes, 9);
	assert_int_equal(cell(&s, SLICES_SITES, SLICES - 1, SLICES)->bytes, 4);
	slices_fini(&s);
}

static void test_damage(void **state)
{
	struct slices s = {.end_ns = 6400};

	/* A release that failed: the block is acquired once more, and keeps its birth. */
	slices_acquired(&s, 0, 0, 8, 1);
	slices_released(&s, 0, 0, 1000, 8, 1);
	slices_acquired(&s, 0, 1000, 8, 1);
	slices_released(&s, 0, 0, 2000, 8, 1);
	assert_int_equal(cell(&s, 0, 10, 10)->bytes, 8);
	assert_int_equal(cell(&s, 0, 10, SLICES)->bytes, 0);
	/* What was never acquired, and a death before the birth. */
	assert_int_equal(slices_released(&s, 0, 3000, 10, 5, 1), 0);
	assert_int_equal(slices_released(&s, 7, 0, 10, 5, 1), 0);
	slices_fini(&s);
}

static uint64_t number(const struct str *s, size_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		unsigned char b = (unsigned char)s->text[(*at)++];

		value |= (uint64_t)(b & 127) << shift;
		if (b < 128)
			return value;
	}
}

static void test_budget(void **state)
{
	struct slices s = {.end_ns = 6400};
	struct str out = {0};
	uint64_t bytes = 0, cells = 0, sites;
	size_t at = 0;

	/* Each call site fills all its cells: beyond the budget they are merged, and no byte is
	 * lost. */
	for (uint32_t site = 0; site < SLICES_SITES; site++)
		for (uint64_t born = 0; born < SLICES; born++)
			for (uint64_t died = born; died < SLICES; died++) {
				slices_acquired(&s, site, born * 100, 1, 1);
				slices_released(&s, site, born * 100, died * 100, 1, 1);
			}
	slices_write(&s, &out);
	assert_int_equal(number(&out, &at), 6400);
	assert_int_equal(number(&out, &at), SLICES);
	sites = number(&out, &at);
	for (uint64_t i = 0; i < sites; i++) {
		uint64_t of = i + 1 < sites ? i : SLICES_SITES;

		assert_int_equal(number(&out, &at), of);
		for (uint64_t n = number(&out, &at); n > 0; n--, cells++) {
			number(&out, &at);
			bytes += number(&out, &at);
			number(&out, &at);
		}
	}
	assert_int_equal(at, out.length);
	assert_int_equal(bytes, (uint64_t)SLICES_SITES * SLICES * (SLICES + 1) / 2);
	assert_true(sites < SLICES_SITES);
	assert_true(cells <= SLICES_CELLS + SLICES * (SLICES + 1));
	str_free(&out);
	slices_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_born_and_died),
	    cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
