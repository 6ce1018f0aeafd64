#!/usr/bin/env python3
"""test_pitfalls.py SHIM PROGRAMS SOURCE [CASE...]: what tools between a program and the driver were
wrong about, one after the other. docs/cuda-pitfalls.md has the list; mutate.py shows that each case
fails when the care it tests is taken out."""
import os
import sys

from harness import OOM, PROGS, check, equal, main, run, takes


def careful(case, *arguments, **more):
    return run("careful", case, *arguments, **more)


def case_errno():
    """Every call leaves the errno that it found, though questions to the driver left another."""
    t = careful("errnos").trace
    check(any(96 in r.levels for r in t.records), "the driver was asked meanwhile")


def case_pointers():
    """Out-parameters of failed calls, in-parameters that the driver never read, and NULL where it
    succeeds."""
    t = careful("pointers").trace
    equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
          [("cuMemCreate", 4096, 3), ("cuArrayCreate_v2", 0, 3), ("cuMipmappedArrayCreate", 0, 3),
           ("cuGraphAddMemAllocNode", 0, 3), ("cuMulticastCreate", 0, 3),
           ("cuImportExternalMemory", 0, 3),
           ("cuMemAlloc_v2", 1001, 1), ("cuMemAllocPitch_v2", 2000, 1),
           ("cuMemAllocPitch_v2", 3000, 1),
           ("cuMemHostAlloc", 1004, 1), ("cuArrayCreate_v2", 64 * 32 * 4, 1)])
    equal(t.of("SPACE_ALLOC"), [])
    probes = [r.levels for r in t.records if r.kind == "SPACE_CALL"
              and r.data["api"] == "cuMemGetInfo_v2"]
    equal(probes, [{96: 0, 97: 0}], "the one that succeeded, without a place for its answer")


def case_early():
    """Before cuInit the driver is asked nothing, neither by look-ups nor by calls that it
    refuses."""
    ran = careful("early")
    equal(ran.out, "early 0\n", "questions before cuInit")
    equal([(d["api"], d["size"], d["result"]) for d in ran.trace.of("FAILED")],
          [("cuMemAlloc_v2", 1001, 3), ("cuMemAllocAsync", 1002, 3)])


def case_captures():
    """Nothing is asked while a stream captures; a capture that did not begin, or is of no use any
    more, is none."""
    failed = [r for r in careful("captures").trace.records if r.kind == "FAILED"]
    equal([(r.data["size"] - (1 << 40), bool(r.levels)) for r in failed],
          [(1, True), (2, False), (3, True)])


def case_ending():
    """Calls that come after the driver's destructor has run reach it, and nothing else does."""
    ran = careful("ending")
    equal(ran.err, "late calls done\n")
    equal([(d["size"], d["result"]) for d in ran.trace.of("FAILED")], [(1001, 4)])


def case_forked():
    """The child of a process that had a context asks nothing, from its first call on."""
    ran = careful("forked")
    equal(ran.err, "")
    child, = (t for t in ran.traces if any(d["size"] == 2002 for d in t.of("SPACE_ALLOC")))
    equal([(r.data["size"], r.levels) for r in child.records if r.kind == "FAILED"],
          [(1 << 40, {})])
    check("libcuda.so.1" in child.infos["cuda.driver"], "the child's trace stands alone")


def case_vforked():
    """The end of a vfork child is not the parent's: it is still asked what was free."""
    failed, = (r for r in careful("vforked").trace.records if r.kind == "FAILED")
    equal(set(failed.levels), {96, 97})


def case_callback():
    """On the driver's own threads nothing is asked; what happens there is recorded."""
    t = careful("callback").trace
    equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
          [("cuMemAlloc_v2", 1001, 800), ("cuMemAllocAsync", 1002, 800)])
    equal(t.host.count(3003), 1, "a block of the callback's own")


def case_jumps():
    """A call that was left by longjmp does not hide, or name, those after it."""
    t = careful("jumps").trace
    equal(takes(t), [("cuda:0", 2000, "cuMemAlloc_v2", ""), ("cuda:0", 2001, "cuMemAlloc_v2", "")])


def case_loader():
    """Nothing of ours waits for the loader's lock: a constructor waits for another thread's
    allocation."""
    t = careful("loader").trace
    equal(takes(t), [("cuda:0", 1001, "cuMemAlloc_v2", "")])
    equal([d["size"] for d in t.of("FAILED")], [1 << 40])


def case_filtered():
    """Once there is a filter of system calls, the driver is asked nothing; events go on."""
    t = careful("filtered").trace
    equal([x[1] for x in takes(t)], [1000, 1001])
    equal([(r.data["result"], r.levels) for r in t.records if r.kind == "FAILED"], [(OOM, {})])


def case_killed():
    """A failure is in the file when its call returns."""
    failed, = (r for r in careful("killed", rc=-9).trace.records if r.kind == "FAILED")
    equal((failed.data["size"], set(failed.levels)), (1 << 40, {96, 97}))


def case_unloading():
    """Runtimes come and go, more of them than a wrapper has copies: all are seen, and named."""
    t = careful("unloading", os.path.join(PROGS, "plugin_13_now.so")).trace
    equal([x[3] for x in takes(t) if x[1] == 1001 + 13000], ["cudaMalloc"] * 8)
    check("cuda.missed" not in t.infos, "every function found a wrapper")


def case_lookups():
    """The same name, as often as one likes, from several threads: always the same wrapper."""
    equal(sorted(x[1] for x in takes(careful("lookups").trace)), [1000, 1001, 1002, 1003])


def case_names():
    """Only CUDA's own names, whole, and only where they are CUDA's."""
    equal(careful("names").trace.records, [])


def case_heap():
    """Nothing of ours comes from the program's heap."""
    host = careful("heap").trace.host
    first, last = (i for i, size in enumerate(host) if size == 5005)
    equal(host[first + 1:last], [77] * 300, "blocks between the marks")


def case_threads():
    """No thread of ours."""
    careful("threads")


sys.exit(main(globals()))
