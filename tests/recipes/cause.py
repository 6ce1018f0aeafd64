"""A cause: superstition, which is blocks of 4711 bytes that are kept."""
import os

import lib

TITLE = "A cause"
MOST = 3
ROWS = """CAUSE(SUPERSTITION, "superstition", detect_superstition, CLASS_LEAKED, words_superstition,
    fixes_none, "those blocks released", "blocks of 4711 bytes are kept")
FACT(SUPERSTITION_BLOCKS, "blocks of 4711 bytes", BLOCKS)

"""
DETECTOR = """/* superstition.c - blocks of 4711 bytes that are kept. */
#include "detect/detect.h"

int detect_superstition(const struct scene *scene, struct finding *out)
{
	const struct callsites *callsites = scene->callsites;
	struct finding f = {.blame = CALLSITE_NONE, .strength = 1};

	for (uint32_t i = 0; i < callsites->count; i++) {
		const struct callsite *p = &callsites->list[i];

		if (p->facts.largest != 4711 || p->facts.live_count < 1000)
			continue;
		finding_claim_without(&f, callsites, i, p->facts.live_bytes);
		f.blame = i;
	}
	if (f.blame == CALLSITE_NONE)
		return DETECT_SILENT;
	finding_evidence(
	    &f, FACT_SUPERSTITION_BLOCKS, (double)callsites->list[f.blame].facts.live_count);
	*out = f;
	return 0;
}
"""
WORDS = """static void words_superstition(struct str *s, const struct verdict_result *r)
{
	str_printf(s, "%llu blocks of 4711 bytes are kept by ",
	    (unsigned long long)fact(r, FACT_SUPERSTITION_BLOCKS));
	add_blame(s, r);
	ending_add(s, r, SAID_CAUSE);
}

"""
EXAMPLE = """static void superstitious(void)
{
	evidence(FACT_SUPERSTITION_BLOCKS, 5412);
}

"""
EXAMPLE_ROW = """    {CAUSE_SUPERSTITION, superstitious,
	"5412 blocks of 4711 bytes are kept by Chat.answer (chat.py:31). A request for 8.00 MiB "
	"then failed at the limit of 600 MiB (RLIMIT_AS)."},
"""
UNIT = """/* Speaks where blocks of 4711 bytes are kept, and not of others. */
#include "detect/scene.h"

static void keep(struct staged *t, uint64_t size)
{
	uint32_t work = script_stack(t->s, "main;work");

	for (int i = 0; i < 2000; i++)
		script_alloc(t->s, work, size);
	stage(t, detect_superstition, true);
}

static void test_superstition(void **state)
{
	struct staged spoken = {.s = script_new()}, silent = {.s = script_new()};

	keep(&spoken, 4711);
	assert_int_equal(spoken.rc, 0);
	assert_int_equal(spoken.f.bytes, 2000 * 4711);
	strike(&spoken);
	keep(&silent, 4712);
	assert_int_equal(silent.rc, DETECT_SILENT);
	strike(&silent);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_superstition)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
"""
PROGRAM = """/* Keeps blocks of 4711 bytes until there is no more memory. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void *hoard(void)
{
	void *p = malloc(4711);

	if (!p)
		abort();
	return memset(p, 1, 4711);
}

int main(void)
{
	for (;;)
		hoard();
}
"""
EXPECTED = """{
  "cause": "superstition",
  "blame": ["hoard"],
  "limits": [{"kind": "as", "bytes": 134217728}]
}
"""


def follow(tree):
    tree.insert_before("analyzer/knowledge/causes.def", "CAUSE(LEAK,", ROWS)
    tree.write("analyzer/detect/superstition.c", DETECTOR)
    tree.insert_before("analyzer/verdict/wording/words.c", "static void words_leak(", WORDS)
    tree.write("tests/unit/detect/test_superstition.c", UNIT)
    tree.insert_before("tests/unit/verdict/wording/test_words.c", "static void asking(", EXAMPLE)
    tree.insert_before("tests/unit/verdict/wording/test_words.c", "    {CAUSE_LEAK, leaking,",
                       EXAMPLE_ROW)
    os.makedirs(tree.path("tests/scenarios/superstition_c"), exist_ok=True)
    tree.write("tests/scenarios/superstition_c/main.c", PROGRAM)
    tree.write("tests/scenarios/superstition_c/expect.json", EXPECTED)


def prove(tree):
    tree.make("analyzer/cmd/whyoom", "shim/libwhyoom.so")
    whyoom, kept = tree.built("analyzer/cmd/whyoom"), os.path.join(lib.WORK, "cause")
    said = lib.run([tree.path("tests/scenarios/run"), "--no-shuffle", "--whyoom", whyoom, "--keep",
                    kept, "superstition_c"], cwd=tree.top)
    if "1 passed" not in said:
        raise lib.Failed(said)
    report = lib.run([whyoom, "report", os.path.join(kept, "superstition_c.0", "trace")])
    tree.write("tests/unit/verdict/wording/reports/superstition.txt", report.rstrip("\n") + "\n")
    tree.made("docs/verdicts.md", "tests/unit/verdict/wording/verdicts.py")
    tree.test("detect-superstition", "detect-registry", "verdict-words", "verdicts-page", "causes")
