#!/usr/bin/env python3
"""test_kinds.py SHIM PROGRAMS SOURCE [CASE...]: memory that is not a plain block is recorded once,
as what it is; and the device's levels, when they are taken and whose they are."""
import sys

from harness import ARRAY, CAPTURED, HANDLE, OOM, REFERENCE, STREAM, check, equal, main, run, takes

MIB = 1 << 20
GIB = 1 << 30
MULTICAST = 64
# levels: free, total, free before; and of pools: reserved, allocated
FREE, TOTAL, BEFORE, RESERVED, ALLOCATED = 96, 97, 101, 99, 100


class Sum:
    """The bytes of the devices' own memory by the trace alone, as docs/trace-format.md says."""

    def __init__(self):
        self.blocks = {}  # (is a handle, address): [bytes, references]
        self.maps = []  # (address, size, handle)
        self.last = {}  # what a release took, for the case that it did not happen

    def add(self, r):
        d = r.data
        if r.kind == "SPACE_ALLOC":
            key = d["flags"] & HANDLE, d["address"]
            if d["flags"] & REFERENCE:
                self.blocks[key][1] += 1
                return
            counts = d["space"].startswith(("cuda:", "pool:")) and not d["flags"] & MULTICAST
            self.blocks[key] = [d["size"] if counts else 0, 1]
        elif r.kind == "SPACE_FREE":
            block = self.blocks.get((d["flags"] & HANDLE, d["address"]))
            if block:
                block[1] -= 1
        elif r.kind == "SPACE_UNFREE":
            block = self.blocks.get((d["flags"] & HANDLE, d["address"]))
            if block:
                block[1] += 1
        elif r.kind == "SPACE_MAP":
            self.maps.append((d["address"], d["size"], d["handle"]))
        elif r.kind == "SPACE_UNMAP":
            self.maps = [m for m in self.maps if not 0 <= m[0] - d["address"] < d["size"]]

    @property
    def bytes(self):
        mapped = {(HANDLE, m[2]) for m in self.maps}
        return sum(b[0] for key, b in self.blocks.items() if b[1] > 0 or key in mapped)


def check_sums(ran):
    """At each place that the program marked, the trace's sum is the driver's."""
    sums, total = [], Sum()
    for r in ran.trace.records:
        total.add(r)
        if r.kind == "SPACE_UNFREE" and r.data["address"] == 77:
            sums.append(total.bytes)
    equal(sums, [int(line) for line in ran.out.split()], "bytes of the device")
    return sums


def case_handles():
    """Memory of a handle goes with the last of its references and mappings, in either order."""
    ran = run("kinds", "handles")
    equal(check_sums(ran), [n * MIB for n in (2, 2, 0, 4, 0, 4, 2, 0, 0)])
    references = [d for d in ran.trace.of("SPACE_ALLOC") if d["flags"] & REFERENCE]
    equal([(d["api"], d["size"]) for d in references], [("cuMemRetainAllocationHandle", 0)])


def case_foreign():
    """Others' memory, and views of memory, are recorded and are in no sum of ours."""
    ran = run("kinds", "foreign")
    equal(check_sums(ran), [2 * MIB, 0])
    t = ran.trace
    equal([(d["space"], d["api"], d["size"], d["flags"]) for d in t.of("SPACE_ALLOC")
           if d["space"] != "va"],
          [("cuda:0", "cuMemCreate", 2 * MIB, HANDLE), ("foreign", "cuIpcOpenMemHandle_v2", 0, 0),
           ("foreign", "cuMemImportFromShareableHandle", 0, HANDLE),
           ("foreign", "cuMemPoolImportPointer", 0, 0),
           ("foreign", "cuImportExternalMemory", 16 * MIB, HANDLE),
           ("foreign", "cuExternalMemoryGetMappedBuffer", 8 * MIB, 0),
           ("foreign", "cuExternalMemoryGetMappedMipmappedArray", (64 * 64 + 32 * 32) * 4, HANDLE),
           ("cuda:0", "cuMulticastCreate", 32 * MIB, HANDLE | MULTICAST)])
    # each of them has one release, which names it
    taken = {(d["flags"] & HANDLE, d["address"]) for d in t.of("SPACE_ALLOC") if d["space"] != "va"}
    given = [(d["flags"] & HANDLE, d["address"]) for d in t.of("SPACE_FREE") if d["address"] != 77]
    equal(sorted(given), sorted(taken))
    equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
          [("cuMulticastBindMem", 0, OOM)])


def case_arrays():
    ran = run("kinds", "arrays")
    size = (64 * 32 + 32 * 16 + 16 * 8) * 4
    equal(check_sums(ran), [size, 0])
    equal([(d["space"], d["api"], d["size"], d["flags"]) for d in ran.trace.of("SPACE_ALLOC")],
          [("cuda:0", "cuMipmappedArrayCreate", size, HANDLE | ARRAY)])


def case_graphs():
    t = run("kinds", "graphs").trace
    graph = [d for d in t.of("SPACE_ALLOC") if d["space"] == "graph:0"]
    equal([(d["api"], d["size"], d["flags"], d["object"]) for d in graph],
          [("cuGraphAddMemAllocNode", 5 * MIB, CAPTURED, 0x99),
           ("cuGraphAddNode_v2", 6 * MIB, CAPTURED, 0x99),
           ("cuMemAllocAsync", 7 * MIB, CAPTURED | STREAM, 0xc0de)])
    equal([x for x in takes(t) if x[0] != "graph:0"], [("pool:0", 8 * MIB, "cuMemAllocAsync", "")])
    equal([(d["address"] == graph[2]["address"], d["flags"]) for d in t.of("SPACE_FREE")],
          [(True, CAPTURED | STREAM)])
    freed = [(d["api"], d["object"]) for d in t.of("SPACE_CALL") if "Graph" in d["api"]]
    equal(freed, [("cuGraphAddNode_v2", graph[1]["address"]),
                  ("cuGraphAddMemFreeNode", graph[0]["address"])])
    equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
          [("cuGraphAddMemAllocNode", 0, 1)])
    # what the graphs hold is asked after a launch
    held = [r.levels for r in t.records if r.kind == "SPACE_CALL" and r.data["space"] == "graph:0"]
    equal(held, [{RESERVED: 11 * MIB + (32 << 20), ALLOCATED: 11 * MIB}])
    equal([(d["space"], d["what"], d["object"]) for d in t.of("SPACE_CLEAR")],
          [("graph:0", 4, 0x99)])


def case_contexts():
    """The memory that a context and code take, and of which device it is."""
    t = run("kinds", "contexts", env={"STAND_CONTEXT_BYTES": str(100 * MIB)}).trace
    calls = [(r.data["space"], r.data["api"], r.levels) for r in t.records if r.kind
             == "SPACE_CALL"]

    def levels(free, before=None, device=0):
        out = {FREE: GIB - free * MIB + device, TOTAL: GIB + device}
        return out if before is None else {**out, BEFORE: GIB - before * MIB + device}

    retain, create = "cuDevicePrimaryCtxRetain", "cuCtxCreate_v2"
    equal(calls, [("cuda:0", retain, levels(100)),  # in the context itself: there was none before
                  ("cuda:0", "cuModuleLoadData", levels(103, 100)),
                  ("cuda:0", "cuLibraryLoadData", levels(108, 103)),
                  ("cuda:0", "cuCtxSetLimit", levels(116, 108)),
                  ("cuda:0", "cuModuleUnload", levels(113, 116)),
                  ("cuda:0", create, levels(213, 113)),
                  # one sum serves both devices of the stand-in
                  ("cuda:1", retain, levels(213, device=1)),
                  # what was free of device 0 is not its "before"
                  ("cuda:1", create, levels(315, device=1)),
                  ("cuda:1", retain, levels(215, device=1)), ("cuda:1", retain, {})])
    # a handle of device 1 is no occasion to ask device 0, the current one
    equal([(r.data["space"], r.levels) for r in t.records if r.kind == "FAILED"], [("cuda:1", {})])
    equal([r for r in t.records if r.kind == "LEVEL"], [])


def case_samples():
    """Free and total memory at most every 100 ms."""
    ran = run("kinds", "samples")
    levels = [r for r in ran.trace.records if r.kind == "LEVEL"]
    equal(len(levels), int(ran.out), "each question is an answer in the trace")
    times = [ran.trace.ns(r.ticks) / 1e6 for r in levels]
    least = min(b - a for a, b in zip(times, times[1:]))
    check(least > 90, f"two samples within {least:.0f} ms")
    check(len(levels) >= 5, f"{len(levels)} samples in a second or two")
    check(all(r.data["space"] == "cuda:0" and set(r.levels) == {FREE, TOTAL} for r in levels),
          "of the device")


sys.exit(main(globals()))
