#!/usr/bin/env python3
"""The address space comes to its end: no event is lost, failures are cheap, the recorder's share is
recorded."""

import sys

from harness import *

CASES = {}
AS, WHYOOM, MAPPINGS, STARTED, LIMIT_AS, LIMIT_MAPPINGS = 5, 13, 27, 28, 128, 130


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def failures(t, at_least):
    """Each has its stack; the first has levels, the recorder's own among them, and so has one in a
    while."""
    failed = sorted(t.all("FAILED"), key=lambda e: e.ticks)
    check(len(failed) >= at_least, "%d FAILED", len(failed))
    for e in failed:
        check(t.stacks.get(e.fields[7]), "a failure without a stack: %s", e.fields)
    levels = dict(failed[0].levels)
    check(levels.get(WHYOOM) and levels.get(AS) and levels.get(LIMIT_AS), "levels of the first: %s",
          levels)
    told = [e for e in failed if e.levels]
    seconds = (t.ns(failed[-1].ticks) - t.ns(failed[0].ticks)) / 1e9
    check(len(told) <= seconds * 200 + 1, "%d of %d failures in %.3f s have levels", len(told),
          len(failed), seconds)
    return len(failed), len(told)


@case
def exhausted(job):
    """Four threads at RLIMIT_AS, and a fifth that is born there: every failure, every block."""
    r = job.run(["exhaust", "as", "4", "60000"])
    t = r.trace()
    sound(t)
    many, told = failures(t, 5 * 60000)
    total = 0
    for line in r.out.splitlines():
        tid, failed, done = [int(x) for x in line.split()[1:]]
        events = t.thread(tid, marked=False)
        equal(sum(e.kind == "FAILED" and e.fields[4] == 1 << 40 for e in events), failed,
              "failures of thread %d" % tid)
        equal(sum(e.kind == "ALLOC" and e.size == 40 for e in events) % 100, done % 100,
              "blocks of thread %d" % tid)
        total += done
    depths = {len(t.stacks[e.fields[7]]) for e in t.all("FAILED")}
    check(len(depths) > 250, "%d depths", len(depths))
    return "%d failures, %d with levels; %d small blocks" % (many, told, total)


@case
def exhausted_python(job):
    """The same from Python: the lines are there, too."""
    script = job.path("eat.py")
    with open(script, "w") as f:
        f.write(EAT)
    r = job.run([sys.executable, script])
    t = r.trace()
    sound(t)
    caught = int(r.out)
    check(caught >= 4 * 3000, "%d MemoryErrors", caught)
    many, told = failures(t, caught)
    return "%d failures, %d with levels" % (many, told)


EAT = """
import resource, threading
caught = [0] * 4
ready, go = threading.Barrier(5), threading.Barrier(5)

def deeper(n):
    return deeper(n - 1) if n else bytearray(1 << 40)

def eat(me):
    ready.wait()
    go.wait()
    kept = []
    for i in range(3000):
        try:
            while True:
                kept.append(deeper(i % 50) if i % 7 == 0 else bytearray(1 << 40))
        except MemoryError:
            caught[me] += 1

threads = [threading.Thread(target=eat, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
ready.wait()
with open("/proc/self/statm") as f:
    now = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (64 << 20), now + (64 << 20)))
kept = []
for size in (16 << 20, 1 << 20, 128 << 10):
    try:
        while True:
            kept.append(bytearray(size))
    except MemoryError:
        pass
go.wait()
for t in threads:
    t.join()
del kept
print(sum(caught))
"""


@case
def stack_refused(job):
    """The C library maps a thread's stack by itself; its refusal is recorded all the same."""
    r = job.run(["exhaust", "stacks"])
    t = r.trace()
    sound(t)
    check(1 < int(r.out) < 43, "%s threads", r.out)
    failed = [e for e in t.all("FAILED") if e.fields[4] == 24 << 20]
    equal([e.fields[1] for e in failed], [14], "a refused stack")
    check(dict(failed[0].levels).get(AS), "levels: %s", failed[0].levels)
    equal(dict(failed[0].levels).get(STARTED), int(r.out), "threads that were started")
    return "after %s threads" % r.out.strip()


@case
def mappings_used_up(job):
    """There is memory and address space, but no mapping left: the number of mappings is
    recorded."""
    with open("/proc/sys/vm/max_map_count") as f:
        most = int(f.read())
    if most > 300000:
        raise Skip("%d mappings are allowed here" % most)
    r = job.run(["exhaust", "mappings"])
    t = r.trace()
    sound(t)
    failed = sorted(t.all("FAILED"), key=lambda e: e.ticks)  # the heap's is refused, too
    equal(failed[0].fields[1], 8, "by mmap")
    levels = dict(failed[0].levels)
    equal(levels.get(LIMIT_MAPPINGS), most, "what is allowed")
    check(most - 5 <= levels.get(MAPPINGS, 0) <= most + 5, "%s mappings, %d are allowed",
          levels.get(MAPPINGS), most)
    check(most - 500 < int(r.out) <= most, "%s mappings were made", r.out)
    return "%s of %d" % (levels[MAPPINGS], most)


@case
def failure_storm(job):
    """A program that tries again and again: a failed call costs no look into /proc."""
    r = job.run(["exhaust", "storm", "100000"])
    plain = job.run(["exhaust", "storm", "100000"], preload=False)
    t = r.trace()
    sound(t)
    equal(len(t.all("FAILED")), 100000, "failures")
    check(dict(t.all("FAILED")[0].levels).get(WHYOOM), "levels of the first")
    told = sum(bool(e.levels) for e in t.all("FAILED"))
    check(told <= r.seconds * 200 + 1, "%d failures have levels", told)
    return "%d ns more than %d; %d of 100000 with levels" % (int(r.out) - int(plain.out),
                                                             int(plain.out), told)


def mappings(text):
    total, trace = 0, 0
    for line in text.splitlines():
        low, high = [int(x, 16) for x in line.split()[0].split("-")]
        if "[vsyscall]" not in line:
            total += high - low
            trace += high - low if line.endswith(".whyoom") else 0
    return total, trace


@case
def own_share(job):
    """The level WHYOOM is the bytes of mappings that the process would not have without the
    recorder."""
    r = job.run(["exhaust", "maps"])
    told = dict(r.trace().all("FAILED")[0].levels)[WHYOOM]
    total, trace = mappings(r.out)
    without, _ = mappings(job.run(["exhaust", "maps"], env={"WHYOOM_OFF": "1"}).out)
    check(trace < told, "the trace alone has %d, told are %d", trace, told)
    check(abs(total - without - told) <= 64 << 10, "%d with, %d without: %d, told are %d", total,
          without,
          total - without, told)
    return "%d KiB" % (told >> 10)


ARENA, MMAP, USED, FREE = 64, 65, 66, 67


def allocator(name):
    found = [path for m in ("x86_64", "aarch64")
             for path in ["/usr/lib/%s-linux-gnu/%s" % (m, name)]
             if os.path.exists(path)]
    check(found, "%s is not installed", name)
    return SHIM + ":" + found[0]


def accounts(t):
    """The allocator's account at each failure of a gibibyte, None without one."""
    levels = [dict(e.levels) for e in sorted(t.all("FAILED"), key=lambda e: e.ticks)
              if e.fields[4] == 1 << 30]
    return [[l[k] for k in (ARENA, MMAP, USED, FREE)] if ARENA in l else None for l in levels]


@case
def allocator_account(job):
    """glibc's total, to the byte as it tells the program itself."""
    r = job.run(["heap", "account"])
    got, want = accounts(r.trace())[0], [int(n) for n in r.out.split()]
    equal(got, want, "arena, mmapped, used, free")
    equal(got[0], got[2] + got[3], "used and free")
    check(got[3] > 5_000_000 and got[1] >= 4 * (3 << 20), "%s", got)
    return "%d KiB free of %d" % (got[3] >> 10, (got[0] + got[1]) >> 10)


def near_account(job, library):
    t = (r := job.run(["heap", "account"], preload=allocator(library))).trace()
    sound(t)
    got, want = accounts(t)[0], [int(n) for n in r.out.split()]
    for mine, its in zip(got, want):
        check(abs(mine - its) <= 256 << 10, "%s, and to the program %s", got, want)
    check(got[2] > 22_000_000, "%s used", got[2])


@case
def allocator_account_jemalloc(job):
    """The same of jemalloc, from its own statistics."""
    near_account(job, "libjemalloc.so.2")


@case
def allocator_account_tcmalloc(job):
    """And of tcmalloc."""
    near_account(job, "libtcmalloc_minimal.so.4")


@case
def allocator_account_mimalloc(job):
    """mimalloc only tells its total: at least the bytes it has handed out, and not the double."""
    t = job.run(["heap", "account"], preload=allocator("libmimalloc.so.2")).trace()
    sound(t)
    levels = [dict(e.levels) for e in t.all("FAILED") if e.fields[4] == 1 << 30][0]
    check(FREE not in levels and 22_000_000 < levels[ARENA] + levels[MMAP] < 100_000_000, "%s",
          levels)


@case
def allocator_asked_while_it_grows(job):
    """A killed process cannot be asked any more: the account in the trace is at most an eighth
    old."""
    t = job.run(["heap", "grow"], rc=-9).trace()
    sound(t)
    told = [dict(e.levels) for e in sorted(t.all("LEVEL"), key=lambda e: e.ticks)]
    asked = [levels for levels in told if ARENA in levels]
    check(3 <= len(asked) <= 16, "asked %d times", len(asked))
    rss = 1
    for earlier, later in zip(asked, asked[1:]):
        check(later[rss] > earlier[rss] * 9 // 8, "from %d to %d", earlier[rss], later[rss])
    last = asked[-1]
    check(told[-1][rss] <= last[rss] + last[rss] // 8 + (8 << 20), "%d, and asked at %d",
          told[-1][rss], last[rss])
    check(last[USED] > 40_000_000 and last[USED] + last[FREE] == last[ARENA], "%s", last)
    return "%d times" % len(asked)


@case
def allocator_not_asked(job):
    """In a signal handler or a forked child the allocator is not asked: its lock may be held for
    ever."""
    r = job.run(["heap", "handler"])
    got = accounts(r.trace())
    check(len(got) == 2 and not got[0] and got[1], "in a handler, then in main: %s", got)
    r = job.run(["heap", "fork"])
    traces = {t.pid: accounts(t) for t in r.traces if t.all("FAILED")}
    parent = traces.pop(r.pid)
    check(len(parent) == 1 and parent[0], "in the parent: %s", parent)
    equal(list(traces.values()), [[None]], "in the child")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
