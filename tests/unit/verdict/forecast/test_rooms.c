/* What is left of limits: of the nearest one, with what came since the measurement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict/forecast/rooms.h"
#include "whyoom/trace.h"

static struct model m;

static void level(uint32_t key, uint64_t value)
{
	levels_set(&m.measured.levels, key, value, 900);
}

static const char *no_info(void *self, const char *key)
{
	(void)self;
	(void)key;
	return NULL;
}

static void begin(void)
{
	memset(&m, 0, sizeof(m));
	m.feed.info = no_info;
	timeline_init(&m.timeline);
	m.run.last_ns = 1000;
}

static void test_host(void **state)
{
	struct room room = {.left = 7};

	begin();
	assert_false(rooms_of_host(&m, &room));
	assert_int_equal(room.left, 7);

	level(TRACE_LEVEL_LIMIT_DATA, 5000);
	level(TRACE_LEVEL_DATA, 1000);
	level(TRACE_LEVEL_LIMIT_AS, 9000);
	level(TRACE_LEVEL_VSIZE, 6000);
	assert_true(rooms_of_host(&m, &room));
	assert_int_equal(room.limit, LIMIT_AS);
	assert_int_equal(room.bytes, 9000);
	assert_int_equal(room.left, 3000);
	assert_int_equal(room.measured_ns, 900);
	(void)state;
}

/* Of address space, what lives more than at the measurement is gone. */
static void test_since(void **state)
{
	struct room room;

	begin();
	level(TRACE_LEVEL_LIMIT_AS, 9000);
	level(TRACE_LEVEL_VSIZE, 6000);
	timeline_acquire(&m.timeline, 100, 0, 500, 500);
	m.blocks.bytes = 500;
	assert_true(rooms_of_host(&m, &room));
	assert_int_equal(room.left, 3000);
	timeline_acquire(&m.timeline, 1ull << 30, 500, 1700, 1200);
	m.blocks.bytes = 1700;
	assert_true(rooms_of_host(&m, &room));
	assert_int_equal(room.left, 1800);
	timeline_acquire(&m.timeline, 1ull << 30, 1700, 9700, 8000);
	m.blocks.bytes = 9700;
	assert_true(rooms_of_host(&m, &room));
	assert_int_equal(room.left, 0);
	(void)state;
}

static void test_device(void **state)
{
	static struct space cuda = {.kind = SPACE_CUDA, .model = &m};
	struct room room = {.left = 7};

	begin();
	assert_false(rooms_of_device(&cuda, &room));
	assert_int_equal(room.left, 7);
	cuda.last_sample =
	    (struct device_sample){.time_ns = 5, .total = 1000, .free = 600, .explained = 300};
	m.blocks.bytes = 350;
	assert_true(rooms_of_device(&cuda, &room));
	assert_int_equal(room.bytes, 1000);
	assert_int_equal(room.left, 550);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_host),
	    cmocka_unit_test(test_since), cmocka_unit_test(test_device)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
