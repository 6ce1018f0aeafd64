#!/usr/bin/env python3
"""Judges kept recordings as if each program had been attached to later, and adds up.

    tests/attach-verdicts/late.py LATE PART DIR [CAUSE,...]

LATE is the program made of late.c, PART the part of each run that is left out, DIR what
`tests/scenarios/compose/run --keep DIR` left. A blame is right if it is that of the whole
recording; recordings that are judged wrongly from the start are left out, and those of devices."""
import collections
import json
import os
import subprocess
import sys

EVENTS_LEAST = 200  # of fewer, no part is left to judge


def judged(late, part, directory, record):
    """right, blame (a wrong one), unknown, wrong or error, and the report's sentence."""
    done = subprocess.run([late, part, os.path.join(directory, record["case"], "trace")],
                          capture_output=True, text=True)
    if done.returncode:
        return "error", done.stderr.strip()
    verdict = json.loads(done.stdout)["verdict"]
    if verdict["cause"] != record["expected"]:
        return "unknown" if verdict["cause"] == "unknown" else "wrong", verdict["summary"]
    stack = [f["function"] for f in verdict["blame"]["stack"]] if verdict["blame"] else []
    right = not record["blamed"] or record["blamed"] in stack
    return "right" if right else "blame", verdict["summary"]


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    late, part, directory = sys.argv[1:4]
    causes = sys.argv[4].split(",") if len(sys.argv) > 4 else None
    sums = collections.defaultdict(collections.Counter)
    with open(os.path.join(directory, "results.jsonl")) as f:
        records = [json.loads(line) for line in f]
    for r in records:
        if r["wrong"] or r["carrier"] in ("torch", "cuda") or r["events"] < EVENTS_LEAST or (
                causes and r["expected"] not in causes):
            continue
        what, words = judged(late, part, directory, r)
        sums[r["expected"]][what] += 1
        if what != "right":
            print("%-7s %s %s, %s: %s" % (what, r["case"], r["folder"], r["expected"], words))
    for cause, of in sorted(sums.items()):
        print("%-24s %s" % (cause, ", ".join("%d %s" % (n, w) for w, n in of.most_common())))


if __name__ == "__main__":
    main()
