#!/usr/bin/env python3
"""table.py RESULTS DOCUMENT: writes the table of real programs between the document's two marks, in
the order of the programs' names, from a line of JSON for each case (see harness.py)."""

import json
import re
import sys

BEGIN, END = "<!-- written by tests/harm/all -->", "<!-- end of what tests/harm/all writes -->"


def rows(path):
    """A row for each program and what it did; the cases of one program stand together."""
    with open(path) as f:
        cases = [json.loads(line) for line in f]
    last = {(c["program"].split(" ")[0], c["what"], c["case"]): c for c in cases}  # of two runs the later one
    out = []
    for c in last.values():
        if c["what"]:
            out.append((c["program"], c["what"], c["outcome"]))
    return sorted(set(out), key=lambda r: (r[0].lower(), r[1]))


def main(results, document):
    with open(document) as f:
        text = f.read()
    table = ["| program | what it did | with and without |", "|---|---|---|"]
    table += ["| %s |" % " | ".join(x.replace("|", "\\|") for x in r) for r in rows(results)]
    whole = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if not whole.search(text):
        sys.exit("%s has no marks %s ... %s" % (document, BEGIN, END))
    with open(document, "w") as f:
        f.write(whole.sub(lambda _: "\n".join([BEGIN, *table, END]), text))


if __name__ == "__main__":
    main(*sys.argv[1:])
