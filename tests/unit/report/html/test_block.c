/* Numbers, texts and the packed form of a page's data. */
#include "model/unit.h"

#include <zlib.h>

#include "report/html/block.h"

static void test_numbers(void **state)
{
	static const unsigned char expected[] = {
	    0, 127, 128, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	struct str s = {0};

	block_number(&s, 0);
	block_number(&s, 127);
	block_number(&s, 128);
	block_number(&s, UINT64_MAX);
	assert_int_equal(s.length, sizeof(expected));
	assert_memory_equal(s.text, expected, sizeof(expected));
	str_clear(&s);
	for (int64_t value = -2; value <= 2; value++)
		block_signed(&s, value);
	assert_memory_equal(s.text, "\3\1\0\2\4", 5);
	str_clear(&s);
	block_signed(&s, INT64_MIN);
	assert_int_equal(s.length, 10);
	str_free(&s);
}

static void test_differences(void **state)
{
	struct str s = {0};
	struct block_column c = {&s, 0};

	block_next(&c, 5);
	block_next(&c, 5);
	block_next(&c, 3);
	assert_memory_equal(s.text, "\12\0\3", 3);
	str_free(&s);
}

static void test_texts(void **state)
{
	struct block_texts texts = {0};

	assert_int_equal(block_text_id(&texts, NULL), 0);
	assert_int_equal(block_text_id(&texts, "serve"), 1);
	assert_int_equal(block_text_id(&texts, "server"), 2);
	assert_int_equal(block_text_id(&texts, "serve"), 1);
	assert_int_equal(block_text_id(&texts, "a\x1b\xff"), 3);
	assert_int_equal(texts.count, 3);
	assert_false(texts.failed);
	/* What it shares with the one before, what follows; no control character, only UTF-8. */
	assert_string_equal(str_text(&texts.written) + 1, "\5serve\5\1r");
	assert_non_null(memmem(texts.written.text, texts.written.length, "a\\x1b\\xff", 9));
	block_texts_fini(&texts);
}

static size_t from_base64(const char *text, unsigned char *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, held = 0;
	size_t bytes = 0;

	for (; *text && *text != '='; text++) {
		held = held << 6 | (unsigned)(strchr(digits, *text) - digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[bytes++] = (unsigned char)(held >> bits);
		}
	}
	return bytes;
}

static void test_packed(void **state)
{
	/* Lengths of all three remainders, and the same bytes for the same data. */
	for (unsigned length = 1; length < 40; length++) {
		struct str block = {0}, body = {0}, packed = {0}, again = {0};
		unsigned char raw[512], plain[128];
		z_stream z = {0};

		for (unsigned i = 0; i < length; i++)
			str_putc(&body, (char)('a' + i * i % 26));
		block_section(&block, SECTION_RUN, &body);
		block_pack(&block, &packed);
		block_pack(&block, &again);
		assert_string_equal(str_text(&packed), str_text(&again));
		assert_int_equal(packed.length % 4, 0);
		z.next_in = raw;
		z.avail_in = (uInt)from_base64(str_text(&packed), raw);
		z.next_out = plain;
		z.avail_out = sizeof(plain);
		assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.total_out, length + 2);
		assert_int_equal(plain[0], SECTION_RUN);
		assert_int_equal(plain[1], length);
		assert_memory_equal(plain + 2, body.text, length);
		inflateEnd(&z);
		str_free(&block);
		str_free(&body);
		str_free(&packed);
		str_free(&again);
	}
}

static void test_without_memory(void **state)
{
	struct str block = {.failed = true}, packed = {0};

	block_pack(&block, &packed);
	assert_true(packed.failed);
	assert_int_equal(packed.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_differences),
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_packed),
	    cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
