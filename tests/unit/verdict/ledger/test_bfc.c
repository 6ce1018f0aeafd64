/* Arenas are known by the tables beside their regions, even when the library has few names. */
#include "model/unit.h"

#include "model/script.h"
#include "verdict/ledger/bfc.h"

#define REGION "main;run;lib+0xe1@/l.so;lib+0x12@/l.so;malloc"
#define TABLE "main;run;lib+0xe1@/l.so;lib+0x13@/l.so;new;malloc"

static uint64_t region(struct script *s, uint64_t size)
{
	uint64_t address = script_alloc(s, script_stack(s, REGION), size);

	script_alloc(s, script_stack(s, TABLE), (size + 255) / 256 * 8);
	return address;
}

static struct bfc read_of(struct script *s)
{
	struct feed feed = script_feed(s);
	struct err err = {""};
	struct bfc b;

	assert_int_equal(bfc_read(&feed, &b, &err), 0);
	return b;
}

static void end(struct script *s, struct bfc *b)
{
	bfc_fini(b);
	script_free(s);
}

/* Doubling, the last one cut to the limit's remainder; other memory in between. */
static void test_doubling(void **state)
{
	struct script *s = script_new();
	struct bfc b;

	for (uint64_t size = MiB; size <= 32 * MiB; size *= 2) {
		script_alloc(s, script_stack(s, "main;tensor;malloc"), 3 * MiB + size / 7);
		script_release(s, script_alloc(s, script_stack(s, "main;load"), size));
		region(s, size);
	}
	region(s, 17 * MiB + 300);
	b = read_of(s);
	assert_int_equal(b.regions.count, 7);
	assert_int_equal(b.most, 63 * MiB + 17 * MiB + 300);
	assert_false(b.several);
	end(s, &b);
	(void)state;
}

/* As large as each request; freed at the end of the process. */
static void test_as_requested(void **state)
{
	static const uint64_t sizes[] = {160000, 360192, 160000, 6760192, 4096};
	struct script *s = script_new();
	uint64_t at[5], sum = 0;
	struct bfc b;

	for (int i = 0; i < 5; i++) {
		at[i] = region(s, sizes[i]);
		sum += sizes[i];
	}
	for (int i = 0; i < 5; i++)
		script_release(s, at[i]);
	b = read_of(s);
	assert_int_equal(b.regions.count, 5);
	assert_int_equal(b.most, sum);
	assert_false(b.several);
	end(s, &b);
	(void)state;
}

/* Two that double; one that was given back before the other was made. */
static void test_several(void **state)
{
	struct script *s = script_new();
	uint64_t at;
	struct bfc b;

	region(s, MiB);
	region(s, 2 * MiB);
	region(s, MiB);
	b = read_of(s);
	assert_true(b.several);
	end(s, &b);

	s = script_new();
	at = region(s, 3 * MiB + 4096);
	script_release(s, at);
	region(s, 5 * MiB + 8192);
	b = read_of(s);
	assert_true(b.several);
	end(s, &b);
	(void)state;
}

/* The size alone is not enough: another call, another thread, a freed block, one that already
 * has its table. */
static void test_by_chance(void **state)
{
	struct script *s = script_new();
	uint32_t table = script_stack(s, TABLE);
	struct bfc b;

	script_alloc(s, script_stack(s, "main;a;b;c;d;e;malloc"), 8 * MiB);
	script_alloc(s, table, 8 * MiB / 32);
	script_alloc(s, script_stack(s, REGION), 16 * MiB);
	script_thread(s, 2, 0);
	script_alloc(s, table, 16 * MiB / 32);
	script_thread(s, 1, 0);
	script_release(s, script_alloc(s, script_stack(s, REGION), 2 * MiB));
	script_alloc(s, table, 2 * MiB / 32);
	for (int i = 0; i < 40; i++)
		script_alloc(s, script_stack(s, "main;small"), 24);
	script_alloc(s, table, 16 * MiB / 32);
	b = read_of(s);
	assert_int_equal(b.regions.count, 0);
	assert_int_equal(b.most, 0);
	end(s, &b);

	s = script_new();
	table = script_stack(s, TABLE);
	script_alloc(s, script_stack(s, REGION), 4 * MiB);
	script_alloc(s, table, 4 * MiB / 32);
	script_alloc(s, table, 4 * MiB / 32);
	b = read_of(s);
	assert_int_equal(b.regions.count, 1);
	end(s, &b);

	/* Two lists elsewhere happen to have such sizes: the larger one is the arena. */
	s = script_new();
	region(s, 8 * MiB);
	script_alloc(s, script_stack(s, "main;parse;list;malloc"), 65536);
	script_alloc(s, script_stack(s, "main;parse;bits;malloc"), 2048);
	b = read_of(s);
	assert_int_equal(b.regions.count, 1);
	assert_int_equal(b.most, 8 * MiB);
	end(s, &b);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_doubling),
	    cmocka_unit_test(test_as_requested), cmocka_unit_test(test_several),
	    cmocka_unit_test(test_by_chance)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
