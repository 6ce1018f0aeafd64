#!/usr/bin/env python3
"""cuda.py [BUILD] [--rounds N] [--only NAME]: what recording a GPU's memory costs, in ns of the
calling thread. Nothing needs a GPU.

On stand-ins, a run by its quietest part, as other programs of the machine only add:

    allocation      one cuMemAlloc and one cuMemFree of a driver that does nothing, 4 and 40 frames
    deep launch, copy    a kernel's and one of memory, of that driver: it has to be its own function
    that is called report          one of PyTorch's reports, from C report, Python  the same, from a
    Python program of 12 frames of its own, called through ctypes

On the simulated device, with PyTorch's own wheel (600 MB from PyPI, once):

    decode          a transformer makes tokens; each report's stack, native and Python, differs from
    the one before repeat          a tensor is made and dropped at one place; the stack stays

There each report is timed by a library in front of the recorder (workloads/clocked.c): the median
of one round's reports, less the same of a process that is not recorded. The thread's CPU time is
that of processes without that library. Processes with and without the recorder take turns; figures
are medians over the rounds, and in brackets the least and the most."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "torch"))
import bench  # noqa: E402
import wheel  # noqa: E402
from worker import Worker  # noqa: E402

# The most that may be added, in ns: to an allocation and its release, to a launch, to a report of
# PyTorch's. Below that, two runs of the same program differ.
PAIR, NOTHING, REPORT = 300, 1, 500

# Called by `python3 -c`: a report of an allocation and one of its release, below 12 calls.
REPORTS = """
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
take, give = lib.block_take, lib.block_give
take.argtypes = [ctypes.c_uint, ctypes.c_int64, ctypes.c_int]
give.argtypes = [ctypes.c_uint, ctypes.c_int64]
def step():
    take(16384, 512, 1)
    give(16384, 512)
def deeper(n):
    if n:
        return deeper(n - 1)
    for _ in range(20000):
        step()
    best = []
    for _ in range(15):
        began = time.perf_counter_ns()
        for _ in range(5000):
            step()
        best.append((time.perf_counter_ns() - began) / 10000)
    print(min(best))
deeper(10)
"""


def surroundings(preload, folder, **variables):
    """An environment that preloads the named libraries."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("WHYOOM", "PYTORCH", "LD_PRELOAD"))}
    return dict(env, LD_PRELOAD=":".join(preload), WHYOOM_DIR=os.path.join(folder, "trace"),
                WHYOOM_QUIET="1", **variables)


class Figures(list):
    """All figures, each printed as soon as it is known."""

    def add(self, what, added, target=None):
        self.append(bench.figure(what, statistics.median(added), target, "ns added",
                                 between=[min(added), max(added)],
                                 precision=0))
        bench.say("  " + bench.figures_table(self[-1:]).split("\n")[1])


# --- stand-ins ---

def once(argv, tests, preload=()):
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-") as folder:
        env = surroundings(preload, folder, LD_LIBRARY_PATH=tests)
        out = subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
    return min(float(line.split()[0]) for line in out.splitlines())


def stand_ins(build, shim, rounds, wanted, figures):
    tests = os.path.join(build, "tests", "cuda")
    null = os.path.join(tests, "null", "libcuda.so.1")
    with tempfile.TemporaryDirectory() as folder:
        c10 = os.path.join(folder, "libc10_cuda.so")
        os.symlink(os.path.join(tests, "libc10_cuda_0.so"), c10)
        cases = {
            "allocation and release, 4 frames": ([os.path.join(tests, "cost"), null, "4"], PAIR),
            "allocation and release, 40 frames": ([os.path.join(tests, "cost"), null, "40"], PAIR),
            "launch of a kernel": ([os.path.join(tests, "cost"), null, "4", "launch"], NOTHING),
            "copy": ([os.path.join(tests, "cost"), null, "4", "copy"], NOTHING),
            "report, from C": ([os.path.join(tests, "torch"), c10,
                                os.path.join(tests, "libc10_0.so"), "30000"], REPORT),
            "report, from Python": ([shutil.which("python3"), "-c", REPORTS, c10], REPORT),
        }
        for name, (argv, target) in cases.items():
            if not name.startswith(wanted):
                continue
            added = []
            for _ in range(rounds):
                plain = once(argv, tests)
                added.append(once(argv, tests, [shim]) - plain)
            figures.add(name, added, target)


# --- PyTorch ---

def worker(python, workload, preload, folder):
    folder = tempfile.mkdtemp(dir=folder)
    env = surroundings(preload, folder, WHYOOM_SIMGPU="8GiB", WHYOOM_SIMGPU_QUIET="1",
                       WHYOOM_SIMGPU_MACHINE="bench-%d-%s"
                       % (os.getpid(), os.path.basename(folder)),
                       PYTHONDONTWRITEBYTECODE="1")
    return Worker(python, workload, env), env["WHYOOM_DIR"]


def events(whyoom, trace):
    """Return the number of events so far."""
    done = subprocess.run([whyoom, "check", "--format", "json", trace], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)["processes"][0]["events"]


def show_reports(python, workload, libraries, rounds, folder, figures):
    """The recorder's addition to a report: to each round's median, and to its 99th percentile."""
    clocked, shim, simgpu = libraries
    plain, _ = worker(python, workload, [clocked, simgpu], folder)
    recorded, _ = worker(python, workload, [clocked, shim, simgpu], folder)
    pairs = [(plain.round(), recorded.round()) for _ in range(rounds)]
    plain.end()
    recorded.end()
    for kind, name in (("take", "a block"), ("give", "a release")):
        for at, which in ((1, "median"), (3, "99 of 100")):
            figures.add(f"{workload}, {name}, {which}",
                        [b[kind][at] - a[kind][1] for a, b in pairs],
                        REPORT if at == 1 else None)


def show_whole(python, workload, libraries, rounds, folder, whyoom, figures):
    _, shim, simgpu = libraries
    plain, _ = worker(python, workload, [simgpu], folder)
    recorded, trace = worker(python, workload, [shim, simgpu], folder)
    before = events(whyoom, trace)
    pairs = [(plain.round(), recorded.round()) for _ in range(rounds)]
    count = (events(whyoom, trace) - before) / rounds
    plain.end()
    recorded.end()
    blocks = statistics.median(b["blocks"] for _, b in pairs)
    without, within = (statistics.median(p[i]["cpu"] for p in pairs) for i in (0, 1))
    each = [(b["cpu"] - a["cpu"]) / count for a, b in pairs]
    bench.say(f"  {workload}, a round: CPU ms {without / 1e6:.1f} without, {within / 1e6:.1f} "
              f"with: "
          f"{blocks:.0f} blocks, {count:.0f} events of all kinds")
    figures.add(f"{workload}, an event of any kind", each)


def pytorch(built, rounds, wanted, figures):
    try:
        python = wheel.environment(wheel.torch_layer())
    except wheel.Skip as reason:
        print(f"SKIP PyTorch: {reason}")
        return
    simgpu = os.path.join(built.build, "shim", "simgpu", "libwhyoom-simgpu.so")
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-", dir=built.build) as folder:
        clocked = os.path.join(folder, "clocked.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", clocked,
                        os.path.join(HERE, "workloads", "clocked.c"), "-ldl"], check=True)
        for workload in ("decode", "repeat"):
            if workload.startswith(wanted):
                show_reports(python, workload, (clocked, built.shim, simgpu), rounds, folder,
                             figures)
                show_whole(python, workload, (clocked, built.shim, simgpu), rounds, folder,
                           built.whyoom, figures)


def main():
    parser = bench.arguments(__doc__, 15)
    parser.add_argument("--only", default="", metavar="NAME", help="the cases whose names begin so")
    options = parser.parse_args()
    built, figures = bench.Built(options.build), Figures()
    stand_ins(built.build, built.shim, max(options.rounds // 3, 1), options.only, figures)
    pytorch(built, options.rounds, options.only, figures)
    return bench.finish(options, figures)


if __name__ == "__main__":
    sys.exit(main())
