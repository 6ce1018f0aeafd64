#include <stdlib.h>

#include "trace/live.h"
#include "unit.h"

enum { PLACES = 20000 };

struct sum {
	uint64_t count, bytes;
};

static int add(void *arg, const struct block *b)
{
	struct sum *sum = arg;

	sum->count++;
	sum->bytes += b->size;
	return 0;
}

static int stop(void *arg, const struct block *b)
{
	return ++*(int *)arg == 3 ? 77 : 0;
}

static struct block *put(struct live *live, uint64_t address, uint64_t size)
{
	bool lived;
	struct block *b = live_find_or_add(live, address, size, &lived);

	assert_false(lived);
	return b;
}

/* Blocks that were added for the question alone are gone afterwards. */
static struct block *find(struct live *live, uint64_t address)
{
	bool lived;
	struct block *b = live_find_or_add(live, address, 1, &lived);

	assert_non_null(b);
	if (lived)
		return b;
	assert_ptr_equal(live_take(live, address), b);
	live_recycle(live, b);
	return NULL;
}

/* Against a plain array, with growth, reuse of released blocks and gaps closed in the table. */
static void agrees_with_an_array(void **state)
{
	static struct block *model[PLACES];
	struct live live;
	uint64_t seed = 3, bytes = 0, count = 0;
	int n = 0;

	assert_int_equal(live_init(&live), 0);
	for (int step = 0; step < 400000; step++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		size_t i = (seed >> 33) % PLACES;
		uint64_t address = 0x7f0000000000 + i * 16, size = seed >> 50;

		assert_ptr_equal(find(&live, address), model[i]);
		if (model[i]) {
			struct block *b = live_take(&live, address);
			assert_ptr_equal(b, model[i]);
			assert_true(b->address == address); /* readable until it is recycled */
			bytes -= b->size;
			live_recycle(&live, b);
			model[i] = NULL;
			count--;
		} else {
			assert_null(live_take(&live, address));
			model[i] = put(&live, address, size);
			assert_non_null(model[i]);
			assert_true(model[i]->size == size && model[i]->stack == 0);
			bytes += size;
			count++;
		}
		assert_int_equal(live.count, count);
		assert_true(live.bytes == bytes);
	}
	struct sum sum = {0};
	assert_int_equal(live_each(&live, add, &sum), 0);
	assert_true(sum.count == count && sum.bytes == bytes);
	assert_int_equal(live_each(&live, stop, &n), 77);
	assert_int_equal(n, 3);
	live_clear(&live, true);
	assert_null(find(&live, 0x7f0000000000));
	sum = (struct sum){0};
	live_each(&live, add, &sum);
	assert_true(sum.count == 0);
	/* Released blocks are not missed, either. */
	for (int keep = 0; keep < 2; keep++) {
		for (uint64_t i = 1; i <= 50000; i++)
			assert_non_null(put(&live, i * 48, 1));
		assert_non_null(find(&live, 50000 * 48));
		live_clear(&live, keep);
		assert_int_equal(live.pools.count, keep ? 50000 / LIVE_POOL_BLOCKS + 1 : 1);
		assert_null(find(&live, 48));
	}
	live_fini(&live);
}

/* The promise of live.h. */
static void memory_for_each_block(void **state)
{
	struct live live;
	const uint64_t blocks = 1000000;

	assert_int_equal(live_init(&live), 0);
	for (uint64_t i = 1; i <= blocks; i++)
		assert_non_null(put(&live, i * 48, 1));
	assert_true((live.mask + 1) * sizeof(struct live_slot) +
			live.pools.count * LIVE_POOL_BLOCKS * sizeof(struct block) <
		    blocks * 70);
	live_fini(&live);
}

static void extreme_addresses(void **state)
{
	struct live live;

	assert_int_equal(live_init(&live), 0);
	assert_non_null(put(&live, 0, UINT64_MAX));
	assert_non_null(put(&live, UINT64_MAX, 1));
	assert_non_null(find(&live, 0));
	assert_non_null(find(&live, UINT64_MAX));
	assert_null(find(&live, 1));
	live_fini(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(agrees_with_an_array),
	    cmocka_unit_test(memory_for_each_block),
	    cmocka_unit_test(extreme_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
