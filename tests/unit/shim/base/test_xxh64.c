/* test_xxh64.c - XXH64 against published values, one for each path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/xxh64.h"

static void test_known(void **state)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
	    {"", 0xef46db3751d8e999},
	    {"a", 0xd24ec4f1a98c6e5b},
	    {"abc", 0x44bc2cf5ad770999},
	    {"xxhash", 0x32dd38952c4bc720},
	    {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(xxh64(known[i].text, strlen(known[i].text)) == known[i].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
