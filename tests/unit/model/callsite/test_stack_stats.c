/* Cohorts: what they sum up to, and which one a release is taken from. */
#include "model/unit.h"

#include "model/callsite/stack_stats_kept.h"

static void check(const struct site *s)
{
	uint64_t count = 0, bytes = 0, freed = 0, freed_bytes = 0;

	assert_true(site_used(s) <= SITE_COHORTS);
	for (uint32_t i = 0; i < site_used(s); i++) {
		struct cohort own;
		const struct cohort *c = site_cohort(s, i, &own);

		count += c->count;
		bytes += c->bytes;
		freed += c->freed_count;
		freed_bytes += c->freed_bytes;
		assert_true(c->freed_count <= c->count);
		if (i + 1 < site_used(s))
			assert_int_equal(c->count, site_more_of(s)->stride);
	}
	assert_int_equal(count, site_total_count(s));
	assert_int_equal(bytes, site_total_bytes(s));
	assert_int_equal(count - freed, site_live_count(s));
	assert_int_equal(bytes - freed_bytes, site_live_bytes(s));
}

static void test_grow(void **state)
{
	struct site site, *s = &site;
	struct cohort own;

	site_init(s, 7, SITE_HEAP);
	for (uint64_t i = 1; i <= 10000; i++) {
		assert_int_equal(site_acquire(s, i * 3, i * 10, ALIKE_ONE(i)), 0);
		if (i % 997 == 0)
			check(s);
	}
	check(s);
	assert_int_equal(site_more_of(s)->stride, 256);
	assert_int_equal(site_largest(s), 10000);
	assert_int_equal(site_cohort(s, 0, &own)->serial, 3);
	assert_int_equal(site_cohort(s, 0, &own)->max, 256);
	site_fini(s);
	(void)state;
}

/* What went before a checkpoint is told by periods, and stays so, however much comes since; and no
 * release is of it. */
static void test_went(void **state)
{
	struct site site, *s = &site;
	uint64_t count = 0, freed = 0, alone = 0, last = 0;

	site_init(s, 7, SITE_HEAP);
	for (uint64_t k = 1; k <= 10; k++) {
		assert_int_equal(site_acquire(s, k, k * 1000, ALIKE_ONE(k)), 0);
		assert_int_equal(site_went(s, k + 1, k * 1000 + 1,
				     (struct alike){k * 100, 100000, 5000000, 0}, 200000, 9),
		    0);
		if (k % 2) /* the last one that was acquired before */
			site_release(s, k, k * 1000, k * 1000 + 2, ALIKE_ONE(k), true);
	}
	assert_int_equal(site_freed_count(s), 1000005);
	assert_int_equal(site_live_count(s), 5);
	assert_int_equal(site_largest(s), 1000);
	assert_in_range(site_life_ns(s), 2000000, 2000010);
	assert_int_equal(site_longest_life_ns(s), 9);
	for (uint32_t i = 0; i < site_used(s); i++)
		if (site_more_of(s)->cohorts[i].went_count)
			assert_int_equal(site_more_of(s)->cohorts[i].freed_count, 100000);
	for (uint64_t i = 0; i < 30000; i++) {
		assert_int_equal(site_acquire(s, 100 + i, 20000 + i, ALIKE_ONE(500)), 0);
		site_release(s, 100 + i, 20000 + i, 20001 + i, ALIKE_ONE(500), true);
		assert_true(site_used(s) <= SITE_COHORTS);
	}
	for (uint32_t i = 0; i < site_used(s); i++) {
		const struct cohort *c = &site_more_of(s)->cohorts[i];

		count += c->count;
		freed += c->freed_count;
		assert_true(c->serial >= last && c->went_count <= c->freed_count);
		last = c->serial;
		alone += c->went_count == 100000 && c->max == 100 * (alone + 1);
	}
	assert_int_equal(alone, 10);
	assert_int_equal(count, site_total_count(s));
	assert_int_equal(freed, 1000005 + 30000);
	/* Where there are too many of them, they are merged as all are. */
	for (uint64_t k = 0; k < 1000; k++) {
		assert_int_equal(site_acquire(s, 40000 + k, 60000 + k, ALIKE_ONE(k)), 0);
		assert_int_equal(site_went(s, 40001 + k, 60000 + k,
				     (struct alike){100, 100000, 5000000, 0}, 1, 1),
		    0);
		assert_true(site_used(s) <= SITE_COHORTS);
	}
	assert_int_equal(site_total_count(s), 1000010 + 30000 + 1000 * 100001);
	site_fini(s);
	(void)state;
}

/* Every block is released from the cohort it was born in, in any order. */
static void test_generations(void **state)
{
	struct site site, *s = &site;
	uint64_t seed = 12345, alive[5000];
	size_t n = 0;

	site_init(s, 7, SITE_HEAP);
	for (uint64_t i = 1; i <= 20000; i++) {
		site_acquire(s, i, i, ALIKE_ONE(100));
		alive[n++] = i;
		while (n > 4000) {
			size_t at = dice(&seed, n);
			site_release(s, alive[at], alive[at], i, ALIKE_ONE(100), true);
			alive[at] = alive[--n];
		}
	}
	check(s);
	for (uint32_t c = 0; c < site_used(s); c++) {
		struct cohort own[2];
		const struct cohort *one = site_cohort(s, c, &own[0]);
		uint64_t last = c + 1 < site_used(s) ? site_cohort(s, c + 1, &own[1])->serial
						     : UINT64_MAX,
			 living = 0;

		for (size_t i = 0; i < n; i++)
			living += alive[i] >= one->serial && alive[i] < last;
		assert_int_equal(one->count - one->freed_count, living);
	}
	site_fini(s);
	(void)state;
}

static void test_restore_and_parts(void **state)
{
	struct site site, *s = &site;

	site_init(s, 7, SITE_MAP);
	site_acquire(s, 1, 100, ALIKE_ONE(4096 * 10));
	site_release(s, 1, 100, 200, ALIKE_ONE(4096 * 3), false); /* a hole in the middle */
	site_split(s, 1);
	assert_int_equal(site_live_bytes(s), 4096 * 7);
	assert_int_equal(site_live_count(s), 2);
	site_release(s, 1, 100, 300, ALIKE_ONE(4096 * 4), true);
	assert_int_equal(site_live_count(s), 1);
	assert_int_equal(site_life_ns(s), 200);
	site_restore(s, 1, 100, 300, ALIKE_ONE(4096 * 4));
	assert_int_equal(site_live_bytes(s), 4096 * 7);
	assert_int_equal(site_life_ns(s), 0);
	/* More than there is: damage, which must not wrap. */
	site_release(s, 1, 100, 50, ALIKE_ONE(UINT64_MAX), true);
	assert_int_equal(site_live_bytes(s), 0);
	site_fini(s);
	(void)state;
}

static void test_freeze(void **state)
{
	struct site site, *s = &site;
	struct cohort own;

	site_init(s, 7, SITE_HEAP);
	for (uint64_t i = 1; i <= 100; i++)
		site_acquire(s, i, i, ALIKE_ONE(10));
	assert_int_equal(site_freeze(s, 1), 0);
	for (uint64_t i = 1; i <= 100; i++)
		site_release(s, i, i, 1000, ALIKE_ONE(10), true);
	assert_int_equal(site_live_bytes(s), 0);
	assert_int_equal(site_live_bytes(site_frozen(s, 1)), 1000);
	assert_null(site_frozen(s, 2));
	assert_int_equal(site_cohort(site_frozen(s, 1), 0, &own)->freed_count, 0);
	check(site_frozen(s, 1));
	assert_int_equal(site_freeze(s, 2), 0);
	assert_int_equal(site_live_bytes(site_frozen(s, 2)), 0);
	assert_null(site_frozen(s, 1));
	site_fini(s);
	(void)state;
}

static void assert_same(const struct site *a, const struct site *b)
{
	struct cohort own[2];
	struct site_course c[2] = {site_course(a), site_course(b)};

	assert_int_equal(site_used(a), site_used(b));
	assert_int_equal(site_live_bytes(a), site_live_bytes(b));
	assert_int_equal(site_live_count(a), site_live_count(b));
	assert_int_equal(site_total_bytes(a), site_total_bytes(b));
	assert_int_equal(site_total_count(a), site_total_count(b));
	assert_int_equal(site_largest(a), site_largest(b));
	assert_int_equal(site_freed_count(a), site_freed_count(b));
	assert_int_equal(site_life_ns(a), site_life_ns(b));
	assert_int_equal(site_ended_count(a), site_ended_count(b));
	assert_int_equal(site_ended_largest(a), site_ended_largest(b));
	assert_int_equal(site_peak_bytes(a), site_peak_bytes(b));
	assert_int_equal(site_longest_life_ns(a), site_longest_life_ns(b));
	for (uint32_t i = 0; i < site_used(a); i++)
		assert_memory_equal(
		    site_cohort(a, i, &own[0]), site_cohort(b, i, &own[1]), sizeof(struct cohort));
	assert_memory_equal(&c[0].object, &c[1].object, sizeof(c[0].object));
	assert_int_equal(c[0].order.serial, c[1].order.serial);
	assert_int_equal(c[0].order.life_ns, c[1].order.life_ns);
	assert_int_equal(c[0].order.ascending, c[1].order.ascending);
	assert_int_equal(c[0].order.turns, c[1].order.turns);
	assert_int_equal(c[0].acquired, c[1].acquired);
	assert_memory_equal(&site_rare(a)->piles, &site_rare(b)->piles, sizeof(struct site_piles));
	assert_int_equal(c[0].pile.high, c[1].pile.high);
	assert_int_equal(c[0].pile.bytes, c[1].pile.bytes);
	assert_int_equal(c[0].pile.before, c[1].pile.before);
	assert_int_equal(c[0].pile.since_ns, c[1].pile.since_ns);
	assert_int_equal(c[0].no_pile, c[1].no_pile);
}

static void keep_all(struct site *s)
{
	assert_non_null(site_keep_wide(s));
	assert_true(s->form == SITE_MANY && !site_more_of(s)->singles && site_more_of(s)->cohorts);
}

/* Whatever comes, a site of which little is kept reads as one of which all was from the start. */
static void test_little_is_as_good(void **state)
{
	uint64_t seed = 5;
	size_t little = 0, small = 0;

	for (int round = 0; round < 3000; round++) {
		struct site sites[2];
		uint64_t serial = 1 + dice(&seed, 9), now = 100, birth = now;
		uint64_t size = dice(&seed, 4) ? 64 : 0;
		struct alike blocks = ALIKE_ONE(size);

		for (int i = 0; i < 2; i++)
			site_init(&sites[i], 7, SITE_HEAP);
		keep_all(&sites[1]);
		if (dice(&seed, 16) == 0)
			blocks = (struct alike){64, 1, 64, 0.5};
		for (size_t steps = 1 + dice(&seed, 5), n = 0; n < steps; n++) {
			size_t what = n ? dice(&seed, 8) : 0;

			now += 10;
			for (int i = 0; i < 2; i++) {
				struct site *s = &sites[i];

				if (what == 0) {
					assert_int_equal(
					    site_acquire(s, serial + n, now, blocks), 0);
				} else if (what < 5 && site_live_count(s)) {
					site_release(s, serial, birth, now, blocks, true);
					if (what < 4)
						site_end(s, serial, blocks, now - birth);
				} else if (what == 5) {
					site_release(s, serial, birth, now, ALIKE_ONE(16), false);
				} else if (what == 6 && site_freed_count(s)) {
					site_restore(s, serial, birth, now, blocks);
				} else if (what == 7) {
					site_regrow(s, 1, 16, serial, 64, 1000);
				}
			}
			if (what == 0)
				birth = now;
			assert_same(&sites[0], &sites[1]);
			little += sites[0].form < SITE_FEW;
		}
		assert_int_equal(site_freeze(&sites[0], 2), 0);
		assert_same(site_frozen(&sites[0], 2), &sites[1]);
		small += site_frozen(&sites[0], 2)->form < SITE_FEW;
		site_fini(&sites[0]);
		site_fini(&sites[1]);
	}
	assert_in_range(little, 1000, 15000);
	assert_in_range(small, 500, 3000);
	(void)state;
}

/* The same of several blocks, of which each is kept as one while nothing else comes; and of sizes,
 * serials and times next to the largest of which little is kept, and above. */
static void test_singles_are_as_good(void **state)
{
	uint64_t seed = 7;
	size_t few = 0, singles = 0, rounds = 2000;

	for (size_t round = 0; round < rounds; round++) {
		struct site sites[2];
		struct {
			uint64_t size, birth;
			bool freed;
		} blocks[100];
		size_t n = 0, most = 2 + dice(&seed, round % 8 ? 10 : 99);
		bool odd = dice(&seed, 4) == 0;
		uint64_t scale = round % 5 ? 32 : 1ull << (24 + dice(&seed, 7));
		uint64_t first = round % 7 ? 0 : UINT32_MAX - dice(&seed, 20);
		uint64_t start = round % 9 ? 1000 : SITE_TIME_MAX - dice(&seed, 400);

		for (int i = 0; i < 2; i++)
			site_init(&sites[i], 7, SITE_HEAP);
		keep_all(&sites[1]);
		for (uint64_t now = start; n < most; now += 10) {
			size_t what = n ? dice(&seed, odd ? 9 : 6) : 0;
			size_t at = n ? dice(&seed, n) : 0, size = dice(&seed, 3) * scale;

			for (int i = 0; i < 2; i++) {
				struct site *s = &sites[i];
				struct alike one = ALIKE_ONE(what < 3 ? size : blocks[at].size);

				if (what < 3) {
					assert_int_equal(
					    site_acquire(s, first + n + 1, now, one), 0);
				} else if (what < 6 && !blocks[at].freed) {
					site_release(
					    s, first + at + 1, blocks[at].birth, now, one, true);
					site_end(s, first + at + 1, one, now - blocks[at].birth);
				} else if (what == 6 && blocks[at].freed) {
					site_restore(s, first + at + 1, blocks[at].birth, now, one);
				} else if (what == 7 && n > 1) {
					site_release(s, first + at + 1, blocks[at].birth, now,
					    ALIKE_ONE(16), false);
				} else if (what == 8 && n > 1) {
					site_split(s, first + at + 1);
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
			assert_same(&sites[0], &sites[1]);
		}
		few += sites[0].form == SITE_FEW;
		singles += sites[0].form == SITE_MANY && site_more_of(&sites[0])->singles;
		for (uint64_t epoch = 1; epoch < 3; epoch++) {
			for (int i = 0; i < 2; i++)
				assert_int_equal(site_freeze(&sites[i], epoch), 0);
			for (int i = 0; i < 2; i++)
				assert_int_equal(site_acquire(&sites[i], first + 200,
						     start + 100000, ALIKE_ONE(64)),
				    0);
			assert_same(site_frozen(&sites[0], epoch), site_frozen(&sites[1], epoch));
			assert_same(&sites[0], &sites[1]);
		}
		for (int i = 0; i < 2; i++)
			site_fini(&sites[i]);
	}
	assert_in_range(few, rounds / 3, rounds - rounds / 4);
	assert_in_range(singles, rounds / 20, rounds / 2);
	(void)state;
}

/* The same of cohorts, from the first merge on: of few blocks and many, of sizes and times next to
 * the largest of which little is kept, and above. */
static void test_narrow_is_as_good(void **state)
{
	uint64_t seed = 11;
	size_t narrow = 0, wide = 0;

	for (int round = 0; round < 60; round++) {
		struct site sites[2];
		uint64_t births[600], sizes[600], first = round % 7 ? 0 : UINT32_MAX - 200;
		uint64_t start = round % 9 ? 1000 : SITE_TIME_MAX - 3000, n = 0;
		uint64_t most = round % 5 ? 600 : 70000, scale = round % 4 ? 32 : 1u << 22;

		for (int i = 0; i < 2; i++)
			site_init(&sites[i], 7, SITE_HEAP);
		keep_all(&sites[1]);
		for (uint64_t now = start; n < most; now += 10) {
			size_t what = n ? dice(&seed, most > 600 ? 3 : 5) : 0;
			uint64_t known = n < 600 ? n : 600, at = known ? dice(&seed, known) : 0;
			uint64_t size = (1 + dice(&seed, 3)) * scale;

			for (int i = 0; i < 2; i++) {
				struct site *s = &sites[i];
				struct alike was = ALIKE_ONE(sizes[at]);

				if (what < 3)
					assert_int_equal(
					    site_acquire(s, first + n + 1, now, ALIKE_ONE(size)),
					    0);
				else if (what == 3)
					site_release(s, first + at + 1, births[at], now, was, true);
				else if (known > 64)
					site_restore(s, first + at + 1, births[at], now, was);
			}
			if (what < 3 && n++ < 600) {
				births[n - 1] = now;
				sizes[n - 1] = size;
			}
			if (n < 600 || n % 1000 == 0)
				assert_same(&sites[0], &sites[1]);
		}
		assert_same(&sites[0], &sites[1]);
		narrow += site_more_of(&sites[0])->narrow != NULL;
		wide += site_more_of(&sites[0])->cohorts != NULL;
		assert_int_equal(site_freeze(&sites[0], 1), 0);
		assert_same(site_frozen(&sites[0], 1), &sites[1]);
		for (int i = 0; i < 2; i++)
			site_split(&sites[i], first + 1);
		assert_same(&sites[0], &sites[1]);
		for (int i = 0; i < 2; i++)
			site_fini(&sites[i]);
	}
	assert_in_range(narrow, 20, 40);
	assert_int_equal(narrow + wide, 60);
	(void)state;
}

/* Piles that were given back, and what is there since the last of them; a block that stays behind
 * does not hide it, a few blocks are no pile. */
static void test_piles(void **state)
{
	for (uint64_t blocks = 3; blocks <= 40; blocks += 37) {
		struct site site, *s = &site;
		uint64_t n = 0;

		site_init(s, 7, SITE_HEAP);
		for (uint64_t pile = 1; pile <= 10; pile++) {
			uint64_t first = n + 1;

			for (uint64_t k = 0; k < blocks; k++, n++)
				site_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(64));
			assert_false(site_course(s).no_pile);
			assert_int_equal(site_course(s).pile.since_ns, 100 * first);
			assert_int_equal(site_course(s).pile.before, first - 1);
			for (uint64_t k = pile == 1 && blocks > 3; k < blocks; k++)
				site_release(
				    s, first + k, 100 * (first + k), 100 * n, ALIKE_ONE(64), true);
			assert_true(site_course(s).no_pile);
		}
		assert_int_equal(site_rare(s)->piles.times, blocks > 3 ? 10 : 0);
		assert_int_equal(site_rare(s)->piles.largest, blocks > 3 ? 41 * 64 : 0);
		site_fini(s);
	}
	(void)state;
}

/* How the piles rise: more by less than a thirty-second is as much. */
static void test_piles_rise(void **state)
{
	static const uint64_t counts[] = {40, 80, 81, 20, 160, 150};
	struct site *s = &(struct site){0};
	uint64_t n = 0;

	site_init(s, 1, SITE_HEAP);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t first = n + 1;

		for (; n < first + counts[i] - 1; n++)
			site_acquire(s, n + 1, 100 * (n + 1), ALIKE_ONE(64));
		for (uint64_t k = first; k <= n; k++)
			site_release(s, k, 100 * k, 100 * n, ALIKE_ONE(64), true);
	}
	assert_int_equal(site_rare(s)->piles.times, 6);
	assert_int_equal(site_rare(s)->piles.records, 3);
	assert_int_equal(site_rare(s)->piles.first, 40 * 64);
	assert_int_equal(site_rare(s)->piles.largest, 160 * 64);
	site_fini(s);
	(void)state;
}

/* As long as there was one block no course is kept, and it reads as if it were. */
static void test_course_of_one(void **state)
{
	for (int step = 0; step < 4; step++) {
		struct site site, *s = &site;
		struct site_course c;

		site_init(s, 1, SITE_HEAP);
		c = site_course(s);
		assert_true(c.no_pile);
		assert_false(c.acquired);
		assert_int_equal(site_acquire(s, 7, 100, ALIKE_ONE(64)), 0);
		if (step > 1) {
			site_release(s, 7, 100, 150, ALIKE_ONE(64), true);
			site_end(s, 7, ALIKE_ONE(64), 50);
		}
		assert_true(s->form < SITE_FEW);
		c = site_course(s);
		assert_int_equal(c.no_pile, step > 1);
		assert_int_equal(c.acquired, step < 2);
		assert_int_equal(c.order.serial, step > 1 ? 7 : 0);
		/* The second one goes on from there; or the first one lives again, or grows. */
		if (step == 3)
			site_restore(s, 7, 100, 150, ALIKE_ONE(64));
		else
			assert_int_equal(site_acquire(s, 9, 200, ALIKE_ONE(64)), 0);
		if (step == 0)
			site_regrow(s, 7, 64, 9, 128, 1000);
		assert_true(s->form >= SITE_FEW);
		c = site_course(s);
		assert_int_equal(c.no_pile, step == 3);
		assert_int_equal(c.pile.since_ns, step == 2 ? 200 : 100);
		assert_int_equal(c.pile.before, step == 2);
		assert_int_equal(c.pile.high, step < 2 ? 2 : 1);
		assert_int_equal(c.order.ascending, step > 1);
		assert_int_equal(c.order.turns, step > 1);
		assert_int_equal(c.order.life_ns, step > 1 ? 50 : 0);
		assert_int_equal(c.object.serial, step == 0 ? 9 : 0);
		/* A copy is its own. */
		assert_int_equal(site_freeze(s, 1), 0);
		assert_int_equal(site_acquire(s, 11, 300, ALIKE_ONE(64)), 0);
		c = site_course(site_frozen(s, 1));
		assert_int_equal(c.pile.high, step < 2 ? 2 : 1);
		site_fini(s);
	}

	/* One of a sample stands for several, which are a pile. */
	struct site many;
	site_init(&many, 1, SITE_HEAP);
	assert_int_equal(site_acquire(&many, 1, 100, (struct alike){64, 5, 320, 0}), 0);
	assert_int_equal(site_course(&many).pile.high, 5);
	site_release(&many, 1, 100, 200, (struct alike){64, 5, 320, 0}, true);
	assert_int_equal(site_rare(&many)->piles.times, 1);
	assert_int_equal(site_rare(&many)->piles.largest, 320);
	site_fini(&many);
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
	    cmocka_unit_test(test_course_of_one),
	    cmocka_unit_test(test_little_is_as_good),
	    cmocka_unit_test(test_singles_are_as_good),
	    cmocka_unit_test(test_narrow_is_as_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
