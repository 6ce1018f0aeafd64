#!/usr/bin/env python3
"""record_kinds.py SOURCE: the table of events with a length in docs/trace-format.md has each kind
of include/whyoom/trace_kinds.def, with its fields in their order. record_kinds.py SOURCE --write
makes the rows so; the last column, with remarks, is written by hand."""
import os
import re
import sys

TOP = sys.argv[1]
ROW = re.compile(r'TRACE_KIND\((\d+), (\w+), \w+, "[^"]*",(.*?)\)\n(?=TRACE_KIND|\n)', re.S)
FIELD = re.compile(r"(FIELD|LATER)\((\w+), (\w+)\)")


def fields(text):
    """As the document writes them: those that not each record has in brackets at the end."""
    always, later = [], []
    for row, kind, name in FIELD.findall(text):
        words = name.replace("_", " ") + (" (string id)" if kind == "STRING" else "")
        (later if row == "LATER" else always).append(words)
    return ", ".join(always + ["[" + ", ".join(later) + "]"] * bool(later)) or "–"


with open(os.path.join(TOP, "include/whyoom/trace_kinds.def")) as f:
    table = {int(id): f"| {id} | {name} | {fields(text + ')')} |" for id, name,
             text in ROW.findall(f.read())}
PAGE = os.path.join(TOP, "docs/trace-format.md")
HEAD = "| kind | name | fields after dt | |\n|---|---|---|---|\n"
with open(PAGE) as f:
    before, page = f.read().split(HEAD)
page, after = page.split("\n\n", 1)
document = {int(line.split()[1]): line for line in page.split("\n")}
if "--write" in sys.argv:
    remarks = {id: line.split(" | ", 3)[-1] if line.count(" | ") > 2 else "|"
               for id, line in document.items()}
    rows = [f"{row} {remarks.get(id, '|')}\n" for id, row in sorted(table.items())]
    with open(PAGE, "w") as f:
        f.write(before + HEAD + "".join(rows) + "\n" + after)
    sys.exit(0)
failed = 0
for id in sorted(table.keys() | document.keys()):
    if not document.get(id, "").startswith(table.get(id, "no row")):
        failed += 1
        print(f"trace-format.md has: {document.get(id)}\ntrace_kinds.def has: {table.get(id)}")
if len(table) < 31:
    failed += 1
    print(f"only {len(table)} rows of trace_kinds.def were understood")
print(f"{len(table)} passed, {failed} failed")
sys.exit(failed > 0)
