/* Refused requests: the end of a burst, and whether the process recovered. */
#include "model/model.h"
#include "model/read.h"
#include "model/script.h"

/* Whether a refusal in a replaced period still stands; `outlived` bytes of that period's blocks
 * live on. `later`: bytes that the period after it acquired; `since`: bytes that came and went
 * after both. */
static bool stands(uint64_t outlived, uint64_t later, uint64_t since)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	uint64_t begin = 0;
	struct model *m;
	bool result;

	script_alloc(s, b, 1000);
	script_failed(s, a, 5000);
	script_alloc(s, b, outlived);
	for (int i = 0; i < 2; i++) {
		struct event *e = script_event(s, EV_CHECKPOINT, TRACE_SPACE_HOST);

		e->u.period.begin_ns = begin;
		e->u.period.acquired_bytes = i ? later : 2000000;
		e->u.period.released_bytes = i ? later : 1900000;
		e->u.period.most_bytes = 100000;
		begin = e->time_ns;
		script_facts(s)->checkpoint.number = 1;
		script_facts(s)->checkpoint.until_ns = begin;
	}
	for (; since; since -= 1000)
		script_release(s, script_alloc(s, b, 1000));
	m = read_all(script_feed(s));
	result = model_failure(m);
	model_free(m);
	script_free(s);
	return result;
}

/* Known survivors of a partly known time do not show recovery. Work in later periods and since
 * does, if as much as lived then came and went. */
static void test_recovery_before_a_checkpoint(void **state)
{
	assert_true(stands(50000, 0, 0));
	assert_true(stands(50000, 0, 90000));
	assert_false(stands(50000, 0, 110000));
	assert_false(stands(50000, 110000, 0));
	assert_true(stands(50000, 60000, 30000));
	assert_false(stands(50000, 60000, 60000));
	(void)state;
}

static void test_recovery(void **state)
{
	struct script *s;
	uint32_t a, b;
	struct model *m;

	/* Granted later, at the same stack. */
	s = script_new();
	a = script_stack(s, "main;a");
	b = script_stack(s, "main;b");
	script_alloc(s, b, 100);
	script_failed(s, a, 5000);
	for (int i = 0; i < 10; i++)
		script_alloc(s, b, 10);
	script_alloc(s, a, 5000);
	m = read_all(script_feed(s));
	assert_null(model_failure(m));
	assert_true(m->refusals.list[0].retried);
	model_free(m);
	script_free(s);

	/* Granted at the same stack, but the process failed soon after. */
	for (int status = 0; status < 2; status++) {
		s = script_new();
		a = script_stack(s, "main;a");
		b = script_stack(s, "main;b");
		script_alloc(s, b, 100000);
		script_failed(s, a, 5000);
		script_alloc(s, a, 5000);
		script_exit(s, (uint32_t)status);
		m = read_all(script_feed(s));
		assert_int_equal(model_failure(m) != NULL, status);
		model_free(m);
		script_free(s);
	}

	/* It lived on, and then failed for another reason. */
	s = script_new();
	a = script_stack(s, "main;a");
	b = script_stack(s, "main;b");
	script_alloc(s, b, 100000);
	script_failed(s, a, 5000);
	script_alloc(s, a, 5000);
	for (int i = 0; i < 30; i++)
		script_release(s, script_alloc(s, b, 10000));
	script_exit(s, 1);
	m = read_all(script_feed(s));
	assert_null(model_failure(m));
	model_free(m);
	script_free(s);

	/* Asked for half, at once. */
	s = script_new();
	a = script_stack(s, "main;a");
	script_failed(s, a, 5000);
	script_alloc(s, a, 2500);
	m = read_all(script_feed(s));
	assert_null(model_failure(m));
	model_free(m);
	script_free(s);

	/* A smaller one at the same stack much later does not undo it. */
	s = script_new();
	a = script_stack(s, "main;a");
	b = script_stack(s, "main;b");
	script_alloc(s, b, 100000);
	script_failed(s, a, 5000);
	for (int i = 0; i < 10; i++)
		script_alloc(s, b, 10);
	script_alloc(s, a, 2000);
	m = read_all(script_feed(s));
	assert_non_null(model_failure(m));
	model_free(m);
	script_free(s);

	/* The process went on, for as much again as it held. */
	s = script_new();
	a = script_stack(s, "main;a");
	b = script_stack(s, "main;b");
	script_alloc(s, b, 100000);
	script_failed(s, a, 5000);
	for (int i = 0; i < 30; i++)
		script_release(s, script_alloc(s, b, 10000));
	script_failed(s, a, 6000);
	m = read_all(script_feed(s));
	assert_int_equal(m->refusals.bursts, 2);
	assert_true(m->refusals.list[0].recovered);
	assert_non_null(model_failure(m));
	assert_int_equal(model_failure(m)->size, 6000);
	model_free(m);
	script_free(s);
	(void)state;
}

/* An allocator that is refused address space and asks for less from another line of the same
 * function coped. If control returns to the user's code, or another function asks, the refusal
 * was reported. */
static void test_makes_do(void **state)
{
	static const struct {
		const char *then;
		uint64_t between;
		bool granted;
	} tries[] = {
	    {"main@/app/m.py:3;pool@/lib/libpool.so;map@/lib/libpool.so", 0, true},
	    {"main@/app/m.py:3;pool@/lib/libpool.so;small@/lib/libpool.so;map@/lib/libpool.so", 0,
		true},
	    {"main@/app/m.py:3;pool@/lib/libpool.so;small@/lib/libpool.so;map@/lib/libpool.so", 500,
		false},
	    {"main@/app/m.py:3;pool@/lib/libpool.so;open@/lib/libpool.so", 0, false},
	    {"main@/app/m.py:4;pool@/lib/libpool.so;map@/lib/libpool.so", 0, false},
	    {"main@/app/m.py:3;other@/lib/libother.so;map@/lib/libother.so", 0, false},
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = script_new();
		uint32_t b = script_stack(s, "main;b");
		struct event *e;
		struct model *m;

		script_alloc(s, b, 100000);
		e = script_event(s, EV_FAILED, TRACE_SPACE_HOST);
		e->stack = script_stack(s, "main@/app/m.py:3;pool@/lib/libpool.so;stock@/lib/"
					   "libpool.so;map@/lib/libpool.so");
		e->size = 1 << 20;
		e->api = TRACE_API_MMAP;
		e->u.failed.why = TRACE_FAIL_ERRNO;
		if (tries[i].between)
			script_release(s, script_alloc(s, b, tries[i].between));
		script_map(s, script_stack(s, tries[i].then), 65536, 0, 0);
		for (int k = 0; k < 200; k++)
			script_release(s, script_alloc(s, b, 10000));
		m = read_all(script_feed(s));
		assert_int_equal(model_failure(m) == NULL, tries[i].granted);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* The refused request is part of a batch, which is released. A process that begins again at once
 * and piles up half as much uses smaller batches; other requests are smaller or come later. */
static void test_smaller_batch(void **state)
{
	static const struct {
		unsigned between, parts; /* blocks of others in between, and of the second batch */
		bool granted;
	} tries[] = {{1, 60, true}, {1, 50, true}, {1, 40, false}, {40, 60, false}, {1, 1, false}};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = script_new();
		uint32_t a = script_stack(s, "main;encode;row"), b = script_stack(s, "main;log");
		uint64_t rows[100];
		struct model *m;

		script_alloc(s, b, 20000);
		for (unsigned k = 0; k < 100; k++)
			rows[k] = script_alloc(s, a, 1000);
		script_failed(s, a, 1000);
		for (unsigned k = 0; k < 100; k++)
			script_release(s, rows[k]);
		for (unsigned k = 0; k < tries[i].between; k++)
			script_release(s, script_alloc(s, b, 500));
		for (unsigned k = 0; k < tries[i].parts; k++)
			rows[k] = script_alloc(s, a, 1000);
		for (unsigned k = 0; k < tries[i].parts; k++)
			script_release(s, rows[k]);
		for (int k = 0; k < 100; k++)
			script_release(s, script_alloc(s, a, 1000));
		for (int k = 0; k < 30; k++)
			script_release(s, script_alloc(s, b, 10000));
		m = read_all(script_feed(s));
		assert_true(m->refusals.list[0].recovered);
		assert_int_equal(m->refusals.list[0].retried, tries[i].granted);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* It ended while it piled up its released batch again, the refused request first. */
static void test_piles_again(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;page;render");
	uint64_t pages[40];
	struct model *m;

	for (unsigned k = 0; k < 40; k++)
		pages[k] = script_alloc(s, a, 1000);
	script_failed(s, a, 1000);
	for (unsigned k = 0; k < 40; k++)
		script_release(s, pages[k]);
	for (unsigned k = 0; k < 10; k++)
		pages[k] = script_alloc(s, a, 1000);
	for (unsigned k = 0; k < 10; k++)
		script_release(s, pages[k]);
	m = read_all(script_feed(s));
	assert_null(model_failure(m));
	model_free(m);
	script_free(s);
	(void)state;
}

/* Refused, given up, and the process did as much again: it survived, and the refusal is still a
 * failure. A request that was halved, or repeated before as much other work, was granted after
 * all; or repeated for less at once, unless all of it had room. */
static void test_survived(void **state)
{
	static const struct {
		uint64_t between, next;
		bool granted, given_up; /* given up: its blocks are released first */
	} tries[] = {
	    {0, 5000, true, false},
	    {0, 2000, true, false},
	    {0, 5000, true, true},
	    {0, 2500, true, true},
	    {0, 2000, false, true},
	    {4000, 5000, true, false},
	    {4000, 2500, true, false},
	    {4000, 2000, false, false},
	    {8000, 5000, false, false},
	    {8000, 2500, false, false},
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct script *s = script_new();
		uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
		uint64_t made = script_alloc(s, a, 20000);
		struct model *m;

		script_alloc(s, b, 100000);
		script_failed(s, a, 5000);
		if (tries[i].given_up)
			script_release(s, made);
		for (uint64_t k = 0; k < tries[i].between; k += 500)
			script_release(s, script_alloc(s, b, 500));
		script_release(s, script_alloc(s, a, tries[i].next));
		for (int k = 0; k < 30; k++)
			script_release(s, script_alloc(s, b, 10000));
		m = read_all(script_feed(s));
		assert_true(m->refusals.list[0].recovered);
		assert_int_equal(m->refusals.list[0].retried, tries[i].granted);
		assert_int_equal(model_failure(m) == NULL, m->refusals.list[0].retried);
		model_did_without(m);
		assert_null(model_failure(m));
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* The same request is refused repeatedly, with other work in between: one failure, at the moment
 * when memory ran out. Not if it was granted since, another request is refused, or far less
 * lives. */
static void test_refused_again(void **state)
{
	enum { AGAIN, GRANTED, OTHER_SIZE, OTHER_STACK, LESS, HOW };

	for (int how = 0; how < HOW; how++) {
		struct script *s = script_new();
		uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
		uint64_t first = script_alloc(s, a, 20000);
		struct model *m;
		bool one;

		script_alloc(s, a, 100000);
		for (int i = 0; i < 4; i++) {
			bool last = i == 3;

			script_failed(s, last && how == OTHER_STACK ? b : a,
			    last && how == OTHER_SIZE ? 6000 : 5000);
			for (int k = 0; !last && k < 300; k++)
				script_release(s, script_alloc(s, b, 1000));
			if (i == 2 && how == GRANTED)
				script_release(s, script_alloc(s, a, 5000));
			if (i == 2 && how == LESS)
				script_release(s, first);
		}
		m = read_all(script_feed(s));
		one = how == AGAIN;
		assert_int_equal(m->refusals.count, one ? 1 : 2);
		assert_int_equal(m->refusals.list[0].count, one ? 4 : 3);
		assert_int_equal(m->refusals.list[0].recovered, !one);
		assert_non_null(model_failure(m));
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* More bursts than there is room for: the newest stay, and all are counted. */
static void test_many_failures(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct model *m;

	for (uint64_t i = 0; i < 100; i++) {
		script_failed(s, a, 1000 + i);
		script_release(s, script_alloc(s, a, 1000 + i));
	}
	script_failed(s, a, 77777);
	m = read_all(script_feed(s));
	assert_int_equal(m->refusals.bursts, 101);
	assert_int_equal(m->refusals.count, MODEL_FAILURES);
	assert_int_equal(model_failure(m)->size, 77777);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_recovery),
	    cmocka_unit_test(test_recovery_before_a_checkpoint),
	    cmocka_unit_test(test_makes_do),
	    cmocka_unit_test(test_survived),
	    cmocka_unit_test(test_smaller_batch),
	    cmocka_unit_test(test_piles_again),
	    cmocka_unit_test(test_refused_again),
	    cmocka_unit_test(test_many_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
