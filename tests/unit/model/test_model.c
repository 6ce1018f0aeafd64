/* The model against sums kept by the test; the high-water mark, failures and what recovers them. */
#include "model/unit.h"

#include "model/model.h"
#include "model/script.h"

static struct model *read_all(struct script *s)
{
	struct feed feed = script_feed(s);
	struct model *m;
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &m, &err), 0);
	feed.rewind(feed.self, &err);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	model_check(m);
	return m;
}

static void test_random(void **state)
{
	struct script *s = script_new();
	uint64_t seed = 31, live[300] = {0}, peak = 0;
	uint32_t stacks[20];
	struct model *m;

	for (int i = 0; i < 20; i++) {
		char text[32];
		snprintf(text, sizeof(text), "main;f%d", i);
		stacks[i] = script_stack(s, text);
	}
	for (int i = 0; i < 20000; i++) {
		uint64_t *slot = &live[dice(&seed, 300)];

		if (!*slot)
			*slot = script_alloc(s, stacks[dice(&seed, 20)], 1 + dice(&seed, 5000));
		else if (dice(&seed, 4) == 0)
			*slot = script_realloc(
			    s, *slot, stacks[dice(&seed, 20)], 1 + dice(&seed, 9000));
		else {
			script_release(s, *slot);
			*slot = 0;
		}
		if (script_live(s) > peak)
			peak = script_live(s);
	}
	m = read_all(s);
	assert_int_equal(m->live_bytes, script_live(s));
	assert_int_equal(m->peak_bytes, peak);
	model_free(m);
	script_free(s);
	(void)state;
}

/* What lived at the mark is told for each site, though nothing was copied then. */
static void test_high_water_mark(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	uint64_t first = script_alloc(s, a, 1000), second = script_alloc(s, b, 500), bytes, count;
	struct model *m;

	script_release(s, first);
	script_alloc(s, b, 700);
	script_release(s, second);
	m = read_all(s);
	assert_int_equal(m->peak_bytes, 1500);
	model_site(m, model_site_at(m, a, SITE_HEAP), AT_PEAK, &bytes, &count);
	assert_int_equal(bytes, 1000);
	model_site(m, model_site_at(m, b, SITE_HEAP), AT_PEAK, &bytes, &count);
	assert_int_equal(bytes, 500);
	model_site(m, model_site_at(m, b, SITE_HEAP), AT_END, &bytes, &count);
	assert_int_equal(bytes, 700);
	model_free(m);
	script_free(s);
	(void)state;
}

/* However many sites have changed since the mark: it is of the latest one. */
static void test_marks_of_many(void **state)
{
	struct script *s = script_new();
	uint64_t at[6000], more = 0, bytes, count;
	uint32_t stacks[6000];
	struct model *m;

	for (int i = 0; i < 6000; i++) {
		char text[32];

		snprintf(text, sizeof(text), "main;f%d", i);
		stacks[i] = script_stack(s, text);
	}
	for (int round = 0; round < 3; round++) {
		/* A higher mark each time; and then all change. */
		for (int i = 0; i < 6000; i++)
			at[i] = script_alloc(s, stacks[i], 1000 + (uint64_t)round);
		if (more)
			script_release(s, more);
		more = script_alloc(s, stacks[0], 10);
		for (int i = 0; i < 6000; i++)
			script_release(s, at[i]);
	}
	m = read_all(s);
	assert_int_equal(m->peak_bytes, 6000 * 1002 + 10);
	for (int i = 1; i < 6000; i++) {
		model_site(m, model_site_at(m, stacks[i], SITE_HEAP), AT_PEAK, &bytes, &count);
		assert_int_equal(bytes, 1002);
		assert_int_equal(count, 1);
	}
	model_free(m);
	script_free(s);
	(void)state;
}

static void test_failure_keeps_the_moment(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	uint64_t block = script_alloc(s, a, 1000), bytes, count;
	struct model *m;
	const struct failure *f;

	script_failed(s, b, 5000);
	script_failed(s, b, 100); /* its echo */
	script_release(s, block);
	script_exit(s, 1);
	m = read_all(s);
	f = model_failure(m);
	assert_non_null(f);
	assert_int_equal(f->size, 5000);
	assert_int_equal(f->count, 2);
	assert_int_equal(m->live_bytes, 0);
	model_site(m, model_site_at(m, a, SITE_HEAP), AT_FAILURE, &bytes, &count);
	assert_int_equal(bytes, 1000);
	model_free(m);
	script_free(s);
	(void)state;
}

/* Refused in a period that a checkpoint took the place of, of whose blocks `outlived` bytes did:
 * whether that still stands. `later`: what the period after it acquired; `since`: what came and
 * went after both. */
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
	m = read_all(s);
	result = model_failure(m);
	model_free(m);
	script_free(s);
	return result;
}

/* What lived on, and is known, of a time of which the rest is not, is no sign of having got over
 * it: what was done in later periods and since is, for as much as lived then. */
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
	m = read_all(s);
	assert_null(model_failure(m));
	assert_true(m->failures[0].retried);
	model_free(m);
	script_free(s);

	/* Granted to somebody at the same stack, but the process failed soon after. */
	for (int status = 0; status < 2; status++) {
		s = script_new();
		a = script_stack(s, "main;a");
		b = script_stack(s, "main;b");
		script_alloc(s, b, 100000);
		script_failed(s, a, 5000);
		script_alloc(s, a, 5000);
		script_exit(s, (uint32_t)status);
		m = read_all(s);
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
	m = read_all(s);
	assert_null(model_failure(m));
	model_free(m);
	script_free(s);

	/* Asked for half, at once. */
	s = script_new();
	a = script_stack(s, "main;a");
	script_failed(s, a, 5000);
	script_alloc(s, a, 2500);
	m = read_all(s);
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
	m = read_all(s);
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
	m = read_all(s);
	assert_int_equal(m->bursts, 2);
	assert_true(m->failures[0].recovered);
	assert_non_null(model_failure(m));
	assert_int_equal(model_failure(m)->size, 6000);
	model_free(m);
	script_free(s);
	(void)state;
}

/* An allocator that is refused a stock of address space and asks for less from another line of the
 * same function did without; whoever is back in a caller of one's own, or asks by another function,
 * was told. */
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
		m = read_all(s);
		assert_int_equal(model_failure(m) == NULL, tries[i].granted);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* What was refused is a part of a batch, which is let go. Who begins again at once, and piles up
 * half as much, has done it in smaller batches; the next request is a smaller one, or comes later.
 */
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
		m = read_all(s);
		assert_true(m->failures[0].recovered);
		assert_int_equal(m->failures[0].retried, tries[i].granted);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* It ended while it piled up again what it had let go, the refused one first. */
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
	m = read_all(s);
	assert_null(model_failure(m));
	model_free(m);
	script_free(s);
	(void)state;
}

/* Refused, given up, and the process did as much again: it was survived, and is a failure all the
 * same. Had it been halved, or asked for again before as much else was done, it was granted after
 * all; or less at once, but not when there was room for all of it. */
static void test_survived(void **state)
{
	static const struct {
		uint64_t between, next;
		bool granted, given_up; /* given up: what it had made is let go first */
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
		m = read_all(s);
		assert_true(m->failures[0].recovered);
		assert_int_equal(m->failures[0].retried, tries[i].granted);
		assert_int_equal(model_failure(m) == NULL, m->failures[0].retried);
		model_did_without(m);
		assert_null(model_failure(m));
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* More bursts than are kept: the newest are, and all are counted. */
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
	m = read_all(s);
	assert_int_equal(m->bursts, 101);
	assert_int_equal(m->failure_count, MODEL_FAILURES);
	assert_int_equal(model_failure(m)->size, 77777);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_high_water_mark),
	    cmocka_unit_test(test_marks_of_many),
	    cmocka_unit_test(test_failure_keeps_the_moment),
	    cmocka_unit_test(test_recovery),
	    cmocka_unit_test(test_recovery_before_a_checkpoint),
	    cmocka_unit_test(test_makes_do),
	    cmocka_unit_test(test_survived),
	    cmocka_unit_test(test_smaller_batch),
	    cmocka_unit_test(test_piles_again),
	    cmocka_unit_test(test_many_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
