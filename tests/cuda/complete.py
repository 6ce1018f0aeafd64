#!/usr/bin/env python3
"""complete.py SOURCE: is every entry point in the table that has to do with memory, in every shape?

Compared with what NVIDIA's own runtimes export and their headers declare, in all versions that can
be had (real.py). A name that sounds of memory is in the table, or here with the reason why not; a
version at which the driver answers a name of the table with another function begins a row."""
import collections
import os
import re
import subprocess
import sys

SOURCE = sys.argv[1]
sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
import cuda_table  # noqa: E402
import real  # noqa: E402

WORDS = set("""Alloc Array Arrays Bind Capture Checkpoint Compress Context Ctx Discard Endpoint Export External Free Graph
    Graphics Host Import Instantiate Ipc Launch Library Limit Malloc Managed Map Mapped Mem Mipmapped Module Multicast
    Pool Prefetch Pointer Process Recapture Register Release Reserve Reset Resources Retain Unmap Unregister Upload
    Virtual Range""".split())

# Why a name that has one of these words is not in the table; a regular expression for the whole
# name.
LEFT_OUT = [
    (r"cu(da)?\w*(Get|Enumerate|CanAccess|FindInClone)(?!ExportTable|ProcAddress|Mapped"
     r"|DriverEntryPoint|Info)\w*"
     r"|cudaArrayGetInfo|cuda(Stream)?GetCaptureInfo\w*|cuDeviceTotalMem",
     "asks"),
    (r"cu(da)?\w*Set(SharedMemConfig|CacheConfig|Flags|Current|Array|MipmappedArray|MapFlags"
     r"|Mipmap\w*|Params\w*"
     r"|Event|AllocationClass|Enabled)|cuPointerSetAttribute|cudaGLSetBufferObjectMapFlags"
     r"|cuGraphKernelNodeSetAttribute"
     r"|cudaGraph(Kernel|Memcpy|Memset|Host)?NodeSet(Attribute"
     r"|Params\w*)", "sets what has no memory"),
    (r"cu(da)?Graph(Add(?!Mem(Alloc|Free)Node|Node)|\w*Node(CopyAttributes|GetParams)|Clone"
     r"|Create|Debug|ExecUpdate"
     r"|Remove|Conditional|DestroyNode|Retain"
     r"|Release)\w*", "makes or changes nodes that have no memory"),
    (r"cu(da)?(Graphics|GL|VDPAU"
     r"|EGL)\w*", "other interfaces' memory, which is not part of our sum"),
    (r"cu(da)?\w*ExternalSemaphore\w*|cu(da)?Ipc\w*Event\w*", "semaphores and events, no memory"),
    (r"cuda(Memcpy|BindTexture|BindSurface)\w*|cuMemBatchDecompressAsync|cuStreamBatchMemOp",
     "works on memory that is there"),
    (r"cu(da)?Launch\w*", "work, which takes none by a call"),
    (r"cu(da)?\w*(Context|Ctx)(Synchronize|PushCurrent|PopCurrent|EnablePeer|DisablePeer"
     r"|ResetPersisting|RecordEvent"
     r"|WaitEvent|StreamCreate)\w*", "uses a context that is there"),
    (r"cuCtx(Attach|Detach)", "of CUDA 2: counts references to a context that cuCtxCreate's record "
     "tells of"),
    (r"__cuda\w+", "nvcc's own, which registers what a program holds; modules are loaded by the "
     "driver's calls"),
    (r"cu(da)?Logs\w*|cuCoredump\w*|cudaDevice(Unr"
     r"|R)egisterAsyncNotification", "registers functions, no memory"),
    (r"cu(da)?UserObject(Retain|Release)", "objects of the program's own"),
    (r"cudaThreadSetLimit|cudaSetDoubleForHost", "old names; what they do is the driver's calls, "
     "in the table"),
    (r"cuLogicalEndpoint\w*", "joins memory that is there to a fabric, under numbers of its own"),
    (r"cuCheckpointProcess(Lock|Unlock)"
     r"|cuCheckpointOperationComplete", "around a checkpoint, whose calls are in the table"),
    (r"cu(da)?OccupancyAvailable\w*|cuTensorMap\w*", "of memory on the chip, or of none"),
    (r"cudaGreenCtxCreate|cudaExecutionCtxDestroy", "shares of a context; the driver's calls are "
     "in the table"),
    (r"cuStream(Begin|End)CaptureToCig|cudaStream(BeginCapture|BeginRecapture|EndCapture)\w*"
     r"|cu(da)?ThreadExchangeStreamCaptureMode|cu(da)?StreamUpdateCaptureDependencies\w*",
     "captures: where they begin and end, the driver's calls tell"),
]
# Shapes that the table does not hold.
OLD = "of CUDA before 3.2 or 4.0, with 32 bits"
SHAPES_LEFT_OUT = {(name, 2000): OLD for name in (
    "cuMemAlloc cuMemAllocPitch cuMemAllocHost cuMemFree cuMemGetInfo cuMemGetAddressRange "
        "cuArrayCreate cuArray3DCreate "
    "cuCtxCreate cuCtxDestroy").split()}
SHAPES_LEFT_OUT.update({("cuMemHostGetDevicePointer", 2020): OLD, ("cuMemHostRegister", 4000): OLD})
# Rows that the headers' list of shapes does not have, though the headers declare them.
UNLISTED = (r"cu\w*GreenCtx\w*|cu\w*DevResource\w*|cuDevSm\w*|cuProfiler\w*"
            r"|cuCoredump\w*|cuGetProcAddress\w*_ptsz")

passed = failed = 0


def check(ok, what):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print(what)


def sounds_of_memory(name):
    return bool(WORDS & set(re.findall(r"[A-Z][a-z]+", name)))


def left_out(name):
    return any(re.fullmatch(pattern, name) for pattern, _ in LEFT_OUT)


def exports(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[2].split("@")[0] for line in out.splitlines() if line.split()[1] in "TW"}


def shapes(include):
    """{name asked for: {(version, twin)}} as the headers list them."""
    with open(os.path.join(include, "cudaTypedefs.h"), errors="replace") as f:
        found = re.findall(r"typedef CUresult \(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)",
                           f.read())
    names = collections.defaultdict(set)
    for name, version, twin in found:
        names[name].add((int(version), bool(twin)))
    return names


def version_of(include):
    with open(os.path.join(include, "cuda.h"), errors="replace") as f:
        return int(re.search(r"^#define CUDA_VERSION (\d+)", f.read(), re.M)[1])


def names_are_known(rows, runtimes, listed):
    driver = {r.asked for r in rows if r.library == "DRIVER"}
    runtime = {r.symbol for r in rows if r.library == "RUNTIME"}
    for name in sorted(runtimes):
        if sounds_of_memory(name):
            check(name in runtime or left_out(name), f"{name}: exported by the runtime, neither in "
                  f"the table nor left out")
    for name in sorted(listed):
        if sounds_of_memory(name):
            check(name in driver or left_out(name), f"{name}: one of the driver's, neither in the "
                  f"table nor left out")
    for name in sorted(runtime):
        check(name in runtimes, f"{name}: in the table, but no runtime exports it")
    for r in rows:
        if r.effect != "NONE":
            check(not left_out(r.symbol), f"{r.symbol}: would not be missed, as it is left out, "
                  f"too")
            check(sounds_of_memory(r.symbol) or r.kind in ("CONTEXT", "LOOKUP"),
                  f"{r.symbol}: would not be missed")
    for pattern, reason in LEFT_OUT:
        names = [n for n in (runtimes | set(listed)) if sounds_of_memory(n)
                 and re.fullmatch(pattern, n)]
        check(names, f"left out as '{reason}', but there is none such")


def shapes_are_known(rows, listed, newest):
    begins = collections.defaultdict(set)
    for r in rows:
        if r.library == "DRIVER":
            begins[r.asked, "_ptsz" in r.symbol].add(r.start)
    for (name, twin), starts in sorted(begins.items()):
        for version, listed_twin in sorted(listed.get(name, ())):
            if listed_twin == twin and version <= newest:
                check(version in starts or (name, version) in SHAPES_LEFT_OUT,
                      f"{name}{' for per-thread streams' if twin else ''}: has another shape from "
                      f"{version} on")
    for r in rows:
        if r.library == "DRIVER" and not re.fullmatch(UNLISTED, r.symbol):
            twin = "_ptsz" in r.symbol
            check((r.start, twin) in listed.get(r.asked, ()),
                  f"{r.symbol}: no {r.asked} begins at {r.start}")
    with open(os.path.join(SOURCE, "shim", "simgpu", "driver", "driver.def")) as f:
        others = re.findall(r"^DRIVER_API(?:_PTSZ)?\((\w+), (\w+), (\d+)", f.read(), re.M)
    check(len(others) > 100, "the simulated device's other calls were found")
    for symbol, asked, start in others:
        if not re.fullmatch(UNLISTED, symbol):
            check((int(start), False) in listed.get(asked, ()),
                  f"{symbol}: no {asked} begins at {start}")
    by_name = collections.defaultdict(list)
    for r in rows:
        if r.library == "DRIVER":
            by_name[r.asked, r.stream == "PER_THREAD"].append(r)
    for (name, _), group in by_name.items():
        group.sort(key=lambda r: r.start)
        for a, b in zip(group, group[1:]):
            check(a.end < b.start, f"{name}: {a.symbol} and {b.symbol} overlap")


def main():
    found = real.Found()
    real.say_missing(found)
    rows, newest = cuda_table.read(SOURCE)
    runtimes = set().union(*[exports(path) for path in found.runtimes()])
    listed, versions = collections.defaultdict(set), set()
    for include in found.includes():
        versions.add(version_of(include))
        for name, shape in shapes(include).items():
            listed[name] |= shape
    if found.missing:  # what is there is not everything, and nothing can be said to be missing
        return 77
    names_are_known(rows, runtimes, listed)
    shapes_are_known(rows, listed, newest)
    check(max(versions) == newest, f"the newest headers are of {max(versions)}, CUDA_API_NEWEST "
          f"says {newest}")
    print(f"compared with CUDA {' '.join(str(v) for v in sorted(versions))}, {len(runtimes)} "
          f"exports, {len(listed)} names")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
