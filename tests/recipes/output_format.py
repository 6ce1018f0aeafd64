"""An output format: `--format count` writes how many call sites `whyoom sites` lists."""
import lib

TITLE = "An output format"
MOST = 2
SOURCE = """/* count.c - results as one number. */
#include "report/format.h"

static void write_sites(
    const struct sites_view *view, const struct report_style *style, struct str *out)
{
	(void)style;
	str_printf(out, "%u\\n", (unsigned)view->callsites->count);
}

const struct format format_count = {.name = "count", .sites = write_sites};
"""
TEST = """/* The format is offered for the results that it can write, and writes them. */
#include <string.h>

#include "../util/unit.h"
#include "report/format.h"

static void test_count(void **state)
{
	struct callsites none = {.count = 0};
	struct sites_view view = {.callsites = &none};
	const struct format *f = format_find(FORMAT_OF_sites, "count");
	struct str out = {0};

	assert_non_null(f);
	assert_null(format_find(FORMAT_OF_report, "count"));
	f->sites(&view, NULL, &out);
	assert_string_equal(str_text(&out), "0\\n");
	str_free(&out);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_count)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
"""


def follow(tree):
    tree.insert("analyzer/report/formats.def", "FORMAT(json)", "FORMAT(count)\n")
    tree.write("analyzer/report/count.c", SOURCE)
    tree.write("tests/unit/report/test_count.c", TEST)
    tests = tree.text("tests/unit/report/meson.build")
    tree.write("tests/unit/report/meson.build", tests.replace("'sites'", "'sites', 'count'", 1))


def prove(tree):
    tree.test("report-count", "commands")
    said = lib.run([tree.built("analyzer/cmd/whyoom"), "sites", "--help"])
    if "text|json|count" not in said:
        raise lib.Failed(f"the help of sites does not offer the format: {said}")
