#!/usr/bin/env python3
"""hotpath.py [BUILD] [--guard]: how many instructions the recorder adds to an allocation and its
release, counted by callgrind: the same on every machine and day to about one percent, so that two
versions can be compared by them.

    pairs     malloc and free by a stack that does not change (workloads/pairs.c)
    storm     by one of 200 random stacks, 15 to 21 calls deep, 18 of whose frames are new each time
    (workloads/storm.c) python    objects of CPython, each a malloc, with their Python frames
    (workloads/objects.py)

Of each kind two runs of different lengths, with and without the recorder: what one more pair takes,
so that start-up does not count. Pairs are half of the events that were recorded.

--guard: exit status 1 when that is above the bound of its kind in BOUNDS, 77 where there is no
valgrind. The suite `bench` of the build runs it. Whoever makes the path quicker lowers the bound to
a twentieth above what is printed."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bench import BUILD, source
from report import COUNT, compile_to, counted

# Of each kind: the two lengths, and the most instructions that the recorder may add to a pair: a
# twentieth above the count of gcc 12 at -O2.
BOUNDS = {"pairs": (5000, 25000, 633), "storm": (5000, 25000, 1854), "python": (2, 6, 2035)}


def command(folder, kind, length):
    if kind == "python":
        return [sys.executable, "-S", source("objects.py"), str(length)]
    return [compile_to(folder, kind), "1", str(length)]


def instructions(folder, argv, tools=None):
    """The instructions of a run, and its recorded events."""
    trace = os.path.join(folder, "trace")
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("WHYOOM", "LD_PRELOAD", "PYTHON"))}
    env.update(PYTHONMALLOC="malloc", PYTHONHASHSEED="0", WHYOOM_QUIET="1", WHYOOM_DIR=trace)
    if tools:
        env["LD_PRELOAD"] = tools["shim"]
    done = subprocess.run(COUNT + argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    events = 0
    if tools:
        said = subprocess.run([tools["whyoom"], "check", "--format", "json", trace],
                              stdout=subprocess.PIPE, check=True)
        events = sum(p["events"] for p in json.loads(said.stdout)["processes"])
        shutil.rmtree(trace)
    return counted(done.stderr), events


def added(folder, kind, tools):
    """Instructions that the recorder adds to a pair, and those of the pair without it."""
    short, long, _ = BOUNDS[kind]
    (less, few), (more, many) = (instructions(folder, command(folder, kind, n), tools)
                                 for n in (short, long))
    (bare, _), (longer, _) = (instructions(folder, command(folder, kind, n)) for n in (short, long))
    pairs = (many - few) / 2
    return (more - less - longer + bare) / pairs, (longer - bare) / pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=BUILD,
                        help="a build directory (default: build/default)")
    parser.add_argument("--guard", action="store_true")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("SKIP hotpath: no valgrind")
        return 77
    build, sound = os.path.abspath(options.build), True
    tools = {"shim": os.path.join(build, "shim", "libwhyoom.so"),
             "whyoom": os.path.join(build, "analyzer", "cmd", "whyoom")}
    with tempfile.TemporaryDirectory(prefix="whyoom-hotpath-", dir=build) as folder:
        for kind, (_, _, bound) in BOUNDS.items():
            more, own = added(folder, kind, tools)
            print(f"{kind:8} {own:6.0f} instructions a pair, the recorder adds {more:6.0f}, at "
                  f"most {bound}", flush=True)
            sound &= more <= bound
    return 0 if sound or not options.guard else 1


if __name__ == "__main__":
    sys.exit(main())
