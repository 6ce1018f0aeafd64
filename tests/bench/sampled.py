#!/usr/bin/env python3
"""What mode sampled adds to the CPU time of a program, beside the samplers of jemalloc and tcmalloc
at the same rate (one block for 512 KiB), each against its own allocator without one.

Of each pair both run in each round, in turns, so that the machine's pace meets both; what is added
is the median of the rounds' quotients, and beside it the interval that holds it with 95 %
confidence, by the order of the quotients alone."""

import ctypes.util
import math
import os
import shutil
import statistics
import subprocess
import sys

import bench

EVERY = 512 << 10
PAIRS = {
    "whyoom": ({}, {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": str(EVERY)}),
    "jemalloc": ({}, {"MALLOC_CONF": f"prof:true,lg_prof_sample:{EVERY.bit_length() - 1}"}),
    "tcmalloc": ({}, {"TCMALLOC_SAMPLE_PARAMETER": str(EVERY)}),
}
# The largest addition, in percent.
TARGETS = {"storm": 12, "serve": 2}


def workloads():
    python = bench.PYTHON
    serve = [bench.Workload("serve", "an inference server: asyncio, JSON, numpy",
                            [python, bench.source("serve.py"), "60"], None, None,
                            {"OPENBLAS_NUM_THREADS": "1"})]
    kept = [w for w in bench.workloads() if w.name in ("storm", "python-malloc")]
    return kept + serve


def library(name):
    found = ctypes.util.find_library(name)
    return found if name != "jemalloc" or found and profiles(found) else None


def profiles(jemalloc):
    """Whether it was built with its profiler."""
    done = subprocess.run(["true"], env={"LD_PRELOAD": jemalloc, "MALLOC_CONF": "prof:true"},
                          capture_output=True)
    return not done.stderr


def interval(values):
    """Of the median: the order statistics that a binomial of one half falls between."""
    n, low, sum_ = len(values), 0, 0.0
    for k in range(n // 2):
        sum_ += math.comb(n, k) / 2 ** n
        if sum_ > 0.025:
            break
        low = k
    values = sorted(values)
    return values[low], values[n - 1 - low]


def environments(tool, shim):
    plain, sampling = PAIRS[tool]
    if tool == "whyoom":
        return plain, dict(sampling, LD_PRELOAD=shim, WHYOOM_DIR="trace")
    preload = {"LD_PRELOAD": library(tool)}
    return dict(plain, **preload), dict(sampling, **preload)


def measure(work, tools, rounds, shim):
    """{tool: [(without, with)]}"""
    out = {t: [] for t in tools}
    for r in range(rounds + 1):
        for tool in tools:
            seconds = []
            pair = environments(tool, shim)
            for env in pair if r % 2 else pair[::-1]:
                where = os.path.join(bench.WORK, "run")
                shutil.rmtree(where, ignore_errors=True)
                os.makedirs(where)
                full = dict(bench.clean_env(), **work.env, **env)
                if "WHYOOM_DIR" in env:
                    full["WHYOOM_DIR"] = os.path.join(where, "trace")
                seconds.append(bench.spent(work.command, full, where)[0])
            if r:
                out[tool].append(tuple(seconds if r % 2 else seconds[::-1]))
        bench.say(f"  {work.name}: round {r} of {rounds}" + ("" if r else " (warms up)"))
    return out


def judge(work, result):
    rows = []
    for tool, pairs in result.items():
        added = [b / a - 1 for a, b in pairs]
        low, high = interval(added)
        rows.append({"workload": work.name, "tool": tool,
                     "without": statistics.median(a for a, _ in pairs),
                     "with": statistics.median(b for _, b in pairs),
                     "added": statistics.median(added),
                     "low": low, "high": high, "pairs": pairs})
    return rows


def figures(rows):
    return [bench.figure(f"{r['workload']}: CPU added by "
                         f"{'mode sampled' if r['tool'] == 'whyoom' else r['tool']}",
                         100 * r["added"], TARGETS.get(r["workload"]) if r["tool"] == "whyoom"
                         else None, "%",
                         between=[100 * r["low"], 100 * r["high"]], precision=1) for r in rows]


def table(rows):
    lines = [f"{'workload':14} {'sampler':9} {'CPU s without':>13} {'with':>6} {'added':>7} "
             f"{'95 %':>16}"]
    for r in rows:
        between = f"{r['low']:.1%} to {r['high']:.1%}"
        lines.append(f"{r['workload']:14} {r['tool']:9} {r['without']:13.2f} {r['with']:6.2f} "
                     f"{r['added']:7.1%} {between:>16}")
    return "\n".join(lines)


def main():
    known = {w.name: w for w in workloads()}
    p = bench.arguments(__doc__, 9)
    p.add_argument("--only", action="append", choices=known)
    a = p.parse_args()
    shim = bench.Built(a.build).shim
    tools = [t for t in PAIRS if t == "whyoom" or library(t)]
    for t in PAIRS.keys() - set(tools):
        bench.say(f"there is no {t}, or it has no sampler")
    bench.set_up([])
    bench.become_reaper()
    rows = []
    for name in a.only or known:
        rows += judge(known[name], measure(known[name], tools, a.rounds, shim))
    print(table(rows))
    return bench.finish(a, figures(rows), rows=rows)


if __name__ == "__main__":
    sys.exit(main())
