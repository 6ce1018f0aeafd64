#!/usr/bin/env python3
"""Every block of PyTorch's that is recorded has its stack, and in it the Python functions as Python
has them."""
import os

from wheel import Run, check, equal, main

import read
import spaces


def python_frames(frames):
    return [read.frame_text(f) for f in frames if f[0] == "python"]


def library(frame):
    """The file of a native frame."""
    return os.path.basename(frame[1][0]) if frame[1] else ""


def whole(frames):
    """From the thread's start to the allocator, with Python in between if anywhere."""
    check(frames, "a block without a stack")
    kinds = [f[0] for f in frames]
    check(not {"end", "cut"} & set(kinds), f"a stack that is cut off: {frames}")
    equal((kinds[0], kinds[-1]), ("native", "native"), "the ends of a stack")
    equal(library(frames[-1]), "libc10_cuda.so", "the innermost frame")
    if "python" in kinds:
        inner = len(kinds) - 1 - kinds[::-1].index("python")
        check(any(library(f) == "libtorch_python.so" for f in frames[inner + 1:]),
              f"PyTorch's binding is not below Python: {frames[inner + 1:]}")


def case_stacks(python):
    run = Run(python, "programs/stacks.py").end()
    trace = spaces.Trace(run.trace_files()[0])
    by_thread = {}
    for record in trace.records:
        if record.kind == "SPACE_ALLOC" and record.data["space"] == "torch:0":
            frames = trace.frames(record.data["stack"])
            whole(frames)
            by_thread.setdefault(trace.names[record.thread][0], []).append(
                [record.data["address"], python_frames(frames)])
    # The main thread goes on after it has said what it asked for.
    asked = {int(tid): blocks for tid, blocks in run.figures.items()}
    check(len(asked) == 5 and sum(map(len, asked.values())) > 300, "too few blocks to judge by")
    for tid, blocks in asked.items():
        got = by_thread[tid][:len(blocks)] if tid == trace.pid else by_thread[tid]
        equal(len(got), len(blocks), f"blocks of thread {tid}")
        for recorded, want in zip(got, blocks):
            equal(recorded, want, "a block and where Python asked for it")
    (backward,) = set(by_thread) - set(asked)
    check(by_thread[backward], "the backward pass asked for nothing")
    equal({len(frames) for _, frames in by_thread[backward]}, {0},
          "Python frames of a thread without Python")
    everything = sum(map(len, by_thread.values()))
    print(f"shown: {everything} blocks, each with its stack; {sum(map(len, asked.values()))} with "
          f"Python frames "
          "equal to Python's own")


if __name__ == "__main__":
    main(globals())
