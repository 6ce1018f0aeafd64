/* test_stack_ids.c - which stacks keep their ids, and that no stack ever gets another's: also by
 * many threads, and built with the thread sanitizer if the compiler has it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stack/stack_ids.h"

#define THREADS 4
#define FULL (STACK_IDS_RECENT / 8 * 5)

/* Stack n, whose hashes are as good as random. */
static struct stack_hash stack_of(uint32_t n)
{
	return stack_hash_next(STACK_HASH_ROOT, n, stack_hash_tag(8));
}

static uint32_t find(uint32_t n)
{
	struct stack_hash h = stack_of(n);

	return (uint32_t)stack_ids_find(&h, n % 2);
}

/* Defines stack n as `id` if it has none; true if it had one. */
static bool meet(uint32_t n, bool forget)
{
	uint32_t id = find(n);

	if (!id)
		stack_ids_put(stack_of(n), n, forget);
	else
		assert_int_equal(id, n);
	return id != 0;
}

static int begin(void **state)
{
	(void)state;
	stack_ids_fork_child();
	return stack_ids_init();
}

/* Leaves out a test of one thread under the sanitizer, where these take a minute. */
static void alone(void)
{
#if defined(__SANITIZE_THREAD__)
	skip();
#endif
}

static void test_forgets(void **state)
{
	(void)state;
	alone();
	for (uint32_t n = 1; n <= 1000000; n++)
		assert_false(meet(n, true));
	assert_int_equal(find(1), 0);
	assert_int_equal(find(1000000 - 2 * FULL), 0);
	for (uint32_t n = 1000000 - FULL; n <= 1000000; n++)
		assert_int_equal(find(n), n);
	assert_in_range(stack_ids_bytes(), 1, 16u << 20);
	stack_ids_fork_child();
	assert_int_equal(find(1000000), 0);
	assert_in_range(stack_ids_bytes(), 1, 1u << 20);
}

static void test_keeps_what_is_met_again(void **state)
{
	(void)state;
	alone();
	for (uint32_t n = 1; n <= 1000; n++)
		assert_false(meet(n, true));
	for (uint32_t n = 1001; n <= 2000000; n++) {
		assert_false(meet(n, true));
		if (n % 100 == 0)
			assert_true(meet(n / 100 % 1000 + 1, true));
	}
}

/* A loop over more stacks than the table has at first finds them once the table has grown. */
static void test_grows_for_a_loop(void **state)
{
	uint32_t again = 0;

	(void)state;
	alone();
	for (uint32_t round = 0; round < 4; round++)
		for (uint32_t n = 1; n <= 3 * FULL; n++)
			again += meet(n, true) && round == 3;
	assert_int_equal(again, 3 * FULL);
}

static void test_forgets_nothing(void **state)
{
	(void)state;
	alone();
	for (uint32_t n = 1; n <= 4 * FULL; n++)
		assert_false(meet(n, false));
	for (uint32_t n = 1; n <= 4 * FULL; n++)
		assert_int_equal(find(n), n);
}

static _Atomic uint32_t wrong;

static void *racer(void *own)
{
	/* half of the stacks are this thread's, half are all threads' */
	for (uint32_t n = 1; n <= 2 * FULL; n++) {
		uint32_t stack = n % 2 ? n : n + (uint32_t)(uintptr_t)own * 10000000,
			 id = find(stack);

		if (!id)
			stack_ids_put(stack_of(stack), stack, true);
		else
			atomic_fetch_add(&wrong, id != stack);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, racer, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	for (uint32_t n = 1; n <= 2000000; n++)
		assert_true(find(n) == 0 || find(n) == n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_forgets, begin),
	    cmocka_unit_test_setup(test_keeps_what_is_met_again, begin),
	    cmocka_unit_test_setup(test_grows_for_a_loop, begin),
	    cmocka_unit_test_setup(test_forgets_nothing, begin),
	    cmocka_unit_test_setup(test_threads, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
