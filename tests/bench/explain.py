#!/usr/bin/env python3
"""explain.py [BUILD] [--mib N] [--rounds N] [--strict]: how fast `whyoom explain` reads a log.

The log is N MiB (1,024) of a server's lines, of which a few hold words that messages begin with,
and ends with one of PyTorch's refusals. The figure is MB (10^6 bytes) a second of CPU time, of the
quickest round, and the most resident memory. --strict: exit status 1 below 300 MB/s or above
64 MiB."""
import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile

from bench import BUILD, Built

MB_A_SECOND, MIB = 300, 64
LINES = [
    "2026-01-01 10:00:{:02d} INFO worker-{} handled request {} in {} ms path=/v1/chat status=200\n",
    "INFO:     10.0.0.{}:{} - \"POST /v1/completions HTTP/1.1\" 200 OK {} {}\n",
    "[2026-01-01 10:00:{:02d} +0000] [{}] [DEBUG] cache hit for key user:{}:{} loaded in 3ms\n"]
END = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
       "capacity of 1024.00 MiB of which 0 bytes is free.\n")


def write_log(path, mib):
    """Writes random lines, the same each time; a part of 1 MiB is repeated, as this
    process must stay small: its child begins with its memory."""
    dice = random.Random(1)
    part = []
    size = 0
    while size < 1 << 20:
        line = dice.choice(LINES).format(dice.randrange(60), dice.randrange(9999),
                                         dice.randrange(1 << 20), dice.randrange(5000))
        part.append(line)
        size += len(line)
    text = "".join(part)
    with open(path, "w") as f:
        for _ in range(mib):
            f.write(text)
        f.write(END)
    return os.path.getsize(path)


def explain(whyoom, log):
    """CPU seconds and MiB of one run, which must find the refusal."""
    child = subprocess.Popen([whyoom, "explain", log], stdout=subprocess.PIPE, text=True)
    words = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or "was refused 2.00 MiB" not in words:
        sys.exit(f"{log}: exit status {child.returncode}\n{words}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=BUILD,
                        help="a build directory (default: build/default)")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    whyoom = Built(options.build).whyoom
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-") as folder:
        log = os.path.join(folder, "log")
        size = write_log(log, options.mib)
        runs = [explain(whyoom, log) for _ in range(options.rounds)]
    cpu, most = min(r[0] for r in runs), max(r[1] for r in runs)
    speed = size / 1e6 / cpu
    print(f"{size / (1 << 20):.0f} MiB on {platform.machine()}: {cpu:.2f} s, {speed:.0f} MB/s, "
          f"{most:.0f} MiB resident (wanted: {MB_A_SECOND} MB/s, {MIB} MiB)")
    return options.strict and (speed < MB_A_SECOND or most > MIB)


if __name__ == "__main__":
    sys.exit(main())
