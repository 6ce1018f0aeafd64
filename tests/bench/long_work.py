#!/usr/bin/env python3
"""long_work.py [BUILD] [--events N,N] [--guard] [--strict]: how long `whyoom replay` and `whyoom
reduce` take of large traces.

A program that keeps and releases blocks of mixed sizes, and loses some until RLIMIT_AS refuses
(workloads/mixed.c), is recorded with about 2 and 10 million events. The figures are seconds, and
CPU seconds with those of the players; only the latter compare where others work on the machine.
--strict: exit status 1 when a replay takes more than 7.5 s, or reduce more than 30 s, of a million
events' CPU time.

--guard: of one small recording, page faults of a replay for each of its events, which hardly depend
on the machine; exit status 1 when there are more than FAULTS, 77 where the kernel cannot write to
pages by the dozen (before Linux 5.14). The suite `bench` of the build runs it."""
import argparse
import ctypes
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time

from bench import BUILD, Built, compile_workload

# A million events.
REPLAY_SECONDS, REDUCE_SECONDS = 7.5, 30
# Of SMALL, where blocks of some 350 KiB replace each other: 21 if each is written to by itself,
# about 5 if samples write to many at once.
SMALL = ["1", "100000", "200", "50", "16"]
FAULTS = 10
MADV_POPULATE_WRITE = 23


def record(whyoom, trace, argv, shim=None):
    """Events of the trace. With the library alone no supervisor samples the run: the number of its
    samples depends on their duration, and each is a sample of the replay."""
    program, env = [compile_workload("mixed"), *argv], dict(os.environ)
    if shim:
        env.update(WHYOOM_DIR=trace, WHYOOM_QUIET="1", LD_PRELOAD=shim)
    else:
        program = [whyoom, "run", "--quiet", "-o", trace, "--", *program]
    subprocess.run(program, env=env, stdout=subprocess.DEVNULL, check=False)
    checked = subprocess.run([whyoom, "check", "--format", "json", trace], stdout=subprocess.PIPE,
                             check=True)
    return sum(p["events"] for p in json.loads(checked.stdout)["processes"])


def spent(*command):
    """Seconds, and the kernel's usage of it and its children."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return time.monotonic() - begin, usage


def measure(whyoom, folder, events):
    """True if both are within their bounds."""
    trace, small = os.path.join(folder, f"{events}"), os.path.join(folder, f"{events}.small")
    recorded = record(whyoom, trace, ["1", str(events), "1500", "75"])
    sound = True
    for name, bound, command in (("replay", REPLAY_SECONDS, [whyoom, "replay", trace]),
                                 ("reduce", REDUCE_SECONDS,
                                  [whyoom, "reduce", "-o", small, trace])):
        seconds, usage = spent(*command)
        cpu = usage.ru_utime + usage.ru_stime
        print(f"{name:8} {recorded:9} events {seconds:7.1f} s, of CPU {cpu:6.1f} s "
              f"({usage.ru_stime:.1f} s in the kernel), "
              f"{usage.ru_minflt / recorded:5.1f} page faults each", flush=True)
        sound &= cpu <= bound * recorded / 1e6
    shutil.rmtree(trace)
    return sound


def can_populate():
    libc = ctypes.CDLL(None, use_errno=True)
    page = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE),
                        MADV_POPULATE_WRITE) == 0


def guard(built, folder):
    """True if within the bound."""
    if not can_populate():
        print("SKIP long-work-faults: no MADV_POPULATE_WRITE")
        sys.exit(77)
    trace = os.path.join(folder, "small")
    events = record(built.whyoom, trace, SMALL, built.shim)
    _, usage = spent(built.whyoom, "replay", trace)
    each = usage.ru_minflt / events
    print(f"replay {events:8} events, {each:6.1f} page faults each, at most {FAULTS}")
    return each <= FAULTS


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=BUILD,
                        help="a build directory (default: build/default)")
    parser.add_argument("--events", default="2000000,10000000", help="of each recording, about")
    parser.add_argument("--guard", action="store_true")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    built = Built(options.build)
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-", dir=options.build) as folder:
        if options.guard:
            return not guard(built, folder)
        sound = [measure(built.whyoom, folder, int(n)) for n in options.events.split(",")]
    return 1 if options.strict and not all(sound) else 0


if __name__ == "__main__":
    sys.exit(main())
