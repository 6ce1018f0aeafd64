"""An exporter: `whyoom export --format tally` writes how many bytes each space holds."""
import lib

TITLE = "An exporter"
MOST = 4
SOURCE = """/* tally.c - a line a space: its live bytes. */
#include "export/export.h"

struct tally {
	uint64_t live;
};

static int tally_sum(struct export *x, const struct export_sum *s, struct err *err)
{
	struct tally *t = x->state;

	(void)err;
	t->live += s->value[MEASURE_LIVE];
	return 0;
}

static int tally_space_end(struct export *x, const struct export_space *s, struct err *err)
{
	struct tally *t = x->state;

	(void)err;
	sink_printf(x->out, "%s %llu\\n", s->name, (unsigned long long)t->live);
	t->live = 0;
	return 0;
}

const struct exporter exporter_tally = {
    .name = "tally",
    .summary = "a line of awk: the live bytes of each space",
    .needs = EXPORT_SUMS,
    .state = sizeof(struct tally),
    .sum = tally_sum,
    .space_end = tally_space_end,
};
"""
TEST = '''"""`whyoom export --format tally`: the sums of `whyoom sites`."""

from lib import export, golden, sites


def test_tally():
    for trace in golden():
        expected = sites(trace, "host", "end")
        if expected:
            text = export(trace, "tally", "--space", "host", "--at", "end").decode()
            assert text == f"host {expected['live']}\\n"
'''


def follow(tree):
    tree.insert("analyzer/export/exporters.def", "EXPORTER(folded)", "EXPORTER(tally)\n")
    tree.write("analyzer/export/tally.c", SOURCE)
    tree.insert("analyzer/man/whyoom-export.1", "Folded stacks (default)",
                ".It Cm tally\nThe live bytes of each space.\n")
    tree.insert("docs/exports.md", "| `folded` |",
                "| `tally` | a sum | awk | the live bytes of each space |\n")
    tree.write("tests/export/test_tally.py", TEST)
    tests = tree.text("tests/export/meson.build")
    tests = tests.replace("'sums': 'export'", "'sums': 'export', 'tally': 'export'", 1)
    tree.write("tests/export/meson.build", tests)
    tree.insert("tests/lint/mirror.txt", "analyzer/export/folded.c",
                "analyzer/export/tally.c tests/export/test_tally.py\n")


def prove(tree):
    tree.test("export-tally", "commands")
    said = lib.run([tree.built("analyzer/cmd/whyoom"), "export", "--help"])
    if "a line of awk" not in said:
        raise lib.Failed(f"the help of export does not offer the format: {said}")
