#include <string.h>

#include "trace/xxh64.h"
#include "unit.h"

/* Published values of XXH64 with seed 0. */
static void known_values(void **state)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} cases[] = {
	    {"", 0xef46db3751d8e999},
	    {"a", 0xd24ec4f1a98c6e5b},
	    {"abc", 0x44bc2cf5ad770999},
	    {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1},
	};
	struct xxh64 x;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		xxh64_init(&x);
		xxh64_add(&x, cases[i].text, strlen(cases[i].text));
		assert_true(xxh64_done(&x) == cases[i].hash);
	}
}

static void pieces_do_not_matter(void **state)
{
	uint8_t data[1000];
	struct xxh64 whole, pieces;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof(data); n += 13) {
		xxh64_init(&whole);
		xxh64_add(&whole, data, n);
		xxh64_init(&pieces);
		for (size_t at = 0, step = 1; at < n; at += step, step = step % 67 + 1)
			xxh64_add(&pieces, data + at, step < n - at ? step : n - at);
		assert_true(xxh64_done(&whole) == xxh64_done(&pieces));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(known_values),
	    cmocka_unit_test(pieces_do_not_matter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
