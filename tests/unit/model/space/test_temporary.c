/* Which blocks are temporary: those that their thread releases before it acquires another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/space/temporary.h"

enum { A = 1, B = 2, C = 3 };

static struct temporary t;
static struct model_options options;
static uint64_t now;

static void host(enum event_kind kind, uint32_t thread, struct block *b, uint32_t flags)
{
	struct event e = {
	    .kind = kind, .thread = thread, .block = b, .flags = flags, .time_ns = ++now};

	assert_int_equal(options.witness.block(options.witness.arg, &e), 0);
}

static int begin(void **state)
{
	t = (struct temporary){.until_ns = UINT64_MAX};
	options = temporary_options(&t);
	now = 0;
	(void)state;
	return 0;
}

static int end(void **state)
{
	temporary_fini(&t);
	(void)state;
	return 0;
}

static void counts_by_thread(void **state)
{
	struct block a = {.size = 10, .stack = A, .serial = 1};
	struct block b = {.size = 20, .stack = B, .serial = 2};
	struct block c = {.size = 40, .stack = C, .serial = 3};

	host(EV_ALLOC, 1, &a, 0);
	host(EV_ALLOC, 2, &b, 0); /* another thread's does not matter */
	host(EV_FREE, 1, &a, 0);
	host(EV_ALLOC, 2, &c, 0);
	host(EV_FREE, 2, &b, 0); /* not the newest any more */
	host(EV_FREE, 1, &c, 0); /* by another thread */
	assert_int_equal(temporary_bytes(&t, 0, A), 10);
	assert_int_equal(temporary_bytes(&t, 0, B), 0);
	assert_int_equal(temporary_bytes(&t, 0, C), 0);
	assert_int_equal(temporary_bytes(&t, 0, 1000), 0);
	assert_int_equal(temporary_bytes(&t, 7, A), 0);
	(void)state;
}

static void a_grown_block_goes_on(void **state)
{
	struct block a = {.size = 10, .stack = A, .serial = 1};
	struct block b = {.size = 20, .stack = B, .serial = 2};

	host(EV_ALLOC, 1, &a, 0);
	host(EV_FREE, 1, &a, EVENT_REALLOC);
	host(EV_ALLOC, 1, &b, EVENT_REALLOC);
	host(EV_FREE, 1, &b, 0);
	assert_int_equal(temporary_bytes(&t, 0, A), 0);
	assert_int_equal(temporary_bytes(&t, 0, B), 20);
	(void)state;
}

static void a_model_of_sums_fills_the_same(void **state)
{
	struct block a = {.size = 10, .stack = A, .serial = 1};
	struct event e = {.kind = EV_ALLOC, .thread = 1, .block = &a};

	assert_int_equal(temporary_note(&t, &e), 0);
	e.kind = EV_FREE;
	assert_int_equal(temporary_note(&t, &e), 0);
	assert_int_equal(temporary_bytes(&t, 0, A), 10);
	(void)state;
}

static void ends_at_the_moment(void **state)
{
	struct block a = {.size = 10, .stack = A, .serial = 1};

	t.until_ns = 3;
	for (int i = 0; i < 2; i++) {
		host(EV_ALLOC, 1, &a, 0);
		host(EV_FREE, 1, &a, 0);
	}
	host(EV_FREE, 1, NULL, 0);
	assert_int_equal(temporary_bytes(&t, 0, A), 10);
	(void)state;
}

static void keeps_spaces_apart(void **state)
{
	struct space sp = {.index = 0};
	struct block a = {.size = 10, .stack = A, .serial = 1};
	struct event e = {.kind = EV_ALLOC, .thread = 1, .block = &a};

	host(EV_ALLOC, 1, &a, 0);
	assert_int_equal(options.space_witness.block(options.space_witness.arg, &sp, &e), 0);
	host(EV_FREE, 1, &a, 0); /* another space's block does not matter */
	e.kind = EV_FREE;
	assert_int_equal(options.space_witness.block(options.space_witness.arg, &sp, &e), 0);
	assert_int_equal(temporary_bytes(&t, 0, A), 10);
	assert_int_equal(temporary_bytes(&t, 1, A), 10);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(counts_by_thread, begin, end),
	    cmocka_unit_test_setup_teardown(a_grown_block_goes_on, begin, end),
	    cmocka_unit_test_setup_teardown(a_model_of_sums_fills_the_same, begin, end),
	    cmocka_unit_test_setup_teardown(ends_at_the_moment, begin, end),
	    cmocka_unit_test_setup_teardown(keeps_spaces_apart, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
