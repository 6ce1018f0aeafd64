/* The bytes of Python's own pickle for the same values, and parts of lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/encode/pickle.h"

static void is(struct str *p, const char *bytes, size_t n)
{
	assert_false(p->failed);
	assert_int_equal(p->length, n);
	assert_memory_equal(p->text, bytes, n);
	str_free(p);
}
#define IS(p, bytes) is(p, bytes, sizeof(bytes) - 1)

static void writes_numbers(void **state)
{
	struct str p = {0};

	pickle_u64(&p, 0);
	pickle_u64(&p, 255);
	pickle_u64(&p, 256);
	pickle_u64(&p, 65535);
	pickle_u64(&p, 65536);
	pickle_u64(&p, INT32_MAX);
	pickle_u64(&p, 1ull << 31);
	pickle_u64(&p, 1ull << 53);
	pickle_minus_one(&p);
	pickle_real(&p, 0.5);
	pickle_bool(&p, true);
	pickle_bool(&p, false);
	/* The topmost bit of a LONG1 is its sign: 2^31 takes five bytes. */
	IS(&p, "K\0K\xff"
	       "M\0\x01M\xff\xff"
	       "J\0\0\x01\0J\xff\xff\xff\x7f"
	       "\x8a\x05\0\0\0\x80\0"
	       "\x8a\x07\0\0\0\0\0\0\x20"
	       "J\xff\xff\xff\xff"
	       "G\x3f\xe0\0\0\0\0\0\0"
	       "\x88\x89");
	(void)state;
}

static void writes_texts_and_numbers_of_values(void **state)
{
	struct str p = {0};

	pickle_text(&p, "a\xffz");
	pickle_name(&p, 255);
	pickle_again(&p, 255);
	pickle_text(&p, NULL);
	pickle_name(&p, 256);
	pickle_again(&p, 256);
	IS(&p, "X\x05\0\0\0a\xef\xbf\xbdz"
	       "q\xffh\xff"
	       "X\0\0\0\0"
	       "r\0\x01\0\0j\0\x01\0\0");
	(void)state;
}

static void nests(void **state)
{
	struct pickle_list list;
	struct str p = {0};

	pickle_begin(&p);
	pickle_dict(&p);
	pickle_text(&p, "k");
	pickle_empty_list(&p);
	pickle_list(&p, &list);
	pickle_list_next(&p, &list);
	pickle_u64(&p, 1);
	pickle_u64(&p, 2);
	pickle_pair(&p);
	pickle_list_end(&p, &list);
	pickle_dict_end(&p);
	pickle_end(&p);
	IS(&p, "\x80\x02}(X\x01\0\0\0k](K\x01K\x02\x86"
	       "eu.");
	(void)state;
}

static void parts_lists(void **state)
{
	struct pickle_list list;
	struct str p = {0};
	unsigned parts = 0, most = 0, now = 0;

	pickle_empty_list(&p);
	pickle_list(&p, &list);
	for (unsigned i = 0; i < 2 * PICKLE_PART + 1; i++) {
		pickle_list_next(&p, &list);
		pickle_bool(&p, true);
	}
	pickle_list_end(&p, &list);
	for (size_t i = 0; i < p.length; i++) {
		now = p.text[i] == '(' ? 0 : now + ((unsigned char)p.text[i] == 0x88);
		most = now > most ? now : most;
		parts += p.text[i] == 'e';
	}
	assert_int_equal(parts, 3);
	assert_int_equal(most, PICKLE_PART);
	assert_int_equal(now, 1);
	str_free(&p);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(writes_numbers),
	    cmocka_unit_test(writes_texts_and_numbers_of_values),
	    cmocka_unit_test(nests),
	    cmocka_unit_test(parts_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
