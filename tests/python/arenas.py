#!/usr/bin/env python3
"""arenas.py LIBRARY PYTHON - end to end: how full the interpreter's arenas are, by the levels in
the trace of the real library, against what arenas_program.py says it holds."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))

import read  # noqa: E402

ARENAS, USED, FREE = 72, 73, 74


def round_up(n):
    return (n + 15) // 16 * 16


def main():
    library, python = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as work:
        done = subprocess.run(
            python + [os.path.join(HERE, "arenas_program.py")],
            env=dict(os.environ, LD_PRELOAD=library, WHYOOM_DIR=os.path.join(work, "trace")),
            stdout=subprocess.PIPE)
        assert done.returncode == 0, done.returncode
        count, small, gone, large = map(int, done.stdout.split())
        seen = []

        def event(kind, ticks, thread, *rest):
            levels = dict(f.split("=") for f in map(str, rest) if "=" in f)
            if kind == "LEVEL" and str(ARENAS) in levels:
                seen.append([int(levels[str(key)]) for key in (ARENAS, USED, FREE)])

        for path, data in read.files([os.path.join(work, "trace")]):
            read.Trace(path, data).replay(event)
    assert seen, "nobody asked how full they are"
    for arenas, used, free in seen:
        assert used + free <= arenas * 1.02, (arenas, used, free)
    arenas, used, free = seen[-1]
    kept, released = count * round_up(small), gone * round_up(large)
    print("arenas %d, used %d (%d by the program), free %d (%d were released)" % (
        arenas, used, kept, free, released))
    # The interpreter itself uses some, and headers are counted as used.
    assert kept <= used <= kept * 1.1 + (8 << 20), (used, kept)
    assert abs(free - released) < released / 20 + (1 << 20), (free, released)


main()
