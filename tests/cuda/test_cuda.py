#!/usr/bin/env python3
"""test_cuda.py SHIM PROGRAMS SOURCE [CASE...]: programs on a stand-in driver under the preload, and what their traces hold.

Each case is a function of the name case_*. The trace is read by the second reader."""
import collections
import glob
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

SHIM, PROGS, SOURCE = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tests", "golden"))
import read  # noqa: E402

HANDLE, REFERENCE, STREAM, CAPTURED, ARRAY, REGISTERED = 1, 2, 4, 8, 16, 32
OOM = 2
Record = collections.namedtuple("Record", "kind thread ticks data levels")


class Failed(AssertionError):
    pass


def equal(got, want, what=""):
    if got != want:
        raise Failed(f"{what}: got {got!r}, want {want!r}")


def check(ok, what):
    if not ok:
        raise Failed(what)


class Trace(read.Trace):
    """The records of spaces beside the host's, with names in place of ids, in order of time."""

    def __init__(self, path):
        super().__init__(path)
        self.records = []
        self.tids = {}
        self.host = []
        for chunk in sorted(self.chunks, key=lambda c: (c[1], c[2])):
            for e in self.chunk_events(chunk):
                self.add(e)
        self.records.sort(key=lambda r: r.ticks)

    def space(self, id):
        return self.spaces[id][0] if id else ""

    def name(self, id):
        return self.strings[id] if id else ""

    def add(self, e):
        f = e.fields
        if e.kind == 1:
            self.host.append(e.size)
        if e.kind == 32:
            keys = "space api address size stack stream object flags label retry"
        elif e.kind == 33:
            keys = "space api address stream flags label"
        elif e.kind == 34:
            keys = "space address flags"
        elif e.kind == 39:
            keys = "api address size offset handle stack"
        elif e.kind == 40:
            keys = "api address size"
        elif e.kind == 41:
            keys = "address size"
        elif e.kind == 42:
            keys = "space api what object label"
        elif e.kind == 43:
            keys = "space api object value result stack label"
        elif e.kind == 21 and f[2] in (2, 3):
            keys = "space x why result size alignment old stack api label retry flags"
        elif e.kind == 22 and f[0]:
            keys = "space"
        else:
            return
        data = dict(zip(keys.split(), f))
        check(len(data) == len(f), f"{read.NAMES[e.kind]} has {len(f)} fields")
        for key in ("api", "label"):
            if key in data:
                data[key] = self.name(data[key])
        if "space" in data:
            data["space"] = self.space(data["space"])
        self.records.append(Record(read.NAMES[e.kind], e.thread, e.ticks, data, dict(e.levels)))

    def of(self, kind):
        return [r.data for r in self.records if r.kind == kind]

    def functions(self, stack):
        return [frame for frame in self.stacks.get(stack) or ()]


class Ran:
    def __init__(self, done, directory):
        self.rc, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.traces = []
        for base, _, names in os.walk(directory):
            for name in sorted(names):
                if name.endswith(".whyoom") and name[0].isdigit():
                    self.traces.append(Trace(os.path.join(base, name)))
        shutil.rmtree(directory, ignore_errors=True)

    @property
    def trace(self):
        equal(len(self.traces), 1, "traces")
        return self.traces[0]


def run(*argv, preload=(), env=(), shim=True, rc=0):
    directory = tempfile.mkdtemp(prefix="whyoom-cuda-")
    e = {k: v for k, v in os.environ.items() if not k.startswith(("WHYOOM", "STAND", "PYTORCH"))}
    e["LD_LIBRARY_PATH"] = PROGS
    e.update(env)
    if shim:
        e["LD_PRELOAD"] = ":".join([SHIM, *preload])
        e["WHYOOM_DIR"] = os.path.join(directory, "trace")
    elif preload:
        e["LD_PRELOAD"] = ":".join(preload)
    command = [argv[0] if "/" in argv[0] else os.path.join(PROGS, argv[0]), *argv[1:]]
    emulator = os.environ.get("WHYOOM_TEST_EMULATOR")
    if emulator:  # another machine's programs: what is for them is not for the emulator
        given = [x for k in ("LD_PRELOAD", "LD_LIBRARY_PATH") if k in e for x in ("-E", f"{k}={e.pop(k)}")]
        command = emulator.split() + given + command
    done = subprocess.run(command, env=e, capture_output=True, text=True, timeout=120)
    ran = Ran(done, directory)
    if done.returncode != rc:
        raise Failed(f"{argv} ended with {done.returncode}, not {rc}: {done.stdout}{done.stderr}")
    return ran


def takes(trace):
    return [(d["space"], d["size"], d["api"], d["label"]) for d in trace.of("SPACE_ALLOC")]


# -- the driver, called directly

def direct(case):
    for kind in ("now", "lazy"):
        yield run("direct_" + kind, case)


def case_plain():
    for ran in direct("plain"):
        t = ran.trace
        equal(takes(t), [("cuda:0", n, "cuMemAlloc_v2", "") for n in (1001, 2002, 3003)])
        a, b, _ = (d["address"] for d in t.of("SPACE_ALLOC"))
        equal([d["address"] for d in t.of("SPACE_FREE")], [a, b, 12345])
        equal([d["address"] for d in t.of("SPACE_UNFREE")], [12345])
        equal(t.of("FAILED"), [])
        check(all(t.functions(d["stack"]) for d in t.of("SPACE_ALLOC")), "every block has a stack")
        # the driver's own malloc is the host's, and its frames lie in the driver
        equal(t.host.count(77), 3, "the driver's malloc calls")
        for d in t.of("SPACE_ALLOC"):
            check("direct" in t.functions(d["stack"])[-1][1][0], "the innermost frame is the program's")
        levels = [r.levels for r in t.records if r.kind == "LEVEL"]
        check(levels and levels[0] == {96: (1 << 30) - 1001, 97: 1 << 30}, f"a sample of the device: {levels}")


def case_nested():
    for ran in direct("nested"):
        t = ran.trace
        equal([x[1] for x in takes(t)], [1001, 2002])
        equal([d["size"] for d in t.of("FAILED")], [1 << 40])


def case_classes():
    for ran in direct("classes"):
        t = ran.trace
        equal([(d["space"], d["size"], d["flags"]) for d in t.of("SPACE_ALLOC")],
              [("cuda:0", 1024 * 10, 0), ("managed", 5005, 0), ("pinned", 6006, 0), ("pinned", 6007, 0),
               ("pinned", 8192, REGISTERED), ("cuda:0", 64 * 32 * 4, HANDLE | ARRAY), ("pool:0", 7007, STREAM),
               ("pool:0", 7008, STREAM), ("va", 1 << 21, 0), ("cuda:0", 1 << 21, HANDLE), ("foreign", 0, 0)])
        by_size = {d["size"]: d for d in t.of("SPACE_ALLOC")}
        equal(by_size[7007]["stream"], 0x77)
        equal(by_size[5005]["object"], 0xc0de, "the context")
        frees = [(d["space"], d["api"], d["flags"]) for d in t.of("SPACE_FREE")]
        equal(frees, [("pinned", "cuMemFreeHost", 0), ("pinned", "cuMemHostUnregister", REGISTERED),
                      ("", "cuArrayDestroy", HANDLE | ARRAY), ("", "cuMemFreeAsync", STREAM),
                      ("", "cuMemFreeAsync_ptsz", STREAM), ("", "cuMemRelease", HANDLE), ("va", "cuMemAddressFree", 0),
                      ("foreign", "cuIpcCloseMemHandle", 0), ("", "cuMemFree_v2", 0)])
        mapped, = t.of("SPACE_MAP")
        handle, = (d for d in t.of("SPACE_ALLOC") if d["flags"] == HANDLE)
        va, = (d for d in t.of("SPACE_ALLOC") if d["space"] == "va")
        equal((mapped["handle"], mapped["address"], mapped["size"]), (handle["address"], va["address"], 1 << 21))
        equal([(d["address"], d["size"]) for d in t.of("SPACE_UNMAP")], [(va["address"], 1 << 21), (0, 1)])
        equal(t.of("SPACE_UNUNMAP"), [{"address": 0, "size": 1}])
        equal([(d["space"], d["what"]) for d in t.of("SPACE_CLEAR")], [("cuda:0", 2)])
        trims = [r for r in t.records if r.kind == "SPACE_CALL" and r.data["api"] == "cuMemPoolTrimTo"]
        equal(len(trims), 1)
        equal((trims[0].data["space"], trims[0].data["object"]), ("pool:0", 0x9001))
        equal(set(trims[0].levels), {96, 97, 99, 100, 101})
        # the parents of spaces
        parents = {name: t.space(parent) for name, parent in t.spaces.values()}
        equal(parents["pool:0"], "cuda:0")


def case_failures():
    for ran in direct("failures"):
        t = ran.trace
        failed = [(d["space"], d["api"], d["size"], d["result"], d["flags"]) for d in t.of("FAILED")]
        equal(failed, [("cuda:0", "cuMemAlloc_v2", 1 << 40, OOM, 0), ("cuda:0", "cuMemAlloc_v2", 4096, 1, 0),
                       ("pinned", "cuMemHostAlloc", 4096, 1, 2), ("pinned", "cuMemCreate", 4096, 801, 2),
                       ("cuda:0", "cuMemCreate", 4096, 1, 0)])
        levels = [r.levels for r in t.records if r.kind == "FAILED"]
        equal(levels[0], {96: (1 << 30) - (1 << 20), 97: 1 << 30}, "the device at the failure")
        equal(levels[1:], [{}] * 4, "only where memory ran out")
        check(all(t.functions(d["stack"]) for d in t.of("FAILED")), "every failure has a stack")
        check(t.flags & 8, "the header says that a call ran out of memory")
        equal(len(t.of("SPACE_ALLOC")), 1)
        probes = [r.levels for r in t.records if r.kind == "SPACE_CALL" and r.data["api"] == "cuMemGetInfo_v2"]
        equal(len(probes), 3)
        check(0xdeadbeef not in [d.get("address") for d in t.of("SPACE_ALLOC")], "a failed call's answer was read")


def case_retry():
    for ran in direct("retry"):
        t = ran.trace
        failed = t.of("FAILED")
        equal([d["size"] for d in failed], [500 << 20, 500 << 20, 1 << 40])
        check(failed[0]["retry"] == failed[1]["retry"] != failed[2]["retry"], "groups of failures")
        equal([d["retry"] for d in t.of("SPACE_ALLOC")], [0, failed[0]["retry"]], "the attempt that succeeded")


def case_early():
    for ran in direct("early"):
        t = ran.trace
        equal([(d["api"], d["size"], d["result"]) for d in t.of("FAILED")],
              [("cuMemAlloc_v2", 1001, 3), ("cuMemAlloc_v2", 1002, 201), ("cuMemCreate", 1 << 40, OOM)])
        equal([(d["space"], d["size"]) for d in t.of("SPACE_ALLOC")], [("cuda:1", 1 << 21)], "the device that was named")
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
        equal(sorted(sorted(d["size"] for d in t.of("SPACE_ALLOC")) for t in ran.traces), [[1001, 3003], [2002]])
        child, = (t for t in ran.traces if t.of("SPACE_ALLOC")[0]["size"] == 2002)
        equal([(d["space"], d["size"], d["api"]) for d in child.of("FAILED")], [("cuda:0", 1 << 40, "cuMemAlloc_v2")])
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
        call = next(r for r in ran.trace.records if r.kind == "SPACE_CALL" and r.data["api"] == "cuModuleLoadData")
        equal(call.levels[101] - call.levels[96], 3 << 20, "what the module took")


# -- the runtime: every route records each allocation once

def expected(labels, offset=0, twin="cudaMallocAsync_ptsz"):
    def label(name):
        return name if labels else ""
    return [("cuda:0", 1001 + offset, "cuMemAlloc_v2", label("cudaMalloc")),
            ("cuda:0", 2002 + offset, "cuMemAlloc_v2", label("cudaMalloc")),
            ("pinned", 3003 + offset, "cuMemHostAlloc", label("cudaMallocHost")),
            ("managed", 4004 + offset, "cuMemAllocManaged", label("cudaMallocManaged")),
            ("pool:0", 5005 + offset, "cuMemAllocAsync", label("cudaMallocAsync")),
            ("pool:0", 6006 + offset, "cuMemAllocAsync_ptsz", label(twin)),
            ("cuda:0", 7007 + offset, "cuMemAlloc_v2", ""), ("cuda:0", 7017 + offset, "cuMemAlloc_v2", "")]


def check_runtime(t, labels, offset=0):
    want = expected(labels, offset)
    equal([x for x in takes(t) if x[1] in [w[1] for w in want]], want)
    failed = [(d["size"], d["result"], d["api"], d["label"], d["flags"]) for d in t.of("FAILED")]
    oom = (1 << 40, OOM, "cuMemAlloc_v2", "cudaMalloc" if labels else "", 0)
    check(oom in failed, f"the failure below the runtime: {failed}")
    if labels:  # what the runtime refuses itself
        check((8008, 1, "cudaMalloc", "", 1) in failed, f"the failure above the driver: {failed}")
    for d in t.of("SPACE_ALLOC"):
        frames = t.functions(d["stack"])
        check(frames and ("user" in frames[-1][1][0] or "plugin" in frames[-1][1][0] or not labels),
              f"the innermost frame is the runtime's user: {frames[-1:]}")


def case_dynamic_runtimes():
    for version in ("11.0", "12", "13"):
        for kind in ("now", "lazy"):
            for env in ({}, {"STAND_SPLIT": "1"}):
                ran = run(f"user_{version}_{kind}", env=env)
                equal(len(ran.trace.of("SPACE_ALLOC")), 8)
                check_runtime(ran.trace, True)
                equal([d["label"] for d in ran.trace.of("SPACE_FREE")], ["cudaFree", "cudaFreeHost", "cudaFreeAsync"])
                check("libcuda.so.1" in ran.trace.infos["cuda.driver"], "the driver is named")


def case_static_runtimes():
    for version in ("11080", "13000"):
        ran = run("user_static_" + version)
        equal(len(ran.trace.of("SPACE_ALLOC")), 8)
        check_runtime(ran.trace, False)


def case_two_runtimes_in_plugins():
    for kind in ("now", "lazy"):
        names = [os.path.join(PROGS, f"plugin_{v}_{kind}.so") for v in ("12", "13", "11.0")]
        ran = run("lookups", "plugins", *names)
        equal(ran.out, "runtime 12080\nruntime 13000\nruntime 11080\n", "each plugin has its own runtime")
        t = ran.trace
        equal(len(t.of("SPACE_ALLOC")), 24)
        for offset in (12080, 13000, 11080):
            check_runtime(t, True, offset)


def case_interposer():
    """Another preloaded library in front of the runtime, before and after us: called as without us."""
    interposer = os.path.join(PROGS, "libinterposer.so")
    for version in ("12", "13"):
        for kind in ("now", "lazy"):
            for env in ({"LD_PRELOAD": ""},):
                ran = run(f"user_{version}_{kind}", preload=[interposer])
                equal(len(ran.trace.of("SPACE_ALLOC")), 8)
                equal([x[1] for x in takes(ran.trace)], [x[1] for x in expected(True)])


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
        check(all(t.functions(d["stack"]) for d in blocks), "every block has a stack")
        equal([d["address"] for d in t.of("SPACE_FREE")], [blocks[0]["address"]])
        failed = [r for r in t.records if r.kind == "FAILED"]
        equal([(r.data["space"], r.data["why"], r.data["size"]) for r in failed], [("torch:0", 3, 1 << 30)])
        # at the failure the 1,024 bytes are back, and the CPU's 100 were counted by the stand-in
        equal({k: v for k, v in failed[0].levels.items() if k > 97}, {99: 1 << 21, 100: 2148})
        equal(failed[0].levels[97], 1 << 30, "what was seen of the device last")
        levels = [r for r in t.records if r.kind == "LEVEL" and r.data["space"] == "torch:0"]
        equal([r.levels for r in levels], [{99: 1 << 21, 100: 1024}], "levels when the reserved bytes change")
        equal(t.infos["torch.blocks"], "recorded")
        equal({name: t.space(parent) for name, parent in t.spaces.values()}["torch:0"], "cuda:0")


def case_torch_settings():
    """What is not recorded, and why, is said once."""
    for names, env, word in (("3", {}, "this version"),
                             ("0", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "PYTORCH_NO_CUDA_MEMORY_CACHING"),
                             ("0", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}, "cudaMallocAsync"),
                             ("0", {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, "cudaMallocAsync")):
        ran = torch(names, dict(env, WHYOOM_ROOT="1"))
        for t in ran.traces:
            check(word in t.infos["torch.blocks"] and "none" in t.infos["torch.blocks"], t.infos["torch.blocks"])
            for key, value in env.items():
                equal(t.infos["env." + key], value)
        equal(len(ran.traces), 1 if names == "0" else len(ran.traces))
    t = torch("0", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}).trace
    equal((t.infos["torch.blocks"], t.infos["torch.segments"]), ("recorded", "expandable"))


# -- look-ups

def case_dlsym():
    ran = run("lookups", "dlsym")
    equal(takes(ran.trace), [("cuda:0", n, "cuMemAlloc_v2", "") for n in (1001, 2002)])


def case_lookup():
    for env in ({}, {"STAND_SPLIT": "1"}):
        t = run("lookups", "lookup", env=env).trace
        equal([x[1] for x in takes(t)], list(range(1001, 1009)))
        equal([x[2] for x in takes(t)], ["cuMemAlloc_v2"] * 5 + ["cuMemAllocAsync", "cuMemAllocAsync_ptsz",
                                                               "cuMemAllocAsync"])
        equal([d["api"] for d in t.of("SPACE_CALL") if "Advise" in d["api"]], ["cuMemAdvise", "cuMemAdvise_v2"])
        check("cuda.missed" not in t.infos, "every function found a wrapper")


def case_absent():
    """On a machine without CUDA all look-ups answer as without us, in the same words."""
    env = {"LD_LIBRARY_PATH": ""}
    with_us = run("lookups", "absent", env=env)
    without = run("lookups", "absent", env=env, shim=False)
    equal(with_us.out, without.out)
    check("undefined symbol: cuMemAlloc_v2" in with_us.out, with_us.out)


def case_excluded():
    for library in ("libucm.so.0", "libcupti.so.12"):
        ran = run("lookups", "excluded", os.path.join(PROGS, library))
        equal([x for t in ran.traces for x in takes(t)], [], library)
    run("lookups", "excluded", os.path.join(PROGS, "libplain.so"), rc=3)  # an ordinary one gets a wrapper


def case_real_runtimes():
    """The order in which the real runtimes bind, where some are installed: they ask the wrapped look-up for everything.
    That they then refuse a driver that is none of NVIDIA's is theirs to do, and is the same without us."""
    patterns = ["/usr/local/cuda*/lib64/libcudart.so.1?", "/usr/local/cuda*/lib64/libcudart.so.11.0",
                os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib", "libcudart.so.*")]
    patterns += [os.path.join(r, "**", "libcudart.so.*") for r in os.environ.get("WHYOOM_CUDA_HEADERS", "").split(":") if r]
    found = {os.path.realpath(p) for pattern in patterns for p in glob.glob(pattern, recursive=True)}
    for path in sorted(found):
        ran = run("lookups", "real", path, env={"STAND_LOG": "1"})
        without = run("lookups", "real", path, env={"STAND_LOG": "1"}, shim=False)
        equal(ran.out, without.out, path)
        equal(ran.err, without.err, path + ": the driver is asked the same")
        if "asked" not in without.err:
            continue  # it refused the driver before it asked for anything
        check("asked cuMemAlloc 3020 0" in ran.err and "asked cuMemAllocAsync 11020 2" in ran.err, path)
        check("libcuda.so.1" in ran.trace.infos.get("cuda.driver", ""), path + ": got no wrapper")
    print(f"real runtimes: {len(found)}")


def case_exports():
    """None of CUDA's names is exported: a weak reference of a program without CUDA stays undefined."""
    out = subprocess.run(["nm", "-D", "--defined-only", SHIM], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    equal([n for n in names if n.startswith("cu")], [])
    check("dlsym" in names, "dlsym is exported")


def main():
    wanted = sys.argv[4:]
    passed = failed = 0
    for name, function in list(globals().items()):
        if not name.startswith("case_") or (wanted and name[5:] not in wanted):
            continue
        try:
            function()
            passed += 1
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"{name[5:]}: {error}" if isinstance(error, Failed) else f"{name[5:]}: {error!r}")
            if not isinstance(error, Failed):
                import traceback
                traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
