#!/usr/bin/env python3
"""cuda.py SHIM TESTS [--rounds N]: what recording CUDA costs, in ns of the calling thread.

    allocation      one cuMemAlloc and one cuMemFree of a driver that does nothing, 4 and 40 frames deep
    report          one of PyTorch's reports, from C
    report, Python  the same, from a Python program of 12 frames of its own, called through ctypes

TESTS is the build's tests/cuda. Each run counts by its quietest part, as other programs of the machine only add; runs with
and without the preload take turns, and the figures are medians over the rounds."""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

PYTHON = """
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


def once(argv, tests, shim=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WHYOOM")}
    env["LD_LIBRARY_PATH"] = tests
    with tempfile.TemporaryDirectory(prefix="whyoom-bench-") as folder:
        if shim:
            env.update(LD_PRELOAD=shim, WHYOOM_DIR=os.path.join(folder, "trace"), WHYOOM_QUIET="1")
        out = subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
    return min(float(line.split()[0]) for line in out.splitlines())


def main():
    shim, tests = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    null = os.path.join(tests, "null", "libcuda.so.1")
    with tempfile.TemporaryDirectory() as folder:
        c10 = os.path.join(folder, "libc10_cuda.so")
        os.symlink(os.path.join(tests, "libc10_cuda_0.so"), c10)
        cases = {
            "allocation, 4 frames": [os.path.join(tests, "cost"), null, "4"],
            "allocation, 40 frames": [os.path.join(tests, "cost"), null, "40"],
            "report": [os.path.join(tests, "torch"), c10, os.path.join(tests, "libc10_0.so"), "30000"],
            "report, Python": [shutil.which("python3"), "-c", PYTHON, c10],
        }
        for name, argv in cases.items():
            plain, with_us = [], []
            for _ in range(rounds):
                plain.append(once(argv, tests))
                with_us.append(once(argv, tests, shim))
            print(f"{name:24} {statistics.median(plain):8.1f} ns {statistics.median(with_us):8.1f} ns   added "
                  f"{statistics.median(with_us) - statistics.median(plain):7.1f} ns")


main()
