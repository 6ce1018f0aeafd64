#!/usr/bin/env python3
"""test_cuda.py SHIM PROGRAMS SOURCE [CASE...]: what the wrappers record of the driver's calls and
of PyTorch's reports."""
import os
import sys
import tempfile

from harness import (ARRAY, CAPTURED, HANDLE, OOM, PROGS, REGISTERED, STREAM, check, direct, equal,
                     main, run,
                     takes)


# -- the driver, called directly

def case_plain():
    for ran in direct("plain"):
        t = ran.trace
        equal(takes(t), [("cuda:0", n, "cuMemAlloc_v2", "") for n in (1001, 2002, 3003)])
        a, b, _ = (d["address"] for d in t.of("SPACE_ALLOC"))
        equal([d["address"] for d in t.of("SPACE_FREE")], [a, b, 12345])
        equal([d["address"] for d in t.of("SPACE_UNFREE")], [12345])
        equal(t.of("FAILED"), [])
        check(all(t.frames(d["stack"]) for d in t.of("SPACE_ALLOC")), "every block has a stack")
        # the driver's own malloc is the host's, and its frames lie in the driver
        equal(t.host.count(77), 3, "the driver's malloc calls")
        for d in t.of("SPACE_ALLOC"):
            check("direct" in t.frames(d["stack"])[-1][1][0],
                  "the innermost frame is the program's")
        levels = [r.levels for r in t.records if r.kind == "LEVEL"]
        check(levels and levels[0] == {96: (1 << 30) - 1001, 97: 1 << 30},
              f"a sample of the device: {levels}")


def case_nested():
    for ran in direct("nested"):
        t = ran.trace
        equal([x[1] for x in takes(t)], [1001, 2002])
        equal([d["size"] for d in t.of("FAILED")], [1 << 40])


def case_classes():
    for ran in direct("classes"):
        t = ran.trace
        equal([(d["space"], d["size"], d["flags"]) for d in t.of("SPACE_ALLOC")],
              [("cuda:0", 1024 * 10, 0), ("managed", 5005, 0), ("pinned", 6006, 0),
               ("pinned", 6007, 0),
               ("pinned", 8192, REGISTERED), ("cuda:0", 64 * 32 * 4, HANDLE | ARRAY),
               ("pool:0", 7007, STREAM),
               ("pool:0", 7008, STREAM), ("va", 1 << 21, 0), ("cuda:0", 1 << 21, HANDLE),
               ("foreign", 0, 0)])
        by_size = {d["size"]: d for d in t.of("SPACE_ALLOC")}
        equal(by_size[7007]["stream"], 0x77)
        equal(by_size[5005]["object"], 0xc0de, "the context")
        frees = [(d["space"], d["api"], d["flags"]) for d in t.of("SPACE_FREE")]
        equal(frees, [("pinned", "cuMemFreeHost", 0), ("pinned", "cuMemHostUnregister", REGISTERED),
                      ("", "cuArrayDestroy", HANDLE | ARRAY), ("", "cuMemFreeAsync", STREAM),
                      ("", "cuMemFreeAsync_ptsz", STREAM), ("", "cuMemRelease", HANDLE),
                      ("va", "cuMemAddressFree", 0),
                      ("foreign", "cuIpcCloseMemHandle", 0), ("", "cuMemFree_v2", 0)])
        mapped, = t.of("SPACE_MAP")
        handle, = (d for d in t.of("SPACE_ALLOC") if d["flags"] == HANDLE)
        va, = (d for d in t.of("SPACE_ALLOC") if d["space"] == "va")
        equal((mapped["handle"], mapped["address"], mapped["size"]),
              (handle["address"], va["address"], 1 << 21))
        equal([(d["address"], d["size"]) for d in t.of("SPACE_UNMAP")],
              [(va["address"], 1 << 21), (0, 1)])
        equal(t.of("SPACE_UNUNMAP"), [{"address": 0, "size": 1}])
        equal([(d["space"], d["what"]) for d in t.of("SPACE_CLEAR")], [("cuda:0", 2)])
        trims = [r for r in t.records if r.kind == "SPACE_CALL"
                 and r.data["api"] == "cuMemPoolTrimTo"]
        equal(len(trims), 1)
        equal((trims[0].data["space"], trims[0].data["object"]), ("pool:0", 0x9001))
        equal(set(trims[0].levels), {96, 97, 99, 100, 101})
        # the parents of spaces
        parents = {name: t.space(parent) for name, parent in t.spaces.values()}
        equal(parents["pool:0"], "cuda:0")


def case_failures():
    for ran in direct("failures"):
        t = ran.trace
        failed = [(d["space"], d["api"], d["size"], d["result"], d["flags"])
                  for d in t.of("FAILED")]
        equal(failed, [("cuda:0", "cuMemAlloc_v2", 1 << 40, OOM, 0),
                       ("cuda:0", "cuMemAlloc_v2", 4096, 1, 0),
                       ("pinned", "cuMemHostAlloc", 4096, 1, 2),
                       ("pinned", "cuMemCreate", 4096, 801, 2),
                       ("cuda:0", "cuMemCreate", 4096, 1, 0)])
        levels = [r.levels for r in t.records if r.kind == "FAILED"]
        equal(levels[0], {96: (1 << 30) - (1 << 20), 97: 1 << 30}, "the device at the failure")
        equal(levels[1:], [{}] * 4, "only where memory ran out")
        check(all(t.frames(d["stack"]) for d in t.of("FAILED")), "every failure has a stack")
        check(t.flags & 8, "the header says that a call ran out of memory")
        equal(len(t.of("SPACE_ALLOC")), 1)
        probes = [r.levels for r in t.records if r.kind == "SPACE_CALL"
                  and r.data["api"] == "cuMemGetInfo_v2"]
        equal(len(probes), 3)
        check(0xdeadbeef not in [d.get("address") for d in t.of("SPACE_ALLOC")],
              "a failed call's answer was read")


def case_retry():
    for ran in direct("retry"):
        t = ran.trace
        failed = t.of("FAILED")
        equal([d["size"] for d in failed], [500 << 20, 500 << 20, 1 << 40])
        check(failed[0]["retry"] == failed[1]["retry"] != failed[2]["retry"], "groups of failures")
        equal([d["retry"] for d in t.of("SPACE_ALLOC")], [0, failed[0]["retry"]],
              "the attempt that succeeded")


def case_early():
    for ran in direct("early"):
        t = ran.trace
        equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
              [("cuMemAlloc_v2", 1001, 3), ("cuMemAlloc_v2", 1002, 201),
               ("cuMemCreate", 1 << 40, OOM)])
        equal([(d["space"], d["size"]) for d in t.of("SPACE_ALLOC")], [("cuda:1", 1 << 21)],
              "the device that was named")
        equal([d["address"] for d in t.of("SPACE_UNFREE")], [4096])


def case_capture():
    for ran in direct("capture"):
        t = ran.trace
        captured = [d for d in t.of("SPACE_ALLOC") if d["flags"] & CAPTURED]
        equal([(d["space"], d["size"]) for d in captured], [("graph:0", 7007)] * 5)
        levels = [r.levels for r in t.records if r.kind == "FAILED"]
        equal([bool(x) for x in levels], [False] * 5 + [True], "levels only outside the capture")


def case_exiting():
    for ran in direct("exiting"):
        t = ran.trace
        check(("cuda:0", 9009, "cuMemAlloc_v2", "") in takes(t), "what atexit handlers allocate")


def case_forked():
    for ran in direct("forked"):
        equal(sorted(sorted(d["size"] for d in t.of("SPACE_ALLOC")) for t in ran.traces),
              [[1001, 3003], [2002]])
        child, = (t for t in ran.traces if t.of("SPACE_ALLOC")[0]["size"] == 2002)
        equal([(d["space"], d["size"], d["api"]) for d in child.of("FAILED")],
              [("cuda:0", 1 << 40, "cuMemAlloc_v2")])
        check("libcuda.so.1" in child.infos["cuda.driver"], "the child's trace stands alone")
        parent, = (t for t in ran.traces if t is not child)
        equal(parent.of("FAILED"), [])


def case_threads():
    for ran in direct("threads"):
        t = ran.trace
        equal(len(t.of("SPACE_ALLOC")), 4 * 200 * 16)
        equal(len(t.of("SPACE_FREE")), 4 * 200 * 16)
        equal(len({r.thread for r in t.records if r.kind == "SPACE_ALLOC"}), 4)
        equal(sum(t.dropped), 0)


def case_modules():
    for ran in direct("modules"):
        call = next(r for r in ran.trace.records if r.kind == "SPACE_CALL"
                    and r.data["api"] == "cuModuleLoadData")
        equal(call.levels[101] - call.levels[96], 3 << 20, "what the module took")


# -- PyTorch

def torch(names, env=(), shim=True):
    """The library is to be named libc10_cuda.so, as PyTorch's is."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libc10_cuda.so")
        os.symlink(os.path.join(PROGS, f"libc10_cuda_{names}.so"), library)
        return run("torch", library, os.path.join(PROGS, f"libc10_{names}.so"), env=env, shim=shim)


def case_torch():
    for names in ("0", "1", "2"):
        ran, without = torch(names), torch(names, shim=False)
        equal(ran.out, without.out, "what the real functions received")
        equal(ran.out.split()[3], "0", "calls of the driver under the allocator's lock")
        t = ran.trace
        blocks = [d for d in t.of("SPACE_ALLOC") if d["space"] != "cuda:0"]
        equal([(d["space"], d["api"], d["size"]) for d in blocks],
              [("torch:0", "torch", 1024), ("torch:0", "torch", 2048)])
        check(all(t.frames(d["stack"]) for d in blocks), "every block has a stack")
        equal([d["address"] for d in t.of("SPACE_FREE")], [blocks[0]["address"]])
        failed = [r for r in t.records if r.kind == "FAILED"]
        equal([(r.data["space"], r.data["why"], r.data["size"]) for r in failed],
              [("torch:0", 3, 1 << 30)])
        # at the failure the 1,024 bytes are back, and the CPU's 100 were counted by the stand-in
        equal({k: v for k, v in failed[0].levels.items() if k > 97}, {99: 1 << 21, 100: 2148})
        equal(failed[0].levels[97], 1 << 30, "what was seen of the device last")
        levels = [r for r in t.records if r.kind == "LEVEL" and r.data["space"] == "torch:0"]
        equal([r.levels for r in levels], [{99: 1 << 21, 100: 1024}],
              "levels when the reserved bytes change")
        equal(t.infos["torch.blocks"], "recorded")
        equal({name: t.space(parent) for name, parent in t.spaces.values()}["torch:0"], "cuda:0")


def case_torch_settings():
    """What is not recorded, and why, is said once."""
    for names, env, word in (("3", {}, "this version"),
                             ("0", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
                              "PYTORCH_NO_CUDA_MEMORY_CACHING"),
                             ("0", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
                              "cudaMallocAsync"),
                             ("0", {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"},
                              "cudaMallocAsync")):
        ran = torch(names, dict(env, WHYOOM_ROOT="1"))
        for t in ran.traces:
            check(word in t.infos["torch.blocks"] and "none" in t.infos["torch.blocks"],
                  t.infos["torch.blocks"])
            for key, value in env.items():
                equal(t.infos["env." + key], value)
        equal(len(ran.traces), 1 if names == "0" else len(ran.traces))
    t = torch("0", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}).trace
    equal((t.infos["torch.blocks"], t.infos["torch.segments"]), ("recorded", "expandable"))


sys.exit(main(globals()))
