/* Ordered blocks: against a list that is searched from end to end. */
#include "model/unit.h"

#include "model/torch/caching_set.h"
#include "util/map.h"

#define BLOCKS 300

static struct caching_block blocks[BLOCKS];
static bool in[BLOCKS];

static bool less(const struct caching_set *s, const struct caching_block *a, uint64_t stream,
    uint64_t size, uint64_t address)
{
	if (a->stream != stream)
		return a->stream < stream;
	if (s->by_size && a->size != size)
		return a->size < size;
	return a->address < address;
}

/* The first at or after (last false), or the last before that position. */
static struct caching_block *searched(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address, bool last)
{
	struct caching_block *best = NULL;

	for (int i = 0; i < BLOCKS; i++) {
		struct caching_block *b = &blocks[i];

		if (!in[i] || less(s, b, stream, size, address) != last)
			continue;
		if (!best || less(s, b, best->stream, best->size, best->address) != last)
			best = b;
	}
	return best;
}

static void check_order(bool by_size)
{
	struct caching_set s = {.by_size = by_size};
	uint64_t seed = 42;

	memset(in, 0, sizeof(in));
	for (int n = 0; n < 20000; n++) {
		size_t i = dice(&seed, BLOCKS);
		uint64_t stream = dice(&seed, 3), size = dice(&seed, 20), at = dice(&seed, 70000);

		if (in[i]) {
			caching_set_remove(&s, &blocks[i]);
		} else {
			/* Two blocks never begin at one address. */
			blocks[i] = (struct caching_block){.stream = dice(&seed, 3),
			    .size = dice(&seed, 20),
			    .address = dice(&seed, 200) * BLOCKS + i};
			caching_set_insert(&s, &blocks[i]);
		}
		in[i] = !in[i];
		assert_ptr_equal(
		    caching_set_at(&s, stream, size, at), searched(&s, stream, size, at, false));
		assert_ptr_equal(
		    caching_set_before(&s, stream, size, at), searched(&s, stream, size, at, true));
	}
}

static void test_by_size(void **state)
{
	check_order(true);
	(void)state;
}

static void test_by_address(void **state)
{
	check_order(false);
	(void)state;
}

static void test_walk(void **state)
{
	struct caching_set s = {.by_size = true};
	const struct caching_block *b;
	int count = 0;

	assert_null(caching_set_at(&s, 0, 0, 0));
	for (uint64_t i = 0; i < 100; i++) {
		blocks[i] = (struct caching_block){.size = 100 - i, .address = 64 * i};
		caching_set_insert(&s, &blocks[i]);
	}
	for (b = caching_set_at(&s, 0, 0, 0); b; b = caching_set_next(&s, b)) {
		assert_int_equal(b->size, ++count);
		assert_true(count == 1 ? !caching_set_prev(&s, b)
				       : caching_set_prev(&s, b)->size == b->size - 1);
	}
	assert_int_equal(count, 100);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_size),
	    cmocka_unit_test(test_by_address),
	    cmocka_unit_test(test_walk),
	};
	map_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
