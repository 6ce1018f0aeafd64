#!/usr/bin/env python3
"""What a mark from Python costs, with and without the recorder.

    python_marks.py [PYTHON]        an interpreter that has the wheel; default: this one

Prints nanoseconds of CPU time for a `with` block (its begin and its end), for one with tokens (a
third mark), for a point and for the call of a decorated function, less those of an empty loop: the
least of many short rounds, as a busy machine only adds. Fails if a `with` block takes more than
60 ns without the recorder or 300 ns with it."""

import json
import subprocess
import sys
import tempfile

PROGRAM = """
import json, time, whyoom
ROUND, ROUNDS = 1000, 600
request, point = whyoom.request, whyoom.point

def empty():
    for _ in range(ROUND): pass
def block():
    for _ in range(ROUND):
        with request("chat"): pass
def tokens():
    for _ in range(ROUND):
        with request("chat", tokens=100): pass
def points():
    for _ in range(ROUND): point("x")
def undecorated(): pass
decorated = request("chat")(undecorated)
def calls():
    for _ in range(ROUND): decorated()
def plain():
    for _ in range(ROUND): undecorated()

def least(work):
    best = 1e9
    for _ in range(ROUNDS):
        begin = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - begin)
    return best / ROUND
base = least(empty)
print(json.dumps({"recorded": whyoom.recording(), "block": least(block) - base,
                  "with tokens": least(tokens) - base, "point": least(points) - base,
                  "decorated call": least(calls) - least(plain)}))
"""
LIMITS = {False: 60, True: 300}


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    bad = 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as trace:
        for front in ([], [python, "-m", "whyoom", "run", "-o", trace, "--"]):
            said = subprocess.run([*front, python, "-c", PROGRAM], capture_output=True, text=True,
                                  check=True).stdout
            found = json.loads(said)
            recorded = found.pop("recorded")
            if recorded != bool(front):
                sys.exit("the recorder is there or not, and should not be so")
            print("shown: marks " + ("with" if recorded else "without") + " the recorder: "
                  + ", ".join(f"{name} {value:.0f} ns" for name, value in found.items()))
            bad += found["block"] > LIMITS[recorded]
    print(f"{2 - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
