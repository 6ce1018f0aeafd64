"""A record kind: NAP, which the recorder writes after each FORK."""
import os
import sys

import lib

TITLE = "A record kind"
MOST = 5
ROW = ('TRACE_KIND(47, NAP, RECENT, "the process slept",\n'
       "    TRACE_FIELD(NUMBER, microseconds))\n")
EVENT = "    [TRACE_NAP] = {EV_NAP, {FIELD(NAP, microseconds, WHOLE, size)}},\n"
PROGRAM = """#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	void *volatile p = malloc(1000);
	int child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	free(p);
	return child < 0;
}
"""
CHECK = """import glob, sys
sys.path.insert(0, sys.argv[1])
import read
import small
read.NAMES[47], read.FIELDS[47] = "NAP", (1, False)
kinds = []
for source in [(p,) for p in glob.glob(sys.argv[2] + "/*.whyoom")] + list(small.there(sys.argv[2])):
    trace = read.Trace(*source)
    trace.tids = {}
    kinds += [(e.kind, e.fields[0]) for chunk in trace.chunks for e in trace.chunk_events(chunk)
              if e.kind == 47]
assert kinds == [(47, 4711)], kinds
"""


def follow(tree):
    minor = int(tree.text("include/whyoom/trace_kinds.def").split("#define TRACE_MINOR ")[1][:2])
    kinds = tree.text("include/whyoom/trace_kinds.def")
    tree.write("include/whyoom/trace_kinds.def", kinds.replace(
        f"#define TRACE_MINOR {minor}\n", f"#define TRACE_MINOR {minor + 1}\n"))
    tree.insert("include/whyoom/trace_kinds.def", "TRACE_KIND(46, WENT", ROW)
    tree.insert("shim/note.c", "\tSIMPLE(n, FORK,", "\tSIMPLE(n, NAP, .microseconds = 4711);\n")
    tree.insert("analyzer/trace/event.h", "	EV_FORK,", "	EV_NAP,\n")
    tree.insert("analyzer/trace/extended.c", "    [TRACE_FORK] =", EVENT)
    tree.insert("analyzer/model/model.c", "	case EV_FORK:", "	case EV_NAP:\n")
    tree.made("docs/trace-format.md", "tests/lint/record_kinds.py")


def prove(tree):
    tree.test("record_kinds", "trace-extended")
    tree.make("shim/libwhyoom.so", "analyzer/cmd/whyoom")
    work = os.path.join(lib.WORK, "record-kind")
    os.makedirs(work, exist_ok=True)
    with open(os.path.join(work, "program.c"), "w") as f:
        f.write(PROGRAM)
    program, trace = os.path.join(work, "program"), os.path.join(work, "trace")
    lib.run(["cc", "-w", os.path.join(work, "program.c"), "-o", program])
    lib.run(["rm", "-rf", trace])
    lib.run([program], env=dict(os.environ, LD_PRELOAD=tree.built("shim/libwhyoom.so"),
                                WHYOOM_DIR=trace))
    with open(os.path.join(work, "check.py"), "w") as f:
        f.write(CHECK)
    lib.run([sys.executable, os.path.join(work, "check.py"), tree.path("tests/golden"), trace])
    lib.run([tree.built("analyzer/cmd/whyoom"), "check", trace])
