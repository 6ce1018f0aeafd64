#include "trace/cursor.h"
#include "unit.h"

static void varints(void **state)
{
	static const struct {
		uint8_t bytes[11];
		size_t n;
		uint64_t value;
	} good[] = {
	    {{0}, 1, 0},
	    {{0x7f}, 1, 127},
	    {{0x80, 0x01}, 2, 128},
	    {{0xff, 0xff, 0x7f}, 3, 0x1fffff},
	    {{0x80, 0x80, 0x80, 0x01}, 4, 0x200000},
	    {{0x80, 0x00}, 2, 0}, /* longer than needed, but sound */
	    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		/* With bytes behind it and at the very end. */
		struct cursor roomy = cursor_of(good[i].bytes, 11),
			      tight = cursor_of(good[i].bytes, good[i].n);

		assert_true(cursor_varint(&roomy) == good[i].value);
		assert_int_equal(cursor_left(&roomy), 11 - good[i].n);
		assert_true(cursor_varint(&tight) == good[i].value);
		assert_false(tight.bad);
		assert_int_equal(cursor_left(&tight), 0);
		/* One byte short is bad, and stays so. */
		tight = cursor_of(good[i].bytes, good[i].n - 1);
		assert_true(cursor_varint(&tight) == 0);
		assert_true(tight.bad);
		assert_int_equal(cursor_left(&tight), 0);
	}
}

static void too_long_varints(void **state)
{
	static const uint8_t overflow[] = {
	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
	static const uint8_t eleven[] = {
	    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0};
	struct cursor c = cursor_of(overflow, sizeof(overflow));

	cursor_varint(&c);
	assert_true(c.bad);
	c = cursor_of(eleven, sizeof(eleven));
	cursor_varint(&c);
	assert_true(c.bad);
}

static void signed_and_narrow(void **state)
{
	static const uint8_t bytes[] = {
	    0, 1, 2, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	static const uint8_t wide[] = {0x80, 0x80, 0x80, 0x80, 0x10};
	struct cursor c = cursor_of(bytes, sizeof(bytes));

	assert_true((int64_t)cursor_svarint(&c) == 0);
	assert_true((int64_t)cursor_svarint(&c) == -1);
	assert_true((int64_t)cursor_svarint(&c) == 1);
	assert_true((int64_t)cursor_svarint(&c) == -2);
	assert_true((int64_t)cursor_svarint(&c) == INT64_MIN);
	c = cursor_of(wide, sizeof(wide));
	assert_int_equal(cursor_varint32(&c), 0);
	assert_true(c.bad);
}

static void bytes_and_fixed(void **state)
{
	static const uint8_t bytes[] = {2, 'a', 'b', 0x34, 0x12, 5, 'x'};
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	size_t n;

	assert_ptr_equal(cursor_bytes(&c, &n), bytes + 1);
	assert_int_equal(n, 2);
	assert_int_equal(cursor_fixed(&c, 2), 0x1234);
	assert_null(cursor_bytes(&c, &n)); /* claims five, one is there */
	assert_int_equal(n, 0);
	assert_true(c.bad);
	c = cursor_of(bytes, 3);
	assert_null(cursor_take(&c, UINT64_MAX));
	c = cursor_of(bytes, 3);
	assert_int_equal(cursor_fixed(&c, 4), 0);
	assert_true(c.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(varints),
	    cmocka_unit_test(too_long_varints),
	    cmocka_unit_test(signed_and_narrow),
	    cmocka_unit_test(bytes_and_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
