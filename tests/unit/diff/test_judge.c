/* What is a change, and what such a line varies by. Lines are made here part by part: in each, so
 * many blocks come, and so many of the oldest go. */
#include "model/unit.h"

#include <stdlib.h>
#include <string.h>

#include "diff/judge.h"

#define ROUNDS 640u /* of a run, 20 in each part */

static struct arena arena;
static const struct judge ordinary = {
    .by = DIFF_LIVE, .work = 1, .runs = 1, .whole = 100 * MiB, .errors = 4.5};

static void come(struct series *s, uint32_t round, uint64_t size, uint32_t thread)
{
	assert_int_equal(
	    series_acquire(s, &arena, round * SERIES_PARTS / ROUNDS, thread, ALIKE_ONE(size)), 0);
}

static void go(struct series *s, uint32_t round, uint64_t size)
{
	series_release(s, round * SERIES_PARTS / ROUNDS, ALIKE_ONE(size));
}

static void end(struct series *s)
{
	series_mark(s);
	series_finish(s);
}

static struct series once(uint64_t size)
{
	struct series s = {0};

	come(&s, 0, size, 1);
	end(&s);
	return s;
}

/* Leaves `size` bytes in every n-th round. */
static struct series leak(uint64_t size, uint32_t every, uint32_t rounds)
{
	struct series s = {0};

	for (uint32_t i = 0; i < rounds; i++)
		if (i % every == 0)
			come(&s, i * (ROUNDS / rounds), size, 1);
	end(&s);
	return s;
}

/* A buffer in each round, and the moment is within a round, or between two. */
static struct series buffer(uint64_t size, bool within)
{
	struct series s = {0};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		come(&s, i, size, 1);
		if (i == ROUNDS / 2 && within)
			series_mark(&s);
		go(&s, i, size);
		if (i == ROUNDS / 2 && !within)
			series_mark(&s);
	}
	series_finish(&s);
	return s;
}

/* A full cache of entries of random sizes. */
static struct series cache(uint64_t seed, size_t entries)
{
	uint64_t sizes[512] = {0};
	struct series s = {0};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t *slot = &sizes[i % entries];

		if (*slot)
			go(&s, i, *slot);
		*slot = 1000 + dice(&seed, 20000);
		come(&s, i, *slot, 1);
	}
	end(&s);
	return s;
}

/* Blocks of several threads: how many overlap is chance. */
static struct series overlapping(uint64_t seed, uint64_t size, uint32_t threads)
{
	struct series s = {0};
	uint32_t live = 0, at = 100 + (uint32_t)dice(&seed, 400);

	for (uint32_t i = 0; i < ROUNDS; i++) {
		while (live < threads && dice(&seed, 3)) {
			come(&s, i, size, live);
			live++;
		}
		if (i == at)
			series_mark(&s);
		while (live && dice(&seed, 2)) {
			go(&s, i, size);
			live--;
		}
	}
	series_finish(&s);
	return s;
}

static struct judgement judge(const struct judge *j, struct series a, struct series b)
{
	struct judgement out;

	judge_series(j, &a, &b, &out);
	return out;
}

static void test_static(void **state)
{
	struct judgement j = judge(&ordinary, once(8 * MiB), once(9 * MiB));

	assert_int_equal(j.kind, DIFF_GREW);
	assert_int_equal(j.change, MiB);
	assert_int_equal(judge(&ordinary, once(9 * MiB), once(8 * MiB)).kind, DIFF_SHRANK);
	assert_int_equal(judge(&ordinary, once(8 * MiB), once(8 * MiB)).kind, DIFF_SAME);
	/* Pages and paddings. */
	assert_int_equal(judge(&ordinary, once(8 * MiB), once(8 * MiB + 20 * KiB)).kind, DIFF_SAME);
	assert_int_equal(judge(&ordinary, (struct series){0}, once(MiB)).kind, DIFF_GREW);
	assert_int_equal(judge(&ordinary, (struct series){0}, (struct series){0}).kind, DIFF_SAME);
	(void)state;
}

/* A leak of one percent of all; and the same leak where B had more work. */
static void test_leak(void **state)
{
	struct judge more = ordinary;
	struct judgement j = judge(&ordinary, (struct series){0}, leak(32 * KiB, 20, ROUNDS));

	assert_int_equal(j.kind, DIFF_GREW);
	assert_int_equal(j.reason, DIFF_BY_HELD);
	assert_int_equal(j.change, MiB);
	more.work = 2;
	assert_int_equal(
	    judge(&more, leak(32 * KiB, 1, ROUNDS / 2), leak(32 * KiB, 1, ROUNDS)).kind, DIFF_SAME);
	/* Of as much work, it is twice the leak. */
	assert_int_equal(
	    judge(&ordinary, leak(32 * KiB, 2, ROUNDS), leak(32 * KiB, 1, ROUNDS)).kind, DIFF_GREW);
	assert_int_equal(
	    judge(&more, leak(32 * KiB, 1, ROUNDS / 2), leak(96 * KiB, 1, ROUNDS)).kind, DIFF_GREW);
	/* More work is no reason for a larger table. */
	assert_int_equal(judge(&more, once(8 * MiB), once(9 * MiB)).kind, DIFF_GREW);
	(void)state;
}

/* What comes and goes was there at the moment, or not. */
static void test_buffer(void **state)
{
	struct judgement j;

	assert_int_equal(judge(&ordinary, buffer(MiB, true), buffer(MiB, false)).kind, DIFF_SAME);
	j = judge(&ordinary, buffer(MiB, false), buffer(MiB + MiB / 2, false));
	assert_int_equal(j.kind, DIFF_GREW);
	assert_int_equal(j.change, MiB / 2);
	assert_int_not_equal(j.reason, DIFF_BY_HELD);
	(void)state;
}

static void test_random(void **state)
{
	unsigned caches = 0, threads = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		caches +=
		    judge(&ordinary, cache(seed, 100), cache(seed + 1000, 100)).kind != DIFF_SAME;
		threads += judge(&ordinary, overlapping(seed, 256 * KiB, 4),
			       overlapping(seed + 1000, 256 * KiB, 4))
			       .kind != DIFF_SAME;
	}
	assert_true(caches <= 1);
	assert_true(threads <= 1);
	/* And yet a cache of four times as many entries, larger blocks, and more threads. */
	assert_int_equal(judge(&ordinary, cache(1, 100), cache(2, 400)).kind, DIFF_GREW);
	assert_int_equal(
	    judge(&ordinary, overlapping(1, 256 * KiB, 4), overlapping(2, 384 * KiB, 4)).kind,
	    DIFF_GREW);
	assert_int_equal(
	    judge(&ordinary, overlapping(1, 256 * KiB, 4), overlapping(2, 256 * KiB, 12)).kind,
	    DIFF_GREW);
	(void)state;
}

/* Threads that took turns in one run and worked at once in the other; and a second buffer in each
 * call, which is called twice as often for the same work. */
static void test_overlap(void **state)
{
	struct series turns = {0}, at_once = {0}, twice = {0};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		come(&turns, i, MiB, i % 4);
		go(&turns, i, MiB);
		for (uint32_t k = 0; i % 4 == 0 && k < 4; k++)
			come(&at_once, i, MiB, k);
		for (uint32_t k = 0; i % 4 == 0 && k < 4; k++)
			go(&at_once, i, MiB);
		come(&twice, i, MiB, i % 4);
		come(&twice, i, MiB, i % 4);
		go(&twice, i, MiB);
		go(&twice, i, MiB);
	}
	end(&turns);
	end(&at_once);
	end(&twice);
	assert_int_equal(judge(&ordinary, turns, at_once).kind, DIFF_SAME);
	assert_int_equal(judge(&ordinary, turns, twice).kind, DIFF_GREW);
	(void)state;
}

/* A ended early: what it would have held later is not known. What it already holds is. */
static void test_further(void **state)
{
	struct judge far = ordinary;

	far.work = far.runs = 50;
	assert_int_equal(
	    judge(&far, (struct series){0}, leak(32 * KiB, 1, ROUNDS)).kind, DIFF_SAME);
	assert_int_equal(judge(&far, once(8 * MiB), once(6 * MiB)).kind, DIFF_SHRANK);
	(void)state;
}

/* A difference below the errors of a sample. */
static void test_sample(void **state)
{
	struct series a = once(8 * MiB), b = once(12 * MiB);

	a.sampled = b.sampled = true;
	a.then.variance = b.then.variance = (double)MiB * MiB;
	assert_int_equal(judge(&ordinary, a, b).kind, DIFF_SAME);
	a.then.variance = b.then.variance = (double)MiB * MiB / 16;
	assert_int_equal(judge(&ordinary, a, b).kind, DIFF_GREW);
	assert_true(judge_errors(1) >= 2);
	assert_true(judge_errors(1000) > judge_errors(10));
	assert_true(judge_error(&a, DIFF_LIVE) > 0);
	(void)state;
}

/* Two moments of one run: nothing varies between runs. */
static void test_one_run(void **state)
{
	struct judge one = ordinary;

	one.one_run = true;
	one.work = 2;
	assert_int_equal(
	    judge(&one, leak(32 * KiB, 1, ROUNDS / 2), leak(32 * KiB, 1, ROUNDS)).kind, DIFF_GREW);
	assert_int_equal(judge(&one, buffer(MiB, true), buffer(MiB, false)).kind, DIFF_SHRANK);
	assert_int_equal(judge(&one, once(MiB), once(MiB)).kind, DIFF_SAME);
	(void)state;
}

static void test_total(void **state)
{
	struct judge total = ordinary;

	total.by = DIFF_TOTAL;
	assert_int_equal(judge(&total, buffer(MiB, true), buffer(MiB, true)).kind, DIFF_SAME);
	assert_int_equal(judge(&total, buffer(MiB, true), buffer(2 * MiB, true)).kind, DIFF_GREW);
	(void)state;
}

static void test_arenas(void **state)
{
	struct series a = leak(MiB, 40, ROUNDS), b = a, more = leak(MiB, 20, ROUNDS);
	struct judgement j;

	come(&b, ROUNDS - 1, MiB, 1);
	end(&b);
	judge_arenas(&ordinary, &a, &b, &j);
	assert_int_equal(j.kind, DIFF_SAME);
	judge_arenas(&ordinary, &a, &more, &j);
	assert_int_equal(j.kind, DIFF_GREW);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_static),
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_buffer),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_overlap),
	    cmocka_unit_test(test_further),
	    cmocka_unit_test(test_sample),
	    cmocka_unit_test(test_one_run),
	    cmocka_unit_test(test_total),
	    cmocka_unit_test(test_arenas),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	arena_free(&arena);
	return rc;
}
