/* test_purpose.c - what names say of memory that is put in place at start. */
#include "detect/purpose.h"

#include "scene.h"

static void words_of_a_name(void **state)
{
	(void)state;
	assert_int_equal(purpose_of_name("load_weights"), PURPOSE_WEIGHTS);
	assert_int_equal(purpose_of_name("Engine.readLayers"), PURPOSE_WEIGHTS);
	assert_int_equal(purpose_of_name("Reader.read_vectors"), PURPOSE_WEIGHTS);
	assert_int_equal(purpose_of_name("std::vector<int>::push_back"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name("reserve_slots"), PURPOSE_ROOM);
	assert_int_equal(
	    purpose_of_name("KVCache.__init__"), PURPOSE_UNTOLD); /* one word: kvcache */
	assert_int_equal(purpose_of_name("kv_caches"), PURPOSE_ROOM);
	assert_int_equal(purpose_of_name("batches"), PURPOSE_ROOM);
	assert_int_equal(purpose_of_name("model_buffer"), PURPOSE_UNTOLD);
	/* Words, not their parts; and not the types of C++. */
	assert_int_equal(purpose_of_name("download"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name("spool"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name("run(Tensor const&)"), PURPOSE_UNTOLD);
	/* Both at once say nothing. */
	assert_int_equal(purpose_of_name("load_kv_cache"), PURPOSE_UNTOLD);
	assert_int_equal(purpose_of_name(""), PURPOSE_UNTOLD);
}

/* The first large request of a line, whatever it is called; but a thread's stack is the system's.
 */
static void request_of_a_start(void **state)
{
	enum { ASKED, THREAD, SERVED, SMALL, NAMELESS, WAYS };

	(void)state;
	for (int way = ASKED; way < WAYS; way++) {
		struct staged t = {.s = script_new()};
		uint32_t at = script_stack(t.s, way == NAMELESS ? "main;go" : "main;start_pool");

		script_alloc(t.s, script_stack(t.s, "main;read"), way == SMALL ? 9000000 : 10000);
		for (int i = 0; way == SERVED && i < 2000; i++)
			script_release(
			    t.s, script_alloc(t.s, script_stack(t.s, "main;serve"), 20000));
		if (way == THREAD)
			script_failed_thread(t.s, at, 8000000);
		else
			script_failed(t.s, at, 8000000);
		stage(&t, detect_batch_prealloc, true);
		assert_int_equal(purpose_is_start(&t.scene), way == ASKED || way == NAMELESS);
		strike(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(words_of_a_name),
	    cmocka_unit_test(request_of_a_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
