#!/usr/bin/env python3
"""replay.py [BUILD] [--rounds N] [--pairs N] [--torch TRACE]: how fast `whyoom replay` is, beside
the allocators themselves.

A program that does nothing but malloc, write a byte and free (workloads/pairs.c) is timed under
each allocator that is installed, recorded once, and its record replayed under the same allocators:
both take turns, --rounds times, and each figure is the quickest, as other programs of the machine
only add. The replay's time is the player's, from its first operation to its last, without its
samples. With --torch also the model of PyTorch's allocator, on one core: what was asked of it in
that trace, read beforehand, is put to it --rounds times. Exit status 1 when one has less than 0.6
of the allocator's own speed, or the model less than 5 million requests and releases a second."""
import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

from bench import BUILD, source

LIBRARIES = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4",
             "mimalloc": "libmimalloc.so.2.0"}
TARGET = 0.6
TARGET_MODEL = 5e6


def native(program, threads, pairs, library):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if library:
        env["LD_PRELOAD"] = library
    run = subprocess.run([program, str(threads), str(pairs)], env=env, capture_output=True,
                         text=True)
    # The loader reports a missing library and goes on without it.
    return None if run.returncode or "cannot be preloaded" in run.stderr else int(run.stdout)


def replay(whyoom, trace, names):
    run = subprocess.run([whyoom, "replay", "--format", "json", "--compare", ",".join(names),
                          trace],
                         stdout=subprocess.PIPE, text=True, check=True)
    return {a["name"]: a["seconds"] * 1e9 for a in json.loads(run.stdout)["allocators"]}


def model(build, whyoom, trace, folder, rounds):
    """False: too slow."""
    stream, taker = os.path.join(folder, "stream"), os.path.join(folder, "python")
    # stands in for PyTorch's Python, and keeps its requests
    with open(taker, "w") as f:
        f.write('#!/bin/sh\ncp "$2" %s\necho error: kept\nexit 1\n' % stream)
    os.chmod(taker, 0o755)
    answer = json.loads(subprocess.run([whyoom, "replay", "--format", "json", "--alloc-conf", "",
                                        trace],
                                       stdout=subprocess.PIPE, check=True).stdout)["torch"]
    subprocess.run([whyoom, "replay", "--through", "torch", "--python", taker, "--alloc-conf", "",
                    trace],
                   stderr=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", build, "tests/bench/caching_replay"], stdout=subprocess.DEVNULL,
                   check=True)
    run = subprocess.run([os.path.join(build, "tests", "bench", "caching_replay"), stream,
                          str(answer["memory_bytes"]), str(rounds)], stdout=subprocess.PIPE,
                         text=True, check=True)
    events, ns, reserved = map(int, run.stdout.split())
    print("\nPyTorch's allocator, the model: %d requests and releases, %.1f ns each, %.1f million "
          "a second" %
          (events, ns / events, events / ns * 1e3))
    if reserved != answer["model"]["peak_reserved"]:
        sys.exit("it reserved %d bytes, and not %d" % (reserved, answer["model"]["peak_reserved"]))
    return events / ns * 1e9 >= TARGET_MODEL


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=BUILD,
                        help="a build directory (default: build/default)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=5000000)
    parser.add_argument("--torch", help="a trace of PyTorch's blocks")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    whyoom = os.path.join(build, "analyzer", "cmd", "whyoom")
    print("kernel %s, %d CPUs" % (platform.release(), os.cpu_count()))
    missed = False
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-", dir=build) as folder:
        if options.torch:
            missed = not model(build, whyoom, options.torch, folder, options.rounds)
        print("threads  allocator   ns a pair   replayed   speed")
        program = os.path.join(folder, "pairs")
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-pthread", "-o", program,
                        source("pairs.c")], check=True)
        for threads in (1, 2):
            trace = os.path.join(folder, "%d" % threads)
            subprocess.run([whyoom, "run", "-o", trace, "--", program, str(threads),
                            str(options.pairs)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            names = [n for n, library in LIBRARIES.items()
                     if native(program, threads, 1000, library) is not None]
            own, played = {}, {}
            for _ in range(options.rounds):
                for n in names:
                    own.setdefault(n, []).append(native(program, threads, options.pairs,
                                                        LIBRARIES[n]))
                for n, ns in replay(whyoom, trace, names).items():
                    played.setdefault(n, []).append(ns)
            for n in names:
                a, b = min(own[n]) / options.pairs, min(played[n]) / options.pairs
                missed |= a / b < TARGET
                print("%7d  %-9s %11.1f %10.1f %7.2f" % (threads, n, a, b, a / b), flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
