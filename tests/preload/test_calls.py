#!/usr/bin/env python3
"""Counts, sizes, order and errno of every hooked function; mappings as ranges; failures."""

import resource
import sys

from harness import *

CASES = {}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def calls(job, what, **kw):
    r = job.run(["calls", what], **kw)
    sound(r.trace())
    return r


@case
def calls_successes(job):
    """Every function, every size and api, with errno untouched."""
    return "%d events" % compare_blocks(calls(job, "successes"))


@case
def calls_failures(job):
    """Failing calls keep the old block and record size and errno; a wrong argument is no OOM."""
    r = calls(job, "failures")
    check(r.trace().all("UNFREE"), "a realloc that failed was not undone")
    compare_blocks(r)
    for e in r.trace().all("FAILED"):
        check(e.fields[0] == 0 and e.fields[2] == 1, "space %d, why %d", e.fields[0], e.fields[2])
        check(e.stack, "a failure without a stack")


@case
def calls_free_errno(job):
    compare_blocks(calls(job, "free-errno"))


@case
def calls_overflow(job):
    r = calls(job, "overflow")
    failed = r.trace().all("FAILED")
    check(len(failed) == 1 and failed[0].fields[1] == 1 and failed[0].fields[3] == 12, "FAILED: %s",
          [e.fields for e in failed])
    check(failed[0].fields[4] >= 1 << 63, "the product wrapped in FAILED: %d", failed[0].fields[4])


@case
def limit_address_space(job):
    """RLIMIT_AS: the program gets NULL, as without the recorder, and nearly as many blocks."""
    plain = job.run(["calls", "exhaust"], preload=False)
    r = job.run(["calls", "exhaust"])
    compare_blocks(r)
    sound(r.trace())
    failed = r.trace().all("FAILED")
    check(failed and dict(failed[0].levels).get(128) == 400 << 20,
          "RLIMIT_AS is not in FAILED's levels: %s",
          failed and failed[0].levels)
    check(all(dict(e.levels).get(5, 0) > 100 << 20 for e in failed if e.levels),
          "no virtual size in FAILED's levels: %s",
          failed and failed[0].levels)
    taken = int(plain.out) - int(r.out)
    check(taken <= 48, "our own address space is %d MiB of 400", taken)
    return "%d MiB of 400 are ours" % taken


@case
def no_usage_between_calls(job):
    """Two runs of the same program: the same events, no matter what ours does in between."""
    a, b = calls(job, "successes"), calls(job, "successes")
    sizes = [[(e.kind, e.size) for e in between_marks(t.trace().thread(t.trace().pid))
              if e.kind in BLOCKS]
             for t in (a, b)]
    equal(len(sizes[0]), len(sizes[1]), "events")
    equal(sizes[0] == sizes[1], True, "the same events")


def maps(job, what, apis=None):
    """Mapping records between the marks are those of the oracle, in its order."""
    r = job.run(["maps", what])
    t = r.trace()
    sound(t)
    for tid, log in r.oracle().items():
        got, want, prots = [], [], []
        page = resource.getpagesize()
        events = between_marks(t.thread(tid))
        undone = 0
        for i, e in enumerate(events):
            f = e.fields
            if e.kind == "MAP":
                got.append(("MAP", f[0], up(f[1], page), f[3], f[4] & (2 | 4 | 8 | 16)))
            elif e.kind == "UNMAP":
                got.append(("UNMAP", f[0], up(f[1], page), f[2], f[3] & (2 | 4)))
            elif e.kind == "UNUNMAP":
                check(got and got[-1][0] == "UNMAP" and got[-1][1] == f[0],
                      "UNUNMAP of something else")
                got.pop()
                undone += 1
            elif e.kind == "ADVISE":
                got.append(("ADVISE", f[0], f[1], f[2], 0))
            elif e.kind == "BRK":
                got.append(("BRK", f[0], f[1], 0, 0))
        for kind, a, b, c, d in log:
            if kind in ("MAP", "UNMAP"):
                want.append((kind, a, up(b, page), c, d))
            elif kind in ("ADVISE", "BRK"):
                want.append((kind, a, b, c, d))
        same(got, want, "mappings")
        equal([(e.fields[4], e.fields[1], e.fields[3]) for e in events if e.kind == "FAILED"],
              [e[1:4] for e in log if e[0] == "FAILED"], "FAILED (size, api, errno)")
    return r, t


def up(n, page):
    return (n + page - 1) // page * page


@case
def maps_plain(job):
    """Partial munmap, munmap over a hole, MAP_FIXED over others, mmap64, MADV_DONTNEED and FREE."""
    _, t = maps(job, "plain")
    check(all(e.stack for e in t.all("MAP")), "a MAP without a stack")


@case
def maps_moves(job):
    """mremap that grows, shrinks, splits and moves over another mapping."""
    maps(job, "moves")


@case
def maps_failing(job):
    """ENOMEM is FAILED; EINVAL and EBADF are not, nor a growth in place without room, nor missing
    huge pages; a range that was to be unmapped lives on."""
    maps(job, "failing")


@case
def maps_brk(job):
    """brk and sbrk: once each, though one calls the other."""
    maps(job, "brk")


@case
def maps_syscall(job):
    """SYS_mmap, SYS_mremap, SYS_munmap, SYS_brk through syscall(); others pass through."""
    maps(job, "raw")


@case
def maps_shared(job):
    """shmat and shmdt, memfd, shm_open, a file: the backing of each mapping."""
    r, t = maps(job, "shared")
    found = [(e.fields[5], t.strings.get(e.fields[6], "")) for e in between_marks(t.thread(t.pid))
             if e.kind == "MAP"]
    equal([b for b, _ in found], [3, 2, 2, 3, 1], "backing")
    check(found[4][1].endswith("/maps") or RUNNER, "the mapped file's name: %r", found[4][1])


@case
def maps_random_ranges(job):
    """3,000 random operations: the mappings by the records are the kernel's."""
    r = job.run(["maps", "ranges"], timeout=200)
    t = r.trace()
    sound(t)
    page = resource.getpagesize()
    lines = [x.split() for x in r.out.splitlines()]
    lo, hi = [int(x, 16) for x in lines[0][1:]]
    truth = set()
    for _, a, b in lines[1:]:
        truth |= set(range(max(lo, int(a, 16)) // page, min(hi, int(b, 16)) // page))
    mapped, undo = set(), set()
    for e in t.thread(t.pid):
        f = e.fields
        if e.kind in ("MAP", "UNMAP", "UNUNMAP"):
            pages = set(range(f[0] // page, up(f[0] + f[1], page) // page))
        if e.kind == "MAP":
            mapped |= pages
        elif e.kind == "UNMAP":
            undo = pages & mapped
            mapped -= pages
        elif e.kind == "UNUNMAP":
            mapped |= undo
    mapped = {p for p in mapped if lo // page <= p < hi // page}
    check(mapped == truth, "%d pages too many, %d too few", len(mapped - truth),
          len(truth - mapped))
    return "%d pages of %d" % (len(truth), (hi - lo) // page)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
