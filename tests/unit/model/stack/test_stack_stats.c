/* Cohorts: their sums, and the cohort that a release is taken from. */
#include "model/unit.h"

#include "model/stack/stack_stats_kept.h"

static void check(const struct stack_stats *s)
{
	uint64_t count = 0, bytes = 0, freed = 0, freed_bytes = 0;

	assert_true(stack_stats_used(s) <= STACK_STATS_COHORTS);
	for (uint32_t i = 0; i < stack_stats_used(s); i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);

		count += c->count;
		bytes += c->bytes;
		freed += c->freed_count;
		freed_bytes += c->freed_bytes;
		assert_true(c->freed_count <= c->count);
		if (i + 1 < stack_stats_used(s))
			assert_int_equal(c->count, stack_stats_more_of(s)->stride);
	}
	assert_int_equal(count, stack_stats_total_count(s));
	assert_int_equal(bytes, stack_stats_total_bytes(s));
	assert_int_equal(count - freed, stack_stats_live_count(s));
	assert_int_equal(bytes - freed_bytes, stack_stats_live_bytes(s));
}

static void test_grow(void **state)
{
	struct stack_stats stats, *s = &stats;
	struct cohort own;

	stack_stats_init(s, 7, STACK_STATS_HEAP);
	for (uint64_t i = 1; i <= 10000; i++) {
		assert_int_equal(stack_stats_acquire(s, i * 3, i * 10, ALIKE_ONE(i)), 0);
		if (i % 997 == 0)
			check(s);
	}
	check(s);
	assert_int_equal(stack_stats_more_of(s)->stride, 256);
	assert_int_equal(stack_stats_largest(s), 10000);
	assert_int_equal(stack_stats_cohort(s, 0, &own)->serial, 3);
	assert_int_equal(stack_stats_cohort(s, 0, &own)->max, 256);
	stack_stats_fini(s);
	(void)state;
}

/* Periods tell of blocks from before a checkpoint, however much comes since; no release touches
 * them. */
static void test_went(void **state)
{
	struct stack_stats stats, *s = &stats;
	uint64_t count = 0, freed = 0, alone = 0, last = 0;

	stack_stats_init(s, 7, STACK_STATS_HEAP);
	for (uint64_t k = 1; k <= 10; k++) {
		assert_int_equal(stack_stats_acquire(s, k, k * 1000, ALIKE_ONE(k)), 0);
		assert_int_equal(stack_stats_add_freed(s, k + 1, k * 1000 + 1,
				     (struct alike){k * 100, 100000, 5000000, 0}, 200000, 9),
		    0);
		if (k % 2) /* the last one that was acquired before */
			stack_stats_release(s, k, k * 1000, k * 1000 + 2, ALIKE_ONE(k), true);
	}
	assert_int_equal(stack_stats_freed_count(s), 1000005);
	assert_int_equal(stack_stats_live_count(s), 5);
	assert_int_equal(stack_stats_largest(s), 1000);
	assert_in_range(stack_stats_life_ns(s), 2000000, 2000010);
	assert_int_equal(stack_stats_longest_life_ns(s), 9);
	for (uint32_t i = 0; i < stack_stats_used(s); i++)
		if (stack_stats_more_of(s)->cohorts[i].summed_count)
			assert_int_equal(stack_stats_more_of(s)->cohorts[i].freed_count, 100000);
	for (uint64_t i = 0; i < 30000; i++) {
		assert_int_equal(stack_stats_acquire(s, 100 + i, 20000 + i, ALIKE_ONE(500)), 0);
		stack_stats_release(s, 100 + i, 20000 + i, 20001 + i, ALIKE_ONE(500), true);
		assert_true(stack_stats_used(s) <= STACK_STATS_COHORTS);
	}
	for (uint32_t i = 0; i < stack_stats_used(s); i++) {
		const struct cohort *c = &stack_stats_more_of(s)->cohorts[i];

		count += c->count;
		freed += c->freed_count;
		assert_true(c->serial >= last && c->summed_count <= c->freed_count);
		last = c->serial;
		alone += c->summed_count == 100000 && c->max == 100 * (alone + 1);
	}
	assert_int_equal(alone, 10);
	assert_int_equal(count, stack_stats_total_count(s));
	assert_int_equal(freed, 1000005 + 30000);
	/* Too many of them are merged like all others. */
	for (uint64_t k = 0; k < 1000; k++) {
		assert_int_equal(stack_stats_acquire(s, 40000 + k, 60000 + k, ALIKE_ONE(k)), 0);
		assert_int_equal(stack_stats_add_freed(s, 40001 + k, 60000 + k,
				     (struct alike){100, 100000, 5000000, 0}, 1, 1),
		    0);
		assert_true(stack_stats_used(s) <= STACK_STATS_COHORTS);
	}
	assert_int_equal(stack_stats_total_count(s), 1000010 + 30000 + 1000 * 100001);
	stack_stats_fini(s);
	(void)state;
}

/* Every block is released from the cohort it was born in, in any order. */
static void test_generations(void **state)
{
	struct stack_stats stats, *s = &stats;
	uint64_t seed = 12345, alive[5000];
	size_t n = 0;

	stack_stats_init(s, 7, STACK_STATS_HEAP);
	for (uint64_t i = 1; i <= 20000; i++) {
		stack_stats_acquire(s, i, i, ALIKE_ONE(100));
		alive[n++] = i;
		while (n > 4000) {
			size_t at = dice(&seed, n);
			stack_stats_release(s, alive[at], alive[at], i, ALIKE_ONE(100), true);
			alive[at] = alive[--n];
		}
	}
	check(s);
	for (uint32_t c = 0; c < stack_stats_used(s); c++) {
		struct cohort own[2];
		const struct cohort *one = stack_stats_cohort(s, c, &own[0]);
		uint64_t last = c + 1 < stack_stats_used(s)
				    ? stack_stats_cohort(s, c + 1, &own[1])->serial
				    : UINT64_MAX,
			 living = 0;

		for (size_t i = 0; i < n; i++)
			living += alive[i] >= one->serial && alive[i] < last;
		assert_int_equal(one->count - one->freed_count, living);
	}
	stack_stats_fini(s);
	(void)state;
}

static void test_restore_and_parts(void **state)
{
	struct stack_stats stats, *s = &stats;

	stack_stats_init(s, 7, STACK_STATS_MAP);
	stack_stats_acquire(s, 1, 100, ALIKE_ONE(4096 * 10));
	stack_stats_release(s, 1, 100, 200, ALIKE_ONE(4096 * 3), false); /* a gap in the middle */
	stack_stats_split(s, 1);
	assert_int_equal(stack_stats_live_bytes(s), 4096 * 7);
	assert_int_equal(stack_stats_live_count(s), 2);
	stack_stats_release(s, 1, 100, 300, ALIKE_ONE(4096 * 4), true);
	assert_int_equal(stack_stats_live_count(s), 1);
	assert_int_equal(stack_stats_life_ns(s), 200);
	stack_stats_restore(s, 1, 100, 300, ALIKE_ONE(4096 * 4));
	assert_int_equal(stack_stats_live_bytes(s), 4096 * 7);
	assert_int_equal(stack_stats_life_ns(s), 0);
	/* More than there is: damage, which must not wrap. */
	stack_stats_release(s, 1, 100, 50, ALIKE_ONE(UINT64_MAX), true);
	assert_int_equal(stack_stats_live_bytes(s), 0);
	stack_stats_fini(s);
	(void)state;
}

static void test_freeze(void **state)
{
	struct stack_stats stats, *s = &stats;
	struct cohort own;

	stack_stats_init(s, 7, STACK_STATS_HEAP);
	for (uint64_t i = 1; i <= 100; i++)
		stack_stats_acquire(s, i, i, ALIKE_ONE(10));
	assert_int_equal(stack_stats_freeze(s, 1), 0);
	for (uint64_t i = 1; i <= 100; i++)
		stack_stats_release(s, i, i, 1000, ALIKE_ONE(10), true);
	assert_int_equal(stack_stats_live_bytes(s), 0);
	assert_int_equal(stack_stats_live_bytes(stack_stats_frozen(s, 1)), 1000);
	assert_null(stack_stats_frozen(s, 2));
	assert_int_equal(stack_stats_cohort(stack_stats_frozen(s, 1), 0, &own)->freed_count, 0);
	check(stack_stats_frozen(s, 1));
	assert_int_equal(stack_stats_freeze(s, 2), 0);
	assert_int_equal(stack_stats_live_bytes(stack_stats_frozen(s, 2)), 0);
	assert_null(stack_stats_frozen(s, 1));
	stack_stats_fini(s);
	(void)state;
}

static void assert_same(const struct stack_stats *a, const struct stack_stats *b)
{
	struct cohort own[2];
	struct stack_stats_course c[2] = {stack_stats_course(a), stack_stats_course(b)};

	assert_int_equal(stack_stats_used(a), stack_stats_used(b));
	assert_int_equal(stack_stats_live_bytes(a), stack_stats_live_bytes(b));
	assert_int_equal(stack_stats_live_count(a), stack_stats_live_count(b));
	assert_int_equal(stack_stats_total_bytes(a), stack_stats_total_bytes(b));
	assert_int_equal(stack_stats_total_count(a), stack_stats_total_count(b));
	assert_int_equal(stack_stats_largest(a), stack_stats_largest(b));
	assert_int_equal(stack_stats_freed_count(a), stack_stats_freed_count(b));
	assert_int_equal(stack_stats_life_ns(a), stack_stats_life_ns(b));
	assert_int_equal(stack_stats_ended_count(a), stack_stats_ended_count(b));
	assert_int_equal(stack_stats_ended_largest(a), stack_stats_ended_largest(b));
	assert_int_equal(stack_stats_peak_bytes(a), stack_stats_peak_bytes(b));
	assert_int_equal(stack_stats_longest_life_ns(a), stack_stats_longest_life_ns(b));
	for (uint32_t i = 0; i < stack_stats_used(a); i++)
		assert_memory_equal(stack_stats_cohort(a, i, &own[0]),
		    stack_stats_cohort(b, i, &own[1]), sizeof(struct cohort));
	assert_memory_equal(&c[0].object, &c[1].object, sizeof(c[0].object));
	assert_int_equal(c[0].order.serial, c[1].order.serial);
	assert_int_equal(c[0].order.life_ns, c[1].order.life_ns);
	assert_int_equal(c[0].order.ascending, c[1].order.ascending);
	assert_int_equal(c[0].order.turns, c[1].order.turns);
	assert_int_equal(c[0].acquired, c[1].acquired);
	assert_memory_equal(&stack_stats_rare(a)->buildups, &stack_stats_rare(b)->buildups,
	    sizeof(struct stack_stats_buildups));
	assert_int_equal(c[0].buildup.high, c[1].buildup.high);
	assert_int_equal(c[0].buildup.bytes, c[1].buildup.bytes);
	assert_int_equal(c[0].buildup.before, c[1].buildup.before);
	assert_int_equal(c[0].buildup.since_ns, c[1].buildup.since_ns);
	assert_int_equal(c[0].no_buildup, c[1].no_buildup);
}

static void keep_all(struct stack_stats *s)
{
	assert_non_null(stack_stats_keep_wide(s));
	assert_true(s->form == STACK_STATS_MANY && !stack_stats_more_of(s)->singles &&
		    stack_stats_more_of(s)->cohorts);
}

/* At any input, a stack in its small form reads like one with all its statistics from the start. */
static void test_little_is_as_good(void **state)
{
	uint64_t seed = 5;
	size_t little = 0, small = 0;

	for (int round = 0; round < 3000; round++) {
		struct stack_stats stats_list[2];
		uint64_t serial = 1 + dice(&seed, 9), now = 100, birth = now;
		uint64_t size = dice(&seed, 4) ? 64 : 0;
		struct alike blocks = ALIKE_ONE(size);

		for (int i = 0; i < 2; i++)
			stack_stats_init(&stats_list[i], 7, STACK_STATS_HEAP);
		keep_all(&stats_list[1]);
		if (dice(&seed, 16) == 0)
			blocks = (struct alike){64, 1, 64, 0.5};
		for (size_t steps = 1 + dice(&seed, 5), n = 0; n < steps; n++) {
			size_t what = n ? dice(&seed, 8) : 0;

			now += 10;
			for (int i = 0; i < 2; i++) {
				struct stack_stats *s = &stats_list[i];

				if (what == 0) {
					assert_int_equal(
					    stack_stats_acquire(s, serial + n, now, blocks), 0);
				} else if (what < 5 && stack_stats_live_count(s)) {
					stack_stats_release(s, serial, birth, now, blocks, true);
					if (what < 4)
						stack_stats_end(s, serial, blocks, now - birth);
				} else if (what == 5) {
					stack_stats_release(
					    s, serial, birth, now, ALIKE_ONE(16), false);
				} else if (what == 6 && stack_stats_freed_count(s)) {
					stack_stats_restore(s, serial, birth, now, blocks);
				} else if (what == 7) {
					stack_stats_regrow(s, 1, 16, serial, 64, 1000);
				}
			}
			if (what == 0)
				birth = now;
			assert_same(&stats_list[0], &stats_list[1]);
			little += stats_list[0].form < STACK_STATS_FEW;
		}
		assert_int_equal(stack_stats_freeze(&stats_list[0], 2), 0);
		assert_same(stack_stats_frozen(&stats_list[0], 2), &stats_list[1]);
		small += stack_stats_frozen(&stats_list[0], 2)->form < STACK_STATS_FEW;
		stack_stats_fini(&stats_list[0]);
		stack_stats_fini(&stats_list[1]);
	}
	assert_in_range(little, 1000, 15000);
	assert_in_range(small, 500, 3000);
	(void)state;
}

/* The same of several blocks, each in its small form until others come; and of sizes, serials
 * and times around the largest that the small form holds. */
static void test_singles_are_as_good(void **state)
{
	uint64_t seed = 7;
	size_t few = 0, singles = 0, rounds = 2000;

	for (size_t round = 0; round < rounds; round++) {
		struct stack_stats stats_list[2];
		struct {
			uint64_t size, birth;
			bool freed;
		} blocks[100];
		size_t n = 0, most = 2 + dice(&seed, round % 8 ? 10 : 99);
		bool odd = dice(&seed, 4) == 0;
		uint64_t scale = round % 5 ? 32 : 1ull << (24 + dice(&seed, 7));
		uint64_t first = round % 7 ? 0 : UINT32_MAX - dice(&seed, 20);
		uint64_t start = round % 9 ? 1000 : STACK_STATS_TIME_MAX - dice(&seed, 400);

		for (int i = 0; i < 2; i++)
			stack_stats_init(&stats_list[i], 7, STACK_STATS_HEAP);
		keep_all(&stats_list[1]);
		for (uint64_t now = start; n < most; now += 10) {
			size_t what = n ? dice(&seed, odd ? 9 : 6) : 0;
			size_t at = n ? dice(&seed, n) : 0, size = dice(&seed, 3) * scale;

			for (int i = 0; i < 2; i++) {
				struct stack_stats *s = &stats_list[i];
				struct alike one = ALIKE_ONE(what < 3 ? size : blocks[at].size);

				if (what < 3) {
					assert_int_equal(
					    stack_stats_acquire(s, first + n + 1, now, one), 0);
				} else if (what < 6 && !blocks[at].freed) {
					stack_stats_release(
					    s, first + at + 1, blocks[at].birth, now, one, true);
					stack_stats_end(
					    s, first + at + 1, one, now - blocks[at].birth);
				} else if (what == 6 && blocks[at].freed) {
					stack_stats_restore(
					    s, first + at + 1, blocks[at].birth, now, one);
				} else if (what == 7 && n > 1) {
					stack_stats_release(s, first + at + 1, blocks[at].birth,
					    now, ALIKE_ONE(16), false);
				} else if (what == 8 && n > 1) {
					stack_stats_split(s, first + at + 1);
				}
			}
			if (what < 3) {
				blocks[n].size = size;
				blocks[n].birth = now;
				blocks[n++].freed = false;
			} else if (what < 6) {
				blocks[at].freed = true;
			} else if (what == 6) {
				blocks[at].freed = false;
			}
			assert_same(&stats_list[0], &stats_list[1]);
		}
		few += stats_list[0].form == STACK_STATS_FEW;
		singles += stats_list[0].form == STACK_STATS_MANY &&
			   stack_stats_more_of(&stats_list[0])->singles;
		for (uint64_t epoch = 1; epoch < 3; epoch++) {
			for (int i = 0; i < 2; i++)
				assert_int_equal(stack_stats_freeze(&stats_list[i], epoch), 0);
			for (int i = 0; i < 2; i++)
				assert_int_equal(stack_stats_acquire(&stats_list[i], first + 200,
						     start + 100000, ALIKE_ONE(64)),
				    0);
			assert_same(stack_stats_frozen(&stats_list[0], epoch),
			    stack_stats_frozen(&stats_list[1], epoch));
			assert_same(&stats_list[0], &stats_list[1]);
		}
		for (int i = 0; i < 2; i++)
			stack_stats_fini(&stats_list[i]);
	}
	assert_in_range(few, rounds / 3, rounds - rounds / 4);
	assert_in_range(singles, rounds / 20, rounds / 2);
	(void)state;
}

/* The same of cohorts, from the first merge on: of few blocks and many, of sizes and times
 * around the largest that the small form holds. */
static void test_narrow_is_as_good(void **state)
{
	uint64_t seed = 11;
	size_t narrow = 0, wide = 0;

	for (int round = 0; round < 60; round++) {
		struct stack_stats stats_list[2];
		uint64_t births[600], sizes[600], first = round % 7 ? 0 : UINT32_MAX - 200;
		uint64_t start = round % 9 ? 1000 : STACK_STATS_TIME_MAX - 3000, n = 0;
		uint64_t most = round % 5 ? 600 : 70000, scale = round % 4 ? 32 : 1u << 22;

		for (int i = 0; i < 2; i++)
			stack_stats_init(&stats_list[i], 7, STACK_STATS_HEAP);
		keep_all(&stats_list[1]);
		for (uint64_t now = start; n < most; now += 10) {
			size_t what = n ? dice(&seed, most > 600 ? 3 : 5) : 0;
			uint64_t known = n < 600 ? n : 600, at = known ? dice(&seed, known) : 0;
			uint64_t size = (1 + dice(&seed, 3)) * scale;

			for (int i = 0; i < 2; i++) {
				struct stack_stats *s = &stats_list[i];
				struct alike was = ALIKE_ONE(sizes[at]);

				if (what < 3)
					assert_int_equal(stack_stats_acquire(s, first + n + 1, now,
							     ALIKE_ONE(size)),
					    0);
				else if (what == 3)
					stack_stats_release(
					    s, first + at + 1, births[at], now, was, true);
				else if (known > 64)
					stack_stats_restore(
					    s, first + at + 1, births[at], now, was);
			}
			if (what < 3 && n++ < 600) {
				births[n - 1] = now;
				sizes[n - 1] = size;
			}
			if (n < 600 || n % 1000 == 0)
				assert_same(&stats_list[0], &stats_list[1]);
		}
		assert_same(&stats_list[0], &stats_list[1]);
		narrow += stack_stats_more_of(&stats_list[0])->narrow != NULL;
		wide += stack_stats_more_of(&stats_list[0])->cohorts != NULL;
		assert_int_equal(stack_stats_freeze(&stats_list[0], 1), 0);
		assert_same(stack_stats_frozen(&stats_list[0], 1), &stats_list[1]);
		for (int i = 0; i < 2; i++)
			stack_stats_split(&stats_list[i], first + 1);
		assert_same(&stats_list[0], &stats_list[1]);
		for (int i = 0; i < 2; i++)
			stack_stats_fini(&stats_list[i]);
	}
	assert_in_range(narrow, 20, 40);
	assert_int_equal(narrow + wide, 60);
	(void)state;
}

/* Released piles, and the blocks since the last of them; one surviving block does not hide a
 * pile, a few blocks are none. */
static void test_piles(void **state)
{
	for (uint64_t blocks = 3; blocks <= 40; blocks += 37) {
		struct stack_stats stats, *s = &stats;
		uint64_t n = 0;

		stack_stats_init(s, 7, STACK_STATS_HEAP);
		for (uint64_t pile = 1; pile <= 10; pile++) {
			uint64_t first = n + 1;

			for (uint64_t k = 0; k < blocks; k++, n++)
				stack_stats_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(64));
			assert_false(stack_stats_course(s).no_buildup);
			assert_int_equal(stack_stats_course(s).buildup.since_ns, 100 * first);
			assert_int_equal(stack_stats_course(s).buildup.before, first - 1);
			for (uint64_t k = pile == 1 && blocks > 3; k < blocks; k++)
				stack_stats_release(
				    s, first + k, 100 * (first + k), 100 * n, ALIKE_ONE(64), true);
			assert_true(stack_stats_course(s).no_buildup);
		}
		assert_int_equal(stack_stats_rare(s)->buildups.times, blocks > 3 ? 10 : 0);
		assert_int_equal(stack_stats_rare(s)->buildups.largest, blocks > 3 ? 41 * 64 : 0);
		stack_stats_fini(s);
	}
	(void)state;
}

/* The rise of the piles: less than a thirty-second more counts as equal. */
static void test_piles_rise(void **state)
{
	static const uint64_t counts[] = {40, 80, 81, 20, 160, 150};
	struct stack_stats *s = &(struct stack_stats){0};
	uint64_t n = 0;

	stack_stats_init(s, 1, STACK_STATS_HEAP);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t first = n + 1;

		for (; n < first + counts[i] - 1; n++)
			stack_stats_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(64));
		for (uint64_t k = first; k <= n; k++)
			stack_stats_release(s, k, 100 * k, 100 * n, ALIKE_ONE(64), true);
	}
	assert_int_equal(stack_stats_rare(s)->buildups.times, 6);
	assert_int_equal(stack_stats_rare(s)->buildups.records, 3);
	assert_int_equal(stack_stats_rare(s)->buildups.first, 40 * 64);
	assert_int_equal(stack_stats_rare(s)->buildups.largest, 160 * 64);
	stack_stats_fini(s);
	(void)state;
}

/* The latest run of blocks that do not get smaller, and the largest block before it; of as few
 * blocks as of many. */
static void test_run(void **state)
{
	static const uint64_t sizes[] = {300, 500, 400, 400, 600, 700, 700, 900};

	for (uint64_t before = 0; before < 80; before += 20) {
		struct stack_stats *s = &(struct stack_stats){0};
		struct stack_stats_run run;
		uint64_t n = 0;

		stack_stats_init(s, 1, STACK_STATS_HEAP);
		run = stack_stats_course(s).run;
		assert_true(!run.first && !run.last && !run.rises);
		for (; n < before; n++)
			stack_stats_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(n % 2 ? 800 : 200));
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++, n++)
			stack_stats_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(sizes[i]));
		run = stack_stats_course(s).run;
		assert_int_equal(run.first, 400);
		assert_int_equal(run.last, 900);
		assert_int_equal(run.before, before ? 800 : 500);
		assert_int_equal(run.rises, 3);
		stack_stats_fini(s);
	}
	(void)state;
}

/* With one block no course is kept, and it reads as if one were. */
static void test_course_of_one(void **state)
{
	for (int step = 0; step < 4; step++) {
		struct stack_stats stats, *s = &stats;
		struct stack_stats_course c;

		stack_stats_init(s, 1, STACK_STATS_HEAP);
		c = stack_stats_course(s);
		assert_true(c.no_buildup);
		assert_false(c.acquired);
		assert_int_equal(stack_stats_acquire(s, 7, 100, ALIKE_ONE(64)), 0);
		if (step > 1) {
			stack_stats_release(s, 7, 100, 150, ALIKE_ONE(64), true);
			stack_stats_end(s, 7, ALIKE_ONE(64), 50);
		}
		assert_true(s->form < STACK_STATS_FEW);
		c = stack_stats_course(s);
		assert_int_equal(c.no_buildup, step > 1);
		assert_int_equal(c.acquired, step < 2);
		assert_int_equal(c.order.serial, step > 1 ? 7 : 0);
		/* The second one goes on from there; or the first one lives again, or grows. */
		if (step == 3)
			stack_stats_restore(s, 7, 100, 150, ALIKE_ONE(64));
		else
			assert_int_equal(stack_stats_acquire(s, 9, 200, ALIKE_ONE(64)), 0);
		if (step == 0)
			stack_stats_regrow(s, 7, 64, 9, 128, 1000);
		assert_true(s->form >= STACK_STATS_FEW);
		c = stack_stats_course(s);
		assert_int_equal(c.no_buildup, step == 3);
		assert_int_equal(c.buildup.since_ns, step == 2 ? 200 : 100);
		assert_int_equal(c.buildup.before, step == 2);
		assert_int_equal(c.buildup.high, step < 2 ? 2 : 1);
		assert_int_equal(c.order.ascending, step > 1);
		assert_int_equal(c.order.turns, step > 1);
		assert_int_equal(c.order.life_ns, step > 1 ? 50 : 0);
		assert_int_equal(c.object.serial, step == 0 ? 9 : 0);
		/* A copy is independent. */
		assert_int_equal(stack_stats_freeze(s, 1), 0);
		assert_int_equal(stack_stats_acquire(s, 11, 300, ALIKE_ONE(64)), 0);
		c = stack_stats_course(stack_stats_frozen(s, 1));
		assert_int_equal(c.buildup.high, step < 2 ? 2 : 1);
		stack_stats_fini(s);
	}

	/* One of a sample stands for several, which are a pile. */
	struct stack_stats many;
	stack_stats_init(&many, 1, STACK_STATS_HEAP);
	assert_int_equal(stack_stats_acquire(&many, 1, 100, (struct alike){64, 5, 320, 0}), 0);
	assert_int_equal(stack_stats_course(&many).buildup.high, 5);
	stack_stats_release(&many, 1, 100, 200, (struct alike){64, 5, 320, 0}, true);
	assert_int_equal(stack_stats_rare(&many)->buildups.times, 1);
	assert_int_equal(stack_stats_rare(&many)->buildups.largest, 320);
	stack_stats_fini(&many);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_piles_rise),
	    cmocka_unit_test(test_grow),
	    cmocka_unit_test(test_went),
	    cmocka_unit_test(test_generations),
	    cmocka_unit_test(test_restore_and_parts),
	    cmocka_unit_test(test_freeze),
	    cmocka_unit_test(test_piles),
	    cmocka_unit_test(test_run),
	    cmocka_unit_test(test_course_of_one),
	    cmocka_unit_test(test_little_is_as_good),
	    cmocka_unit_test(test_singles_are_as_good),
	    cmocka_unit_test(test_narrow_is_as_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
