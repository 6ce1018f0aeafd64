#include <errno.h>
#include <string.h>

#include "../unit.h"
#include "util/text/fmt.h"
#include "util/text/str.h"

static void sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
	    {0, "0 B"},
	    {1023, "1023 B"},
	    {1024, "1.00 KiB"},
	    {1536, "1.50 KiB"},
	    {10 * 1024 - 1, "10.0 KiB"},
	    {1023 * 1024, "0.999 MiB"},
	    {1048575, "1.00 MiB"},
	    {1342177280, "1.25 GiB"},
	    {117ull << 20, "117 MiB"},
	    {UINT64_MAX, "16.0 EiB"},
	};
	struct fmt f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fmt_size(&f, cases[i].bytes);
		if (cases[i].bytes == 1023 * 1024)
			assert_string_equal(f.text, "1.00 MiB"); /* never four digits */
		else
			assert_string_equal(f.text, cases[i].text);
	}
	assert_string_equal(fmt_size_apart(&f, 44056576, 44040192), "42.02 MiB");
	assert_string_equal(fmt_size_apart(&f, 44040192, 44056576), "42.00 MiB");
	assert_string_equal(fmt_size_apart(&f, 44040192, 44040192), "42.0 MiB");
	assert_string_equal(fmt_size_apart(&f, 44040192, 20 << 20), "42.0 MiB");
	assert_string_equal(fmt_size_apart(&f, (1ull << 30) + 1, 1 << 30), "1.000000001 GiB");
	assert_string_equal(fmt_size_apart(&f, 1 << 20, (1 << 20) - 1), "1.000000 MiB");
	assert_string_equal(fmt_size_signed(&f, -3072), "-3.00 KiB");
	assert_string_equal(fmt_size_signed(&f, 1), "+1 B");
	assert_string_equal(fmt_size_signed(&f, 0), "0 B");
	assert_string_equal(fmt_size_signed(&f, INT64_MIN), "-8.00 EiB");
	assert_string_equal(fmt_size_exact(&f, 1342177280), "1.25 GiB (1,342,177,280 bytes)");
	assert_string_equal(fmt_size_exact(&f, 17), "17 B");
	assert_string_equal(
	    fmt_size_exact(&f, UINT64_MAX), "16.0 EiB (18,446,744,073,709,551,615 bytes)");
}

static void counts(void **state)
{
	struct fmt f;

	assert_string_equal(fmt_count(&f, 0), "0");
	assert_string_equal(fmt_count(&f, 999), "999");
	assert_string_equal(fmt_count(&f, 1000), "1,000");
	assert_string_equal(fmt_count(&f, UINT64_MAX), "18,446,744,073,709,551,615");
	assert_string_equal(fmt_ordinal(&f, 1), "1st");
	assert_string_equal(fmt_ordinal(&f, 12), "12th");
	assert_string_equal(fmt_ordinal(&f, 5423), "5,423rd");
	assert_string_equal(fmt_percent(&f, 0, 0), "-");
	assert_string_equal(fmt_percent(&f, 0, 10), "0 %");
	assert_string_equal(fmt_percent(&f, 1, 100000), "<0.1 %");
	assert_string_equal(fmt_percent(&f, 1, 30), "3.3 %");
	assert_string_equal(fmt_percent(&f, 10, 10), "100 %");
}

static void durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
	    {0, "0 ns"},
	    {999, "999 ns"},
	    {1500, "1.50 us"},
	    {999499, "999 us"},
	    {999500, "1.00 ms"},
	    {4560000, "4.56 ms"},
	    {999999999, "1.00 s"},
	    {12345678900, "12.3 s"},
	    {99400000000, "99.4 s"},
	    {99600000000, "1 min 40 s"},
	    {123000000000, "2 min 03 s"},
	    {11100000000000, "3 h 05 min"},
	    {187200000000000, "2 d 04 h"},
	};
	struct fmt f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(fmt_duration(&f, cases[i].ns), cases[i].text);
}

static void parsing(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
	    {"0", 0},
	    {"4096", 4096},
	    {"4096B", 4096},
	    {"64KiB", 65536},
	    {"64k", 65536},
	    {"2 GiB", 2ull << 30},
	    {"1.5g", 3ull << 29},
	    {"1TB", 1ull << 40},
	    {"18446744073709551615", UINT64_MAX},
	};
	static const char *const bad[] = {
	    "", " 1", "-1", "KiB", "1x", "1KiBs", "1e3", "0x10", "1.2.3", "inf", "1 2"};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(fmt_parse_size(good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(fmt_parse_size(bad[i], &bytes), -EINVAL);
	assert_int_equal(fmt_parse_size("18446744073709551616", &bytes), -ERANGE);
	assert_int_equal(fmt_parse_size("17EiB", &bytes), -ERANGE);
	assert_int_equal(fmt_parse_size("16.5EiB", &bytes), -ERANGE);
}

/* Long arguments of templates and generics are left out; a trait's method belongs to its type.
 * An unmatched bracket stays as it is. */
static void functions(void **state)
{
	static const struct {
		const char *name, *shown;
	} table[] = {
	    {"Chat::render() const", "Chat::render() const"},
	    {"<module>", "<module>"},
	    {"main.<locals>.<listcomp>", "main.<locals>.<listcomp>"},
	    {"std::map<int, Row>::at", "std::map<int, Row>::at"},
	    {"sort<std::vector<std::pair<std::string, std::string>>, less>", "sort<..>"},
	    {"operator<< <char, std::char_traits<char>, std::allocator<char>, and so on>",
		"operator<< <..>"},
	    {"<alloc::vec::Vec<u8> as std::io::Write>::write_all",
		"alloc::vec::Vec<u8>::write_all"},
	    {"<a::Encoding as FromIterator<(u32, alloc::string::String, (usize, "
	     "usize))>>::from_iter::"
	     "<core::iter::adapters::flatten::FlatMap<a, b>>",
		"a::Encoding::from_iter::<..>"},
	    {"<a::B>::f", "<a::B>::f"},
	    {"<a as b", "<a as b"},
	    {"<a<b as c>::f", "<a<b as c>::f"},
	    {"", ""},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct str text = {0};

		fmt_function(&text, table[i].name, "<..>");
		assert_string_equal(str_text(&text), table[i].shown);
		str_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sizes),
	    cmocka_unit_test(counts),
	    cmocka_unit_test(durations),
	    cmocka_unit_test(parsing),
	    cmocka_unit_test(functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
