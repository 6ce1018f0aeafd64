#!/usr/bin/env python3
"""Runs each workload without a tool, under whyoom, and under its peer, and compares CPU time.

CPU time is user and system time of everything a run starts, the peer's helper processes too: this
process is the reaper of all orphans, and a run has ended when no process of it is left. The tools
take turns within a round, so that a change of the machine's pace meets all of them; the figures are
medians over the rounds. "added" is the median of a tool less the median of no tool.
"""

import argparse
import ctypes
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(TOP, "build", "bench")
SOURCES = os.path.join(HERE, "workloads")
PYTHON = os.environ.get("BENCH_PYTHON", "/usr/bin/python3")
VENV = os.path.join(WORK, "venv")
MEMRAY = os.path.join(VENV, "bin", "python")


class Workload:
    """command: what runs; peer and target: the tool to compare with, if any, and the most that our
    added CPU time may be of its own."""

    def __init__(self, name, what, command, peer, target, env=None):
        self.name, self.what, self.command = name, what, command
        self.peer, self.target, self.env = peer, target, env or {}


def source(name):
    return os.path.join(SOURCES, name)


def ask_gxx(question):
    try:
        return subprocess.run(["g++", question], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def cc1plus():
    """g++'s compiler proper, with what g++ would tell it about this system."""
    multiarch = ask_gxx("-print-multiarch")
    return [ask_gxx("-print-prog-name=cc1plus") or "cc1plus"] + (["-imultiarch", multiarch] if multiarch else [])


def workloads():
    storm = os.path.join(WORK, "storm")
    unit = ["-std=c++17", "-O2", "-DINSTANCES=1"]
    made = ["-o", os.path.join(WORK, "templates.o"), source("templates.cc")]
    objects = source("objects.py")
    return [
        Workload("storm", "3 M pairs from 200 random stacks, 1 thread", [storm, "1", "3000000"],
                 "heaptrack", 0.40),
        Workload("storm-2", "the same by 2 threads", [storm, "2", "3000000"], "heaptrack", 0.40),
        Workload("cmake", "a string-heavy CMake script",
                 ["cmake", "-DROUNDS=1500", "-P", source("strings.cmake")], "heaptrack", 0.16),
        Workload("clang", "clang++ -O2, much of the standard library", ["clang++"] + unit + ["-c"] + made,
                 "heaptrack", 0.22),
        # g++ itself only starts cc1plus, where heaptrack does not follow; and cc1plus itself is too
        # much for the helper process of heaptrack 1.4, which runs out of memory.
        Workload("cc1plus", "g++'s compiler proper, -O2, the same file",
                 cc1plus() + unit + ["-quiet", "-D_GNU_SOURCE"] + made, None, None),
        Workload("python-malloc", "JSON, strings, arrays; PYTHONMALLOC=malloc",
                 [PYTHON, objects, "800"], "memray", 1.0, {"PYTHONMALLOC": "malloc"}),
        Workload("python", "the same with Python's own allocator", [PYTHON, objects, "1600"],
                 "memray", None),
    ]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def become_reaper():
    """Orphans of a run become our children, so that their CPU time is counted."""
    pr_set_child_subreaper = 36
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def spent(command, env, where):
    """Runs it to the end of all its processes; (CPU seconds, wall seconds, standard output)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    out = os.path.join(where, "stdout")
    with open(out, "wb") as o, open(os.path.join(where, "stderr"), "wb") as e:
        p = subprocess.Popen(command, env=env, cwd=where, stdin=subprocess.DEVNULL, stdout=o, stderr=e)
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


class Tool:
    """prepare() returns the command and the environment of one run in an empty directory."""

    def __init__(self, name, shim=None):
        self.name, self.shim = name, shim

    def prepare(self, work, where):
        env = dict(clean_env(), **work.env)
        command = work.command
        if self.name == "whyoom":
            env["LD_PRELOAD"] = self.shim
            env["WHYOOM_DIR"] = os.path.join(where, "trace")
        elif self.name == "heaptrack":
            command = ["heaptrack", "-o", os.path.join(where, "trace")] + command
        elif self.name == "memray":
            command = [MEMRAY, "-m", "memray", "run", "-q", "-o", os.path.join(where, "trace.bin")]
            command += work.command[1:]
        return command, env


def tree_size(where):
    total = 0
    for folder, _, names in os.walk(where):
        for n in names:
            if n.startswith("trace") or n.endswith(".whyoom"):
                total += os.stat(os.path.join(folder, n)).st_blocks * 512
    return total


def events_of(whyoom, where):
    """(events, dropped) of the trace, as `whyoom check` says."""
    trace = os.path.join(where, "trace")
    if not whyoom or not os.path.isdir(trace):
        return None
    done = subprocess.run([whyoom, "check", "--format", "json", trace], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: whyoom check refuses the trace: {done.stderr[-500:]}")
    processes = json.loads(done.stdout)["processes"]
    return sum(p["events"] for p in processes), sum(p["dropped"] for p in processes)


def measure(work, tools, rounds, whyoom):
    """{tool: {"cpu": [...], "wall": [...], "bytes": n}}; the first round only warms the caches."""
    result = {t.name: {"cpu": [], "wall": []} for t in tools}
    printed = None
    for r in range(rounds + 1):
        for t in tools if r % 2 else tools[::-1]:
            where = os.path.join(WORK, "run")
            shutil.rmtree(where, ignore_errors=True)
            os.makedirs(where)
            command, env = t.prepare(work, where)
            cpu, wall, out = spent(command, env, where)
            if t.name == "none":
                printed = printed or out
            if t.name in ("none", "whyoom") and printed is not None and out != printed:
                raise SystemExit(f"bench: {work.name} under {t.name} printed other results")
            if r:
                result[t.name]["cpu"].append(cpu)
                result[t.name]["wall"].append(wall)
            else:
                result[t.name]["bytes"] = tree_size(where)
                if t.name == "whyoom":
                    result[t.name]["events"] = events_of(whyoom, where)
            shutil.rmtree(where, ignore_errors=True)
        say(f"  {work.name}: round {r} of {rounds}" + ("" if r else " (warms up)"))
    return result


def spread(values):
    """Half the distance between the quartiles, as a part of the median."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2 / statistics.median(values)
    q = statistics.quantiles(values, n=4)
    return (q[2] - q[0]) / 2 / statistics.median(values)


def judge(work, result):
    base = statistics.median(result["none"]["cpu"])
    row = {"name": work.name, "what": work.what, "peer": work.peer, "target": work.target, "tools": {}}
    for tool, r in result.items():
        cpu = statistics.median(r["cpu"])
        row["tools"][tool] = {
            "cpu": cpu, "spread": spread(r["cpu"]), "times": cpu / base, "added": cpu - base,
            "wall": statistics.median(r["wall"]), "all_cpu": r["cpu"], "bytes": r.get("bytes"),
            "events": (r.get("events") or (None, None))[0], "dropped": (r.get("events") or (None, None))[1],
        }
    if "whyoom" in result:
        us = row["tools"]["whyoom"]
        if us["events"]:
            us["ns_per_event"] = us["added"] / us["events"] * 1e9
        if work.peer in result and row["tools"][work.peer]["added"] > 0:
            # What each round says by itself gives the ratio's own spread.
            rounds = [(a - n) / (p - n) for n, a, p in
                      zip(result["none"]["cpu"], result["whyoom"]["cpu"], result[work.peer]["cpu"]) if p > n]
            row["ratio"] = us["added"] / row["tools"][work.peer]["added"]
            row["ratio_range"] = [min(rounds), max(rounds)]
            row["met"] = None if work.target is None else row["ratio"] <= work.target
    return row


def table(rows):
    lines = [f"{'workload':14} {'tool':10} {'CPU s':>7} {'±':>5} {'×none':>6} {'added':>7} "
             f"{'wall s':>7} {'MB':>6} {'M events':>8} {'ns/event':>8}"]
    for row in rows:
        for tool, t in row["tools"].items():
            size = "" if not t["bytes"] or tool == "none" else f"{t['bytes'] / 1e6:.1f}"
            events = f"{t['events'] / 1e6:.2f}" if t["events"] else ""
            ns = f"{t['ns_per_event']:.0f}" if t.get("ns_per_event") else ""
            lines.append(f"{row['name']:14} {tool:10} {t['cpu']:7.2f} {t['spread']:5.0%} {t['times']:6.2f} "
                         f"{t['added']:7.2f} {t['wall']:7.2f} {size:>6} {events:>8} {ns:>8}")
    lines += ["", f"{'added CPU of whyoom as a part of its peer':44} {'ratio':>6} {'(rounds)':>12} {'target':>7}"]
    for row in rows:
        if "ratio" in row:
            low, high = row["ratio_range"]
            target = "" if row["target"] is None else f"{row['target']:.2f}"
            met = "" if row["met"] is None else "met" if row["met"] else "MISSED"
            name = f"{row['name']} / {row['peer']}"
            lines.append(f"{name:44} {row['ratio']:6.2f} {f'{low:.2f}-{high:.2f}':>12} {target:>7} {met}")
        if row["tools"].get("whyoom", {}).get("dropped"):
            lines.append(f"{row['name']}: {row['tools']['whyoom']['dropped']} events were dropped")
    return "\n".join(lines)


def summary(rows, rounds):
    """What the table says, for programs; --json writes every figure."""
    out = []
    for row in rows:
        tools = {name: {"cpu": round(t["cpu"], 3), "added": round(t["added"], 3), "wall": round(t["wall"], 3)}
                 for name, t in row["tools"].items()}
        out.append({"name": row["name"], "peer": row["peer"], "tools": tools, "target": row["target"],
                    "ratio": round(row["ratio"], 3) if "ratio" in row else None,
                    "ratio_range": [round(r, 3) for r in row["ratio_range"]] if "ratio" in row else None,
                    "met": row.get("met")})
    lines = ",\n  ".join(json.dumps(row) for row in out)
    return f'{{"rounds": {rounds}, "workloads": [\n  {lines}]}}'


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
        "processor": processor(), "cpus": os.cpu_count(), "kernel": platform.release().split("-")[0],
        "libc": "-".join(platform.libc_ver()), "cmake": version(["cmake", "--version"]),
        "clang": version(["clang++", "--version"]), "g++": version(["g++", "--version"]),
        "python": version([PYTHON, "--version"]), "heaptrack": version(["heaptrack", "--version"]),
        "memray": version([MEMRAY, "-m", "memray", "--version"]),
        "commit": version(["git", "-C", TOP, "rev-parse", "--short", "HEAD"]),
    }


def set_up(chosen):
    os.makedirs(WORK, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", "-o", os.path.join(WORK, "storm"), source("storm.c"),
                    "-lpthread"], check=True)
    if any(w.peer == "memray" for w in chosen) and not os.path.exists(os.path.join(VENV, "ready")):
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


def main():
    known = workloads()
    names = [w.name for w in known]
    p = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=positive, default=5, help="rounds that count (default 5)")
    p.add_argument("--only", action="append", choices=names, metavar="NAME",
                   help="only this workload; may be given again: " + ", ".join(names))
    p.add_argument("--tools", default="none,whyoom,peer", help="a part of: none,whyoom,peer")
    p.add_argument("--shim", help="another libwhyoom.so than that of build/default")
    p.add_argument("--whyoom", help="another whyoom, which counts the events")
    p.add_argument("--json", metavar="FILE", help="write the figures there as well")
    p.add_argument("--list", action="store_true", help="name the workloads")
    p.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    a = p.parse_args()
    if a.list:
        for w in known:
            print(f"{w.name:14} {w.what}")
        return 0
    wanted = set(a.tools.split(","))
    if not wanted <= {"none", "whyoom", "peer"} or "none" not in wanted:
        p.error("--tools must hold none, and else only whyoom and peer")
    shim = os.path.abspath(a.shim or os.path.join(TOP, "build/default/shim/libwhyoom.so"))
    whyoom = os.path.abspath(a.whyoom or os.path.join(TOP, "build/default/analyzer/cmd/whyoom"))
    if "whyoom" in wanted and not os.path.exists(shim):
        p.error(f"there is no {shim}")
    chosen = [w for w in known if not a.only or w.name in a.only]
    set_up(chosen if "peer" in wanted else [])
    become_reaper()
    rows = []
    for w in chosen:
        tools = [Tool(t, shim) for t in ("none", "whyoom") if t in wanted]
        if "peer" in wanted and w.peer:
            tools.append(Tool(w.peer))
        rows.append(judge(w, measure(w, tools, a.rounds, whyoom if os.path.exists(whyoom) else None)))
    print(table(rows))
    print()
    print(summary(rows, a.rounds))
    if a.json:
        with open(a.json + ".part", "w") as f:
            json.dump({"rounds": a.rounds, "versions": versions(), "workloads": rows}, f, indent=1)
            f.write("\n")
        os.replace(a.json + ".part", a.json)
    missed = [r["name"] for r in rows if r.get("met") is False]
    return 1 if a.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
