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
    """command: what runs; peers: the tools to compare with, and the most that our added CPU time may be of theirs (None:
    no target); density: the most bytes of trace that an event may take."""

    def __init__(self, name, what, command, peers, density=None, env=None):
        self.name, self.what, self.command = name, what, command
        self.peers, self.density, self.env = peers, density, env or {}


# What its allocators do (`--native` alone: with native frames; else Python's only).
MEMRAYS = {"memray": [], "memray-native": ["--native"], "memray-all": ["--trace-python-allocators", "--native"]}
PACKED = 3.5  # bytes an event after `whyoom pack`
# storm-2 is storm by two threads: as much faster as without the recorder, but for a twentieth.
SCALING = ("storm", "storm-2", 0.95)


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
                 {"heaptrack": 0.25}, 7),
        Workload("storm-2", "the same by 2 threads", [storm, "2", "3000000"], {"heaptrack": 0.25}, 7),
        Workload("cmake", "a string-heavy CMake script",
                 ["cmake", "-DROUNDS=1500", "-P", source("strings.cmake")], {"heaptrack": 0.10}, 7),
        Workload("clang", "clang++ -O2, much of the standard library", ["clang++"] + unit + ["-c"] + made,
                 {"heaptrack": 0.15}, 8),
        # g++ itself only starts cc1plus, where heaptrack does not follow; and cc1plus itself is too
        # much for the helper process of heaptrack 1.4, which runs out of memory.
        Workload("cc1plus", "g++'s compiler proper, -O2, the same file",
                 cc1plus() + unit + ["-quiet", "-D_GNU_SOURCE"] + made, {}),
        Workload("python-malloc", "JSON, strings, arrays; PYTHONMALLOC=malloc",
                 [PYTHON, objects, "800"], {"memray": 0.8, "memray-native": 1.0, "memray-all": 1.0}, 7,
                 {"PYTHONMALLOC": "malloc"}),
        Workload("python", "the same with Python's own allocator", [PYTHON, objects, "1600"], {"memray": 1.0}),
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
        elif self.name in MEMRAYS:
            command = [MEMRAY, "-m", "memray", "run", "-q", "-o", os.path.join(where, "trace.bin")]
            command += MEMRAYS[self.name] + work.command[1:]
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


def packed_size(whyoom, where):
    """What `whyoom pack` makes of the trace."""
    done = subprocess.run([whyoom, "pack", os.path.join(where, "trace")], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: whyoom pack refuses the trace: {done.stderr[-500:]}")
    return tree_size(where)


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
                    if result[t.name]["events"]:
                        result[t.name]["packed"] = packed_size(whyoom, where)
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
    row = {"name": work.name, "what": work.what, "tools": {}, "peers": {}}
    for tool, r in result.items():
        cpu = statistics.median(r["cpu"])
        row["tools"][tool] = {
            "cpu": cpu, "spread": spread(r["cpu"]), "times": cpu / base, "added": cpu - base,
            "wall": statistics.median(r["wall"]), "all_cpu": r["cpu"], "bytes": r.get("bytes"),
            "events": (r.get("events") or (None, None))[0], "dropped": (r.get("events") or (None, None))[1],
        }
    us = row["tools"].get("whyoom")
    if us and us["events"]:
        us["ns_per_event"] = us["added"] / us["events"] * 1e9
        row["density"] = figure(us["bytes"] / us["events"], work.density)
        row["packed"] = figure(result["whyoom"]["packed"] / us["events"], PACKED if work.density else None)
    for peer, target in work.peers.items():
        if us and peer in result and row["tools"][peer]["added"] > 0:
            # What each round says by itself gives the ratio's own spread.
            rounds = [(a - n) / (p - n) for n, a, p in
                      zip(result["none"]["cpu"], result["whyoom"]["cpu"], result[peer]["cpu"]) if p > n]
            row["peers"][peer] = figure(us["added"] / row["tools"][peer]["added"], target)
            row["peers"][peer]["range"] = [min(rounds), max(rounds)]
    return row


def figure(value, target, least=False):
    met = None if target is None else value >= target if least else value <= target
    return {"value": value, "target": target, "met": met}


def scaling(rows):
    """How much faster two threads are than one, as a part of what they are without the recorder."""
    one, two, target = SCALING
    walls = {r["name"]: {t: v["wall"] for t, v in r["tools"].items()} for r in rows if "whyoom" in r["tools"]}
    if one not in walls or two not in walls:
        return None
    own = walls[one]["none"] / walls[two]["none"]
    return figure(walls[one]["whyoom"] / walls[two]["whyoom"] / own, target, True)


def figures(rows):
    """(what, figure) of all that has a target, or could have."""
    out = [(f"{r['name']} / {peer}", f) for r in rows for peer, f in r["peers"].items()]
    out += [(f"{r['name']}, bytes an event", r["density"]) for r in rows if "density" in r]
    out += [(f"{r['name']}, bytes an event, packed", r["packed"]) for r in rows if "packed" in r]
    both = scaling(rows)
    return out + ([("from 1 thread to 2, of the program's own", both)] if both else [])


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
    for what, f in figures(rows):
        rounds = "{:.2f}-{:.2f}".format(*f["range"]) if "range" in f else ""
        target = "" if f["target"] is None else f"{f['target']:.2f}"
        met = "" if f["met"] is None else "met" if f["met"] else "MISSED"
        lines.append(f"{what:44} {f['value']:6.2f} {rounds:>12} {target:>7} {met}".rstrip())
    for row in rows:
        if row["tools"].get("whyoom", {}).get("dropped"):
            lines.append(f"{row['name']}: {row['tools']['whyoom']['dropped']} events were dropped")
    return "\n".join(lines)


def summary(rows, rounds):
    """What the table says, for programs; --json writes every figure."""
    tools = {r["name"]: {name: {k: round(t[k], 3) for k in ("cpu", "added", "wall")} for name, t in r["tools"].items()}
             for r in rows}
    said = {what: {k: round(v, 3) if isinstance(v, float) else v for k, v in f.items() if k != "range"}
            for what, f in figures(rows)}
    return json.dumps({"rounds": rounds, "workloads": tools, "figures": said})


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
        if "peer" in wanted:
            tools += [Tool(peer) for peer in w.peers]
        rows.append(judge(w, measure(w, tools, a.rounds, whyoom if os.path.exists(whyoom) else None)))
    print(table(rows))
    print()
    print(summary(rows, a.rounds))
    if a.json:
        with open(a.json + ".part", "w") as f:
            json.dump({"rounds": a.rounds, "versions": versions(), "workloads": rows, "scaling": scaling(rows)}, f, indent=1)
            f.write("\n")
        os.replace(a.json + ".part", a.json)
    missed = [what for what, f in figures(rows) if f["met"] is False]
    return 1 if a.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
