#!/usr/bin/env python3
"""SIGKILL at any moment while rights are given up, one after the other: every event whose call had
returned is in a trace, or counted for the right that ended the recording."""

import random
import sys

from harness import *
from test_guest import open_to_all, root
from test_rights import all_traces, counters, rights_of

CASES = {}
# The number of kills, as in test_kill.py, but small by default.
TIMES = int(os.environ.get("WHYOOM_TEST_KILLS", "12"))
WAYS = [["setgroups", "setgid", "setuid"], ["chroot"], ["seteuid", "again", "chroot", "setuid"],
        ["fork", "setuid", "fork"],
        ["thread", "setgid", "setuid", "thread"], ["unshare", "setuid"], ["capset", "chroot"],
        ["landlock", "setuid"],
        ["harmless-filter", "no-opening", "setuid"], ["no-mapping"], ["sandbox"],
        ["thread", "chroot", "no-opening"]]


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def begun(path):
    with open(path, "rb") as f:
        return any(f.read(8))


@case
def kill_while_rights_go(job):
    """Random SIGKILLs of all its processes, between the start and some chunks after the last
    right."""
    if RUNNER:
        raise Skip("emulated")
    root()
    rng = random.Random(4711)
    events = named = struck = late = 0
    for n in range(4 * TIMES):
        if struck == TIMES:
            break
        here = Job("kill-rights")
        shim = open_to_all(here)
        os.mkdir(here.path("place"))
        p, directory, _ = here.start(["rights", "0", *WAYS[n % len(WAYS)]], preload=shim,
                                     directory=here.path("t"),
                                     env={"COUNTERS": here.path("counters"),
                                          "PLACE": here.path("place")},
                                     stderr=subprocess.DEVNULL)
        path = here.path("counters")
        limit = time.monotonic() + 30
        while p.poll() is None and time.monotonic() < limit and not (os.path.exists(path)
                                                                     and any(c[2]
                                                                             for c in counters(
                                                                                 path))):
            time.sleep(0.0005)
        # half of them while the rights go, half when chunks come after that
        time.sleep(min(rng.expovariate(300), 0.03) if n % 2 else rng.uniform(0.01, 0.06))
        if p.poll() is not None:  # this kernel lacks one of them
            here.close(keep=False)
            continue
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        limit = time.monotonic() + 10
        while time.monotonic() < limit and any(running(c[1]) for c in counters(path)):
            time.sleep(0.005)
        counted = [c for c in counters(path) if c[2]]
        traces = all_traces_begun(here.path("t"))
        dropped = {t.pid: t.drops for t in traces}
        for t in traces:
            check(not t.torn and not t.bad_checksums, "kill %d: torn %d, checksums %d", n, t.torn,
                  t.bad_checksums)
            check(set(t.drops) <= {"rights"}, "kill %d (%s): dropped %s", n, WAYS[n % len(WAYS)],
                  t.drops)
        told = {}
        for t in traces:
            for serial, evs in t.events_of.items():
                key = t.pid, t.tids[serial]
                told[key] = told.get(key, 0) + sum(e.kind == "ALLOC" and e.size == 902 for e in evs)
        for pid, tid, blocks in counted:
            got = told.get((pid, tid), 0)
            lost = blocks - got
            if lost <= 0:
                check(lost >= -1, "kill %d: %d blocks returned, %d recorded", n, blocks, got)
            elif pid in dropped:
                check(dropped[pid].get("rights", 0) >= lost,
                      "kill %d (%s): %d of %d blocks are missing, dropped: %s", n,
                      WAYS[n % len(WAYS)], lost, blocks, dropped[pid])
            else:  # a child without a trace is counted in its parent's
                check(any(rights_of(t)[2] for t in traces), "kill %d (%s): no trace holds %d", n,
                      WAYS[n % len(WAYS)], tid)
            events += min(blocks, got)
            named += max(lost, 0)
        struck += 1
        late += any(rights_of(t)[0] for t in traces)
        here.close(keep=False)
    equal(struck, TIMES, "kills that struck a running program")
    check(late * 3 >= struck, "only %d of %d came after a right was given up", late, struck)
    return ("0 events lost without being named of %d in %d kills, %d of them after a right was "
            "given up; %d named") % (
        events, struck, late, named)


def running(tid):
    try:
        with open("/proc/%d/stat" % tid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_traces_begun(directory):
    """Except for files whose process was killed while it made them: before its first call
    returned."""
    for top, _, names in os.walk(directory):
        for n in names:
            if n.endswith(".whyoom") and not begun(os.path.join(top, n)):
                os.unlink(os.path.join(top, n))
    return all_traces(directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
