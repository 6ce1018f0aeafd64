#!/usr/bin/env python3
"""readers.py [BUILD] [--rounds N] [--only NAME]: how long it takes to read what was recorded,
beside the peers' own readers, on one core.

The same program is recorded by us and by a peer; then, turn by turn, in each round:

    whyoom check            every event read, in order, with the map of what lives
    whyoom report           all of it: passes, verdict, replays without each cause; symbols kept
    from an earlier report heaptrack               its interpret and its print, of the raw data,
    which is taken out of its compression first memray stats            of its file

CPU seconds, user and system: medians of the rounds; the speed is the peer's time by that of
`check`, the target 4. The memory of a report is the most of all runs, the first one included, which
finds the symbols. Programs as of recording.py, and `stacks` (workloads/stacks.c), where nearly each
block is from a stack of its own: the worst case."""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys

import bench

SPEED, EVENTS = 4.0, 2.0  # of check, as a multiple of the peer's; million events a second by report
MIB, BYTES = 64, 100  # of a report: MiB, and bytes for each block live at the peak
INTERPRET = sorted(glob.glob("/usr/lib*/heaptrack/libexec/heaptrack_interpret") +
                   glob.glob("/usr/lib/*/heaptrack/libexec/heaptrack_interpret"))


def works():
    by_name = {w.name: w for w in bench.workloads()}
    chosen = [by_name[n] for n in ("storm", "cmake", "clang", "python-malloc", "python")]
    stacks = bench.Workload("stacks", "", [os.path.join(bench.WORK, "stacks"), "500000"],
                            {"heaptrack": None})
    return chosen[:1] + [stacks] + chosen[1:]


def peer_of(work):
    """The first tool: memray in its default mode."""
    return next(iter(work.peers))


def run(command, env, where, **more):
    done = subprocess.run(command, env=env, cwd=where, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, **more)
    return done.returncode, done.stderr.decode(errors="replace")


def spent(argv, stdin=None, stdout=None, env=None):
    """CPU seconds and MiB of a command, which has to succeed."""
    with open(stdin or os.devnull, "rb") as i, open(stdout or os.devnull, "wb") as o:
        child = subprocess.Popen(argv, stdin=i, stdout=o, stderr=subprocess.PIPE, env=env)
        words = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"readers: {' '.join(argv)}: {words.decode(errors='replace')[-500:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def record(work, shim, where):
    """Our trace and the peer's, made at the same pace; the peer's in its reader's format."""
    env = dict(bench.clean_env(), **work.env)
    trace = os.path.join(where, "trace")
    run(work.command, dict(env, LD_PRELOAD=shim, WHYOOM_DIR=trace, WHYOOM_QUIET="1"), where)
    if peer_of(work) == "memray":
        peer = os.path.join(where, "peer.bin")
        run([bench.MEMRAY, "-m", "memray", "run", "-q", "-o", peer] + work.command[1:], env, where)
    else:
        peer = os.path.join(where, "peer.raw")
        run(["heaptrack", "-r", "-o", os.path.join(where, "peer")] + work.command, env, where)
        for packed in glob.glob(peer + ".*"):
            tool = "zstd" if packed.endswith(".zst") else "gzip"
            with open(peer, "wb") as f:
                subprocess.run([tool, "-dc", packed], stdout=f, check=True)
    if not os.path.exists(peer):
        sys.exit(f"readers: {peer_of(work)} recorded nothing of {work.name}")
    return trace, peer


def events_and_blocks(whyoom, trace):
    """From `whyoom check`: events, and the largest number of live blocks."""
    done = subprocess.run([whyoom, "check", "--format", "json", trace], capture_output=True,
                          text=True, check=True)
    processes = json.loads(done.stdout)["processes"]
    return (sum(p["events"] for p in processes),
            sum(s.get("most_live_blocks", 0) for p in processes for s in p["spaces"]))


def measure(work, shim, whyoom, rounds, where):
    trace, peer = record(work, shim, where)
    events, live = events_and_blocks(whyoom, trace)
    env = dict(os.environ, WHYOOM_CACHE=os.path.join(where, "cache"))
    report = [whyoom, "report", "--format", "json", "-o", os.path.join(where, "report.json"), trace]
    interpreted = os.path.join(where, "interpreted")
    ours = {"check": [], "report": [], "peer": []}
    mib = {"check": 0, "report": 0, "peer": 0}
    for r in range(rounds + 1):  # the first one only warms caches, and the kept symbols
        one = {"check": [spent([whyoom, "check", trace], env=env)],
               "report": [spent(report, env=env)]}
        if peer_of(work) == "memray":
            one["peer"] = [spent([bench.MEMRAY, "-m", "memray", "stats", peer],
                                 env=bench.clean_env())]
        else:
            one["peer"] = [spent([INTERPRET[0]], stdin=peer, stdout=interpreted),
                           spent(["heaptrack_print", interpreted])]
        for name, parts in one.items():
            if r:
                ours[name].append(sum(p[0] for p in parts))
            mib[name] = max([mib[name]] + [p[1] for p in parts])
    cpu = {name: statistics.median(times) for name, times in ours.items()}
    return {"name": work.name, "peer": peer_of(work), "events": events, "live_blocks": live,
            "cpu": cpu, "all_cpu": ours,
            "mib": mib, "speed": cpu["peer"] / cpu["check"],
            "events_a_second": {name: events / cpu[name] for name in ("check", "report")}}


def figures(rows):
    out = []
    for r in rows:
        name = r["name"]
        out += [bench.figure(f"{name}: read by check, times as fast as {r['peer']}", r["speed"],
                             SPEED,
                             least=True, precision=1),
                bench.figure(f"{name}: report", r["events_a_second"]["report"] / 1e6, EVENTS,
                             "M events/s",
                             least=True),
                bench.figure(f"{name}: report's memory", r["mib"]["report"],
                             round(MIB + BYTES * r["live_blocks"] / (1 << 20)), "MiB", precision=0)]
    return out


def table(rows):
    lines = [f"{'program':14} {'M events':>8} {'check s':>8} {'peer':>10} {'peer s':>8} "
             f"{'speed':>6} {'report s':>9} "
             f"{'M events/s':>10} {'MiB check, report, peer':>24}"]
    for r in rows:
        mib = ", ".join(f"{r['mib'][n]:.0f}" for n in ("check", "report", "peer"))
        lines.append(f"{r['name']:14} {r['events'] / 1e6:8.2f} {r['cpu']['check']:8.2f} "
                     f"{r['peer']:>10} "
                     f"{r['cpu']['peer']:8.2f} {r['speed']:6.1f} {r['cpu']['report']:9.2f} "
                     f"{r['events_a_second']['report'] / 1e6:10.2f} {mib:>24}")
    return "\n".join(lines)


def main():
    parser = bench.arguments(__doc__, 5)
    parser.add_argument("--only", default="", metavar="NAME",
                        help="the programs whose names begin so")
    options = parser.parse_args()
    built = bench.Built(options.build)
    chosen = [w for w in works() if w.name.startswith(options.only)]
    if not INTERPRET and any(peer_of(w) == "heaptrack" for w in chosen):
        print("SKIP readers: no heaptrack")
        return 77
    bench.set_up(chosen)
    bench.compile_workload("stacks")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = []
    for work in chosen:
        where = os.path.join(bench.WORK, "readers")
        shutil.rmtree(where, ignore_errors=True)
        os.makedirs(where)
        rows.append(measure(work, built.shim, built.whyoom, options.rounds, where))
        bench.say(table(rows[-1:]).split("\n")[1])
        shutil.rmtree(where)
    print(table(rows))
    return bench.finish(options, figures(rows), programs=rows)


if __name__ == "__main__":
    sys.exit(main())
