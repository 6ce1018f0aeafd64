#!/usr/bin/env python3
"""What users get names no path of one machine and leaves no work open; text files end in a newline
and hold no trailing blanks."""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import sources  # noqa: E402

TOP = sys.argv[1]
OPEN_WORK = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b|not imple" r"mented")
MACHINE = re.compile(r"(?<![\w.$}])/(?:work|root|home/\w+)/|(?<![\w.$}])/tmp/[a-z]+/")
TEXT = (".c", ".h", ".cc", ".cpp", ".S", ".def", ".py", ".sh", ".md", ".build", ".txt", ".1")

passed = failed = 0
for name in sources.files(TOP):
    path = os.path.join(TOP, name)
    if os.path.islink(path):
        continue
    if not (name.endswith(TEXT) or os.path.basename(name) in ("NEWS", "run")):
        continue
    before = failed
    text = open(path, errors="replace").read()
    for number, line in enumerate(text.split("\n"), 1):
        for what, pattern in (("work left open", OPEN_WORK), ("a path of one machine", MACHINE)):
            if pattern.search(line) and "mktemp" not in line:
                failed += 1
                print(f"{name}:{number}: {what}: {line.strip()[:80]}")
        if line != line.rstrip() and not name.endswith((".md", ".txt")):
            failed += 1
            print(f"{name}:{number}: blanks at the end of the line")
    if text and not text.endswith("\n"):
        failed += 1
        print(f"{name}: no newline at the end")
    passed += failed == before
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
