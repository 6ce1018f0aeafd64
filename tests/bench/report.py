#!/usr/bin/env python3
"""report.py [BUILD] [--rounds N] [--only NAME] [--instructions] [--guard] [--strict]: how long
`whyoom report` takes, and how much memory.

Four recordings are made with its library, each judged --rounds times, after a first time that does
not count: what that found out about symbols is kept. The figure is the CPU time of the quickest, as
other programs of the machine only add:

    storm      3 million pairs from 200 stacks: few stacks, nearly nothing lives (workloads/storm.c)
    stacks     500,000 blocks, nearly each from a stack of its own, one in four kept until it fails
    under RLIMIT_AS:
               all passes, and the replay without each cause (workloads/stacks.c)
    python     JSON, strings and arrays, each object a malloc (workloads/objects.py)
    two        a directory of two processes, both as `stacks`

--instructions counts them with callgrind on a tenth of each, which is the same on every machine and
day to about one percent: what to compare two versions by. --strict: exit status 1 when a million
events take longer than 1 s.

--guard: of small recordings of two sizes, what one more event costs, so that neither symbols nor
start-up count; exit status 1 when that is above the bound of its kind in BOUNDS, 77 where there is
no valgrind; and, of two other sizes of `stacks`, how much memory one more block with its stack
takes, at most BYTES. The suite `bench` of the build runs it. Whoever makes the report quicker or
smaller lowers the bound to a tenth above what is printed."""
import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from bench import BUILD, source

TARGET = 1.0
# Of each kind: two parts of the whole recording, and the most instructions that one more event of
# the larger one may take: a tenth above the count of gcc 12 at -O2.
BOUNDS = {"storm": (400, 50, 1770), "stacks": (500, 160, 17000)}
# The same for memory: `stacks`, where nearly each block has a stack of its own, and one in four
# lives.
BYTES = (8, 2, 68)


def compile_to(folder, name):
    path = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-g", "-Wall", "-Wextra", "-pthread", "-o", path,
                    source(name + ".c")], check=True)
    return path


def record(shim, trace, argv, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WHYOOM", "LD_PRELOAD"))}
    env.update(variables, WHYOOM_DIR=trace, WHYOOM_QUIET="1", LD_PRELOAD=shim)
    subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def recordings(folder, part):
    """Of each kind: the command, its variables, and its repetitions."""
    storm, stacks = compile_to(folder, "storm"), compile_to(folder, "stacks")
    python = [sys.executable, source("objects.py"), str(400 // part)]
    some = [stacks, str(500000 // part)]
    return {"storm": ([storm, "1", str(3000000 // part)], {}, 1), "stacks": (some, {}, 1),
            "python": (python, {"PYTHONMALLOC": "malloc"}, 1), "two": (some, {}, 2)}


def judge(whyoom, trace, before=()):
    """CPU seconds, MiB and events of one report."""
    out = trace + ".json"
    env = {**os.environ, "WHYOOM_CACHE": os.path.join(os.path.dirname(trace), "symbols")}
    # meson sets it: filling each block with a byte is no work of ours
    env.pop("MALLOC_PERTURB_", None)
    child = subprocess.Popen([*before, whyoom, "report", "--format", "json", "-o", out, trace],
                             stderr=subprocess.PIPE, text=True, env=env)
    words = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{trace}: {words}")
    with open(out) as f:
        events = sum(p["events"] for p in json.load(f)["processes"])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, events, words


COUNT = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]


def counted(words):
    """Instructions, as callgrind prints them at the end of a command behind COUNT."""
    return int(re.search(r"Collected : (\d+)", words).group(1))


def instructions(whyoom, trace):
    judge(whyoom, trace)
    _, _, events, words = judge(whyoom, trace, COUNT)
    return counted(words), events


def memory(folder, shim, whyoom):
    """True if one more stack takes no more than its bound."""
    small, large, bound = BYTES
    runs = []
    for part in (small, large):
        argv, variables, _ = recordings(folder, part)["stacks"]
        trace = os.path.join(folder, f"memory.{part}")
        record(shim, trace, argv, **variables)
        judge(whyoom, trace)
        runs.append((judge(whyoom, trace)[1] * (1 << 20), int(argv[1])))
    (less, few), (more, many) = runs
    each = (more - less) / (many - few)
    print(f"{'memory':10} {many - few:8} stacks more, {each:6.0f} bytes each, at most {bound}",
          flush=True)
    return each <= bound


def guard(folder, shim, whyoom):
    """True if every kind is within its bound."""
    above = [] if memory(folder, shim, whyoom) else ["memory"]
    if not shutil.which("valgrind"):
        print("SKIP report-instructions: no valgrind")
        sys.exit(1 if above else 77)
    for name, (small, large, bound) in BOUNDS.items():
        runs = []
        for part in (small, large):
            argv, variables, _ = recordings(folder, part)[name]
            trace = os.path.join(folder, f"{name}.{part}")
            record(shim, trace, argv, **variables)
            runs.append(instructions(whyoom, trace))
        (less, few), (more, many) = runs
        each = (more - less) / (many - few)
        print(f"{name:10} {many - few:8} events more, {each:6.0f} instructions each, at most "
              f"{bound}", flush=True)
        if each > bound:
            above.append(f"{name}: {each:.0f} of {bound}")
    if above:
        print("above the bound: " + ", ".join(above))
    return not above


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=BUILD,
                        help="a build directory (default: build/default)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="NAME",
                        help="the recordings whose names begin so")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--guard", action="store_true")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    shim = os.path.join(build, "shim", "libwhyoom.so")
    whyoom = os.path.join(build, "analyzer", "cmd", "whyoom")
    if options.guard:
        with tempfile.TemporaryDirectory(prefix="whyoom-bench-", dir=build) as folder:
            return not guard(folder, shim, whyoom)
    version = subprocess.run([whyoom, "--version"], capture_output=True, text=True,
                             check=True).stdout.strip()
    print(f"{version}, kernel {platform.release()}, Python {platform.python_version()}")
    print("recording    M events      CPU s  s/M events    MiB"
          if not options.instructions else "recording    M events   instructions an event")
    missed = False
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-", dir=build) as folder:
        kinds = recordings(folder, 10 if options.instructions else 1)
        for name, (argv, variables, times) in kinds.items():
            if not name.startswith(options.only):
                continue
            trace = os.path.join(folder, name + ".trace")
            for _ in range(times):
                record(shim, trace, argv, **variables)
            if options.instructions:
                count, events = instructions(whyoom, trace)
                print(f"{name:10} {events / 1e6:10.2f} {count / events:15.0f}")
                continue
            runs = [judge(whyoom, trace) for _ in range(options.rounds + 1)][1:]
            cpu, events = min(r[0] for r in runs), runs[0][2]
            missed |= cpu / (events / 1e6) > TARGET
            print(f"{name:10} {events / 1e6:10.2f} {cpu:10.2f} {cpu / (events / 1e6):11.2f} "
                  f"{max(r[1] for r in runs):6.0f}", flush=True)
    return options.strict and missed


if __name__ == "__main__":
    sys.exit(main())
