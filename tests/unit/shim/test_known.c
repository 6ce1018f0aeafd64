/*
 * test_known.c - what was added is found and taken out once, whoever takes it and however much the
 * table has grown; what was not added is not.
 */
#include "under.h"

#include <pthread.h>
#include <stdlib.h>

#include "known.h"

#define MANY 200000u
#define THREADS 4u

static void *nth(uint64_t i)
{
	return (void *)(0x7f0000000000 + i * 48);
}

static void test_none(void **state)
{
	assert_false(known_maybe(nth(1)));
	assert_false(known_take(nth(1)));
	assert_false(known_take(NULL));
}

static void test_once(void **state)
{
	assert_true(known_add(nth(1)));
	assert_true(known_add(nth(1)));
	assert_true(known_maybe(nth(1)));
	assert_true(known_take(nth(1)));
	assert_false(known_take(nth(1)));
	/* adding twice did not raise the filter twice */
	assert_false(known_maybe(nth(1)));
}

static void test_growth(void **state)
{
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(known_add(nth(i)));
	for (uint64_t i = 0; i < MANY; i += 2)
		assert_true(known_take(nth(i)));
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(known_take(nth(i)), i % 2);
	for (uint64_t i = 0; i < MANY; i++)
		assert_false(known_take(nth(i)));
}

static uint64_t mail[THREADS][MANY / THREADS]; /* what one hands to the next */
static unsigned posted[THREADS];

/* Acquires blocks for its neighbour, and releases what its other neighbour acquired. */
static void *trade(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, from = (me + 1) % THREADS;

	for (unsigned i = 0; i < MANY / THREADS; i++) {
		void *own = nth(1000000ull * (me + 1) + i), *other;

		if (!known_add(own))
			return "add";
		mail[me][i] = (uint64_t)(uintptr_t)own;
		__atomic_store_n(&posted[me], i + 1, __ATOMIC_RELEASE);
		if (i >= __atomic_load_n(&posted[from], __ATOMIC_ACQUIRE))
			continue;
		other = (void *)(uintptr_t)__atomic_exchange_n(&mail[from][i], 0, __ATOMIC_RELAXED);
		if (other && !known_take(other))
			return "take";
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, trade, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < MANY / THREADS; i++)
			if (mail[t][i])
				assert_true(known_take((void *)(uintptr_t)mail[t][i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_once),
	    cmocka_unit_test(test_growth),
	    cmocka_unit_test(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
