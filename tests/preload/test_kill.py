#!/usr/bin/env python3
"""SIGKILL loses nothing; threads, signal handlers, ends of threads; order across threads."""

import mmap
import random
import re
import sys

from harness import *

CASES = {}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def counters(path):
    if not os.path.exists(path):
        return []
    with open(path, "rb") as f:
        data = f.read()
    out = []
    for at in range(0, len(data), 64):
        tid, allocs, frees = struct.unpack_from("<3Q", data, at)
        if tid:
            out.append((at // 64, tid, allocs, frees))
    return out


# The number of kills: over a thousand in all by tests/harm/all.
TIMES = int(os.environ.get("WHYOOM_TEST_KILLS", "50"))
PAUSE, RESUME, FULL, SAMPLE = 1, 2, 3, 4


CONTROL = 272  # in a trace's header: asked, command, every, exact_from, answered


def start_asking(directory, commands):
    """Do the work of `whyoom ctl`, at full speed: ask every trace of a directory for another mode,
    in turn. In a process of its own, so that no test waits for the interpreter. Return its id."""
    parent, pid = os.getpid(), os.fork()
    if pid:
        return pid
    headers, n = {}, 0
    while os.getppid() == parent:
        time.sleep(0.0005)
        n += 1
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            path = os.path.join(directory, name)
            if not name.endswith(".whyoom"):
                continue
            if path not in headers:
                headers[path] = header_of(path)
            if headers[path]:
                ask(headers[path], *commands[n % len(commands)])
            else:
                del headers[path]
    os._exit(0)


def header_of(path):
    """Mapped; None while it is no trace yet, or no longer."""
    try:
        with open(path, "r+b") as f:
            header = mmap.mmap(f.fileno(), 4096)
    except (OSError, ValueError):
        return None
    return header if header[:8] == read.MAGIC else None


def ask(header, command, every=0, exact_from=0):
    asked, = struct.unpack_from("<I", header, CONTROL)
    struct.pack_into("<IQQ", header, CONTROL + 4, command, every, exact_from)
    struct.pack_into("<I", header, CONTROL, asked + 1)


def answered(path):
    """The number of the last answered command."""
    with open(path, "rb") as f:
        f.seek(CONTROL + 24)
        return struct.unpack("<I", f.read(4))[0]


def kills(job, times, way, exact=0, commands=None):
    """way: "" the program is killed, "group" with a shell that has started it, "family" with
    children of its own. exact: mode sampled, in which blocks of so many bytes are all recorded.
    commands: the modes asked for meanwhile, by n, the number of the kill."""
    env = {"WHYOOM_MODE": "sampled", "WHYOOM_EXACT_FROM": str(exact)} if exact else {}
    rng = random.Random(20260 + len(way))
    group = way == "group"
    events, running, answers = 0, 0, 0
    for n in range(2 * times):
        if running == times:
            break
        path = job.path("counters")
        if os.path.exists(path):
            os.unlink(path)
        argv = ["storm", "4", "0"] + ([way] if way == "family" else [])
        if group:  # a shell in the same group: any helper of the target dies with it
            argv = ["/bin/sh", "-c", "'%s' 4 0; true" % prog("storm")]
        p, directory, _ = job.start(argv, env={"COUNTERS": path, **env})
        asked = commands(n) if commands else []
        asker = start_asking(directory, asked) if asked else None
        deadline = time.monotonic() + 20
        while p.poll() is None and time.monotonic() < deadline and not any(
            c[2] for c in counters(path)):
            time.sleep(0.0005)  # until the first call has returned
        time.sleep(min(rng.expovariate(500), 0.02) * (3 if way == "family" else 1))
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        if asker:
            os.kill(asker, signal.SIGKILL)
            os.waitpid(asker, 0)
        r = Result(p.returncode, "", "", directory, "", p.pid, 0)
        deadline = time.monotonic() + 5
        while way and alive(counters(path)) and time.monotonic() < deadline:
            time.sleep(0.005)
        counted = [c for c in counters(path) if c[2]]
        if not counted:  # no call had returned yet: once more
            shutil.rmtree(directory, ignore_errors=True)
            continue
        running += 1
        answers += sum(answered(path) for _, _, path in r.files if asker and begun(path))
        for t in [Trace(path) for _, _, path in r.files if begun(path)] + r.small:
            here = [c for c in counted if c[1] in t.tids.values()]
            counted = [c for c in counted if c not in here]
            if here:
                events += killed(t, here, n, exact, (PAUSE,) in asked)
        # a child of a paused process may have recorded nothing, and so have no trace
        counted = [c for c in counted if (PAUSE,) not in asked
                   and any(x >= exact for x in sizes(c[0], c[2]))]
        check(not counted, "kill %d: no trace holds the threads %s", n, counted)
        undamaged(directory)
        shutil.rmtree(directory)
    equal(running, times, "kills that struck a running program")
    note = "0 committed events lost of %d in %d kills" % (events, running)
    if commands:
        check(answers > running, "only %d answers in %d kills", answers, running)
        note += ", asked to change %d times" % answers
    print("shown: %s%s" % (note, " of a process group" if group else " of a family of processes"
                           if way else ""))
    return note


def begun(path):
    """Whether the trace has its header. A child may be killed while it makes its file: before its
    first call returned."""
    with open(path, "rb") as f:
        return any(f.read(8))


def alive(counted):
    """Whether any of the threads runs. A dead one may stay until its status is read."""
    for c in counted:
        try:
            with open("/proc/%d/stat" % c[1]) as f:
                if f.read().rpartition(")")[2].split()[0] not in "ZX":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            pass
    return False


def sizes(me, n):
    """The sizes of a thread's first n blocks."""
    return [16 + (me * 7919 + i * 31) % 1000 for i in range(n)]


def killed(t, counted, n, exact=0, paused=False):
    """Each thread's events: those of returned calls, and at most one call more, with its size (from
    `exact` bytes on; if the recording was paused at times, some of them). Return the number of
    returned calls."""
    total = 0
    check(not t.torn and not t.drops, "kill %d: torn %d, dropped %s", n, t.torn, t.drops)
    check(not t.bad_checksums, "kill %d: %d wrong checksums", n, t.bad_checksums)
    for me, tid, allocs, frees in counted:
        serials = [s for s, x in t.tids.items() if x == tid]
        evs = [e for s in serials for e in t.events_of.get(s, []) if e.kind in BLOCKS]
        done = sizes(me, allocs + 1)
        want = [x for x in done[:allocs] if x >= exact]
        got_a = [e.size for e in evs if e.kind == "ALLOC" and e.size >= exact]
        got_f = sum(e.kind == "FREE" for e in evs)
        if paused:
            rest = iter(want + done[-1:])
            check(all(x in rest for x in got_a), "kill %d: thread %d: not in the order of what it "
                  "did", n, me)
            total += len(got_a)
            continue
        check(got_a in (want, want + done[-1:]), "kill %d: thread %d: %d allocations returned, %d "
              "recorded: not the same",
              n, me, len(want), len(got_a))
        if not exact:
            check(frees <= got_f <= frees + 1, "kill %d: thread %d: %d releases returned, %d "
                  "recorded", n, me, frees, got_f)
        total += allocs + frees
    return total


@case
def kill_random(job):
    """Random SIGKILLs of a program of 4 threads that allocate."""
    return kills(job, TIMES, "")


@case
def kill_group(job):
    """More, of its whole process group."""
    return kills(job, TIMES, "group")


@case
def kill_family(job):
    """More, of a program that forks while its threads allocate, and executes itself."""
    return kills(job, TIMES, "family")


@case
def kill_sampled(job):
    """The same in mode sampled: the large blocks are all there."""
    return kills(job, TIMES, "family", exact=600)


@case
def kill_switched(job):
    """The same while `whyoom ctl` asks for another mode every millisecond, and every other time for
    pauses."""
    modes = [(SAMPLE, 8192, 600), (FULL,), (SAMPLE, 1 << 20, 500), (FULL,), (0,)]
    return kills(job, TIMES, "family", exact=600,
                 commands=lambda n: modes + [(PAUSE,), (RESUME,)] if n % 2 else modes)


@case
def storm_exact(job):
    """4 threads to their end: every event, and nothing torn."""
    r = job.run(["storm", "4", "100000"], env={"COUNTERS": job.path("c")})
    t = r.trace()
    sound(t)
    equal((t.end_how, t.end_code), (1, 0), "the end")
    n = 0
    for me, tid, allocs, frees in counters(job.path("c")):
        evs = t.thread(tid, marked=False)
        equal((sum(e.kind == "ALLOC" for e in evs), sum(e.kind == "FREE" for e in evs)),
              (allocs, frees),
              "thread %d" % me)
        n += allocs + frees
    return "%d events, %.1f bytes each" % (n, len(t.data) / n)


@case
def storm_cross(job):
    """Blocks that one thread allocates and another releases at once: the order is settled."""
    r = job.run(["storm", "4", "60000", "cross"], env={"COUNTERS": job.path("c")})
    t = r.trace()
    sound(t)
    out = read.Trace(t.path, t.data).replay()
    equal(out["double_allocs"], 0, "addresses that live twice")
    check(out["repairs"] * 1000 < out["events"], "%d repairs of %d events", out["repairs"],
          out["events"])
    equal(out["unmatched_frees"], 0, "releases of nothing")
    return "%d events, %d repairs" % (out["events"], out["repairs"])


@case
def threads_many(job):
    """1,000 threads at once on 16 KiB stacks; memory and file stay bounded."""
    r = job.run(["threads", "many", "1000"])
    t = r.trace()
    sound(t)
    allocs = sum(e.kind == "ALLOC" and 1000 <= e.size < 1007 for e in t.all("ALLOC"))
    equal(allocs, 1000, "blocks of the threads")
    equal(sum(e.size == 3000 for e in t.all("ALLOC")), 1000, "reallocated blocks")
    used = os.stat(t.path).st_blocks * 512
    check(used < 1000 * 128 * 1024 + (8 << 20), "the file takes %d KiB", used >> 10)
    return "%d KiB a thread" % (used / 1000 / 1024)


@case
def threads_short(job):
    """100,000 short threads: neither memory nor the file grows with them."""
    n = 100000 if not RUNNER else 2000
    plain = job.run(["threads", "short", str(n)], preload=False, timeout=240)
    r = job.run(["threads", "short", str(n)], timeout=240)
    t = r.trace()
    sound(t)
    check(sum(100 <= e.size < 107 for e in t.all("ALLOC")) >= n,
          "blocks of the threads are missing")
    early, late = [int(re.search(w + r" (\d+)", r.out).group(1)) for w in ("early", "late")]
    plain_growth = [int(re.search(w + r" (\d+)", plain.out).group(1)) for w in ("early", "late")]
    grown = late - early - (plain_growth[1] - plain_growth[0])
    check(grown < 12 * 1024, "%d KiB more resident after %d threads", grown, n)
    each = os.stat(t.path).st_size / n
    check(each < 400, "%d bytes of trace for each thread", each)
    return "%d bytes of trace a thread, %d KiB grown" % (each, grown)


@case
def threads_idle(job):
    """Threads that worked and wait now: the recorder keeps 128 KiB of each, beside 16 MiB of its
    own."""
    few, many = 20, 120
    more = {}
    for n in (few, many):
        with_us, without = [int(re.search(r"resident (\d+)",
                                          job.run(["threads", "idle", str(n)],
                                                  preload=p).out).group(1))
                            for p in (True, False)]
        more[n] = with_us - without
        check(more[n] <= 16 * 1024 + n * 128, "%d KiB more are resident with %d idle threads",
              more[n], n)
    each = (more[many] - more[few]) / (many - few)
    check(each <= 128, "%d KiB more for each idle thread", each)
    return "%d KiB more with %d threads, %d KiB with %d: %.0f KiB each" % (
        more[few], few, more[many], many, each)


@case
def thread_ends(job):
    """Destructors of thread-specific data that allocate after the thread's function returned."""
    r = job.run(["threads", "tls"])
    sound(r.trace())
    check(sum(e.size == 555 for e in r.trace().all("ALLOC")) >= 1,
          "the second round of destructors is missing")
    return "%d events" % compare_blocks(r)


@case
def thread_ends_while_asked_for(job):
    """A new thread asks whether another one is dead, and that one exits before the answer."""
    r = job.run(["asked", "8"], rc=None)
    if r.rc == 77:
        raise Skip(r.out.strip())
    equal((r.rc, r.err), (0, ""), "the end")
    equal(r.out.strip(), "asked 8", "how often a thread left while it was asked for")
    t = r.trace()
    sound(t)
    equal(sum(e.size == 100 for e in t.all("ALLOC")), 8, "blocks of those that left")
    return r.out.strip()


@case
def deep_stack(job):
    """4,000 frames are whole; 10,000 are cut in the middle and marked."""
    for depth, cut in ((4000, False), (10000, True)):
        r = job.run(["threads", "deep", str(depth)])
        t = r.trace()
        sound(t)
        e = [e for e in t.all("ALLOC") if e.size == 77777]
        check(len(e) == 1 and e[0].stack, "the block at the bottom")
        frames = t.stacks[e[0].stack]
        gaps = [f for f in frames if f[0] == "cut"]
        native = [f for f in frames if f[0] == "native"]
        check(bool(gaps) == cut, "depth %d: %d gaps in %d frames", depth, len(gaps), len(frames))
        total = len(native) + sum(f[1] for f in gaps)
        check(depth < total < depth + 20, "depth %d: %d frames and %s", depth, len(native), gaps)
        check(not any(f[0] == "end" for f in frames), "depth %d: does not reach the root", depth)
        if cut:
            check(native[0] != native[-1] and frames[0][0] == "native"
                  and frames[-1][0] == "native",
                  "not cut in the middle")


@case
def stack_overflow(job):
    """A recursion that never ends: the fault is the program's, in the same function at the same
    depth, seen by its handler on its own stack; and without a handler it is SIGSEGV."""
    for stack in ("65536", "1048576"):
        plain, r = (job.run(["threads", "overflow", stack], preload=p, rc=3) for p in (False, True))
        (depth, place), (depth_here, place_here) = (x.out.split() for x in (plain, r))
        equal((place_here, place), ("own", "own"), "where the fault was")
        check(abs(int(depth) - int(depth_here)) <= 1, "%s frames deep without us, %s with", depth,
              depth_here)
    for preload in (False, True):
        job.run(["threads", "overflow", "65536", "dies"], preload=preload, rc=-signal.SIGSEGV)
    sound(r.trace())


@case
def long_jumps(job):
    """longjmp out of frames that allocated leaves every later stack right."""
    r = job.run(["threads", "jump"])
    compare_blocks(r)
    sound(r.trace())
    frames = {}
    for e in between_marks(r.trace().thread(r.trace().pid)):
        if e.kind == "ALLOC":
            frames.setdefault(len(r.trace().stacks[e.stack]), 0)
    equal(len(frames), 17, "depths of stacks")


def handlers(job, *args, most=2 if SAMPLED else 10):
    """Losses are always counted; and there are few (one of `most`). That is measured again on a
    machine so busy that the kernel delays the recorder while a handler's events go to the side
    area. In mode sampled every block goes through the table of recorded blocks here, so the
    thread spends longer in its records."""
    for left in (2, 1, 0):
        ma, ha, sides, lost = handlers_once(job, *args)
        if lost * most <= ha:
            break
        check(left, "%d of %d of the handler's are lost", lost, ha)
    return "%d in the main program, %d in handlers of which %d aside, %d lost and counted" % (
        ma, ha, sides, lost)


def handlers_once(job, *args):
    r = job.run(["signals", *args], timeout=60)
    ma, mf, ha, hf = [int(x) for x in r.out.split()]
    t = r.trace()
    sound(t, drops=("signal",))
    lost = t.drops.get("signal", 0)
    got_h = [e for e in t.all("ALLOC") if e.size in (4242, 4243)]
    got_m = [e for e in t.all("ALLOC") if 16 <= e.size < 116 and e.api == 0]
    check(len(got_m) >= ma, "main: %d allocations, %d recorded", ma, len(got_m))
    check(ha - lost <= len(got_h) <= ha, "handler: %d allocations, %d recorded, %d said to be lost",
          ha, len(got_h), lost)
    frees = len(t.all("FREE"))
    check(frees >= mf + hf - lost, "%d + %d releases, %d recorded, %d said to be lost", mf, hf,
          frees, lost)
    check(ha > 100, "the handler ran %d times only", ha // 2)
    return ma, ha, t.sides, lost


@case
def signal_handlers(job):
    """A handler that allocates at 1 kHz while the program does: every event is recorded, or
    counted."""
    return handlers(job, "0.4", "1")


@case
def signal_handlers_threads(job):
    return handlers(job, "0.4", "3")


@case
def signal_handlers_profiler(job):
    """SIGPROF as profilers ask for it, of the CPU's time, beside a timer of 1 kHz for each thread:
    more than the side area may hold."""
    return handlers(job, "0.3", "2", "prof", most=1)


@case
def signal_handlers_small_stack(job):
    """On an alternate stack of 8 KiB."""
    return handlers(job, "0.4", "2", "alt")


@case
def before_and_after_main(job):
    """Constructors, atexit handlers, destructors; exit status."""
    r = job.run(["atexit", "5"], rc=5)
    t = r.trace()
    sound(t)
    sizes = [e.size for e in t.all("ALLOC") if 70001 <= e.size <= 70004]
    equal(sizes, [70001, 70002, 70003, 70004], "blocks in order")
    equal((t.end_how, t.end_code), (1, 5), "the end")
    early = [e for e in t.all("ALLOC") if e.size == 70001][0]
    check(sum(e.kind == "FREE" and e.address == early.address for e in t.all("FREE")) >= 1,
          "the destructor's free is missing")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
