/* Many texts in one pass: overlapping, nested, across the borders of pieces; against a search
 * for each by itself. */
#include "../util/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "explain/needles.h"

struct hits {
	size_t id[4096], end[4096], count;
	size_t base; /* offset of the present piece */
	int stop_after;
};

static int on_hit(void *arg, size_t id, size_t end)
{
	struct hits *h = arg;

	assert_true(h->count < 4096);
	h->id[h->count] = id;
	h->end[h->count++] = h->base + end;
	return h->stop_after && (int)h->count == h->stop_after ? -ECANCELED : 0;
}

static void test_overlapping(void **state)
{
	static const char *const texts[] = {"he", "she", "his", "hers", "she"};
	struct needles *n;
	struct hits h = {.count = 0};
	uint32_t at = 0;
	bool seen[5] = {false};

	assert_int_equal(needles_new(texts, 5, &n), 0);
	assert_int_equal(needles_scan(n, &at, "ushers", 6, on_hit, &h), 0);
	assert_int_equal(h.count, 4);
	for (size_t i = 0; i < h.count; i++)
		seen[h.id[i]] = true;
	assert_true(seen[0] && seen[1] && seen[3] && seen[4] && !seen[2]);
	needles_free(n);
	(void)state;
}

/* Random texts over few letters, in pieces of random length, against strstr. */
static void test_against_search(void **state)
{
	unsigned seed = 7;

	for (int round = 0; round < 300; round++) {
		char words[12][8], log[513];
		const char *texts[12];
		struct hits h = {.count = 0};
		struct needles *n;
		size_t expected = 0;
		uint32_t at = 0;

		for (int i = 0; i < 12; i++) {
			int length = 1 + rand_r(&seed) % 6;

			for (int c = 0; c < length; c++)
				words[i][c] = "ab\xff"[rand_r(&seed) % 3];
			words[i][length] = '\0';
			texts[i] = words[i];
		}
		for (int c = 0; c < 512; c++)
			log[c] = "abb\xff"[rand_r(&seed) % 4];
		log[512] = '\0';
		for (int i = 0; i < 12; i++)
			for (const char *p = log; (p = strstr(p, words[i])); p++)
				expected++;
		if (expected > 4096)
			continue;
		assert_int_equal(needles_new(texts, 12, &n), 0);
		while (h.base < 512) {
			size_t piece = 1 + (size_t)rand_r(&seed) % 60;

			if (piece > 512 - h.base)
				piece = 512 - h.base;
			assert_int_equal(needles_scan(n, &at, log + h.base, piece, on_hit, &h), 0);
			h.base += piece;
		}
		assert_int_equal(h.count, expected);
		for (size_t i = 0; i < h.count; i++) {
			size_t length = strlen(texts[h.id[i]]);

			assert_memory_equal(log + h.end[i] - length, texts[h.id[i]], length);
		}
		needles_free(n);
	}
	(void)state;
}

/* Long pieces, of which two stretches are read by turns, tell the same in the same order as short
 * ones, also of needles across their borders. */
static void test_long_pieces(void **state)
{
	static const char *const texts[] = {
	    "abab", "bbaaab", "ab\xff", "babbabaabbabbbab", "aaaaaaa"};
	static char log[60000];
	unsigned seed = 11;

	for (int round = 0; round < 20; round++) {
		static struct hits few, many;
		struct needles *n;
		uint32_t at = 0, then = 0;
		size_t piece;

		memset(&few, 0, sizeof(few));
		memset(&many, 0, sizeof(many));
		for (size_t c = 0; c < sizeof(log); c++)
			log[c] = "ab\xff...."[rand_r(&seed) % 7];
		/* Needles around the borders of stretches of 4,096 bytes. */
		for (size_t c = 4096; c + 16 < sizeof(log); c += 4096)
			memcpy(log + c - (size_t)rand_r(&seed) % 17, texts[3], 16);
		assert_int_equal(needles_new(texts, 5, &n), 0);
		for (; many.base < sizeof(log); many.base += piece) {
			piece = 1 + (size_t)rand_r(&seed) % 30000;
			if (piece > sizeof(log) - many.base)
				piece = sizeof(log) - many.base;
			assert_int_equal(
			    needles_scan(n, &at, log + many.base, piece, on_hit, &many), 0);
		}
		for (; few.base < sizeof(log); few.base += 100)
			assert_int_equal(
			    needles_scan(n, &then, log + few.base, 100, on_hit, &few), 0);
		assert_true(few.count > 14);
		assert_int_equal(at, then);
		assert_int_equal(many.count, few.count);
		for (size_t i = 0; i < few.count; i++)
			assert_true(few.id[i] == many.id[i] && few.end[i] == many.end[i]);
		needles_free(n);
	}
	(void)state;
}

static void test_limits(void **state)
{
	static char huge[70000];
	const char *texts[] = {huge};
	struct hits h = {.stop_after = 2};
	struct needles *n;
	uint32_t at = 0;

	memset(huge, 'x', sizeof(huge) - 1);
	assert_int_equal(needles_new(texts, 1, &n), -E2BIG);
	texts[0] = "x";
	assert_int_equal(needles_new(texts, 1, &n), 0);
	assert_int_equal(needles_scan(n, &at, huge, 100, on_hit, &h), -ECANCELED);
	assert_int_equal(h.count, 2);
	needles_free(n);
	assert_int_equal(needles_new(texts, 0, &n), 0);
	at = 0;
	assert_int_equal(needles_scan(n, &at, huge, 100, on_hit, &h), 0);
	needles_free(n);
	needles_free(NULL);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_overlapping),
	    cmocka_unit_test(test_against_search),
	    cmocka_unit_test(test_long_pieces),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
