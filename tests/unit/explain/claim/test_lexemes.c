/* Cutting a line: joined names, units, numbers that are none, paths, colours, too much of it. */
#include "../../util/unit.h"

#include <stdlib.h>
#include <string.h>

#include "explain/claim/lexemes.h"

static struct lexemes l;

static void words(const char *line, const char *expected)
{
	char text[4096] = "";

	lexemes_read(&l, line, strlen(line));
	for (size_t i = 0; i < l.count; i++)
		if (l.list[i].type == LEXEME_WORD) {
			strcat(text, *text ? " " : "");
			strcat(text, l.list[i].word);
		}
	assert_string_equal(text, expected);
}

static void size(const char *line, uint64_t bytes)
{
	uint64_t found = 0;

	lexemes_read(&l, line, strlen(line));
	for (size_t i = 0; i < l.count; i++)
		if (l.list[i].type == LEXEME_NUMBER && l.list[i].unit == UNIT_BYTE && !found)
			found = l.list[i].bytes;
	assert_int_equal(found, bytes);
}

static void test_words(void **state)
{
	words("acme.OutOfMemoryError: CUDA_ERROR_OUT_OF_MEMORY",
	    "acme out of memory error cuda error out of memory");
	words("KVCache can't grow, kv2 won't", "kv cache can't grow kv2 won't");
	words("\x1b[31mred\x1b[0m [33;1mlost[0m", "red lost");
	words("in /opt/memory/failed.py and C:\\mem\\x.c, not /dev/shm/a", "in and not dev shm a");
	words("a/b per-node", "a b per node");
	(void)state;
}

static void test_sizes(void **state)
{
	size("memory: 512Mi", 512ull << 20);
	size("allocate 0x1400000000 bytes", 0x1400000000);
	size("1.5 GiB", 3ull << 29);
	size("1,5 GiB", 3ull << 29);
	size("(12GB)", 12ull << 30);
	size("1,234 bytes", 1234);
	size("100 KBytes", 100 << 10);
	size("7.00G of it", 7ull << 30);
	size("113. GiB", 113ull << 30);
	size("a 4096-byte block", 4096);
	size("99999999999 PiB", UINT64_MAX);
	size("5 minutes, 3 batches, 7 m", 0);
	(void)state;
}

/* Times, versions and parts of names are no amounts. */
static void test_numbers(void **state)
{
	lexemes_read(&l, "12:30:55 v1.2.3 gpu0 0x7f00 80%", 32);
	for (size_t i = 0; i < l.count; i++)
		if (l.list[i].type == LEXEME_NUMBER)
			assert_true(l.list[i].joined || l.list[i].unit == UNIT_PERCENT ||
				    l.list[i].value == 12 || l.list[i].value == 3);
	(void)state;
}

static void test_too_much(void **state)
{
	size_t bytes = 1 << 16;
	char *line = malloc(bytes);

	for (size_t i = 0; i < bytes; i++)
		line[i] = "aA1 .%\xff_"[i % 8];
	lexemes_read(&l, line, bytes);
	assert_true(l.count <= LEXEMES_MAX);
	memset(line, 'x', bytes);
	lexemes_read(&l, line, bytes);
	assert_int_equal(l.count, 1);
	memset(line, '9', bytes);
	lexemes_read(&l, line, bytes);
	lexemes_read(&l, line, 0);
	assert_int_equal(l.count, 0);
	free(line);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
