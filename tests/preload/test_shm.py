#!/usr/bin/env python3
"""File systems of a fixed size whose files are memory: their size and free space are recorded when
a file is mapped, and with the levels; refused space there is a failure."""

import os
import subprocess
import sys

from harness import *

CASES = {}
TOTAL, FREE, DEVICE, FILE, WRITTEN = 112, 113, 114, 115, 116
SIZE, KIB = 1 << 20, 1 << 10
FALLOCATE, ENOSPC = 15, 28


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def mounted(job):
    top = job.path("memory")
    os.makedirs(top)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "whyoom-test", top],
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("cannot mount a tmpfs")
    return top


def sizes(t, name):
    return [(e.fields[1], dict(e.levels)) for e in t.all("MAP")
            if t.strings.get(e.fields[6], "").startswith(name)]


@case
def shm_told(job):
    top = mounted(job)
    try:
        r = job.run(["shm", top, job.path()])
        device = os.stat(top).st_dev
    finally:
        subprocess.run(["umount", "-l", top], check=False)
    equal((r.rc, r.err), (0, ""), "exit status")
    t = r.trace(pid=r.pid)
    sound(t)
    told = sizes(t, top + "/first")
    equal([size for size, _ in told], [400 * KIB, 400 * KIB, 400 * KIB, 300 * KIB],
          "mappings of the file")
    first, second, private, unlinked = [levels for _, levels in told]
    equal(private, {}, "of a private mapping")
    for levels, written in ((first, 0), (second, 200 * KIB), (unlinked, 200 * KIB)):
        equal((levels[TOTAL], levels[DEVICE], levels[WRITTEN]), (SIZE, device, written),
              "levels %s" % levels)
        check(levels[FREE] <= SIZE - written and levels[FREE] >= SIZE - written - 16 * KIB,
              "free: %s", levels)
    equal(len({levels[FILE] for levels in (first, second, unlinked)}), 1, "files")
    for e in t.all("MAP"):
        check(t.strings.get(e.fields[6], "").startswith(top) or not e.levels, "levels of %s",
              e.fields)
    failed = [e for e in t.all("FAILED")]
    equal([(e.fields[1], e.fields[3], e.fields[4] // KIB) for e in failed],
          [(FALLOCATE, ENOSPC, size) for size in (2048, 3072, 4096, 5120)], "refused")
    levels = dict(failed[0].levels)
    equal((levels[TOTAL], levels[DEVICE]), (SIZE, device), "of the first refused")
    check(all(t.stacks.get(e.fields[7]) for e in failed), "refused without a stack")
    last = dict(t.all("LEVEL")[-1].levels)
    equal((last[TOTAL], last[DEVICE]), (SIZE, device), "of the last levels, %s" % last)
    return "%d of it free at the end" % last[FREE]


@case
def shm_of_a_child(job):
    """A forked child records its own files, and goes on with its parent's answers."""
    top = mounted(job)
    try:
        r = job.run(["shm", top, job.path()])
    finally:
        subprocess.run(["umount", "-l", top], check=False)
    equal((r.rc, r.err), (0, ""), "exit status")
    child = [t for t in r.traces if t.pid != r.pid]
    equal(len(child), 1, "traces of children")
    told = sizes(child[0], top + "/child")
    equal([size for size, _ in told], [64 * KIB], "mappings of the child")
    equal(told[0][1][TOTAL], SIZE, "levels of the child's")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
