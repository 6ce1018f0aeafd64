/* test_small_code.c - the analyzer decodes what the shim codes, and refuses damaged data. */
#include "../under.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/directory/small_code.h"
#include "trace/small_code.h"

#define MOST 65536u

static uint8_t window[2 * MOST], back[2 * MOST], out[4 * MOST];
static uint32_t times[4096], times_back[4096];
static uint64_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

static size_t there_and_back(uint32_t base, uint32_t end, uint32_t count)
{
	struct small_coder *c = calloc(1, small_coder_bytes());
	size_t n = small_encode(c, window, base, end, times, count, out, sizeof(out));

	free(c);
	assert_true(n);
	memcpy(back, window, base);
	memset(back + base, 0xa5, end - base);
	memset(times_back, 0xa5, sizeof(times_back));
	assert_int_equal(small_decode(out, n, back, base, end, times_back, count), 0);
	assert_memory_equal(back, window, end);
	assert_memory_equal(times_back, times, count * sizeof(*times));
	return n;
}

static void test_like_its_base(void **state)
{
	const uint32_t base = 20000, size = 19990;

	for (uint32_t i = 0; i < base; i++)
		window[i] = (uint8_t)any(256);
	memcpy(window + base, window, 5000);
	memcpy(window + base + 5000, window + 5010, size - 5000); /* ten bytes are missing */
	for (int i = 0; i < 50; i++)
		window[base + any(size)] ^= (uint8_t)(1 + any(255));
	assert_in_range(there_and_back(base, base + size, 0), 50, 500);
}

static void test_what_repeats(void **state)
{
	memset(window, 7, MOST);
	assert_in_range(there_and_back(0, MOST, 0), 4, 40);
}

static void test_anything(void **state)
{
	for (int round = 0; round < 200; round++) {
		uint32_t base = any(3000), end = base + any(3000), alphabet = 1 + any(256);
		uint32_t count = any(100);

		for (uint32_t i = 0; i < end; i++)
			window[i] =
			    i > 40 && any(4) ? window[i - 1 - any(40)] : (uint8_t)any(alphabet);
		for (uint32_t i = 0; i < count; i++)
			times[i] = any(UINT32_MAX >> 1) >> any(32);
		there_and_back(base, end, count);
	}
}

static void test_numbers(void **state)
{
	uint32_t n = 0;

	for (unsigned bit = 0; bit < 32; bit++) {
		times[n++] = UINT32_C(1) << bit;
		times[n++] = (UINT32_C(1) << bit) - 1;
		times[n++] = UINT32_MAX >> bit;
	}
	there_and_back(0, 0, n);
	assert_in_range(there_and_back(0, 0, 0), 4, 8);
}

/* Carries run through more bytes of 0xff than fit into a word. */
static void test_carries(void **state)
{
	for (uint32_t i = 0; i < 4096; i++)
		times[i] = UINT32_MAX - (i % 3 == 0);
	there_and_back(0, 0, 4096);
}

static void test_no_room(void **state)
{
	struct small_coder *c = calloc(1, small_coder_bytes());

	for (uint32_t i = 0; i < 1000; i++)
		window[i] = (uint8_t)any(256);
	assert_int_equal(small_encode(c, window, 0, 1000, NULL, 0, out, 500), 0);
	free(c);
}

/* Damaged data is refused or decoded to something else, never out of bounds: the sanitizers check
 * it. */
static void test_damaged(void **state)
{
	struct small_coder *c = calloc(1, small_coder_bytes());
	const uint32_t base = 500, end = 1500;
	unsigned refused = 0;
	size_t n;

	for (uint32_t i = 0; i < end; i++)
		window[i] = i > 40 && any(4) ? window[i - 1 - any(40)] : (uint8_t)any(256);
	for (uint32_t i = 0; i < 100; i++)
		times[i] = any(1000);
	n = small_encode(c, window, base, end, times, 100, out, sizeof(out));
	free(c);
	assert_true(n > 100);
	for (int round = 0; round < 2000; round++) {
		uint8_t *damaged = malloc(n);
		uint8_t *into = malloc(end);
		size_t bytes = round % 2 ? n : any((uint32_t)n);

		memcpy(damaged, out, n);
		for (uint32_t k = 1 + any(4); k; k--)
			damaged[any((uint32_t)n)] = (uint8_t)any(256);
		memcpy(into, window, base);
		refused +=
		    small_decode(damaged, bytes, into, base, end, times_back, 100) == -EINVAL;
		free(damaged);
		free(into);
	}
	assert_true(refused > 1000);
	assert_int_equal(small_decode(out, 3, back, base, end, times_back, 100), -EINVAL);
	assert_int_equal(small_decode(out, 0, NULL, 0, 0, times_back, 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_like_its_base),
	    cmocka_unit_test(test_what_repeats),
	    cmocka_unit_test(test_anything),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_carries),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
