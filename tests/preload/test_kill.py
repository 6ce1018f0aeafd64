#!/usr/bin/env python3
"""SIGKILL loses nothing; threads, signal handlers, ends of threads; order across threads."""

import random
import re
import sys

from harness import *

CASES = {}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def counters(path):
    with open(path, "rb") as f:
        data = f.read()
    out = []
    for at in range(0, len(data), 64):
        tid, allocs, frees = struct.unpack_from("<3Q", data, at)
        if tid:
            out.append((at // 64, tid, allocs, frees))
    return out


def kills(job, times, group):
    rng = random.Random(20260 + group)
    events, running = 0, 0
    for n in range(2 * times):
        if running == times:
            break
        path = job.path("counters")
        if os.path.exists(path):
            os.unlink(path)
        argv = ["storm", "4", "0"]
        if group:  # a shell in the same group: whatever helps the target dies with it
            argv = ["/bin/sh", "-c", "'%s' 4 0; true" % prog("storm")]
        p, directory, _ = job.start(argv, env={"COUNTERS": path}, start_new_session=True)
        time.sleep(rng.uniform(0.012, 0.05))
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        r = Result(p.returncode, "", "", directory, "", p.pid, 0)
        deadline = time.monotonic() + 5
        while group and alive(counters(path) if os.path.exists(path) else []) and time.monotonic() < deadline:
            time.sleep(0.005)
        counted = [c for c in (counters(path) if os.path.exists(path) else []) if c[2]]
        if not counted:  # no call had returned yet: once more
            shutil.rmtree(directory, ignore_errors=True)
            continue
        running += 1
        pids = [c[1] for c in counted]
        found = [t for t in r.traces if any(x in t.tids.values() for x in pids)]
        check(len(found) == 1, "kill %d: %d traces hold the threads", n, len(found))
        events += killed(found[0], counted, n)
        shutil.rmtree(directory)
    equal(running, times, "kills that struck a running program")
    note = "0 committed events lost of %d in %d kills" % (events, running)
    print("shown: %s%s" % (note, " of a process group" if group else ""))
    return note


def alive(counted):
    return any(os.path.exists("/proc/%d" % c[1]) for c in counted)


def killed(t, counted, n):
    """Each thread's events: what had returned is there, and at most one call more, with its size.
    How many had returned."""
    total = 0
    check(not t.torn and not t.drops, "kill %d: torn %d, dropped %s", n, t.torn, t.drops)
    check(not t.bad_checksums, "kill %d: %d wrong checksums", n, t.bad_checksums)
    for me, tid, allocs, frees in counted:
        serials = [s for s, x in t.tids.items() if x == tid]
        evs = [e for s in serials for e in t.events_of.get(s, []) if e.kind in BLOCKS]
        got_a = [e for e in evs if e.kind == "ALLOC"]
        got_f = sum(e.kind == "FREE" for e in evs)
        check(allocs <= len(got_a) <= allocs + 1, "kill %d: thread %d: %d allocations returned, %d recorded", n, me,
              allocs, len(got_a))
        check(frees <= got_f <= frees + 1, "kill %d: thread %d: %d releases returned, %d recorded", n, me, frees, got_f)
        for i, e in enumerate(got_a):
            if e.size != 16 + (me * 7919 + i * 31) % 1000:
                raise Failed("kill %d: thread %d: allocation %d has size %d" % (n, me, i, e.size))
        total += allocs + frees
    return total


@case
def kill_random(job):
    """50 random SIGKILLs of a program of 4 threads that allocate."""
    return kills(job, 50, False)


@case
def kill_group(job):
    """50 more, of its whole process group."""
    return kills(job, 50, True)


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
        equal((sum(e.kind == "ALLOC" for e in evs), sum(e.kind == "FREE" for e in evs)), (allocs, frees),
              "thread %d" % me)
        n += allocs + frees
    return "%d events, %.1f bytes each" % (n, len(t.data) / n)


@case
def storm_cross(job):
    """What one thread allocates another one releases at once: the order is settled."""
    r = job.run(["storm", "4", "60000", "cross"], env={"COUNTERS": job.path("c")})
    t = r.trace()
    sound(t)
    out = read.Trace(t.path).replay()
    equal(out["double_allocs"], 0, "addresses that live twice")
    check(out["repairs"] * 1000 < out["events"], "%d repairs of %d events", out["repairs"], out["events"])
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
    check(sum(100 <= e.size < 107 for e in t.all("ALLOC")) >= n, "blocks of the threads are missing")
    early, late = [int(re.search(w + r" (\d+)", r.out).group(1)) for w in ("early", "late")]
    plain_growth = [int(re.search(w + r" (\d+)", plain.out).group(1)) for w in ("early", "late")]
    grown = late - early - (plain_growth[1] - plain_growth[0])
    check(grown < 12 * 1024, "%d KiB more resident after %d threads", grown, n)
    each = os.stat(t.path).st_size / n
    check(each < 400, "%d bytes of trace for each thread", each)
    return "%d bytes of trace a thread, %d KiB grown" % (each, grown)


@case
def thread_ends(job):
    """Destructors of thread-specific data that allocate after the thread's function returned."""
    r = job.run(["threads", "tls"])
    sound(r.trace())
    check(sum(e.size == 555 for e in r.trace().all("ALLOC")) >= 1, "the second round of destructors is missing")
    return "%d events" % compare_blocks(r)


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
            check(native[0] != native[-1] and frames[0][0] == "native" and frames[-1][0] == "native",
                  "not cut in the middle")


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


def handlers(job, *args):
    """What is lost is counted, always; and little is. That is measured again on a machine so busy
    that the kernel keeps us long where a handler's events go to the side."""
    for left in (2, 1, 0):
        ma, ha, sides, lost = handlers_once(job, *args)
        if lost * 10 <= ha:
            break
        check(left, "%d of %d of the handler's are lost", lost, ha)
    return "%d in the main program, %d in handlers of which %d aside, %d lost and counted" % (ma, ha, sides, lost)


def handlers_once(job, *args):
    r = job.run(["signals", *args], timeout=60)
    ma, mf, ha, hf = [int(x) for x in r.out.split()]
    t = r.trace()
    sound(t, drops=("signal",))
    lost = t.drops.get("signal", 0)
    got_h = [e for e in t.all("ALLOC") if e.size in (4242, 4243)]
    got_m = [e for e in t.all("ALLOC") if 16 <= e.size < 116 and e.api == 0]
    check(len(got_m) >= ma, "main: %d allocations, %d recorded", ma, len(got_m))
    check(ha - lost <= len(got_h) <= ha, "handler: %d allocations, %d recorded, %d said to be lost", ha, len(got_h), lost)
    frees = len(t.all("FREE"))
    check(frees >= mf + hf - lost, "%d + %d releases, %d recorded, %d said to be lost", mf, hf, frees, lost)
    check(ha > 100, "the handler ran %d times only", ha // 2)
    return ma, ha, t.sides, lost


@case
def signal_handlers(job):
    """A handler that allocates at 1 kHz while the program does: nothing is missed, or counted."""
    return handlers(job, "0.4", "1")


@case
def signal_handlers_threads(job):
    return handlers(job, "0.4", "3")


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
