#!/usr/bin/env python3
"""What recording adds to the CPU time of a dozen tasks and actors of Ray: some twenty processes
that load hundreds of libraries and do little else.

In each round it runs plain, in mode sampled and in mode full; what counts is the median of the
rounds' quotients. The CPU time is perf's count, as Ray's processes are not all waited for."""

import os
import shutil
import statistics
import subprocess
import sys

import bench

# The largest CPU time, as a multiple of the plain one.
TARGETS = {"sampled": 1.15, "full": 1.5}
RAY = os.path.join(bench.WORK, "ray")


def interpreter(given):
    """An interpreter that has Ray."""
    if given:
        return given
    python = os.path.join(RAY, "bin", "python")
    if not os.path.exists(os.path.join(RAY, "ready")):
        bench.say("installing ray into build/bench/ray")
        shutil.rmtree(RAY, ignore_errors=True)
        subprocess.run([bench.PYTHON, "-m", "venv", RAY], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "ray"], check=True, stdout=sys.stderr)
        with open(os.path.join(RAY, "ready"), "w") as f:
            f.write("ray\n")
    return python


def run(python, how, shim):
    """(CPU seconds, bytes of traces) of one run."""
    where = os.path.join(bench.WORK, "run")
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    traces = os.path.join(where, "traces")
    env = dict(bench.clean_env(), RAY_USAGE_STATS_ENABLED="0")
    ours = [] if how == "plain" else ["LD_PRELOAD=" + shim, "WHYOOM_DIR=" + traces,
                                      "WHYOOM_MODE=" + how]
    counted = os.path.join(where, "perf")
    _, _, printed = bench.spent(["perf", "stat", "-x,", "-e", "task-clock", "-o", counted, "env",
                                 *ours, python,
                                 bench.source("ray_jobs.py")], env, where)
    with open(counted) as f:
        cpu = next(float(line.split(",")[0]) for line in f if "task-clock" in line) / 1000
    if b"[15, 15, 15, 15]" not in printed:
        raise SystemExit(f"bench: {how}: Ray printed {printed!r}")
    size = sum(os.path.getsize(os.path.join(traces, f))
               for f in os.listdir(traces)) if how != "plain" else 0
    return cpu, size


def measure(python, shim, rounds):
    """{how: [(CPU seconds, bytes)]}; the first round warms up."""
    ways = ["plain", *TARGETS]
    out = {how: [] for how in ways}
    for r in range(rounds + 1):
        for how in ways if r % 2 else ways[::-1]:
            found = run(python, how, shim)
            if r:
                out[how].append(found)
        bench.say(f"  round {r} of {rounds}" + ("" if r else " (warms up)"))
    return out


def main():
    p = bench.arguments(__doc__, 3)
    p.add_argument("--python", help="an interpreter that has Ray (default: one is made in "
                   "build/bench/ray)")
    a = p.parse_args()
    shim = bench.Built(a.build).shim
    if not shutil.which("perf"):
        raise SystemExit("bench: there is no perf; install linux-perf (Ubuntu: "
                         "linux-tools-generic)")
    python = interpreter(a.python)
    bench.become_reaper()
    measured = measure(python, shim, a.rounds)
    plain = [cpu for cpu, _ in measured["plain"]]
    figures = []
    for how, target in TARGETS.items():
        ratios = [cpu / p for (cpu, _), p in zip(measured[how], plain)]
        figures.append(bench.figure(f"Ray: CPU in mode {how}", statistics.median(ratios), target,
                                    "of plain",
                                    between=[min(ratios), max(ratios)]))
        print(f"{how:8} {statistics.median(cpu for cpu, _ in measured[how]):6.2f} s of CPU, "
              f"{statistics.median(size for _, size in measured[how]) / 2 ** 20:.1f} MiB of "
              f"traces; "
              f"plain {statistics.median(plain):.2f} s")
    return bench.finish(a, figures, rounds_measured=measured)


if __name__ == "__main__":
    sys.exit(main())
