/* The bytes of Thrift's compact protocol: fields by their distance, zigzag numbers, lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/encode/thrift.h"

static void is(struct str *s, const char *bytes, size_t n)
{
	assert_false(s->failed);
	assert_int_equal(s->length, n);
	assert_memory_equal(s->text, bytes, n);
	str_free(s);
}
#define IS(s, bytes) is(s, bytes, sizeof(bytes) - 1)

static void writes_fields(void **state)
{
	struct str s = {0};
	struct thrift t = thrift_item(&s), inner;

	thrift_i32(&t, 1, -1);
	thrift_i64(&t, 3, 150);
	inner = thrift_struct(&t, 5);
	thrift_text(&inner, 4, "a\xff");
	thrift_end(&inner);
	thrift_i64(&t, 6, INT64_MIN);
	thrift_end(&t);
	IS(&s, "\x15\x01"
	       "\x26\xac\x02"
	       "\x2c\x48\x04"
	       "a\xef\xbf\xbd\0"
	       "\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0");
	(void)state;
}

static void writes_lists(void **state)
{
	struct str s = {0};
	struct thrift t = thrift_item(&s);

	thrift_list(&t, 1, THRIFT_I32, 2);
	thrift_item_i32(&t, 1);
	thrift_item_i32(&t, -64);
	thrift_list(&t, 2, THRIFT_STRUCT, 15);
	thrift_list(&t, 3, THRIFT_BINARY, 300);
	IS(&s, "\x19\x25\x02\x7f"
	       "\x19\xfc\x0f"
	       "\x19\xf8\xac\x02");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(writes_fields),
	    cmocka_unit_test(writes_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
