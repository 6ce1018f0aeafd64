/* The bytes of protobuf's own documentation, nested parts of every length, names that are no
 * UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/encode/proto.h"

static void is(struct proto *p, const char *bytes, size_t n)
{
	assert_false(p->text.failed);
	assert_int_equal(p->depth, 0);
	assert_int_equal(p->text.length, n);
	assert_memory_equal(p->text.text, bytes, n);
	proto_free(p);
}
#define IS(p, bytes) is(p, bytes, sizeof(bytes) - 1)

static void writes_fields(void **state)
{
	struct proto p = {0};

	proto_u64(&p, 1, 150);
	proto_bytes(&p, 2, "testing", 7);
	proto_u64(&p, 16, UINT64_MAX);
	proto_fixed64(&p, 3, 0x0102030405060708u);
	proto_double(&p, 4, 1.0);
	IS(&p, "\x08\x96\x01"
	       "\x12\x07"
	       "testing"
	       "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	       "\x19\x08\x07\x06\x05\x04\x03\x02\x01"
	       "\x21\0\0\0\0\0\0\xf0\x3f");
	(void)state;
}

static void nests(void **state)
{
	struct proto p = {0};

	proto_begin(&p, 3);
	proto_u64(&p, 1, 150);
	proto_begin(&p, 4); /* packed */
	proto_varint(&p, 3);
	proto_varint(&p, 270);
	proto_varint(&p, 86942);
	proto_end(&p);
	proto_end(&p);
	proto_begin(&p, 5);
	proto_end(&p);
	IS(&p, "\x1a\x0b\x08\x96\x01\x22\x06\x03\x8e\x02\x9e\xa7\x05\x2a\0");
	(void)state;
}

static void long_parts(void **state)
{
	static const size_t sizes[] = {0, 1, 127, 128, 16383, 16384, 3000000};
	static char data[3000000];

	memset(data, 'x', sizeof(data));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct proto p = {0}, whole = {0};

		proto_begin(&p, 1);
		str_add(&p.text, data, sizes[i]);
		proto_end(&p);
		proto_bytes(&whole, 1, data, sizes[i]);
		is(&p, whole.text.text, whole.text.length);
		proto_free(&whole);
	}
	(void)state;
}

static void mends_text(void **state)
{
	struct proto p = {0};

	proto_text(&p, 1, "a\xff\xc3\xa9\x01");
	proto_text(&p, 1, NULL);
	IS(&p, "\x0a\x07"
	       "a\xef\xbf\xbd\xc3\xa9\x01"
	       "\x0a\0");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(writes_fields),
	    cmocka_unit_test(nests),
	    cmocka_unit_test(long_parts),
	    cmocka_unit_test(mends_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
