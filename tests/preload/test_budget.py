#!/usr/bin/env python3
"""A process in mode sampled runs on and on within its budget: every live block is in the trace,
once, as it was acquired, whenever the process is killed. All blocks are recorded here, to save
time."""

import json
import math
import random
import sys
import threading

from harness import *
import tracefile

CASES = {}
LEAK_SIZES = range(2000, 2000 + 10**6)  # weeks.c's leaked blocks; all others are smaller
LIVE = 32


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def options(job, budget, **more):
    return {"WHYOOM_MODE": "sampled", "WHYOOM_EXACT_FROM": "1", "WHYOOM_MAX_TRACE": budget,
            "LEAKED": job.path("leaked"), **more}


def leaks(job, pid=None):
    """(thread, address, size) of the program's leaked blocks, in the order of time."""
    with open(job.path("leaked"), "rb") as f:
        data = f.read()
    return [x[:3] for x in struct.iter_unpack("<4Q", data[: len(data) & ~31])
            if pid in (None, x[3])]


def disk(directory):
    """The largest disk size of the trace files there."""
    most = 0
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        try:
            most = max(most, os.stat(os.path.join(directory, name)).st_blocks * 512)
        except FileNotFoundError:
            pass
    return most


class Watch(threading.Thread):
    """Measures all the time how much of the disk a directory's files take."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.most, self.stop = directory, 0, threading.Event()
        self.start()

    def run(self):
        while not self.stop.wait(0.002):
            self.most = max(self.most, disk(self.directory))

    def end(self):
        self.stop.set()
        self.join()
        return self.most


def living(t):
    """{address: event}: the live blocks at the end. Events are each read once: an address is free
    before it is acquired."""
    live, again = {}, []
    for serial, e in t.events(("ALLOC", "FREE", "UNFREE")):
        if e.kind == "FREE":
            live.pop(e.address, None)
        elif e.kind == "ALLOC":
            if e.address in live:
                again.append((live[e.address], e))
            live[e.address] = e
            e.f = serial
    # a release of another thread at the very same tick
    again = [(a, b) for a, b in again if a.ticks != b.ticks]
    check(not again, "acquired while it lived: %s", again[:3])
    return live


def complete(t, leaked, threads, what=""):
    """Leaked blocks live, as they were acquired, and of the others no more than possible."""
    live = living(t)
    ours = {a: e for a, e in live.items() if e.size in LEAK_SIZES}
    missing = [x for x in leaked if x[1] not in ours or ours[x[1]].size != x[2]]
    check(not missing, "%s%d of %d leaked blocks are missing: %s", what, len(missing), len(leaked),
          missing[:5])
    check(len(ours) <= len(leaked) + threads, "%s%d leaked blocks live, of %d", what, len(ours),
          len(leaked))
    rest = len(live) - len(ours)
    # stdio's, threads' own
    check(rest <= threads * (LIVE + 1) + 64, "%s%d other blocks live", what, rest)
    for e in ours.values():
        frames = t.stack(e.stack)
        check(len(frames) >= 3, "%sa leaked block has the stack %s", what, frames)
    check(len({e.stack for e in ours.values()}) <= threads + 1, "%sstacks of one place", what)
    times = {}
    for thread, address, _ in leaked:
        times.setdefault(thread, []).append(ours[address].ticks)
    for thread, ticks in times.items():
        check(ticks == sorted(ticks), "%stimes of thread %d", what, thread)
    by = {}
    for thread, address, _ in leaked:
        by.setdefault(thread, set()).add(ours[address].f)
    check(all(len(s) == 1 for s in by.values()), "%sthreads: %s", what, by)
    return live


def sound_file(t, drops=()):
    t.check_seals()
    check(not t.torn, "torn: %s", t.torn)
    extra = {k: n for k, n in t.dropped.items() if k not in drops}
    check(not extra, "dropped: %s", extra)
    periods = t.all("CHECKPOINT")
    check(len(periods) <= 64, "%d periods", len(periods))
    last = t.start_ticks
    for p in sorted(periods, key=lambda e: e.ticks):
        equal(p.f["begin"], last, "a period begins where the last one ended")
        last = p.ticks
    if periods:
        equal(last, t.until, "and the last one at the checkpoint")
    return periods


@case
def checkpoints(job):
    """Tens of checkpoints in 4 MiB: the file never takes more, no event is lost or doubled."""
    directory = job.path("trace1")
    watch = Watch(directory)
    r = job.run(["weeks", "3", "1500000"], env=options(job, "4MiB"), timeout=140)
    most = watch.end()
    t, = tracefile.traces(r.dir)
    periods = sound_file(t)
    check(t.checkpoint >= 10, "%d checkpoints", t.checkpoint)
    check(most <= 4 << 20, "the file took %d bytes", most)
    leaked = leaks(job)
    complete(t, leaked, 3)
    acquired = sum(p.f["acquired"] for p in periods)
    outside = sum(e.kind == "ALLOC" and not e.kept for _, e in t.events())
    # A period's sums are those at its end, except for each thread's unfinished work, or work before
    # its end is seen there.
    off = acquired + outside - 3 * 1500000 - len(leaked)
    check(abs(off) < 3 * 100 * len(periods), "%d acquired in periods, %d after them: %d off",
          acquired, outside, off)
    check(all(p.f["left_out"] == 0 for p in periods), "left out: %s",
          [p.f["left_out"] for p in periods])
    # mappings: unmapped ones are absent, levels tell the whole history
    maps = {}
    for _, e in t.events(("MAP", "UNMAP")):
        maps.pop(e.address, None)
        if e.kind == "MAP":
            maps[e.address] = e
    check(sum(e.size == 8192 for e in maps.values()) == 0, "mappings that were unmapped live: %s",
          maps)
    levels = sorted(e.ticks for e in t.all("LEVEL"))
    check(levels and levels[0] < t.start_ticks + (t.until - t.start_ticks) / 10,
          "levels from the beginning on")
    return "%d checkpoints, at most %d KiB on disk, %d leaked blocks, sums %d off" % (
        t.checkpoint, most >> 10, len(leaked), off)


@case
def checkpoints_on_tmpfs(job):
    """There each page is memory: a released page is free at once, and none of it is mapped."""
    if not os.access("/dev/shm", os.W_OK) or os.statvfs("/dev/shm").f_bavail * 4096 < 64 << 20:
        raise Skip("no tmpfs at /dev/shm")
    directory = tempfile.mkdtemp(prefix="whyoom-t-", dir="/dev/shm")
    try:
        watch = Watch(directory)
        r = job.run(["weeks", "2", "1000000"], env=options(job, "4MiB", WHYOOM_ALLOW_TMPFS="1"),
                    directory=directory, timeout=140)
        most = watch.end()
        t, = tracefile.traces(r.dir)
        sound_file(t)
        complete(t, leaks(job), 2)
        check(t.checkpoint >= 5 and most <= 4 << 20, "%d checkpoints, %d bytes", t.checkpoint, most)
        return "at most %d KiB of memory" % (most >> 10)
    finally:
        shutil.rmtree(directory)


@case
def checkpoints_without_memory(job):
    """From before the first checkpoint on the process gets no address space: checkpoints are
    written as ever without losses, since their memory was reserved."""
    r = job.run(["weeks", "2", "2000000"],
                env=options(job, "8MiB", TIGHT="350000", LEAK_EACH="200"), timeout=140)
    t, = tracefile.traces(r.dir)
    periods = sound_file(t)
    live = complete(t, leaks(job), 2)
    # more than small tables have in reserve for such a time
    check(t.checkpoint >= 3 and len(live) > 3500, "%d checkpoints, %d blocks", t.checkpoint,
          len(live))
    check(all(p.f["left_out"] == 0 for p in periods), "left out: %s",
          [p.f["left_out"] for p in periods])
    return "%d checkpoints, %d blocks live" % (t.checkpoint, len(live))


def killed(p, directory, n):
    """The trace that the process leaves when it is killed now; whole, with nothing dropped."""
    os.killpg(p.pid, signal.SIGKILL)
    p.wait()
    t, = tracefile.traces(directory)
    t.check_seals()
    check(not t.torn and not t.dropped, "kill %d: torn %s, dropped %s", n, t.torn, t.dropped)
    return t


@case
def checkpoints_killed(job):
    """SIGKILL at any moment, of a process that does little else than checkpoints."""
    times = min(int(os.environ.get("WHYOOM_TEST_KILLS", "40")), 400)
    rng, seen = random.Random(7), 0
    for n in range(times):
        open(job.path("leaked"), "wb").close()
        p, directory, _ = job.start(["weeks", "2", "0"], env=options(job, "1MiB"))
        deadline = time.monotonic() + 20
        while os.path.getsize(job.path("leaked")) < 64 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.05, 0.4))
        t = killed(p, directory, n)
        complete(t, leaks(job), 2, "kill %d: " % n)
        check(disk(directory) <= 1 << 20, "kill %d: %d bytes", n, disk(directory))
        seen += t.checkpoint
        shutil.rmtree(directory)
    check(seen > times, "%d checkpoints in %d runs", seen, times)
    return "%d kills, %d checkpoints" % (times, seen)


@case
def checkpoints_after_fork(job):
    """A child has checkpoints of its own, without its inherited blocks."""
    r = job.run(["weeks", "1", "2400000", "fork"], env=options(job, "2MiB"), timeout=140)
    parent, child = sorted(tracefile.traces(r.dir), key=lambda t: t.start_ticks)
    for t, n in ((parent, 0), (child, 1)):
        sound_file(t)
        check(t.checkpoint >= 5, "%d checkpoints", t.checkpoint)
        complete(t, leaks(job, t.pid), 1)
    inherited = {x[1] for x in leaks(job, parent.pid)}
    check(not inherited & {a for a, e in living(child).items() if e.size in LEAK_SIZES},
          "inherited blocks in the child's")
    return "%d and %d checkpoints" % (parent.checkpoint, child.checkpoint)


@case
def checkpoints_of_a_sample(job):
    """With a real sample a period's estimates are near the truth."""
    r = job.run(["weeks", "2", "3000000"], timeout=140, env=options(
        job, "1MiB", WHYOOM_EXACT_FROM="1MiB", WHYOOM_SAMPLE_EVERY="1000"))
    t, = tracefile.traces(r.dir)
    periods = sound_file(t)
    check(t.checkpoint >= 3, "%d checkpoints", t.checkpoint)
    until = t.until - t.start_ticks
    all_of_it = max(e.ticks for _, e in t.events()) - t.start_ticks
    stood = sum(p.f["acquired_bytes"] for p in periods)
    did = 2 * 3000000 * 515.5 * until / all_of_it
    check(abs(stood / did - 1) < 0.25, "%d bytes stand for %d", stood, did)
    leaked = {x[1] for x in leaks(job)}
    for a, e in living(t).items():
        check(e.size not in LEAK_SIZES or a in leaked, "a block lives that does not: %s", e)
    return "%d checkpoints; estimated %.3f of what was" % (t.checkpoint, stood / did)


LARGE = dict(WHYOOM_MODE="sampled", WHYOOM_SAMPLE_EVERY="1000", WHYOOM_MAX_TRACE="2MiB")


def mean(e):
    return (e.f or {}).get("mean", 0)


def stands_for(e):
    return 1 / -math.expm1(-e.size / mean(e)) if mean(e) else 1


def estimate(t):
    """Live blocks and bytes at the end, and the errors of both."""
    live = {}
    for _, e in t.events(("ALLOC", "FREE")):
        if e.kind == "FREE":
            live.pop(e.address, None)
        else:
            live[e.address] = e
    weights = [(stands_for(e), e.size) for e in live.values()]
    return (sum(w for w, _ in weights), math.sqrt(sum(w * w - w for w, _ in weights)),
            sum(w * s for w, s in weights), math.sqrt(sum((w * w - w) * s * s for w, s in weights)),
            live)


def thinned(t):
    """The mean of each such notice."""
    return [e.f[2] for e in sorted(t.all("NOTICE"), key=lambda e: e.ticks) if e.f[0] == 8]


@case
def checkpoints_of_a_large_live_set(job):
    """The live blocks would exceed the budget: recording goes on with ever fewer blocks that stand
    for more, and their estimate is the live total."""
    watch = Watch(job.path("trace1"))
    r = job.run(["hoards", "2", "2000000"], env=LARGE, timeout=140)
    most = watch.end()
    t, = tracefile.traces(r.dir)
    sound_file(t)
    check(most <= 2 << 20, "the file took %d bytes", most)
    said = thinned(t)
    check(said and said[-1] >= 4000, "said to be thinned: %s", said)
    check(not t.flags & 1, "the budget ended it")
    words = r.out.split()
    blocks, block_error, size, error, live = estimate(t)
    check(abs(blocks - int(words[1])) < 4 * block_error, "%d ± %d blocks live, of %s", blocks,
          block_error, words[1])
    check(abs(size - int(words[3])) < 4 * error and error < size / 20, "%d ± %d bytes live, of %s",
          size, error, words[3])
    # from the beginning to the end, not the latest alone
    ticks = sorted(e.ticks for e in live.values())
    middle = t.start_ticks + (ticks[-1] - t.start_ticks) // 2
    early = sum(stands_for(e) * e.size for e in live.values() if e.ticks < middle)
    check(0.2 * size < early < 0.8 * size, "%d of %d bytes are of the first half", early, size)
    equal(max(mean(e) for e in live.values()), said[-1], "the coarsest that lives")
    return "%d checkpoints, to one for %d bytes; %.1f %% off, said to be %.1f" % (
        t.checkpoint, said[-1], 100 * (size / int(words[3]) - 1), 100 * error / size)


@case
def checkpoints_of_what_was_large(job):
    """After the release of all blocks none lives: neither recorded nor omitted ones."""
    r = job.run(["hoards", "2", "1000000", "emptied"], env=LARGE, timeout=140)
    t, = tracefile.traces(r.dir)
    sound_file(t)
    check(thinned(t), "nothing was thinned")
    live = [e for e in estimate(t)[4].values() if mean(e)]
    # stdio's, threads' own
    check(len(live) <= 8, "%d blocks live: %s", len(live), live[:3])
    return "to one for %d bytes, %d live" % (thinned(t)[-1], len(live))


@case
def checkpoints_of_a_large_live_set_killed(job):
    """SIGKILL at any moment: live bytes by the record are those of then, within its stated
    error."""
    times = min(int(os.environ.get("WHYOOM_TEST_KILLS", "12")), 100)
    rng, seen = random.Random(11), 0
    for n in range(times):
        p, directory, _ = job.start(["hoards", "2", "4000000"], env=LARGE)
        time.sleep(rng.uniform(0.3, 1.2))
        t = killed(p, directory, n)
        check(disk(directory) <= 2 << 20, "kill %d: %d bytes", n, disk(directory))
        blocks, _, size, error, live = estimate(t)
        # a trace that had hardly begun proves nothing
        check(len(live) < 2000 or 0.9 < size / (blocks * 115.5) < 1.1,
              "kill %d: %d blocks, %d bytes", n, blocks, size)
        seen += bool(thinned(t))
        shutil.rmtree(directory)
    check(seen, "thinned in none of %d runs", times)
    return "%d kills, thinned by then in %d" % (times, seen)


@case
def checkpoints_with_ever_new_stacks(job):
    """Stacks are never replaced: once they have taken their share, new ones are abbreviated to ever
    fewer frames. All blocks are recorded, and it goes on."""
    watch = Watch(job.path("trace1"))
    r = job.run(["paths", "2", "400000"], env=options(job, "2MiB"), timeout=140)
    most = watch.end()
    t, = tracefile.traces(r.dir)
    sound_file(t)
    check(most <= 2 << 20, "the file took %d bytes", most)
    check(not t.flags & 1 and t.checkpoint >= 5, "flags %#x, %d checkpoints", t.flags, t.checkpoint)
    definitions = sum(c["bytes"] for c in t.chunks if c["type"] == 2)
    check(definitions <= (2 << 20) * 3 / 8 + (192 << 10), "definitions take %d bytes", definitions)
    check(t.brief_stacks > 100 and not t.untold, "%d stacks in brief, %d events without",
          t.brief_stacks, t.untold)
    ours = {a: e for a, e in living(t).items() if e.size in LEAK_SIZES}
    leaked = leaks(job)
    missing = [x for x in leaked if x[1] not in ours or ours[x[1]].size != x[2]]
    check(not missing, "%d of %d leaked blocks are missing: %s", len(missing), len(leaked),
          missing[:5])
    # the first are whole as ever; abbreviated: the innermost, a mark, the outermost
    depths = {}
    for e in ours.values():
        frames = t.stack(e.stack) if e.stack else []
        depths.setdefault(len(frames), []).append([k[0] for k in frames])
    check(max(depths) > 40, "whole stacks: %s", sorted(depths))
    brief = [f for n, stacks in depths.items() if 0 < n < 40 for f in stacks]
    check(brief and all(f.count("cut") == 1 and len(f) in (9, 17) for f in brief), "in brief: %s",
          brief[:2])
    check(not depths.get(0), "%d blocks have no stack", len(depths.get(0, ())))
    return "%d checkpoints, %d KiB of definitions; of %d blocks %d are told in brief" % (
        t.checkpoint, definitions >> 10, len(ours), len(brief))


def rebuilds(job, budget, first, more):
    """A buffer made anew at each turn until the address space is used up: its trace, and the
    report's verdict."""
    r = job.run(["rebuilds", "3000", str(first), str(more)], rc=3,
                env=options(job, budget, ROOM=str(300 << 20)))
    t, = tracefile.traces(r.dir)
    sound_file(t)
    if "WHYOOM_EXE" not in os.environ:
        return t, None
    done = subprocess.run([os.environ["WHYOOM_EXE"], "report", "--format", "json", r.dir],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, "report: %s", done.stderr)
    return t, json.loads(done.stdout)["verdict"]


@case
def growth_through_checkpoints(job):
    """A buffer made anew at each turn and released leaves one survivor; the released ones tell
    whether it grew, and none grows if all are alike. Each period has its own, in the order of
    time."""
    said = []
    for first, more in ((65536, 65536), (64 << 20, 0)):
        t, verdict = rebuilds(job, "1MiB", first, more)
        check(t.checkpoint >= 5, "%d checkpoints", t.checkpoint)
        periods = sorted(t.all("CHECKPOINT"), key=lambda e: e.ticks)
        went = sorted((e for e in t.all("WENT") if e.size >= 65536), key=lambda e: e.ticks)
        equal(len(went), len(periods), "periods that know of the buffers")
        equal(len({e.stack for e in went}), 1, "their stacks")
        turn = 0
        for e, p in zip(went, periods):
            turn += e.f["blocks"]
            # Of each period all but the one that lives at its end, which is the next one's.
            check(e.size == first + (turn - 1) * more, "turn %d: a buffer of %d bytes", turn,
                  e.size)
            check(p.f["begin"] <= e.ticks <= p.ticks or e.f["blocks"] == 1, "%s, in %s", e, p)
            check(e.f["bytes"] == sum(first + k * more for k in range(turn - e.f["blocks"], turn)),
                  "%d bytes", e.f["bytes"])
            check(0 < e.f["life"] <= e.f["longest"] <= p.ticks - t.start_ticks, "lifetimes: %s",
                  e.f)
            check(e.f["bytes"] <= p.f["released_bytes"] and e.f["blocks"] <= p.f["released"],
                  "of %s", p.f)
        check(turn > 1000, "%d turns are told", turn)
        if not verdict:
            continue
        who = (verdict["blame"] or {}).get("function")
        said.append("%s of %s, %.2f sure" % (verdict["cause"], who, verdict["confidence"]))
        if more:
            equal((verdict["cause"], who), ("prompt-growth", "compose"), "who grew")
            _, whole = rebuilds(job, "256MiB", first, more)
            equal((whole["cause"], whole["blame"]["function"]), ("prompt-growth", "compose"),
                  "with room for everything")
            check(verdict["confidence"] >= whole["confidence"] - 0.2, "%s; with room %.2f", said,
                  whole["confidence"])
        else:
            check(verdict["cause"] != "prompt-growth" and who != "compose", "nothing grew: %s",
                  said)
    return "; ".join(said) or "no analyzer in this build"


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
