#!/usr/bin/env python3
"""Programs' marks of their requests and phases: by mark.h, from Python through ctypes, and by
NVTX."""

import glob
import os
import subprocess
import sys

from harness import *

CASES = {}
BEGIN, END, POINT, ENTER, LEAVE, LENGTH = range(1, 7)
REQUEST, PHASE, PUSHED, RANGE, POINTED = range(5)
HANDED_OUT = 1 << 48


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def marks(trace, thread=None):
    """(phase, what, id, name), with their stacks."""
    out = []
    for serial, events in trace.events_of.items():
        if thread is not None and serial != thread:
            continue
        for e in events:
            if e.kind != "MARK":
                continue
            phase, id, name, what, stack, domain, *tokens = e.fields
            check(stack, "a mark without a stack")
            equal(domain, 0, "the domain")
            out.append((phase, what, id, *(tokens or [trace.strings.get(name)])))
    return out


def plain(job, program):
    r = job.run([program, "plain"])
    phase, request, inner = map(int, r.out.split())
    check(HANDED_OUT <= phase < request < inner < HANDED_OUT + 100, "the ids are %s", r.out)
    trace = r.trace()
    sound(trace)
    equal(marks(trace, 1), [
        (BEGIN, PHASE, phase, "loading"), (END, PHASE, phase, None),
        (BEGIN, REQUEST, request, "POST /chat"), (LENGTH, REQUEST, request, 4096),
        (BEGIN, REQUEST, 42, None),
        (BEGIN, REQUEST, inner, "POST /chat"), (POINT, REQUEST, 0, "first token"),
        (END, REQUEST, inner, None), (END, REQUEST, 42, None), (END, REQUEST, 987654321, None),
    ], "the marks of the first thread")
    others = [m for serial in trace.events_of if serial != 1 for m in marks(trace, serial)]
    equal(sorted(others), [(END, REQUEST, request, None), (ENTER, REQUEST, request, None),
                           (LEAVE, REQUEST, request, None)], "those of the others")
    (worker,) = [e for e in trace.events_of.values()
                 if any(x.kind == "MARK" and x.fields[0] == ENTER for x in e)]
    order = [e.kind for e in worker if e.kind == "MARK" or e.size == 4242]
    equal(order, ["MARK", "ALLOC", "MARK"], "the worker's block is between its marks")


@case
def marks_recorded(job):
    plain(job, "marks")


@case
def marks_at_a_fixed_address(job):
    """Linked so that a weak reference could resolve to nothing."""
    plain(job, "marks_fixed")


@case
def marks_without_recording(job):
    for program in ("marks", "marks_fixed"):
        equal(job.run([program, "plain"], preload=False).out, "0 0 0\n", "the ids of " + program)
        r = job.run([program, "plain"], env={"WHYOOM_OFF": "1"})
        equal(r.files, [], "traces of one that is switched off")


@case
def marks_names(job):
    """Long ones are cut, and thousands do not displace others."""
    trace = job.run(["marks", "names"]).trace()
    sound(trace)
    names = [name for _, _, _, name in marks(trace)]
    equal(len(names), 5003, "marks")
    equal(names[:2], ["x" * 127, ""], "the long one and the empty one")
    known = [n for n in names[2:-1] if n]
    equal(known, ["user %d" % i for i in range(998)], "the names that were kept")
    equal(names[-1], "user 7", "one that is known already")


@case
def marks_from_threads_and_handlers(job):
    trace = job.run(["marks", "threads"]).trace()
    begun = {m[2] for m in marks(trace) if m[0] == BEGIN and m[3] != "signal"}
    ended = {m[2] for m in marks(trace) if m[0] == END}
    # While one thread copies a name for its first use, the mark of another goes without it.
    nameless = sum(m[0] == BEGIN and m[3] is None for m in marks(trace))
    check(80000 <= len(begun) <= 80000 + nameless, "%d requests", len(begun))
    check(nameless <= 8, "%d requests have no name", nameless)
    check(begun <= ended, "%d have no end", len(begun - ended))
    check(set(trace.drops) <= {"signal"}, "dropped: %s", trace.drops)
    check(any(m[3] == "signal" for m in marks(trace)), "no handler's mark was recorded")


@case
def marks_after_fork(job):
    r = job.run(["marks", "forks"])
    (child,) = r.pids("child")
    equal([m[3] for m in marks(r.trace(child))], ["child", "parent"], "names in the child")
    equal([m[3] for m in marks(r.trace(r.pid))], ["parent", None], "names in the parent")


def nvtx_header():
    """The folder of NVTX's own header, if it is installed."""
    roots = [os.environ.get("CUDA_HOME", "")] + sorted(glob.glob("/usr/local/cuda*"),
                                                       reverse=True) + ["/usr"]
    return next((r + "/include" for r in roots
                 if os.path.exists(r + "/include/nvtx3/nvToolsExt.h")), None)


def ranges(job, program):
    shim = os.path.dirname(SHIM)
    silent = job.run([program], preload=False).out
    equal(silent, "-2 -2 0 0\n", "without a tool")
    equal(job.run([program]).out, silent, "where the variable is not set")
    tool = {"NVTX_INJECTION64_PATH": os.path.join(shim, "libwhyoom-nvtx.so")}
    equal(job.run([program], preload=False, env=tool).out, silent, "without the preload")
    r = job.run([program], env=tool)
    outer, inner, first, second = map(int, r.out.split())
    check(HANDED_OUT <= first < second < HANDED_OUT + 100, "the ids are %s", r.out)
    equal((outer, inner), (-2, -2), "depths")
    trace = r.trace()
    sound(trace)
    name = trace.strings.get
    found = [(e.fields[0], e.fields[3], e.fields[1], name(e.fields[2]), name(e.fields[5]))
             for e in trace.all("MARK")]
    push, pop = (BEGIN, PUSHED, 0), (END, PUSHED, 0, None)
    equal(found, [
        push + ("outer", None), push + ("w?de", None), pop + (None,), push + ("attributes", None),
        pop + (None,),
        pop + (None,), (POINT, POINTED, 0, "token", None), (POINT, POINTED, 0, "attributes", None),
        (BEGIN, RANGE, first, "first", None), (BEGIN, RANGE, second, "registered", "server"),
        (END, RANGE, first, None, None), push + ("registered", "server"),
        (POINT, POINTED, 0, "attributes", "server"), pop + ("server",),
        (END, RANGE, second, None, "server"),
        push + (None, None), pop + (None,), push + (None, None), pop + (None,),
    ], "the ranges")
    check(all(e.fields[4] for e in trace.all("MARK")), "a range without a stack")


@case
def nvtx_ranges(job):
    ranges(job, "nvtx")


@case
def nvtx_ranges_by_its_own_header(job):
    header = nvtx_header()
    if not header:
        raise Skip("NVTX's header is not installed")
    built = job.path("nvtx")
    done = subprocess.run(["cc", "-DREAL_NVTX", "-I", header, "-o", built, "-ldl",
                           os.path.join(HERE, "progs", "memory", "nvtx.c"), "-ldl"],
                          capture_output=True,
                          text=True)
    check(done.returncode == 0, "it does not build: %s", done.stderr[-500:])
    ranges(job, built)


HELPER = r'''
import asyncio, ctypes
from contextlib import contextmanager
_whyoom = ctypes.CDLL(None)
try:
    _whyoom.whyoom_request_begin.restype = ctypes.c_uint64
    _whyoom.whyoom_request_end.argtypes = [ctypes.c_uint64]
except AttributeError:
    _whyoom = None
@contextmanager
def request(name):
    id = _whyoom.whyoom_request_begin(name.encode()) if _whyoom else 0
    try:
        yield id
    finally:
        if _whyoom:
            _whyoom.whyoom_request_end(id)
async def answer(n):
    with request("answer"):
        for i in range(3):
            bytes(1000000 + n)
            await asyncio.sleep(0.001)
async def main():
    await asyncio.gather(*(answer(n) for n in range(5)))
asyncio.run(main())
print("done")
'''


@case
def marks_from_python(job):
    """The helper of docs/marks.md; each request's mark is of the task that works for it."""
    with open(os.path.join(os.environ["WHYOOM_TEST_SOURCE"], "docs", "marks.md")) as f:
        shown = " ".join(f.read().split())
    helper = HELPER[HELPER.index("_whyoom ="):HELPER.index("async def")]
    check(" ".join(helper.split()) in shown, "docs/marks.md shows another helper")
    script = job.path("helper.py")
    with open(script, "w") as f:
        f.write(HELPER)
    equal(job.run([sys.executable, script], preload=False).out, "done\n", "without recording")
    trace = job.run([sys.executable, script]).trace()
    trace = read.Trace(trace.path, trace.data)
    told, blocks = {}, {}

    def event(kind, ticks, thread, *rest):
        task = rest[-1] if len(rest) > 1 and rest[-2] == "task" else None
        if kind == "MARK" and rest[0] == BEGIN:
            told[rest[2]] = task
        elif kind == "ALLOC" and 1000000 <= rest[1] - sys.getsizeof(b"") < 1000005:
            blocks.setdefault(rest[1], set()).add(task)

    trace.replay(event)
    equal(len(told), 5, "requests")
    check(None not in told.values(), "a request outside of tasks")
    equal(sorted(told.values()), sorted(t for tasks in blocks.values() for t in tasks),
          "the tasks of the requests and of their blocks")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
