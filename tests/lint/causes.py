#!/usr/bin/env python3
"""Causes and facts are rows of causes.def: no C compares the text of either, or reads evidence by
position.

Each rule is first tried on a line that breaks it."""
import os
import re
import subprocess
import sys

TOP = sys.argv[1]
sys.path.insert(0, os.path.join(TOP, "analyzer", "knowledge"))
import causes  # noqa: E402

NAMES = "|".join(sorted(causes.names(), key=len, reverse=True)) + "|unknown"
OWNERS = ("analyzer/knowledge/causes.c", "tests/unit/knowledge/test_causes.c")
# (what is wrong, expression, a line that breaks the rule)
RULES = (
    ("a cause as a string, not as CAUSE_...", re.compile(rf'\bcause\w*\b[^;]*[("= ]"(?:{NAMES})"'),
     'if (strcmp(r->verdict.cause, "leak") == 0)'),
    ("a cause as a string, not as CAUSE_...", re.compile(rf'"(?:{NAMES})"[^;]*\bcause'),
     'return same("leak", cause);'),
    ("evidence by its position", re.compile(r"\bevidence\[\s*\d"), "x = f->evidence[2].value;"),
    ("a comparison of a fact's text", re.compile(r"str(?:n?cmp|_same)\([^;]*fact_text\("),
     'if (!strcmp(fact_text(e->fact), "the holes"))'),
)
passed = failed = 0


def check(good, text):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print(text)


for what, rule, planted in RULES:
    check(rule.search(planted), f"the rule does not see: {planted}")
files = subprocess.run(["git", "-C", TOP, "ls-files", "analyzer/*.[ch]", "tests/unit/*.[ch]"],
                       capture_output=True, text=True, check=True).stdout.split()
for path in files:
    if path in OWNERS or not os.path.exists(os.path.join(TOP, path)):
        continue
    with open(os.path.join(TOP, path)) as f:
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), f.read(), flags=re.S)
    for what, rule, _ in RULES:
        wrong = [(n, line) for n, line in enumerate(text.split("\n"), 1) if rule.search(line)]
        check(not wrong, f"{path}: {what}: " + "; ".join(f"{n}: {line.strip()}" for n,
                                                         line in wrong))
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
