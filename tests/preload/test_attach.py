#!/usr/bin/env python3
"""Processes that run already when the library comes: attach and detach."""

import sys

from harness import *

CASES = {}
PYTHON = """
import asyncio, ctypes, os, sys, threading
kept, count = [], 0
def older():
    kept.extend(bytearray(3000) for _ in range(500))
def newer(n):
    for _ in range(n):
        kept.append(bytearray(3001))
async def task():
    for _ in range(20):
        kept.append(bytearray(4004))
        await asyncio.sleep(0)
async def tasks():
    await asyncio.gather(*(task() for _ in range(10)))
older()
go, done = threading.Event(), threading.Event()
def worker():
    go.wait()
    newer(300)
    done.set()
threading.Thread(target=worker, daemon=True).start()
library = ctypes.CDLL(sys.argv[1])
settings = b"WHYOOM_DIR=" + sys.argv[2].encode() + b"\\0"
assert library.whyoom_attach(settings, len(settings)) == 0
newer(700)
go.set()
done.wait()
asyncio.run(tasks())
del kept[:500]
import bz2, sqlite3, json
assert library.whyoom_detach() == 0
newer(50)
"""


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def attached(job, what, *more, threads=1, program="attached", settings="", **run):
    """A run of the program, whose traces lie in the result's directory."""
    directory = job.path("attached")
    r = job.run([program, SHIM, ("WHYOOM_DIR=%s %s" % (directory, settings)).strip(), str(threads),
                 what, *more], preload=run.pop("preload", False), **run)
    r.dir = directory
    return r


def counted(r):
    return [tuple(map(int, x.split()[1:])) for x in r.out.splitlines() if x.startswith("counted ")]


def mine(t):
    """The blocks that the program's own threads acquire: printf's buffer is not theirs."""
    return [e for e in t.all("ALLOC") if e.size <= 1039]


def whole(t, end):
    """Nothing is lost, and no release is of a block that nobody acquired."""
    equal((t.end_how, t.drops), (end, {}), "end and drops")
    check(int(t.infos["attached"]) > 90_000_000, "attached after %s ns", t.infos["attached"])
    acquired = {}
    events = sorted((e for k in ("ALLOC", "FREE") for e in t.all(k)), key=lambda e: e.ticks)
    for e in events:
        acquired[e.address] = acquired.get(e.address, 0) + (1 if e.kind == "ALLOC" else -1)
    wrong = [a for a, n in acquired.items() if n not in (0, 1)]
    check(not wrong, "%d addresses are released more often than acquired, or the other way",
          len(wrong))


def recorded(t, calls, size):
    got = mine(t)
    check(0.95 * calls <= len(got), "%d of %d allocations", len(got), calls)
    check(0.95 * size <= sum(e.size for e in got), "%d bytes, not %d", sum(e.size for e in got),
          size)


def level(t, key):
    """The last value of that key."""
    found = [(e.ticks, dict(e.levels)[key]) for e in t.all("LEVEL") if key in dict(e.levels)]
    check(found, "no level %d", key)
    return max(found)[1]


@case
def attach_opened_only(job):
    """Without whyoom_attach() the library does nothing: no trace, nothing on stderr."""
    r = attached(job, "idle")
    equal((r.files, r.err), ([], ""), "traces, stderr")


def under_load(job, program, threads):
    r = attached(job, "load", threads=threads, program=program)
    t = r.trace()
    whole(t, 1)
    recorded(t, *counted(r)[0])
    base = dict(min(t.all("LEVEL"), key=lambda e: e.ticks).levels)
    for key in (1, 2, 64, 65, 66, 67, 69, 70):
        check(key in base, "the first LEVEL lacks %d", key)
    equal((base[69], base[70]), (0, 0), "released before the attach")
    check(level(t, 70) == threads * 64, "%d blocks from before were released", level(t, 70))
    check(level(t, 69) >= threads * 64 * 24, "their size: %d", level(t, 69))


@case
def attach_one_thread(job):
    under_load(job, "attached", 1)


@case
def attach_eight_threads(job):
    under_load(job, "attached", 8)


@case
def attach_fixed_address(job):
    """The executable's PLT entries are the functions' addresses everywhere."""
    under_load(job, "attached_fixed", 4)


@case
def attach_lazily_bound(job):
    under_load(job, "attached_lazy", 4)


@case
def attach_sampled(job):
    r = attached(job, "load", threads=2, settings="WHYOOM_MODE=sampled WHYOOM_SAMPLE_EVERY=4KiB")
    t = r.trace()
    equal((t.end_how, t.drops, t.mode), (1, {}, 1), "end, drops, mode")
    sampled = [e for e in t.all("ALLOC") if e.mean]
    stands = sum(read.stands_for(e.size, e.mean) for e in sampled)
    check(0.7 < stands / counted(r)[0][1] < 1.4, "%d blocks stand for %d of %d bytes", len(sampled),
          stands, counted(r)[0][1])


@case
def attach_blocks_from_before(job):
    """Freed, moved by realloc, and a realloc that is refused."""
    r = attached(job, "before", threads=0)
    t = r.trace()
    whole(t, 1)
    equal((level(t, 70), level(t, 69)),
          (102, int(r.out.split("before ")[1].split()[0])), "count and size of released ones")
    equal([e.size for e in t.all("ALLOC") if e.size == 77777], [77777], "the realloc")
    equal(len(t.all("UNFREE")), 0, "UNFREE")
    equal(len(t.all("FAILED")), 1, "FAILED")


@case
def attach_then_plugin(job):
    for name in ("libplugin_a.so", "libplugin_outer.so"):
        r = attached(job, "plugin", os.path.join(PROGS, name), threads=1)
        t = r.trace()
        whole(t, 1)
        equal(len([e for e in t.all("ALLOC") if e.size == 424242]), 1, name)
        shutil.rmtree(r.dir)


@case
def attach_then_fork(job):
    r = attached(job, "fork", threads=2)
    child = int(r.out.split("child ")[1].split()[0])
    parents = [t for t in r.traces if t.pid != child]
    equal(len(parents), 1, "parents")
    whole(parents[0], 1)
    equal([e.fields[0] for e in parents[0].all("FORK")], [child], "FORK")
    t = r.trace(pid=child)
    equal((t.end_how, "attached" in t.infos, bool(t.flags & 4)), (1, False, True),
          "the child's end, attached, flags")
    equal(len([e for e in t.all("ALLOC") if e.size == 333333]), 1, "the child's block")
    equal(t.all("FREE"), [], "releases of blocks from before the attach")


@case
def attach_then_exec(job):
    t = attached(job, "exec", threads=2).trace()
    whole(t, 3)


@case
def attach_failed_exec(job):
    whole(attached(job, "failed-exec", threads=2).trace(), 1)


@case
def attach_and_detach(job):
    r = attached(job, "detach", threads=4)
    t = r.trace()
    whole(t, 4)
    recorded(t, *counted(r)[0])
    check("detach" not in r.out, "%s", r.out)


def ten_rounds(job, program, threads):
    r = attached(job, "rounds", threads=threads, program=program)
    check("detach" not in r.out, "%s", r.out)
    equal([t.image for t in r.traces], list(range(10)), "traces")
    for t, (calls, size) in zip(r.traces, counted(r)):
        whole(t, 4)
        recorded(t, calls, size)
        equal(set(t.infos) >= {"exe", "libc", "malloc.owner"}, True, "facts of image %d" % t.image)
        stacks = {e.stack for e in mine(t)}
        check(0 not in stacks and len(stacks) < 20, "%d stacks", len(stacks))


@case
def attach_ten_times(job):
    ten_rounds(job, "attached", 1)


@case
def attach_ten_times_eight_threads(job):
    ten_rounds(job, "attached", 8)


@case
def attach_ten_times_fixed_address(job):
    ten_rounds(job, "attached_fixed", 8)


def refused(job, error, *more, **run):
    r = attached(job, *more, rc=3, **run)
    check("attach -%d " % error in r.out, "%s", r.out)
    equal(r.files, [], "traces")


@case
def attach_refused(job):
    refused(job, 22, "load", settings="WHYOOM_MODE=bogus")
    refused(job, 22, "load", settings="PATH=/bin")
    refused(job, 22, "load", settings="WHYOOM_OFF=1")
    refused(job, 16, "usurp", os.path.join(PROGS, "libusurp.so"))
    r = attached(job, "load", preload=True, rc=3)
    check("attach -114 " in r.out, "%s", r.out)


def other_allocator(job, name):
    from test_load import library, owner
    r = attached(job, "load", threads=4, preload=library(name), env={"WHYOOM_DIR": None})
    t = r.trace()
    equal((t.end_how, t.drops), (1, {}), "end and drops")
    recorded(t, *counted(r)[0])
    owner(t, name)


@case
def attach_jemalloc(job):
    other_allocator(job, "jemalloc")


@case
def attach_tcmalloc(job):
    other_allocator(job, "tcmalloc")


@case
def attach_mimalloc(job):
    other_allocator(job, "mimalloc")


@case
def attach_cxx(job):
    directory = job.path("attached")
    r = job.run(["attached_cxx", SHIM, directory], preload=False)
    r.dir = directory
    t = r.trace()
    equal((t.end_how, t.drops), (1, {}), "end and drops")
    equal(len([e for e in t.all("ALLOC") if e.size == 3000]), 1000, "vectors")
    check(len([e for e in t.all("ALLOC") if e.size == 101]) == 1000, "strings")
    check(level(t, 70) >= 2, "the older vector's blocks: %d", level(t, 70))


@case
def attach_python(job):
    """Its interpreter is up: frames, threads, tasks; then a detach, and modules while attached."""
    directory = job.path("attached")
    r = job.run([sys.executable, "-c", PYTHON, SHIM, directory], preload=False)
    r.dir = directory
    t = r.trace()
    equal((t.end_how, t.drops), (4, {}), "end and drops")
    check(t.infos["python"].startswith("%d.%d" % sys.version_info[:2]), "%r", t.infos["python"])
    blocks = [e for e in t.all("ALLOC") if e.size == 3002]
    equal(len(blocks), 1000, "blocks of newer()")
    equal(len({e.thread for e in blocks}), 2, "their threads")
    if ":" not in t.infos["python"]:
        named = [e for e in blocks if any(f[0] == "python" for f in t.stacks[e.stack] or ())]
        check(len(named) >= 950, "%d stacks have Python frames", len(named))
    if sys.version_info >= (3, 8) and t.infos.get("python.tasks", "").startswith("contexts"):
        check(len({e.fields[0] for e in t.all("TASK")}) >= 10, "tasks")
    check(level(t, 70) >= 500, "blocks from before: %d", level(t, 70))


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
