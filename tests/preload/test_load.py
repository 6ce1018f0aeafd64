#!/usr/bin/env python3
"""Other allocators, dlopen and dlclose, C++; and that the recorder takes nothing from the host's
heap."""

import re
import sys

from harness import *

CASES = {}
ALLOCATORS = {
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc.so.4",
    "mimalloc": "libmimalloc.so.2",
}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def library(name):
    for d in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        if os.path.exists(os.path.join(d, ALLOCATORS[name])):
            return os.path.join(d, ALLOCATORS[name])
    raise Failed("%s is not installed" % ALLOCATORS[name])


def owner(t, name):
    check(name in os.path.basename(t.infos.get("malloc.owner", "")), "malloc.owner is %r",
          t.infos.get("malloc.owner"))


def by_size(t, size, kinds=("ALLOC",)):
    return [e for k in kinds for e in t.all(k) if e.size == size]


def preloaded(job, name):
    """The allocator comes after us in LD_PRELOAD: exact counts all the same, and it is named."""
    r = job.run(["storm", "2", "20000"], preload=SHIM + ":" + library(name),
                env={"COUNTERS": job.path("c")})
    t = r.trace()
    sound(t)
    owner(t, name)
    with open(job.path("c"), "rb") as f:
        data = f.read()
    for me in range(2):
        tid, allocs, frees = struct.unpack_from("<3Q", data, me * 64)
        evs = [e for e in t.thread(tid, marked=False) if e.kind in BLOCKS]
        got = (sum(e.kind == "ALLOC" for e in evs), sum(e.kind == "FREE" for e in evs))
        equal(got, (allocs, frees), "thread %d" % me)
    out = read.Trace(t.path, t.data).replay()
    equal(out["double_allocs"], 0, "addresses that live twice")
    # before us it is the owner, and the recorder sees what it passes on or nothing; the host must
    # not notice
    job.run(["storm", "2", "2000"], preload=library(name) + ":" + SHIM,
            env={"COUNTERS": job.path("c2")})


def linked(job, name):
    """Linked dynamically, and its own entry points used."""
    r = job.run(["entries_" + name])
    equal(r.out, "done\n", "stdout")
    t = r.trace()
    sound(t)
    owner(t, name)
    for size in (8001, 8002, 7001, 7002):
        equal(len(by_size(t, size)), 300, "blocks of %d bytes" % size)
    check(all(e.stack for e in by_size(t, 7001)), "no stacks")
    live = read.Trace(t.path, t.data).replay()
    equal(live["double_allocs"], 0, "addresses that live twice")
    for size in (7002, 8002):
        equal(sum(e.size == size for e in left_over(t)), 0,
              "blocks of %d bytes that were never released" % size)


def left_over(t):
    """Acquisitions without a release in this thread."""
    live = {}
    for evs in t.events_of.values():
        for e in evs:
            if e.kind == "ALLOC":
                live[e.address] = e
            elif e.kind == "FREE":
                live.pop(e.address, None)
    return live.values()


for _name in ALLOCATORS:
    CASES["preloaded-" + _name] = lambda job, name=_name: preloaded(job, name)
    CASES["linked-" + _name] = lambda job, name=_name: linked(job, name)


@case
def own_malloc(job):
    """The program exports a malloc: it runs as without us, the trace names malloc's owner, and
    what libc allocates through it is recorded."""
    plain, r = job.run(["own_malloc"], preload=False), job.run(["own_malloc"])
    equal((r.out, r.err), (plain.out, plain.err), "output")
    owner(r.trace(), "own_malloc")
    equal(len(by_size(r.trace(), 26)), 1000, "libc's calls seen")


@case
def sanitized(job):
    """A sanitizer's runtime asks us for functions before it can run any: it gets them, nothing is
    recorded, and a message says so. AddressSanitizer's, as a library, reports itself that it
    must come first, and refuses."""
    ran = 0
    for name in ("thread", "address"):
        if not os.path.exists(os.path.join(PROGS, "sanitized_" + name)):
            continue
        plain = job.run(["sanitized_" + name], preload=False, rc=None)
        if plain.rc != 5:
            continue  # the runtime itself does not work on this kernel
        ran += 1
        r = job.run(["sanitized_" + name], rc=None)
        if name == "address" and r.rc == 1 and "does not come first" in r.err:
            continue
        equal((how(r.rc), r.out), (how(plain.rc), plain.out), "what it did")
        check(r.err == "whyoom: built with a sanitizer, which replaces malloc itself; not "
              "recording\n", "it said %r", r.err)
        equal(r.files, [], "traces")
        r = job.run(["sanitized_" + name], env={"WHYOOM_QUIET": "1"}, rc=5)
        equal(r.err, "", "what it said though it was to be quiet")
    if not ran:
        raise Skip("no sanitizer works here")


@case
def weak_symbols(job):
    """A program that asks which allocator there is gets the same answer as without us."""
    plain, r = job.run(["weak"], preload=False), job.run(["weak"])
    equal(r.out, plain.out, "what is there")
    equal(len(by_size(r.trace(), 9001)), 500, "a malloc that dlsym handed out")
    both = job.run(["weak"], preload=library("jemalloc"))
    r = job.run(["weak"], preload=SHIM + ":" + library("jemalloc"))
    equal(r.out, both.out, "what is there with jemalloc")


@case
def nothing_from_the_heap(job):
    """Recording never enters malloc."""
    plain, r = job.run(["counted"], preload=False), job.run(["counted"])
    equal(r.out.split()[0], plain.out.split()[0], "calls of malloc")
    equal(r.out.split()[1], plain.out.split()[1],
          "calls of malloc, a thread's begin and end included")


@case
def load_unload(job):
    """Libraries at the same addresses, in turn: each stack names the one of that time."""
    r = job.run(["plugins", "300"])
    t = r.trace()
    sound(t)
    for size, name in ((5001, "libplugin_a.so"), (5002, "libplugin_b.so")):
        blocks = by_size(t, size)
        equal(len(blocks), 300, "blocks of %s" % name)
        for e in blocks:
            modules = [os.path.basename(f[1][0]) for f in t.stacks[e.stack] if f[0] == "native"
                       and f[1]]
            check(modules[-2:] == [name, name] and modules[-3] == "plugins",
                  "a block of %s under %s", name, modules)
    lib = [v for v in t.modules.values() if "libplugin" in v[0]]
    check(len(set(lib)) == 2, "modules %s", lib)
    return "%d module definitions" % len(t.modules)


@case
def load_unload_while_threads_allocate(job):
    """The same in two threads at once, while others allocate and their stacks are walked."""
    r = job.run(["plugins", "threads", "200"])
    t = r.trace()
    sound(t)
    for size, name in ((5001, "libplugin_a.so"), (5002, "libplugin_b.so"), (4001, "plugins")):
        blocks = by_size(t, size)
        check(len(blocks) >= (200 if size == 5001 else 1), "%d blocks of %s", len(blocks), name)
        for e in blocks:
            modules = [os.path.basename(f[1][0]) for f in t.stacks[e.stack] if f[0] == "native"
                       and f[1]]
            check(modules[-1] == name, "a block of %s under %s", name, modules)
    equal(len(by_size(t, 5001)), 200, "blocks of the loading thread")
    return "%d loads in the other thread, %d blocks" % (len(by_size(t, 5002)),
                                                        len(by_size(t, 4001)))


@case
def load_deepbind(job):
    """Libraries that bind to the C library past us: their blocks are seen, and their releases of
    others'."""
    job.run(["plugins", "deep", "50"], preload=False)
    r = job.run(["plugins", "deep", "50"])
    t = r.trace()
    sound(t)
    equal([len(by_size(t, n)) for n in (5001, 5002, 6001)], [50, 50, 100],
          "blocks of both plugins and ours")
    live = set()
    for e in t.thread(t.pid, marked=False):
        if e.kind == "FREE":
            live.discard(e.address)
        elif e.kind == "ALLOC" and e.size in (5001, 5002, 6001):
            live.add(e.address)
    equal(live, set(), "blocks whose release was not seen")


@case
def plugins_by_name(job):
    """The RUNPATH of dlopen's caller counts, not ours; and again within a plugin."""
    job.run(["plugins", "names"], preload=False)
    r = job.run(["plugins", "names"])
    equal((len(by_size(r.trace(), 5003)), len(by_size(r.trace(), 5013))), (1, 1), "blocks")


@case
def load_beside_many_relocations(job):
    """A dlopen's cost depends on what it loads, not on the loaded libraries: little more than
    without us."""
    count, where = 100, job.path("copies")
    os.mkdir(where)
    for i in range(1, count + 1):
        shutil.copy(prog("libslots_a.so"), os.path.join(where, str(i)))
    least = {}
    for _ in range(5):
        for how, options in (("plain", {"preload": False}),
                             ("ours", {"env": {"WHYOOM_MODE": "sampled"}})):
            took = int(job.run(["slots", "beside", prog("libmany.so"), str(count), where],
                               **options).out)
            least[how] = min(took, least.get(how, took))
    ratio = least["ours"] / least["plain"]
    check(ratio < 2, "%d dlopens beside 27,000 relocations take %.2f times as long as without us",
          count, ratio)
    return "%.2f times as long" % ratio


def slots(job, args, sizes, env=None):
    """Each of the library's calls of the other allocator is recorded: {size: count}."""
    r = job.run(["slots"] + args, env=dict(env or {}, LD_LIBRARY_PATH=PROGS))
    t = r.trace()
    sound(t)
    for size, times in sizes.items():
        equal(len(by_size(t, size)), times, "blocks of %d bytes" % size)
    return r


@case
def slots_by_mode(job):
    slots(job, ["modes"], {7001: 1, 7002: 1, 7003: 1, 7004: 1})


@case
def slots_of_another_in_the_same_place(job):
    slots(job, ["again", "100"], {7011: 100, 7012: 100})


@case
def slots_after_an_unseen_change(job):
    """Libraries that the C library itself reloads are looked at with the next dlopen."""
    r = slots(job, ["unseen"], {7021: 1, 7022: 1})
    return "at %s address" % ("the same" if r.out == "1\n" else "another")


@case
def slots_of_a_constructor(job):
    slots(job, ["constructor"], {7031: 1, 7032: 1}, {"SLOTS_INNER": prog("libslots_a.so")})


@case
def slots_of_two_allocators(job):
    """A wrapper forwards to one of them; libraries that use the other keep it."""
    equal(job.run(["slots", "two"], preload=False, env={"LD_LIBRARY_PATH": PROGS}).out, "1 2\n",
          "calls of each")
    equal(slots(job, ["two"], {7051: 1, 7052: 0}).out, "1 2\n", "calls of each")


@case
def slots_while_threads_load(job):
    """A library that another thread is loading is looked at once it is there."""
    r = slots(job, ["threads", "100"], {7041: 100})
    large = [len(by_size(r.trace(), size)) for size in (7042, 7043)]
    # only the program knows how often they were loaded
    equal(large, [int(n) for n in r.out.split()], "blocks of the large ones")
    return "%d and %d large ones loaded meanwhile" % tuple(large)


@case
def dlopen_errors(job):
    plain, r = job.run(["plugins", "errors"], preload=False), job.run(["plugins", "errors"])
    equal(r.out, plain.out, "what dlopen and dlerror say")


@case
def cxx(job):
    """new, delete, exceptions, thread_local objects, bad_alloc."""
    plain, r = job.run(["cxx"], preload=False), job.run(["cxx"])
    equal((r.out, r.err), (plain.out, plain.err), "output")
    t = r.trace()
    sound(t)
    failed = t.all("FAILED")
    check(any(e.fields[4] == 1 << 62 for e in failed)
          and any(e.fields[4] == 1 << 61 for e in failed), "FAILED: %s",
          [e.fields for e in failed])
    equal(len([e for e in t.all("ALLOC") if e.size == 301]), 5000, "the strings of exceptions")
    out = read.Trace(t.path, t.data).replay()
    equal((out["double_allocs"], out["unmatched_frees"]), (0, 0), "double and unmatched")
    # frames below the dynamic loader's own start, which has no unwind information, are missing
    for s in t.stacks.values():
        if s and s[0][0] == "end":
            check(s[1][1] and "ld-linux" in s[1][1][0], "a stack does not reach its root: %s",
                  s[:3])


def functions(path):
    """{name: (address, size)} of a program."""
    out = subprocess.run(["nm", "-S", "--defined-only", path], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return {x[3]: (int(x[0], 16), int(x[1], 16)) for x in map(str.split, out.splitlines())
            if len(x) == 4}


@case
def coroutines(job):
    """Contexts on stacks of their own, switched at every depth: no stack shows another's frames."""
    r = job.run(["coroutines"])
    t = r.trace()
    sound(t)
    places = {n: functions(prog("coroutines"))["co_" + n] for n in ("red", "green", "blue")}
    total = 0
    for size, name in ((6001, "red"), (6002, "green"), (6003, "blue")):
        for e in by_size(t, size):
            inside = {n: 0 for n in places}
            for f in t.stacks[e.stack]:
                for n, (at, long) in places.items():
                    inside[n] += f[0] == "native" and bool(f[1]) and f[1][0].endswith(
                        "/coroutines") and \
                        at < f[2] <= at + long
            check(1 <= inside.pop(name) <= 9 and not any(inside.values()),
                  "a block of co_%s under %s", name, inside)
            total += 1
    check(total > 6000, "only %d blocks", total)


def called(job, preload):
    """A debugger's output for calls of malloc's family, without addresses."""
    commands = ["set startup-with-shell off", "break main", "run", "p malloc(10)", "p calloc(2, 3)",
                "p realloc($1, 100)",
                "p free($2)", "kill"]
    if preload:
        commands.insert(0, "set environment LD_PRELOAD " + preload)
        commands.insert(0, "set environment WHYOOM_DIR " + job.path("d"))
    r = job.run([shutil.which("gdb"), "-nx", "-q", "-batch",
                 *(x for c in commands for x in ("-ex", c)), prog("calls")],
                preload=False, rc=None, timeout=60)
    return [re.sub("0x[0-9a-f]+", "ADDRESS", line) for line in (r.out + r.err).splitlines()
            if re.match(r"\$[0-9]|.*unknown return type|History", line)]


@case
def called_by_a_debugger(job):
    """gdb's "p malloc(10)" prints the same as without us, if libc has debug information; with the
    tarball's library."""
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    stripped = job.path("libwhyoom.so")
    subprocess.run(["strip", "--strip-unneeded", "--keep-section=.debug_*", "-o", stripped, SHIM],
                   check=True)
    plain = called(job, None)
    if len(plain) < 4 or "unknown" in " ".join(plain):
        raise Skip("gdb cannot call malloc here: %s" % plain)
    equal(called(job, stripped), plain, "what gdb says")


@case
def one_function(job):
    """mmap and mmap64 are the same function, as in libc: memray reports a difference on stderr."""
    script = "import ctypes\nl = ctypes.CDLL(None)\n" \
             "print(*(ctypes.cast(getattr(l, n), ctypes.c_void_p).value " \
             "for n in ('mmap', 'mmap64')))"
    for preload in (False, True):
        r = job.run([sys.executable, "-c", script], preload=preload)
        equal(len(set(r.out.split())), 1, "addresses")
    python = os.environ.get("WHYOOM_TEST_MEMRAY", sys.executable)
    argv = [python, "-m", "memray", "run", "-q", "-f", "-o", job.path("m.bin"), "-c",
            "x = [bytearray(100000) for _ in range(20)]"]
    plain = job.run(argv, preload=False, rc=None)
    if plain.rc:
        return "memray is not installed"
    equal(job.run(argv).err, plain.err, "what memray says")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
