#!/usr/bin/env python3
"""Prints the table of docs/watch.md: what forecasts on kept recordings were worth.

    tests/scenarios/compose/run --seed NAME --count N --keep DIR
    meson compile -C build/default backtest early
    tests/watch/backtest.py build/default/tests/watch/backtest DIR...
    tests/watch/backtest.py --early build/default/tests/watch/early - DIR...

"by its speed" is a yardstick: the bytes that were really acquired until the end, at the speed so
far. What it misses, the machine's changing speed decided.

Of each recording the space counts that will be full first by its forecast, as on the first line of
`whyoom watch`. Recordings without a known limit are counted apart: nothing ends there that could
be foretold. --each prints the recordings that were told wrong."""
import argparse
import collections
import json
import os
import subprocess
import sys

FIELDS = ("trace", "pid", "part", "space", "state", "alarm", "seconds", "soonest", "latest",
          "left", "room", "rate", "since", "work", "acquired", "limit", "at_speed")
# What holds more and more until the end; what holds no more in the end.
GROWING, HEALTHY = ("leak", "state-retention"), ("healthy",)
FACTOR = 1.5
SURE = 0.8
# What the blamed function holds at three quarters, of what it holds and wants at the end. With
# less, what fills the limit is still to come: a single request, say.
BEGUN = 0.25
KNOWLEDGE = os.path.realpath(os.path.join(
    os.path.dirname(__file__), "..", "..", "analyzer", "knowledge", "data"))
# A process with less left of its limit is full; what it still lives is not of memory.
FULL = 50  # a fiftieth


def recordings(directory):
    """Yields (result, trace) of a directory that compose/run --keep left."""
    with open(os.path.join(directory, "results.jsonl")) as f:
        for line in f:
            result = json.loads(line)
            trace = os.path.join(directory, result["case"], "trace")
            if os.path.isdir(trace):
                yield result, trace


def forecasts(backtest, trace):
    """The first end that is forecast in a trace, by cut; a cut without a limit is not there."""
    done = subprocess.run([backtest, trace], capture_output=True, text=True)
    first = {}
    for line in done.stdout.splitlines():
        one = dict(zip(FIELDS, line.split("\t")))
        for name in FIELDS[5:]:
            one[name] = float(one[name])
        one["grows"] = one["state"] == "grows"
        known = first.get(one["part"])
        if not known or (one["grows"], one["alarm"], -one["seconds"]) > \
                (known["grows"], known["alarm"], -known["seconds"]):
            first[one["part"]] = one
    return first


def kind_of(label):
    return "growing" if label in GROWING else "healthy" if label in HEALTHY else label


def add(table, case, label, first, each):
    for part, one in first.items():
        row = table[kind_of(label), part]
        row["all"] += 1
        row["grows"] += one["grows"]
        row["alarm"] += one["alarm"] > 0
        row["full"] += one["room"] < one["limit"] / FULL
        if not one["grows"] or one["left"] <= 0:
            right = False
        else:
            row["told"] += 1
            right = 1 / FACTOR <= one["seconds"] / one["left"] <= FACTOR
            row["in work"] += (one["acquired"] > 0 and
                               1 / FACTOR <= one["work"] / one["acquired"] <= FACTOR)
            row["right"] += right
            row["alarm right"] += right and one["alarm"] > 0
            row["by speed"] += 1 / FACTOR <= one["at_speed"] / one["left"] <= FACTOR
            row["inside"] += one["soonest"] <= one["left"] <= one["latest"]
        wrong = one["alarm"] > 0 if label in HEALTHY else not right or not one["alarm"]
        if each and label in GROWING + HEALTHY and wrong:
            print(case, label, part, *("%s=%s" % (n, one[n]) for n in FIELDS[3:]), file=sys.stderr)


def early(tool, result, trace, table):
    """Compares the early verdict on the process that holds most with the final one."""
    if result.get("failure") in (None, "none") or result["cause"] == "unknown":
        return
    done = subprocess.run([tool, "--blamed", result.get("blamed") or "", trace],
                          capture_output=True, text=True,
                          env=dict({"WHYOOM_KNOWLEDGE": KNOWLEDGE}, **os.environ))
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    if not lines:
        return
    first = max(lines, key=lambda line: int(line[1]))
    cause, confidence = first[2], float(first[3])
    # Without such a function, nothing says that it had not begun.
    begun = int(first[8]) >= int(first[9]) * BEGUN
    same = cause == result["cause"]
    for row in (table[result["cause"]], table["all"]):
        row["all"] += 1
        row["same"] += same
        row["other"] += not same and cause != "unknown"
        row["surely other"] += not same and confidence >= SURE
        row["begun"] += begun
        row["begun same"] += same and begun


def print_early(table):
    print("final cause | recordings | the same at 3/4 | another | surely another | "
          "had begun at 3/4 | the same of these")
    for cause, row in sorted(table.items()):
        print("%s | %d | %d | %d | %d | %d | %d" % (
            cause, row["all"], row["same"], row["other"], row["surely other"], row["begun"],
            row["begun same"]))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("backtest")
    p.add_argument("directory", nargs="+")
    p.add_argument("--each", action="store_true")
    p.add_argument("--half", type=int, choices=(0, 1), help="only cases with (odd: 1) numbers")
    p.add_argument("--all-causes", action="store_true", help="the other causes, too")
    p.add_argument("--early", metavar="TOOL", help="compare early verdicts on the host instead")
    a = p.parse_args()
    table = collections.defaultdict(collections.Counter)
    without = collections.Counter()
    verdicts = collections.defaultdict(collections.Counter)
    for directory in a.directory:
        for result, trace in recordings(directory):
            case, label = result["case"], result["expected"]
            if a.half is not None and int(case.rsplit("-", 1)[1]) % 2 != a.half:
                continue
            if a.early:
                early(a.early, result, trace, verdicts)
                continue
            if not a.all_causes and label not in GROWING + HEALTHY:
                continue
            first = forecasts(a.backtest, trace)
            without[kind_of(label)] += not first
            add(table, case, label, first, a.each)
    if a.early:
        print_early(verdicts)
        return
    print("kind | cut | recordings | growth seen | warned | end within %.1f | of warned | inside "
          "the interval | by work within %.1f | by its speed | full already" % (FACTOR, FACTOR))
    for (kind, part), row in sorted(table.items()):
        print("%s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %d" % (
            kind, part, row["all"], row["grows"], row["alarm"], row["right"], row["alarm right"],
            row["inside"], row["in work"], row["by speed"], row["full"]))
    print("without a limit:", dict(without))


if __name__ == "__main__":
    main()
