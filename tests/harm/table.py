#!/usr/bin/env python3
"""table.py RESULTS DOCUMENT: writes the table of real programs between the document's two marks, in
the order of the programs' names, from a line of JSON for each case and mode (see harness.py)."""

import json
import re
import sys

BEGIN, END = "<!-- written by tests/harm/all -->", "<!-- end of what tests/harm/all writes -->"
MODES = ("full", "sampled", "switched")


def rows(path):
    """A row for each program and what it did; the cases of one program stand together."""
    with open(path) as f:
        cases = [json.loads(line) for line in f]
    versions = {c["case"]: (c["program"], c["what"]) for c in cases if c["what"]}
    out = {}
    for c in cases:  # of two runs the later one
        key = (c["program"], c["what"]) if c["what"] else versions.get(c["case"])
        if key:
            out.setdefault(key, {})[c["mode"]] = c["outcome"]
    return [(*key, *(short(out[key].get(m), m) for m in MODES))
            for key in sorted(out, key=lambda k: (k[0].lower(), k[1]))]


def short(outcome, mode):
    """In the modes that come after full, a dash where there is nothing to see."""
    return "–" if outcome is None or mode != "full" and outcome.startswith("not run") else outcome


def main(results, document):
    with open(document) as f:
        text = f.read()
    table = ["| program | what it did | full | sampled | switched |", "|---|---|---|---|---|"]
    table += ["| %s |" % " | ".join(x.replace("|", "\\|") for x in r) for r in rows(results)]
    whole = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if not whole.search(text):
        sys.exit("%s has no marks %s ... %s" % (document, BEGIN, END))
    with open(document, "w") as f:
        f.write(whole.sub(lambda _: "\n".join([BEGIN, *table, END]), text))


if __name__ == "__main__":
    main(*sys.argv[1:])
