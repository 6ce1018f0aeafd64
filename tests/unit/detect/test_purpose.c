/* test_purpose.c - what names say of memory that is put in place at start. */
#include "detect/purpose.h"

#include "scene.h"

static void words_of_a_name(void **state)
{
	(void)state;
	assert_int_equal(purpose_of_name("load_weights"), PURPOSE_WEIGHTS);
	assert_int_equal(purpose_of_name("Engine.readLayers"), PURPOSE_WEIGHTS);
	assert_int_equal(purpose_of_name("reserve_slots"), PURPOSE_ROOM);
	assert_int_equal(
	    purpose_of_name("KVCache.__init__"), PURPOSE_UNTOLD); /* one word: kvcache */
	assert_int_equal(purpose_of_name("kv_caches"), PURPOSE_ROOM);
	assert_int_equal(purpose_of_name("batches"), PURPOSE_ROOM);
	/* Words, not their parts; and not the types of C++. */
	assert_int_equal(purpose_of_name("download"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name("spool"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name("run(Tensor const&)"), PURPOSE_UNTOLD);
	/* Both at once say nothing. */
	assert_int_equal(purpose_of_name("load_kv_cache"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name(""), PURPOSE_UNTOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(words_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
