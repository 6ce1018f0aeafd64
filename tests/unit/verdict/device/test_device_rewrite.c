/* What a finding claims of call sites, as a rewrite of PyTorch's requests. */
#include "model/unit.h"

#include "verdict/device/device_rewrite.h"

/* Stacks 0 and 1 belong to call sites 0 and 1; stack 2 to none. */
static uint16_t of_stack[] = {1, 2, 0};
static struct callsite list[2];
static const struct callsites callsites = {
    .list = list, .count = 2, .of = {of_stack}, .limits = {3}};
static const struct caching_settings as;

static struct device_rewrite w;
static struct torch_change change;

static void begin(void)
{
	change = (struct torch_change){0};
	assert_int_equal(device_rewrite_init(&w, &callsites, &as), 0);
	device_rewrite_change(&w, &change);
}

static uint64_t ask(uint32_t stack, uint64_t size)
{
	struct torch_block b = {.stack = stack, .size = size};

	return change.rewrite.size(change.rewrite.arg, &b);
}

static uint64_t life(uint32_t stack)
{
	struct torch_block b = {.stack = stack, .size = 1};

	return change.rewrite.life(change.rewrite.arg, &b);
}

static void test_keep(void **state)
{
	begin();
	device_rewrite_rule(&w, 0, RULE_KEEP_BYTES, 250);
	assert_int_equal(ask(0, 100), 100);
	assert_int_equal(ask(0, 100), 100);
	assert_int_equal(ask(0, 100), 50);
	assert_int_equal(ask(0, 100), 0);
	change.rewrite.released(change.rewrite.arg, 0, 100);
	assert_int_equal(ask(0, 400), 100);
	assert_int_equal(ask(1, 400), 400);
	assert_int_equal(ask(2, 400), 400);
	assert_true(life(0) == UINT64_MAX);
	/* The lower bound holds, in either order. */
	device_rewrite_rule(&w, 1, RULE_KEEP_BYTES, 10);
	device_rewrite_rule(&w, 1, RULE_KEEP_BYTES, 20);
	assert_int_equal(ask(1, 400), 10);
	device_rewrite_fini(&w);
	(void)state;
}

static void test_sizes_and_lives(void **state)
{
	begin();
	device_rewrite_rule(&w, 0, RULE_CAP_SIZE, 64);
	device_rewrite_rule(&w, 1, RULE_EXPIRE, 1000);
	assert_int_equal(ask(0, 40), 40);
	assert_int_equal(ask(0, 400), 64);
	assert_int_equal(ask(1, 400), 400);
	assert_int_equal(life(1), 1000);
	assert_true(life(0) == UINT64_MAX && life(2) == UINT64_MAX);
	device_rewrite_rule(&w, 0, RULE_STREAM, 16);
	assert_int_equal(ask(0, 400), 16);
	device_rewrite_fini(&w);
	(void)state;
}

static void test_cap(void **state)
{
	begin();
	device_rewrite_rule(&w, 1, RULE_KEEP_BYTES, 0);
	device_rewrite_cap(&w, 0, 50);
	device_rewrite_cap(&w, 1, 50);
	assert_int_equal(ask(0, 100), 100); /* the first, whatever its size */
	assert_int_equal(ask(0, 100), 50);
	assert_int_equal(ask(0, 100), 0);
	assert_int_equal(ask(1, 100), 0);
	device_rewrite_fini(&w);
	(void)state;
}

/* The refused request shrinks by the finding's amount, and no rule touches it. */
static void test_refused(void **state)
{
	struct torch_block b = {.size = 400, .refused = true, .time_ns = 7};

	begin();
	device_rewrite_rule(&w, 0, RULE_KEEP_BYTES, 0);
	assert_int_equal(change.rewrite.size(&w, &b), 0);
	w.failed.time_ns = 7;
	assert_int_equal(change.rewrite.size(&w, &b), 400);
	w.failed.less = 300;
	assert_int_equal(change.rewrite.size(&w, &b), 100);
	w.failed.less = 500;
	assert_int_equal(change.rewrite.size(&w, &b), 0);
	b.time_ns = 6;
	assert_int_equal(change.rewrite.size(&w, &b), 0);
	device_rewrite_fini(&w);
	(void)state;
}

/* Another thread is refused by the same stack before the process ends: the same cause made that
 * request, and no request of another stack. */
static void test_refused_again(void **state)
{
	struct torch_block b = {.size = 400, .refused = true, .time_ns = 7, .stack = 3};

	begin();
	w.failed.time_ns = 7;
	w.failed.less = 300;
	assert_int_equal(change.rewrite.size(&w, &b), 100);
	b.time_ns = 9;
	assert_int_equal(change.rewrite.size(&w, &b), 100);
	b.stack = 4;
	assert_int_equal(change.rewrite.size(&w, &b), 400);
	device_rewrite_fini(&w);
	(void)state;
}

/* Input too long: a block gets the size that its call site makes for a shorter one; other
 * requests tell what the work asks for next. */
static void test_lengths(void **state)
{
	struct lengths_block blocks[] = {{.serial = 1, .size = 400, .label = 1},
	    {.serial = 2, .size = 800, .label = 1, .refused = true}};
	struct lengths_label label = {.length = 100};
	struct lengths_stack stats = {.fit = {.kind = SCALING_LINEAR, .b = 4}};
	struct lengths lengths = {.source = LENGTHS_SIZES,
	    .blocks = {blocks, 2, 2},
	    .labels = {&label, 1, 1},
	    .stacks = {&stats, 1, 1},
	    .refused = 2};
	struct torch_block b = {.serial = 1, .size = 400}, none = {.serial = 9, .size = 400};

	begin();
	w.lengths = &lengths;
	w.most = 50;
	assert_int_equal(change.rewrite.size(&w, &b), 200);
	assert_int_equal(change.rewrite.size(&w, &none), 400);
	/* A call site's bound applies to what is left. */
	device_rewrite_rule(&w, 0, RULE_KEEP_BYTES, 150);
	assert_int_equal(change.rewrite.size(&w, &b), 150);
	assert_int_equal(change.rewrite.further(&w, &b), 0);
	device_rewrite_fini(&w);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_keep),
	    cmocka_unit_test(test_sizes_and_lives), cmocka_unit_test(test_cap),
	    cmocka_unit_test(test_refused), cmocka_unit_test(test_refused_again),
	    cmocka_unit_test(test_lengths)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
