#!/usr/bin/env python3
"""test_routes.py SHIM PROGRAMS SOURCE [CASE...]: every way to CUDA's functions records each
allocation once; and where nothing is to be recorded, nothing changes."""
import collections
import os
import re
import subprocess
import sys
import tempfile

import real
from harness import OOM, PROGS, SHIM, SOURCE, check, equal, main, run, takes

sys.path.insert(0, os.path.join(SOURCE, "tests", "lib"))
import cuda_table  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

VERSIONS = [11080, 12080, 13000]  # of the stand-in runtimes
DEVICE = 2  # what a reset clears


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
            ("cuda:0", 7007 + offset, "cuMemAlloc_v2", ""),
            ("cuda:0", 7017 + offset, "cuMemAlloc_v2", "")]


def check_runtime(t, labels, offset=0):
    want = expected(labels, offset)
    equal([x for x in takes(t) if x[1] in [w[1] for w in want]], want)
    failed = [(d["size"], d["result"], d["api"], d["label"], d["flags"]) for d in t.of("FAILED")]
    oom = (1 << 40, OOM, "cuMemAlloc_v2", "cudaMalloc" if labels else "", 0)
    check(oom in failed, f"the failure below the runtime: {failed}")
    if labels:  # what the runtime refuses itself
        check((8008, 1, "cudaMalloc", "", 1) in failed, f"the failure above the driver: {failed}")
    for d in t.of("SPACE_ALLOC"):
        frames = t.frames(d["stack"])
        check(frames and ("user" in frames[-1][1][0] or "plugin" in frames[-1][1][0] or not labels),
              f"the innermost frame is the runtime's user: {frames[-1:]}")


def case_dynamic_runtimes():
    for version in ("11.0", "12", "13"):
        for kind in ("now", "lazy"):
            for env in ({}, {"STAND_SPLIT": "1"}):
                t = run(f"user_{version}_{kind}", env=env).trace
                equal(len(t.of("SPACE_ALLOC")), 8)
                check_runtime(t, True)
                equal([d["label"] for d in t.of("SPACE_FREE")],
                      ["cudaFree", "cudaFreeHost", "cudaFreeAsync"])
                # by the number that real runtimes ask for
                equal([(d["space"], d["what"], d["api"], d["label"]) for d in t.of("SPACE_CLEAR")],
                      [("cuda:0", DEVICE, "cuDevicePrimaryCtxReset", "cudaDeviceReset")])
                check("libcuda.so.1" in t.infos["cuda.driver"], "the driver is named")


def case_static_runtimes():
    for version in VERSIONS:
        t = run(f"user_static_{version}").trace
        equal(len(t.of("SPACE_ALLOC")), 8)
        check_runtime(t, False)
        equal([d["api"] for d in t.of("SPACE_CLEAR")], ["cuDevicePrimaryCtxReset"])


def plugins(case, names, labels):
    """All of them in one process; each has a runtime of its own, told by its version."""
    ran = run("lookups", case, *[os.path.join(PROGS, f"plugin_{name}.so") for name in names])
    versions = [int(line.split()[1]) for line in ran.out.splitlines()]
    equal(sorted(versions), VERSIONS, "each plugin has its own runtime")
    equal(len(ran.trace.of("SPACE_ALLOC")), 8 * len(names))
    for version in versions:
        check_runtime(ran.trace, labels, version)


def case_two_runtimes_in_plugins():
    for kind in ("now", "lazy"):
        plugins("plugins", [f"{v}_{kind}" for v in ("12", "13", "11.0")], True)


def case_static_runtimes_in_plugins():
    plugins("plugins", [f"static_{v}" for v in VERSIONS], False)


def case_deepbind():
    """Libraries that were loaded with RTLD_DEEPBIND bind to the C library's dlsym, past us."""
    for case in ("deepbind", "deepbind-lazy"):
        plugins(case, [f"{v}_lazy" for v in ("12", "13", "11.0")], True)
        plugins(case, [f"static_{v}" for v in VERSIONS], False)


def case_entry_points():
    """What the runtime hands out of the driver, also where it has found that past us."""
    for version in ("11.0", "12", "13"):
        for kind in ("now", "lazy"):
            t = run(f"user_{version}_{kind}", env={"STAND_PAST": "1"}).trace
            equal(takes(t), [("cuda:0", n, "cuMemAlloc_v2", "") for n in (7007, 7017)])


def case_interposer():
    """Another preloaded library in front of the runtime, before and after us: called as without
    us."""
    library = os.path.join(PROGS, "libinterposer.so")
    for version in ("12", "13"):
        for kind in ("now", "lazy"):
            for place in ("before", "preload"):
                t = run(f"user_{version}_{kind}", **{place: [library]}).trace
                equal(len(t.of("SPACE_ALLOC")), 8)
                equal([x[1] for x in takes(t)], [x[1] for x in expected(True)])


def case_lookup_interposer():
    """Another one in front of dlsym: it is asked as often as without us. What it fetches is
    recorded when it comes after us, as where `whyoom run` starts the program; in front of us, it
    asks for the C library's own by its version."""
    library = os.path.join(PROGS, "liblookup_interposer.so")
    without = run("lookups", "dlsym", preload=[library], shim=False)
    check("asked" in without.err, without.err)
    for place in ("before", "preload"):
        ran = run("lookups", "dlsym", **{place: [library]})
        equal(ran.err, without.err, place)
        equal([x[1] for x in takes(ran.trace)], [1001, 2002] if place == "preload" else [], place)


# -- look-ups

def case_dlsym():
    equal(takes(run("lookups", "dlsym").trace),
          [("cuda:0", n, "cuMemAlloc_v2", "") for n in (1001, 2002)])


def case_dlvsym():
    equal(takes(run("lookups", "dlvsym").trace), [("cuda:0", 1001, "cuMemAlloc_v2", "")])


def case_default_scope():
    ran, without = run("lookups", "default"), run("lookups", "default", shim=False)
    equal(takes(ran.trace), [("cuda:0", 1001, "cuMemAlloc_v2", "")])
    equal(ran.out, without.out)


def case_lookup():
    for env in ({}, {"STAND_SPLIT": "1"}):
        t = run("lookups", "lookup", env=env).trace
        equal([x[1] for x in takes(t)], list(range(1001, 1009)))
        equal([x[2] for x in takes(t)],
              ["cuMemAlloc_v2"] * 5 + ["cuMemAllocAsync", "cuMemAllocAsync_ptsz",
                                                               "cuMemAllocAsync"])
        equal([d["api"] for d in t.of("SPACE_CALL") if "Advise" in d["api"]],
              ["cuMemAdvise", "cuMemAdvise_v2"])
        check("cuda.missed" not in t.infos, "every function found a wrapper")


def case_excluded():
    """Those that look functions up in order to patch them, or to call past everybody, get the
    driver's own."""
    for library in ("libucm.so.0", "libcupti.so.12"):
        ran = run("lookups", "excluded", os.path.join(PROGS, library))
        equal([x for t in ran.traces for x in takes(t)], [], library)
    # an ordinary one gets a wrapper
    run("lookups", "excluded", os.path.join(PROGS, "libplain.so"), rc=3)
    equal([x for t in run("lookups", "own").traces for x in takes(t)], [], "the driver")


def case_foreign():
    """What lies in another library is that one's."""
    ran = run("lookups", "foreign", os.path.join(PROGS, "libplain.so"))
    equal(takes(ran.trace), [("cuda:0", 1002, "cuMemAlloc_v2", "")])
    ran = run("lookups", "own-scope", os.path.join(PROGS, "libplain.so"))
    equal(takes(ran.trace), [("cuda:0", 1001, "cuMemAlloc_v2", "")])


def case_loading():
    """Modules that the loader is still at work on are left alone: their slots are not theirs
    yet."""
    t = run("lookups", "loading", "plugin_13_now.so").trace
    check(t.host, "the other thread allocated")
    check("cuda.missed" not in t.infos, "no wrapper was spent on what is no function")


# -- where CUDA is not

BINDING = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: \w+ symbol `(\w+)'")


def absent(shim, **env):
    return run("lookups", "absent", shim=shim,
               env=dict(env, LD_LIBRARY_PATH="", PLAIN=os.path.join(PROGS, "libplain.so")))


def exports():
    out = subprocess.run(["nm", "-D", "--defined-only", SHIM], capture_output=True, text=True,
                         check=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def case_absent():
    """On a machine without CUDA all look-ups answer as without us, in the same words."""
    with_us, without = absent(True), absent(False)
    equal(with_us.out, without.out)
    check("undefined symbol: cuMemAlloc_v2" in with_us.out, with_us.out)


def case_absent_bindings():
    """Nor does any symbol that we do not export bind elsewhere."""
    names = exports()

    def bindings(shim):
        found = BINDING.findall(absent(shim, LD_DEBUG="bindings", LD_BIND_NOW="1").err)
        return collections.Counter((a, b, name) for a, b, name in found if a != SHIM and name
                                   not in names)
    with_us, without = bindings(True), bindings(False)
    equal(with_us - without, collections.Counter())
    equal(without - with_us, collections.Counter())
    check(len(without) > 10, "bindings were seen")


def case_exports():
    """None of CUDA's names is exported: a weak reference of a program without CUDA stays
    undefined."""
    equal([n for n in exports() if n.startswith("cu")], [])
    check("dlsym" in exports(), "dlsym is exported")


# -- the real ones

def real_runtime(what, command):
    """They ask the wrapped look-up for everything. That they then refuse a driver that is none of
    NVIDIA's is theirs to do, and is the same without us. Returns [(name, version, flags)]."""
    ran, without = run(*command, env={"STAND_LOG": "1"}), run(*command, env={"STAND_LOG": "1"},
                                                              shim=False)
    equal(ran.out, without.out, what)
    equal(ran.err, without.err, what + ": the driver is asked the same")
    check("asked cuMemAlloc 3020 0" in ran.err and "asked cuMemAllocAsync 11020 2" in ran.err, what)
    check("libcuda.so.1" in ran.trace.infos.get("cuda.driver", ""), what + ": got no wrapper")
    return [(name, int(version), int(flags))
            for name, version, flags in re.findall(r"^asked (\S+) (\d+) (\d+)$", ran.err, re.M)]


def real_runtimes(tmp):
    """(what it is, the command that starts it) of the dynamic ones, of programs that a static one
    is linked into, and of libraries that hold one."""
    found = real.Found()
    real.say_missing(found)
    for path in found.runtimes():
        yield "dynamic", ["lookups", "real", path, "cudaMalloc"]
    for number, (archive, others) in enumerate(found.static()):
        program = os.path.join(tmp, f"static{number}")
        subprocess.run([os.environ.get("CC", "cc"), os.path.join(HERE, "progs", "static.c"),
                        archive, *others, "-lpthread",
                        "-ldl", "-lrt", "-o", program], check=True)
        yield "static", [program]
    for path, function in found.inside():
        yield "inside a library", ["lookups", "real", path, function]


def case_real_runtimes():
    rows = collections.defaultdict(list)
    for row in cuda_table.read(SOURCE)[0]:
        if row.library == "DRIVER":
            rows[row.asked].append(row)
    seen = collections.Counter()
    with tempfile.TemporaryDirectory() as tmp:
        for kind, command in real_runtimes(tmp):
            seen[kind] += 1
            for name, version, flags in real_runtime(f"{kind}: {command}", command):
                stream = "PER_THREAD" if flags == 2 else "LEGACY"
                fitting = [r.symbol for r in rows.get(name, ())
                           if r.start <= version <= r.end and r.stream in ("ONE", stream)]
                check(len(fitting) == 1 or name not in rows,
                      f"{name} {version} {flags}: rows {fitting}")
    print("real runtimes:", ", ".join(f"{n} {kind}" for kind, n in seen.items()) or "none")


sys.exit(main(globals()))
