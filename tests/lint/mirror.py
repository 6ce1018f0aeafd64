#!/usr/bin/env python3
"""Each source file has a test file of its name, tests/unit/**/test_<name>.c, or for a command
tests/cli/test_<name>.py, or stands in mirror.txt with the test that covers it."""
import os
import sys

TOP = sys.argv[1]
covered = {}
for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mirror.txt")):
    line = line.split("#")[0].strip()
    if line:
        source, test = line.split()
        covered[source] = test

unit = set()
for base, _, names in os.walk(os.path.join(TOP, "tests", "unit")):
    unit.update(n for n in names if n.startswith("test_"))

scripts = set(os.listdir(os.path.join(TOP, "tests", "cli")))

passed = failed = 0
for top in ("shim", "analyzer"):
    for base, _, names in os.walk(os.path.join(TOP, top)):
        for name in sorted(names):
            if not name.endswith((".c", ".S")):
                continue
            source = os.path.relpath(os.path.join(base, name), TOP)
            stem = os.path.splitext(name)[0]
            command = source.startswith(os.path.join("analyzer", "cmd",
                                                     "")) and f"test_{stem}.py" in scripts
            if f"test_{stem}.c" in unit or command:
                passed += 1
            elif source not in covered:
                failed += 1
                print(f"{source}: there is no tests/unit/**/test_{stem}.c and no line in "
                      f"mirror.txt")
            elif not os.path.exists(os.path.join(TOP, covered[source])):
                failed += 1
                print(f"{source}: mirror.txt names {covered[source]}, which does not exist")
            else:
                passed += 1
for source in covered:
    if not os.path.exists(os.path.join(TOP, source)):
        failed += 1
        print(f"mirror.txt: {source} does not exist")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
