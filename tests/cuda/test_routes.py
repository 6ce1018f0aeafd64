#!/usr/bin/env python3
"""test_routes.py SHIM PROGRAMS SOURCE [CASE...]: every way to CUDA's functions records each allocation once; and where
nothing is to be recorded, nothing changes."""
import glob
import os
import subprocess
import sys
import sysconfig

from harness import OOM, PROGS, SHIM, check, equal, main, run, takes


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


sys.exit(main(globals()))
