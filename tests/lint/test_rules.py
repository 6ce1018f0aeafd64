#!/usr/bin/env python3
"""test_rules.py SOURCE BUILD: each rule of lint passes on the tree as it is and fails on a planted
violation.

The rules run on a copy of the tree's files. A case plants one violation, runs the rule, expects it
to fail and to name the planted file or word, and takes the violation out again."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import sources  # noqa: E402

TOP, BUILD = (os.path.abspath(a) for a in sys.argv[1:3])
SHIM = os.path.join(BUILD, "shim", "libwhyoom.so")
SIMGPU = os.path.join(BUILD, "shim", "simgpu", "libwhyoom-simgpu.so")
WHYOOM = os.path.join(BUILD, "analyzer", "cmd", "whyoom")
WIDE = "wide " * 25


def append(text):
    return lambda old: old + text


def swap(before, after):
    def change(old):
        assert before in old, f"{before!r} is no longer there: plant another violation"
        return old.replace(before, after, 1)
    return change


# rule, file to change or to add, how, what the rule must say. A rule's further arguments:
# ARGUMENTS.
PLANTED = [
    ("layers", "analyzer/util/io.c", append('#include "verdict/verdict.h"\n'), "of a later stage"),
    ("layers", "analyzer/model/model.c", append('#include "whyoom/trace.h"\n'), "stop at trace/"),
    ("layers", "shim/base/clock.c", append('#include "util/map.h"\n'), "neither the shim's"),
    ("layers", "shim/base/clock.c", append('#include "trace/disk.h"\n'), "of a later folder"),
    ("layers", "shim/note.c", append('#include "lifecycle.h"\n'), "is for hooks/ only"),
    ("layers", "shim/simgpu/device/heap.c", append('#include "base/clock.h"\n'), "shares only"),
    ("mirror", "analyzer/util/orphan.c", append("int orphan;\n"), "orphan.c: there is no"),
    ("words", "docs/guide.md", append("TO" "DO\n"), "docs/guide.md"),
    ("words", "tests/lib/setup.sh", append("cd /ro" "ot/whyoom\n"), "a path of one machine"),
    ("layout", "analyzer/util/io.c", append(f"/* {WIDE}*/\n"), "io.c:"),
    ("layout", "tests/lib/suites.py", append(f"# {WIDE}\n"), "suites.py:"),
    ("layout", "tests/lib/setup.sh", append(f"# {WIDE}\n"), "setup.sh:"),
    ("layout", "docs/guide.md", append(WIDE + "\n"), "guide.md:"),
    ("layout", "analyzer/util/io.c", append("\n" * 800), "the second module"),
    ("layout", "tests/lint/extra", append("#!/bin/sh\n"), "may not be executed"),
    ("layout", [f"analyzer/util/more{i}.h" for i in range(31)], append("\n"), "analyzer/util: "),
    ("format", "analyzer/util/io.c", append("int  badly_laid_out ;\n"), "io.c"),
    ("names", "shim/base/clock.c", append("int sink_room;\n"), "sink_room is retired"),
    ("names", "analyzer/util/io.c", append("int place_first;\n"), "place_first is retired"),
    ("names", "docs/shim.md", append("The tbuf has room.\n"), '"tbuf" is retired'),
    ("names", "docs/shim.md", append("See `trace/nothing_here.c`.\n"), "there is no trace/nothing"),
    ("names", "analyzer/model/clock.h\0analyzer/detect/clock.h".split("\0"), append("\n"),
     "analyzer has clock.h"),
    ("causes", "analyzer/detect/pool.c", append('bool b = strcmp(cause, "leak") == 0;\n'),
     "a cause as a string"),
    ("causes", "analyzer/detect/pool.c", append("double d = f->evidence[2].value;\n"),
     "evidence by its position"),
    ("cuda_calls", "docs/cuda-calls.md", swap("allocates device memory", "frees"), "is not what"),
    ("mutations", "shim/cuda/cuda_device.c", swap("errno = errno_;", "errno = kept_;"), "errno: "),
    ("mutations", "tests/cuda/test_cuda.py", swap("def case_nested(", "def case_inner("),
     "there is no case cuda:nested"),
    ("manual", "analyzer/man/whyoom-sites.1", lambda old: old.replace("-format", "-shape"),
     "whyoom-sites.1"),
    ("record_kinds", "docs/trace-format.md", swap("| 18 | UNUNMAP | address, length",
                                                  "| 18 | UNUNMAP | length, address"), "UNUNMAP"),
]
# Planted otherwise than by a change of one file: the arguments of a run that must fail.
REFUSED = [
    ("symbols", [SIMGPU], "not in exports.txt"),
]
ARGUMENTS = {"symbols": [SHIM], "cuda_calls": ["SOURCE", SIMGPU], "manual": ["SOURCE", WHYOOM]}
passed = failed = 0


def check(good, text):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(text)


def run(tree, rule, arguments):
    words = [tree if a == "SOURCE" else a for a in arguments]
    done = subprocess.run([sys.executable, os.path.join(tree, "tests", "lint", rule + ".py"),
                           *words],
                          capture_output=True, text=True, cwd=tree)
    return done.returncode, done.stdout + done.stderr


def copy(tree):
    for name in sources.files(TOP):
        if not name.startswith(("tests/fuzz/corpus", "tests/cli/logs", "tests/golden/v")):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy2(os.path.join(TOP, name), os.path.join(tree, name), follow_symlinks=False)
    os.makedirs(os.path.join(TOP, "build"), exist_ok=True)
    os.symlink(os.path.join(TOP, "build"), os.path.join(tree, "build"))
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True)


def plant(tree, names, change):
    """Changes or adds the files; the way back."""
    before = {}
    for name in names:
        path = os.path.join(tree, name)
        text = open(path).read() if os.path.exists(path) else None
        before[path] = text
        with open(path, "w") as f:
            f.write(change(text or ""))
    return before


def restore(before):
    for path, text in before.items():
        if text is None:
            os.unlink(path)
        else:
            with open(path, "w") as f:
                f.write(text)


def main():
    with tempfile.TemporaryDirectory(prefix="whyoom-rules.") as tree:
        copy(tree)
        for rule in dict.fromkeys([p[0] for p in PLANTED] + [r[0] for r in REFUSED]):
            status, said = run(tree, rule, ARGUMENTS.get(rule, ["SOURCE"]))
            check(status == 0, f"{rule} fails on the tree as it is:\n{said[-600:]}")
        for rule, names, change, words in PLANTED:
            names = [names] if isinstance(names, str) else names
            before = plant(tree, names, change)
            # Laying out takes seconds: only the planted file is looked at.
            more = names if rule == "format" else []
            status, said = run(tree, rule, ARGUMENTS.get(rule, ["SOURCE"]) + more)
            restore(before)
            check(status and words in said, f"{rule} does not see what was planted in {names[0]}, "
                  f"or "
                                            f"does not say '{words}':\n{said[-300:]}")
        for rule, arguments, words in REFUSED:
            status, said = run(tree, rule, arguments)
            check(status and words in said, f"{rule} does not see {arguments}:\n{said[-300:]}")
        rules = {name[:-3] for name in os.listdir(HERE) if name.endswith(".py")} - {"test_rules"}
        planted = {p[0] for p in PLANTED} | {r[0] for r in REFUSED}
        for rule in sorted(rules - planted):
            check(False, f"nothing is planted for {rule}.py")
    print(f"{passed} passed, {failed} failed")
    return bool(failed)


sys.exit(main())
