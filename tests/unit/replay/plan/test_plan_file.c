/* Which threads may go on side by side. */
#include "model/unit.h"

#include "replay/plan/plan_file.h"
#include "replay/read_plan.h"

static FILE *begin(struct plan_file *f)
{
	FILE *out = tmpfile();

	assert_non_null(out);
	assert_int_equal(fseek(out, 4096, SEEK_SET), 0);
	assert_int_equal(plan_file_init(f, out), 0);
	return out;
}

static void finish(struct plan_file *f, FILE *out, struct plan *p)
{
	struct err err;

	assert_int_equal(plan_file_finish(f, 0, &err), 0);
	plan_file_fini(f);
	plan_read(out, p);
	fclose(out);
}

static uint32_t acquire(struct plan_file *f, uint32_t thread, uint64_t size)
{
	uint32_t slot;

	assert_int_equal(plan_file_take(f, thread, &slot), 0);
	assert_int_equal(
	    plan_file_add(f, thread, plan_op(PLAN_MALLOC, slot, size), (int64_t)size), 0);
	return slot;
}

static void release(struct plan_file *f, uint32_t thread, uint32_t slot, uint64_t size)
{
	assert_int_equal(plan_file_add(f, thread, plan_op(PLAN_FREE, slot, 0), -(int64_t)size), 0);
	assert_int_equal(plan_file_leave(f, slot), 0);
}

static void test_small_ones_side_by_side(void **state)
{
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);
	uint32_t other;

	assert_int_equal(plan_file_spawn(&f, 0, &other), 0);
	for (int i = 0; i < 100; i++) {
		acquire(&f, 0, 100);
		acquire(&f, other, 100);
	}
	finish(&f, out, &p);
	assert_int_equal(p.header.parts, 2);
	assert_int_equal(p.parts[0].before, 0);
	assert_int_equal(p.parts[1].before, 0);
	assert_int_equal(p.parts[0].count, 101); /* it begins the other one */
	plan_forget(&p);
	(void)state;
}

/* However much comes and goes: no order of the threads strays far from the record. */
static void test_what_goes_again_takes_no_epoch(void **state)
{
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);
	uint32_t other;

	assert_int_equal(plan_file_spawn(&f, 0, &other), 0);
	for (int i = 0; i < 10000; i++) {
		release(&f, 0, acquire(&f, 0, 1000), 1000);
		release(&f, other, acquire(&f, other, 1000), 1000);
	}
	/* Blocks that stay do, once they reach a MiB. */
	for (int i = 0; i < 1200; i++) {
		acquire(&f, 0, 1000);
		release(&f, other, acquire(&f, other, 1000), 1000);
	}
	finish(&f, out, &p);
	assert_int_equal(p.header.parts, 4);
	assert_int_equal(p.parts[1].before, 0);
	assert_int_equal(p.parts[2].before, 2);
	assert_true(p.header.slots < 1500); /* each thread takes its own again */
	plan_forget(&p);
	(void)state;
}

static void test_a_release_waits_for_its_block(void **state)
{
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);
	uint32_t other, slot;

	assert_int_equal(plan_file_spawn(&f, 0, &other), 0);
	slot = acquire(&f, 0, 100);
	release(&f, other, slot, 100);
	finish(&f, out, &p);
	assert_int_equal(p.header.parts, 2);
	assert_int_equal(p.parts[1].before, 1);
	plan_forget(&p);
	(void)state;
}

static void test_large_ones_in_their_order(void **state)
{
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);
	uint32_t other;

	assert_int_equal(plan_file_spawn(&f, 0, &other), 0);
	acquire(&f, 0, 100 * MiB);
	acquire(&f, other, 100);
	acquire(&f, 0, 100 * MiB);
	acquire(&f, other, 100 * MiB);
	finish(&f, out, &p);
	assert_int_equal(p.header.parts, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(p.parts[i].before, i);
	plan_forget(&p);
	(void)state;
}

static void test_a_thread_alone_waits_for_nobody(void **state)
{
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);

	for (int i = 0; i < 200000; i++)
		release(&f, 0, acquire(&f, 0, 100), 100);
	finish(&f, out, &p);
	/* A thread takes its own releases again. */
	assert_true(p.header.slots < 100);
	assert_int_equal(p.header.ops, 400000);
	plan_forget(&p);
	(void)state;
}

/* Threads at random: read_plan.c's rules hold, and each thread's operations keep their order. */
static void test_at_random(void **state)
{
	enum { THREADS = 5, BLOCKS = 400, STEPS = 40000 };
	static uint32_t slots[BLOCKS];
	static uint64_t sizes[BLOCKS];
	uint64_t seed = 12345, counts[THREADS] = {0};
	uint32_t threads[THREADS] = {0}, count = 0;
	struct plan_file f;
	struct plan p;
	FILE *out = begin(&f);

	for (int i = 1; i < THREADS; i++)
		assert_int_equal(plan_file_spawn(&f, 0, &threads[i]), 0);
	for (int step = 0; step < STEPS; step++) {
		uint32_t t = threads[dice(&seed, THREADS)];

		counts[t]++;
		if (count < BLOCKS && (!count || dice(&seed, 2))) {
			sizes[count] =
			    dice(&seed, 50) ? dice(&seed, 4096) : 64 * KiB + dice(&seed, MiB);
			slots[count] = acquire(&f, t, sizes[count]);
			count++;
		} else {
			uint32_t i = (uint32_t)dice(&seed, count);

			release(&f, t, slots[i], sizes[i]);
			count--;
			slots[i] = slots[count];
			sizes[i] = sizes[count];
		}
	}
	finish(&f, out, &p);
	for (uint32_t t = 0; t < THREADS; t++) {
		uint64_t n = 0;

		for (uint32_t i = p.firsts[t]; i != PLAN_NONE; i = p.parts[i].next)
			n += p.parts[i].count;
		assert_int_equal(n, counts[t] + (t == 0 ? THREADS - 1 : 0));
	}
	plan_forget(&p);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_small_ones_side_by_side),
	    cmocka_unit_test(test_what_goes_again_takes_no_epoch),
	    cmocka_unit_test(test_a_release_waits_for_its_block),
	    cmocka_unit_test(test_large_ones_in_their_order),
	    cmocka_unit_test(test_a_thread_alone_waits_for_nobody),
	    cmocka_unit_test(test_at_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
