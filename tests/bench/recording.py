#!/usr/bin/env python3
"""recording.py [BUILD] [--rounds N] [--only NAME]: what recording everything costs. Runs each
workload without a tool, under whyoom, and under its peer, and compares their CPU time.

The tools take turns within a round, so that a change of the machine's pace meets all of them; the
figures are medians over the rounds. "added" is the median of a tool less the median of no tool."""
import json
import os
import shutil
import statistics
import subprocess
import sys

from bench import (MEMRAY, WORK, Built, arguments, become_reaper, clean_env, figure, finish, say,
                   set_up, spent, workloads)

# memray's options (`--native` alone: with native frames; else Python's only).
MEMRAYS = {"memray": [], "memray-native": ["--native"],
           "memray-all": ["--trace-python-allocators", "--native"]}
PACKED = 3.5  # bytes an event after `whyoom pack`
# storm-2 is storm by two threads: as much faster as without the recorder, less a twentieth.
SCALING = ("storm", "storm-2", 0.95)


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
    """(events, dropped) of the trace, from `whyoom check`."""
    trace = os.path.join(where, "trace")
    if not os.path.isdir(trace):
        return None
    done = subprocess.run([whyoom, "check", "--format", "json", trace], capture_output=True,
                          text=True)
    if done.returncode:
        raise SystemExit(f"bench: whyoom check refuses the trace: {done.stderr[-500:]}")
    processes = json.loads(done.stdout)["processes"]
    return sum(p["events"] for p in processes), sum(p["dropped"] for p in processes)


def packed_size(whyoom, where):
    """The size of the trace after `whyoom pack`."""
    done = subprocess.run([whyoom, "pack", os.path.join(where, "trace")], capture_output=True,
                          text=True)
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
    row = {"name": work.name, "what": work.what, "tools": {}, "figures": []}
    for tool, r in result.items():
        cpu = statistics.median(r["cpu"])
        row["tools"][tool] = {
            "cpu": cpu, "spread": spread(r["cpu"]), "times": cpu / base, "added": cpu - base,
            "wall": statistics.median(r["wall"]), "all_cpu": r["cpu"], "bytes": r.get("bytes"),
            "events": (r.get("events") or (None, None))[0],
            "dropped": (r.get("events") or (None, None))[1],
        }
    us = row["tools"].get("whyoom")
    for peer, target in work.peers.items():
        if us and peer in result and row["tools"][peer]["added"] > 0:
            # The ratio of each round gives its own spread.
            rounds = [(a - n) / (p - n) for n, a, p in
                      zip(result["none"]["cpu"], result["whyoom"]["cpu"], result[peer]["cpu"])
                      if p > n]
            row["figures"].append(figure(f"{work.name}: CPU added, as a part of what {peer} adds",
                                         us["added"] / row["tools"][peer]["added"], target,
                                         between=[min(rounds), max(rounds)]))
    if us and us["events"]:
        us["ns_per_event"] = us["added"] / us["events"] * 1e9
        row["figures"] += [figure(f"{work.name}: trace", us["bytes"] / us["events"], work.density,
                                  "bytes an event"),
                           figure(f"{work.name}: packed", result["whyoom"]["packed"] / us["events"],
                                  PACKED if work.density else None, "bytes an event")]
    return row


def scaling(rows):
    """Speed-up of two threads over one, as a part of that without the recorder."""
    one, two, target = SCALING
    walls = {r["name"]: {t: v["wall"] for t, v in r["tools"].items()} for r in rows
             if "whyoom" in r["tools"]}
    if one not in walls or two not in walls:
        return []
    own = walls[one]["none"] / walls[two]["none"]
    return [figure("from 1 thread to 2, as a part of the program's own",
                   walls[one]["whyoom"] / walls[two]["whyoom"] / own,
                   target, least=True)]


def table(rows):
    lines = [f"{'workload':14} {'tool':10} {'CPU s':>7} {'±':>5} {'×none':>6} {'added':>7} "
             f"{'wall s':>7} {'MB':>6} {'M events':>8} {'ns/event':>8}"]
    for row in rows:
        for tool, t in row["tools"].items():
            size = "" if not t["bytes"] or tool == "none" else f"{t['bytes'] / 1e6:.1f}"
            events = f"{t['events'] / 1e6:.2f}" if t["events"] else ""
            ns = f"{t['ns_per_event']:.0f}" if t.get("ns_per_event") else ""
            lines.append(f"{row['name']:14} {tool:10} {t['cpu']:7.2f} {t['spread']:5.0%} "
                         f"{t['times']:6.2f} "
                         f"{t['added']:7.2f} {t['wall']:7.2f} {size:>6} {events:>8} {ns:>8}")
    for row in rows:
        if row["tools"].get("whyoom", {}).get("dropped"):
            lines.append(f"{row['name']}: {row['tools']['whyoom']['dropped']} events were dropped")
    return "\n".join(lines)


def main():
    known = workloads()
    p = arguments(__doc__, 5)
    p.add_argument("--only", action="append", choices=[w.name for w in known], metavar="NAME",
                   help="only this workload; may be given again: "
                   + ", ".join(w.name for w in known))
    p.add_argument("--tools", default="none,whyoom,peer", help="a part of: none,whyoom,peer")
    p.add_argument("--shim", help="another libwhyoom.so than that of BUILD, to compare two on the "
                   "same day")
    a = p.parse_args()
    wanted = set(a.tools.split(","))
    if not wanted <= {"none", "whyoom", "peer"} or "none" not in wanted:
        p.error("--tools must hold none, and else only whyoom and peer")
    built = Built(a.build)
    shim = os.path.abspath(a.shim) if a.shim else built.shim
    chosen = [w for w in known if not a.only or w.name in a.only]
    set_up(chosen if "peer" in wanted else [])
    become_reaper()
    rows = []
    for w in chosen:
        tools = [Tool(t, shim) for t in ("none", "whyoom") if t in wanted]
        if "peer" in wanted:
            tools += [Tool(peer) for peer in w.peers]
        rows.append(judge(w, measure(w, tools, a.rounds, built.whyoom)))
    print(table(rows))
    return finish(a, [f for r in rows for f in r["figures"]] + scaling(rows), workloads=rows)


if __name__ == "__main__":
    sys.exit(main())
