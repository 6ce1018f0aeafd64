"""bench.py - shared by the parts of tests/bench: the workloads and tools, the CPU time of a run,
and the form of a figure.

CPU time is user and system time of all processes that a run starts, helpers too: this process is
the reaper of all orphans, and a run has ended when no process of it is left."""

import argparse
import ctypes
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(TOP, "build", "default")
WORK = os.path.join(TOP, "build", "bench")
SOURCES = os.path.join(HERE, "workloads")
PYTHON = os.environ.get("BENCH_PYTHON", "/usr/bin/python3")
VENV = os.path.join(WORK, "venv")
MEMRAY = os.path.join(VENV, "bin", "python")


class Workload:
    """command: the program; peers: the tools to compare with, and our largest added CPU time as a
    part of theirs (None: no target); density: the largest number of trace bytes an event."""

    def __init__(self, name, what, command, peers, density=None, env=None):
        self.name, self.what, self.command = name, what, command
        self.peers, self.density, self.env = peers, density, env or {}


def source(name):
    return os.path.join(SOURCES, name)


def ask_gxx(question):
    try:
        return subprocess.run(["g++", question], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def cc1plus():
    """g++'s compiler proper, with the options that g++ would pass on this system."""
    multiarch = ask_gxx("-print-multiarch")
    return [ask_gxx("-print-prog-name=cc1plus") or "cc1plus"] + (["-imultiarch", multiarch]
                                                                 if multiarch else [])


def workloads():
    storm = os.path.join(WORK, "storm")
    unit = ["-std=c++17", "-O2", "-DINSTANCES=1"]
    made = ["-o", os.path.join(WORK, "templates.o"), source("templates.cc")]
    objects = source("objects.py")
    return [
        Workload("storm", "3 M pairs from 200 random stacks, 1 thread", [storm, "1", "3000000"],
                 {"heaptrack": 0.25}, 7),
        Workload("storm-2", "the same by 2 threads", [storm, "2", "3000000"], {"heaptrack": 0.25},
                 7),
        Workload("cmake", "a string-heavy CMake script",
                 ["cmake", "-DROUNDS=1500", "-P", source("strings.cmake")], {"heaptrack": 0.10}, 7),
        Workload("clang", "clang++ -O2, much of the standard library", ["clang++"] + unit + ["-c"]
                 + made,
                 {"heaptrack": 0.15}, 8),
        # g++ itself only starts cc1plus, which heaptrack does not follow; and cc1plus itself is too
        # much for the helper process of heaptrack 1.4, which runs out of memory.
        Workload("cc1plus", "g++'s compiler proper, -O2, the same file",
                 cc1plus() + unit + ["-quiet", "-D_GNU_SOURCE"] + made, {}),
        Workload("python-malloc", "JSON, strings, arrays; PYTHONMALLOC=malloc",
                 [PYTHON, objects, "800"], {"memray": 0.8, "memray-native": 1.0, "memray-all": 1.0},
                 7,
                 {"PYTHONMALLOC": "malloc"}),
        Workload("python", "the same with Python's own allocator", [PYTHON, objects, "1600"],
                 {"memray": 1.0}),
    ]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def become_reaper():
    """Orphans of a run become our children, so that their CPU time is counted."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def spent(command, env, where):
    """Run it to the end of all its processes; return (CPU seconds, wall seconds, standard
    output)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    out = os.path.join(where, "stdout")
    with open(out, "wb") as o, open(os.path.join(where, "stderr"), "wb") as e:
        p = subprocess.Popen(command, env=env, cwd=where, stdin=subprocess.DEVNULL, stdout=o,
                             stderr=e)
        status = p.wait()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    wall = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status:
        with open(os.path.join(where, "stderr"), errors="replace") as f:
            say(f.read()[-2000:])
        raise SystemExit(f"bench: {' '.join(command)} ended with {status}")
    with open(out, "rb") as f:
        printed = f.read()
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall, printed)


def clean_env():
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("WHYOOM", "PYTHON", "LD_", "MALLOC_", "DEBUGINFOD"))}
    env["LC_ALL"] = "C.UTF-8"
    return env


def version(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, env=clean_env())
    except OSError:
        return None
    words = (out.stdout or out.stderr).strip()
    return words.splitlines()[0] if words else None


def processor():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def versions():
    return {
        "processor": processor(), "cpus": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "libc": "-".join(platform.libc_ver()), "cmake": version(["cmake", "--version"]),
        "clang": version(["clang++", "--version"]), "g++": version(["g++", "--version"]),
        "python": version([PYTHON, "--version"]), "heaptrack": version(["heaptrack", "--version"]),
        "memray": version([MEMRAY, "-m", "memray", "--version"]),
        "commit": version(["git", "-C", TOP, "rev-parse", "--short", "HEAD"]),
    }


def figure(what, value, target=None, unit="", least=False, between=None, precision=2):
    """A figure beside its target: an upper bound, or with `least` a lower one; None: no target."""
    met = None if target is None else value >= target if least else value <= target
    return {"what": what, "value": value, "unit": unit, "target": target, "least": least,
            "met": met,
            "between": between, "precision": precision}


def figures_table(figures, head="figure"):
    lines = [f"{head:52} {'value':>8} {'(rounds)':>16} {'target':>9}"]
    for f in figures:
        said = [f"{x:.{f['precision']}f}" for x in [f["value"], *(f["between"] or [])]]
        between = f"{said[1]} to {said[2]}" if f["between"] else ""
        target = "" if f["target"] is None else f"{'≥' if f['least'] else '≤'} {f['target']:g}"
        met = "" if f["met"] is None else "met" if f["met"] else "MISSED"
        what = f["what"] + (f", {f['unit']}" if f["unit"] else "")
        lines.append(f"{what:52} {said[0]:>8} {between:>16} {target:>9} {met}".rstrip())
    return "\n".join(lines)


def arguments(description, rounds):
    """The options of all parts."""
    p = argparse.ArgumentParser(description=description,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=BUILD,
                   help="a build directory (default: build/default)")
    p.add_argument("--rounds", type=positive, default=rounds,
                   help=f"rounds that count (default: {rounds or 'each part has its own'})")
    p.add_argument("--json", metavar="FILE", help="write all figures there as well")
    p.add_argument("--strict", action="store_true", help="exit status 1 when a target is missed")
    return p


class Built:
    """A file of the build directory; an error if it is missing."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.shim = os.path.join(self.build, "shim", "libwhyoom.so")
        self.whyoom = os.path.join(self.build, "analyzer", "cmd", "whyoom")
        for path in (self.shim, self.whyoom):
            if not os.path.exists(path):
                raise SystemExit(f"bench: there is no {path}; build it first: ninja -C "
                                 f"{self.build}")


def write_json(path, what):
    with open(path + ".part", "w") as f:
        json.dump(what, f, indent=1)
        f.write("\n")
    os.replace(path + ".part", path)


def finish(options, figures, **more):
    """Print the figures, and write them if asked to; return the exit status."""
    print("\n" + figures_table(figures), flush=True)
    if options.json:
        write_json(options.json, {"rounds": options.rounds, "versions": versions(),
                                  "figures": figures, **more})
    return 1 if options.strict and any(f["met"] is False for f in figures) else 0


def compile_workload(name, *more):
    """Compile workloads/NAME.c; return the program's path."""
    os.makedirs(WORK, exist_ok=True)
    path = os.path.join(WORK, name)
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-pthread", "-o", path,
                    source(name + ".c"), *more], check=True)
    return path


def set_up(chosen):
    compile_workload("storm")
    if any("memray" in w.peers for w in chosen) and not os.path.exists(os.path.join(VENV, "ready")):
        say("installing memray into build/bench/venv")
        shutil.rmtree(VENV, ignore_errors=True)
        subprocess.run([PYTHON, "-m", "venv", VENV], check=True)
        subprocess.run([MEMRAY, "-m", "pip", "install", "-q", "memray"], check=True,
                       stdout=sys.stderr)
        with open(os.path.join(VENV, "ready"), "w") as f:
            f.write("memray\n")


def positive(text):
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return n
