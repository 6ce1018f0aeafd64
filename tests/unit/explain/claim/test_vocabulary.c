/* The words: found whole, in small letters, and in the order that the search needs. */
#include "../../util/unit.h"

#include "explain/claim/vocabulary.h"

static void test_words(void **state)
{
	assert_true(vocabulary_of("memory") & WORD_MEMORY);
	assert_true(vocabulary_of("can't") & WORD_FAIL);
	assert_true(vocabulary_of("allocate") & WORD_ALLOCATE);
	assert_true(vocabulary_of("xpu") & WORD_DEVICE);
	assert_int_equal(vocabulary_of("memor"), 0);
	assert_int_equal(vocabulary_of("Memory"), 0);
	assert_int_equal(vocabulary_of(""), 0);
	(void)state;
}

/* Names of two words, and forms of verbs. */
static void test_forms(void **state)
{
	assert_true(vocabulary_of("mempool") & WORD_MEMORY);
	assert_true(vocabulary_of("usedmem") & WORD_MEMORY);
	assert_true(vocabulary_of("acmealloc") & WORD_ALLOCATE);
	assert_true(vocabulary_of("cuda7") & WORD_DEVICE);
	assert_true(vocabulary_of("rejects") & WORD_FAIL);
	assert_true(vocabulary_of("overflowed") & WORD_OVER);
	assert_int_equal(vocabulary_of("member"), 0);
	assert_int_equal(vocabulary_of("errors"), 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words), cmocka_unit_test(test_forms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
