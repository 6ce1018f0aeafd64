/* The model of PyTorch's allocator: which segments it takes and gives back, by the rules in
 * docs/allocator-model.md. tests/torch compares it with PyTorch itself. */
#include "model/unit.h"

#include "model/torch/caching_allocator.h"

#define LIVE 400

/* A device of that many bytes that hands out rising addresses, and logs its calls. */
struct device {
	uint64_t room, next;
	uint64_t taken[64]; /* sizes of segments, in order */
	size_t takes, refusals, pages, ranges;
	uint64_t given; /* bytes */
};

static bool fits(struct device *d, uint64_t size)
{
	if (size > d->room) {
		d->refusals++;
		return false;
	}
	d->room -= size;
	return true;
}

static bool take(void *arg, uint64_t size, uint64_t *address)
{
	struct device *d = arg;

	if (!fits(d, size))
		return false;
	*address = d->next;
	d->next += size;
	if (d->takes < 64)
		d->taken[d->takes] = size;
	d->takes++;
	return true;
}

static void give(void *arg, uint64_t address, uint64_t size)
{
	struct device *d = arg;

	assert_true(address < d->next);
	d->room += size;
	d->given += size;
}

static bool reserve(void *arg, uint64_t size, uint64_t *address)
{
	struct device *d = arg;

	*address = d->next;
	d->next += size;
	d->ranges++;
	return true;
}

static void unreserve(void *arg, uint64_t address, uint64_t size)
{
	struct device *d = arg;

	assert_true(address + size <= d->next);
	d->ranges--;
}

static bool map_page(void *arg, uint64_t address, uint64_t size)
{
	struct device *d = arg;

	(void)address;
	if (!fits(d, size))
		return false;
	d->pages++;
	return true;
}

static void unmap_page(void *arg, uint64_t address, uint64_t size)
{
	struct device *d = arg;

	(void)address;
	d->pages--;
	d->room += size;
	d->given += size;
}

static struct device device;
static struct caching_config config;
static struct caching_allocator *a;

/* A device of that size, and an allocator with these settings. */
static void start(uint64_t memory, const char *settings, uint64_t allowed)
{
	caching_allocator_free(a);
	device = (struct device){.room = memory, .next = 1 << 20};
	caching_settings_init(&config.settings);
	assert_true(caching_settings_parse(&config.settings, settings, NULL));
	config.memory = memory;
	config.allowed = allowed;
	config.driver =
	    (struct caching_driver){&device, take, give, reserve, unreserve, map_page, unmap_page};
	assert_int_equal(caching_allocator_new(&config, &a), 0);
}

static struct caching_block *get_at(uint64_t pool, uint64_t stream, uint64_t size)
{
	struct caching_block *b = NULL;
	int rc = caching_allocator_request(
	    a, (struct caching_where){pool, stream}, caching_round(&config.settings, size), &b);

	assert_true(rc == 0 || rc == CACHING_REFUSED);
	caching_allocator_check(a);
	return rc ? NULL : b;
}

static struct caching_block *get(uint64_t size)
{
	return get_at(0, 0, size);
}

static void put(struct caching_block *b)
{
	caching_allocator_release(a, b);
	caching_allocator_check(a);
}

static void flush(void)
{
	assert_int_equal(caching_allocator_flush(a), 0);
	caching_allocator_check(a);
}

static struct caching_stats stats(void)
{
	struct caching_stats s;

	caching_allocator_stats(a, &s);
	return s;
}

static void test_segments(void **state)
{
	start(GiB, "", UINT64_MAX);
	get(1);
	get(MiB);
	assert_int_equal(device.takes, 1); /* small ones share 2 MiB */
	assert_int_equal(device.taken[0], 2 * MiB);
	get(MiB + 1);
	get(9 * MiB);
	assert_int_equal(device.takes, 2); /* middle ones share 20 MiB */
	assert_int_equal(device.taken[1], 20 * MiB);
	get(10 * MiB);
	get(11 * MiB);
	assert_int_equal(device.takes, 4); /* larger ones are rounded to 2 MiB */
	assert_int_equal(device.taken[2], 10 * MiB);
	assert_int_equal(device.taken[3], 12 * MiB);
	get(10 * MiB - 512); /* the rest of the 20 MiB */
	assert_int_equal(device.takes, 4);
	assert_int_equal(stats().reserved, 44 * MiB);
	assert_int_equal(stats().segments, 4);
	(void)state;
}

static void test_split(void **state)
{
	struct caching_block *b;

	start(GiB, "", UINT64_MAX);
	b = get(11 * MiB);
	assert_int_equal(b->size, 12 * MiB); /* 1 MiB over is not split off */
	b = get(13 * MiB - 512);
	assert_int_equal(b->size, 13 * MiB - 512); /* a little more is */
	b = get(MiB - 512);
	assert_int_equal(b->size, MiB - 512); /* small ones: from 512 bytes on */
	(void)state;
}

/* The smallest free block that fits; of equal ones the lowest. */
static void test_best_fit(void **state)
{
	struct caching_block *large, *low, *high, *b;
	uint64_t at;

	start(GiB, "", UINT64_MAX);
	large = get(40 * MiB);
	low = get(30 * MiB);
	high = get(30 * MiB);
	at = low->address;
	put(high);
	put(large);
	put(low);
	b = get(29 * MiB);
	assert_int_equal(b->address, at);
	assert_int_equal(caching_largest_hole(a, (struct caching_where){0, 0}, MiB + 1), 40 * MiB);
	assert_int_equal(device.takes, 3);
	assert_true(caching_allocator_would_hit(a, (struct caching_where){0, 0}, 40 * MiB));
	assert_false(caching_allocator_would_hit(a, (struct caching_where){0, 0}, 41 * MiB));
	assert_false(caching_allocator_would_hit(a, (struct caching_where){0, 0}, 512));
	(void)state;
}

static void test_join(void **state)
{
	struct caching_block *b[4];

	start(GiB, "", UINT64_MAX);
	for (int i = 0; i < 4; i++)
		b[i] = get(5 * MiB);
	put(b[0]);
	put(b[2]);
	assert_int_equal(stats().idle, 0);
	flush(); /* a segment with a block in it stays */
	assert_int_equal(device.given, 0);
	put(b[1]);
	assert_int_equal(caching_largest_hole(a, (struct caching_where){0, 0}, 5 * MiB), 15 * MiB);
	put(b[3]);
	assert_int_equal(stats().idle, 20 * MiB);
	flush();
	assert_int_equal(device.given, 20 * MiB);
	assert_int_equal(stats().reserved, 0);
	(void)state;
}

/* No memory: all cached segments are given back, and the device is asked again. */
static void test_refused(void **state)
{
	struct caching_block *b;

	start(100 * MiB, "", UINT64_MAX);
	b = get(60 * MiB);
	put(b);
	assert_non_null(get(70 * MiB));
	assert_int_equal(device.refusals, 1);
	assert_int_equal(device.given, 60 * MiB);
	assert_null(get(40 * MiB));
	assert_int_equal(device.refusals, 3); /* before the flush and after */
	assert_int_equal(stats().reserved, 70 * MiB);
	assert_non_null(get(30 * MiB));
	(void)state;
}

/* More is not allowed, whatever the device has; the device is not asked. */
static void test_allowed(void **state)
{
	struct caching_block *b;

	start(GiB, "", 100 * MiB);
	b = get(60 * MiB);
	assert_null(get(42 * MiB));
	assert_int_equal(device.takes + device.refusals, 1);
	put(b);
	assert_non_null(get(90 * MiB));
	assert_int_equal(device.given, 60 * MiB);
	assert_null(get(GiB));
	(void)state;
}

static void test_streams(void **state)
{
	struct caching_block *b;

	start(GiB, "", UINT64_MAX);
	b = get_at(0, 1, 50 * MiB);
	put(b);
	get_at(0, 2, 50 * MiB); /* another stream's free block does not serve */
	assert_int_equal(device.takes, 2);
	get_at(0, 1, 50 * MiB);
	assert_int_equal(device.takes, 2);
	(void)state;
}

/* A private pool keeps its segments until it is retired. */
static void test_private(void **state)
{
	struct caching_block *b;

	start(GiB, "", UINT64_MAX);
	b = get_at(7, 0, 50 * MiB);
	put(b);
	get(50 * MiB);
	assert_int_equal(device.takes, 2);
	assert_int_equal(stats().idle, 0);
	flush();
	assert_int_equal(device.given, 0);
	caching_allocator_retire_pool(a, 7);
	caching_allocator_retire_pool(a, 7);
	caching_allocator_retire_pool(a, 8); /* the device was not asked */
	assert_int_equal(stats().idle, 50 * MiB);
	flush();
	assert_int_equal(device.given, 50 * MiB);
	(void)state;
}

static void test_max_split(void **state)
{
	struct caching_block *b;

	start(GiB, "max_split_size_mb:40", UINT64_MAX);
	b = get(50 * MiB);
	put(b);
	get(20 * MiB); /* one of 40 MiB and more is not split */
	assert_int_equal(device.takes, 2);
	b = get(41 * MiB); /* but given whole, up to 20 MiB too large */
	assert_int_equal(b->size, 50 * MiB);
	assert_int_equal(device.takes, 2);
	put(b);
	b = get(80 * MiB);
	put(b);
	get(60 * MiB);
	assert_int_equal(device.takes, 4);
	(void)state;
}

/* Blocks that may not be split go one by one, the largest first, until there is enough. */
static void test_release_oversize(void **state)
{
	struct caching_block *b[3];

	start(200 * MiB, "max_split_size_mb:40", UINT64_MAX);
	b[0] = get(50 * MiB);
	b[1] = get(60 * MiB);
	b[2] = get(30 * MiB);
	for (int i = 0; i < 3; i++)
		put(b[i]);
	assert_non_null(get(110 * MiB)); /* 60 MiB are free: both of them must go */
	assert_int_equal(device.given, 110 * MiB);
	assert_int_equal(stats().reserved, 140 * MiB);
	start(200 * MiB, "max_split_size_mb:40", UINT64_MAX);
	b[0] = get(70 * MiB);
	b[1] = get(100 * MiB);
	put(b[0]);
	put(b[1]);
	assert_non_null(get(45 * MiB)); /* of the 70 MiB it would waste too much */
	assert_int_equal(device.given, 70 * MiB); /* the smallest that is enough */
	(void)state;
}

static void test_garbage(void **state)
{
	struct caching_block *old, *young;

	start(GiB, "garbage_collection_threshold:0.6", 200 * MiB);
	old = get(50 * MiB);
	young = get(60 * MiB);
	put(old);
	for (int i = 0; i < 20; i++)
		put(get(55 * MiB)); /* of the large one only */
	put(young);
	get(70 * MiB); /* 46 MiB too many are in use: the longest idle goes */
	assert_int_equal(device.given, 50 * MiB);
	assert_int_equal(device.refusals, 0);
	(void)state;
}

static void test_expandable(void **state)
{
	struct caching_block *b[3];

	start(GiB, "expandable_segments:True", UINT64_MAX);
	b[0] = get(30 * MiB);
	assert_int_equal(device.ranges, 1);
	assert_int_equal(device.pages, 2);
	assert_int_equal(stats().reserved, 40 * MiB);
	b[1] = get(30 * MiB); /* the rest of the pages, and one more */
	assert_int_equal(device.pages, 3);
	assert_int_equal(b[1]->address, b[0]->address + 30 * MiB);
	b[2] = get(MiB);
	assert_int_equal(
	    device.ranges, 2); /* small ones have a range of their own, of 2 MiB pages */
	assert_int_equal(stats().reserved, 62 * MiB);
	put(b[0]);
	assert_int_equal(stats().idle, 20 * MiB); /* one page lies in it wholly */
	flush();
	assert_int_equal(device.given, 20 * MiB);
	b[0] = get(30 * MiB); /* at the lowest address again */
	assert_int_equal(stats().reserved, 62 * MiB);
	for (int i = 0; i < 3; i++)
		put(b[i]);
	flush();
	assert_int_equal(stats().reserved, 0);
	assert_int_equal(device.ranges, 0);
	(void)state;
}

/* The end of the mapped range can grow, so a free block that cannot is taken first, though it is
 * larger. */
static void test_expandable_fit(void **state)
{
	struct caching_block *low;
	uint64_t at;

	start(GiB, "expandable_segments:True", UINT64_MAX);
	low = get(20 * MiB);
	at = low->address;
	get(25 * MiB);
	get(10 * MiB); /* 5 MiB are left of the third page */
	put(low);
	assert_int_equal(get(4 * MiB)->address, at);
	(void)state;
}

/* A range without room between its blocks is joined by another. */
static void test_expandable_ranges(void **state)
{
	struct caching_block *b[40];

	start(400 * MiB, "expandable_segments:True", UINT64_MAX);
	for (int i = 0; i < 20; i++)
		b[i] = get(20 * MiB);
	assert_null(get(20 * MiB));
	for (int i = 0; i < 20; i += 2)
		put(b[i]);
	assert_non_null(get(100 * MiB));
	assert_int_equal(device.ranges, 2);
	assert_int_equal(stats().reserved, 300 * MiB);
	(void)state;
}

/* At any requests: free blocks and live ones add up to the reserved bytes. */
static void test_random(void **state)
{
	static const char *const settings[] = {"", "expandable_segments:True",
	    "max_split_size_mb:25", "garbage_collection_threshold:0.3",
	    "roundup_power2_divisions:4", "max_split_size_mb:30,expandable_segments:True"};
	struct caching_block *live[LIVE] = {NULL};
	uint64_t seed = 7;

	for (size_t s = 0; s < sizeof(settings) / sizeof(*settings); s++) {
		start(800 * MiB, settings[s], s % 2 ? 600 * MiB : UINT64_MAX);
		memset(live, 0, sizeof(live));
		for (int n = 0; n < 6000; n++) {
			size_t i = dice(&seed, LIVE);

			if (live[i]) {
				put(live[i]);
				live[i] = NULL;
			} else {
				live[i] = get_at(dice(&seed, 8) == 0, dice(&seed, 2),
				    1ull << dice(&seed, 27) | dice(&seed, 4096));
			}
			if (dice(&seed, 200) == 0)
				flush();
		}
		for (size_t i = 0; i < LIVE; i++)
			if (live[i])
				put(live[i]);
		caching_allocator_retire_pool(a, 1);
		flush();
		assert_int_equal(stats().reserved, 0);
		assert_int_equal(device.room, 800 * MiB);
	}
	(void)state;
}

static int finish(void **state)
{
	caching_allocator_free(a);
	a = NULL;
	(void)state;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_segments),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_best_fit),
	    cmocka_unit_test(test_join),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_allowed),
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_private),
	    cmocka_unit_test(test_max_split),
	    cmocka_unit_test(test_release_oversize),
	    cmocka_unit_test(test_garbage),
	    cmocka_unit_test(test_expandable),
	    cmocka_unit_test(test_expandable_fit),
	    cmocka_unit_test(test_expandable_ranges),
	    cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, finish);
}
