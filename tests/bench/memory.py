#!/usr/bin/env python3
"""memory.py [BUILD] [--rounds N]: what the recorder itself keeps resident in its host, with
programs of tests/preload:

    stacks      blocks of 2,000 and of 20,000 stacks that nobody else has, 34 frames deep
    (progs/resident.c) threads     20 and 120 threads that worked and wait now (progs/threads.c)
    trace       two threads that made a trace of 30 MiB and more: what of it is still in the
    process' memory

Each is what the process has resident, less that of one that is not recorded: medians over the
rounds."""
import os
import re
import shutil
import statistics
import subprocess
import sys

import bench

# KiB in all, KiB an idle thread, bytes a frame of each distinct stack
OWN, THREAD, FRAME = 16 << 10, 128, 64
WINDOWS = 2048  # KiB of a trace that may be mapped: the windows of two writing threads


def run(built, argv, recorded):
    """{word: number} of the program's output, and the bytes of its trace."""
    trace = os.path.join(bench.WORK, "run")
    shutil.rmtree(trace, ignore_errors=True)
    env = bench.clean_env()
    if recorded:
        env.update(LD_PRELOAD=built.shim, WHYOOM_DIR=trace, WHYOOM_QUIET="1")
    env["ORACLE"] = trace + ".oracle"  # these programs log their calls there
    program = os.path.join(built.build, "tests", "preload", argv[0])
    done = subprocess.run([program, *argv[1:]], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"memory: {' '.join(argv)} ended with {done.returncode}: "
                         f"{done.stderr[-500:]}")
    size = sum(os.stat(os.path.join(trace, n)).st_size
               for n in os.listdir(trace)) if recorded else 0
    shutil.rmtree(trace, ignore_errors=True)
    if os.path.exists(env["ORACLE"]):
        os.unlink(env["ORACLE"])
    return {word: int(n) for word, n in re.findall(r"(\w+) (\d+)", done.stdout)}, size


def added(built, rounds, *argv):
    """KiB that recording adds to resident memory, in each round; and the output and trace of the
    last recorded run."""
    values = []
    for _ in range(rounds):
        plain, _ = run(built, argv, False)
        ours, size = run(built, argv, True)
        values.append(ours["resident"] - plain["resident"])
    return values, ours, size


def add(figures, what, values, target, unit="KiB"):
    figures.append(bench.figure(what, statistics.median(values), target, unit,
                                between=[min(values), max(values)], precision=0))
    bench.say("  " + bench.figures_table(figures[-1:]).split("\n")[1])


def main():
    options = bench.arguments(__doc__, 5).parse_args()
    built, figures = bench.Built(options.build), []
    os.makedirs(bench.WORK, exist_ok=True)
    frames, kib = [], []
    for stacks in ("2000", "20000"):
        values, said, _ = added(built, options.rounds, "resident", "stacks", stacks)
        add(figures, f"{int(stacks):,} stacks of 34 frames: resident", values,
            OWN + FRAME * said["frames"] // 1024)
        frames.append(said["frames"])
        kib.append(statistics.median(values))
    figures.append(bench.figure("one frame more of a distinct stack",
                                1024 * (kib[1] - kib[0]) / (frames[1] - frames[0]),
                                FRAME, "bytes", precision=1))
    threads, kib = (20, 120), []
    for n in threads:
        values, _, _ = added(built, options.rounds, "threads", "idle", str(n))
        add(figures, f"{n} idle threads: resident", values, OWN + n * THREAD)
        kib.append(statistics.median(values))
    figures.append(bench.figure("one idle thread more",
                                (kib[1] - kib[0]) / (threads[1] - threads[0]), THREAD, "KiB",
                                precision=0))
    values, said, size = added(built, options.rounds, "resident", "blocks", "3000000")
    add(figures, f"a trace of {size >> 20} MiB: resident", values, OWN)
    add(figures, f"a trace of {size >> 20} MiB: of it resident in the process", [said["trace"]],
        WINDOWS)
    return bench.finish(options, figures)


if __name__ == "__main__":
    sys.exit(main())
