#!/usr/bin/env python3
"""The disk space of traces: the bound for all of a run together, and the traces of processes that
recorded little, which share a file."""

import collections
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import CLEAN_ENV, SHIM, Skip, Trace, check, equal, main, small, sound
from test_guest import mounted, unmount

CASES = {}
WHYOOM = os.environ.get("WHYOOM_EXE")
MIB = 1 << 20
ACCOUNT = "disk.account"
# Outside the bound: the account, the folder, and the file system's own blocks for a file's map.
OVERSHOOT = 4096 + 4096 + 64 * 4096
FLAG_BUDGET, FLAG_DISK = 1, 16


def case(fn):
    CASES[fn.__name__.replace("_", "-")] = fn
    return fn


def needs(program):
    path = shutil.which(program)
    if not path:
        raise Skip("no %s here" % program)
    return path


def usage(directory):
    """Bytes on the disk of all files there."""
    total = 0
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        try:
            total += os.lstat(os.path.join(directory, name)).st_blocks * 512
        except FileNotFoundError:
            pass
    return total


def account(directory):
    with open(os.path.join(directory, ACCOUNT), "rb") as f:
        magic, version, _, bound, held = struct.unpack("<8sIIQq", f.read(32))
    equal((magic, version), (b"WHYOOMD\n", 1), "the account")
    return bound, held


def checked(directory, status=0):
    """The summary of `whyoom check`: processes, and the directory."""
    if not WHYOOM:
        raise Skip("no analyzer in this build")
    r = subprocess.run([WHYOOM, "check", "--format", "json", directory], env=CLEAN_ENV,
                       stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    check(r.returncode == status and not r.stderr, "check ended with %d: %s", r.returncode,
          r.stderr.decode())
    said = json.loads(r.stdout)
    return said["processes"], said["directories"][0]


def counted(directory):
    """The account equals the files: traces take whole slots, files of small ones their bytes."""
    there = sum(os.path.getsize(os.path.join(directory, n)) for n in os.listdir(directory)
                if n.endswith((".whyoom", ".whyooms")))
    equal(account(directory)[1], there, "bytes in the account")


def bound_kept(job, mode, bound):
    """Sixteen processes at once, each of which would take more than its share."""
    directory = job.path("trace")
    env = {"WHYOOM_MAX_DISK": str(bound), "WHYOOM_MODE": mode, "WHYOOM_EXACT_FROM": "1",
           "LEAKED": job.path("leaked")}
    started = [job.start(["weeks", "2", "60000"], env=env, directory=directory)[0]
               for _ in range(16)]
    most = 0
    while any(p.poll() is None for p in started):
        most = max(most, usage(directory))
        time.sleep(0.01)
    most = max(most, usage(directory))
    equal({p.returncode for p in started}, {0}, "exit status")
    check(most <= bound + OVERSHOOT, "%d bytes on the disk at a time, of %d", most, bound)
    equal(account(directory)[0], bound, "the bound in the account")
    traces = [Trace(os.path.join(directory, n)) for n in os.listdir(directory)
              if n.endswith(".whyoom")]
    check(4 <= len(traces) <= 16, "%d traces", len(traces))  # latecomers may have none
    return directory, traces, most


@case
def disk_bound(job):
    bound = 12 * MIB
    directory, traces, most = bound_kept(job, "full", bound)
    check(most > bound * 3 // 4, "only %d bytes were used", most)
    for t in traces:
        sound(t, drops=("budget",))
    over = [t for t in traces if t.flags & FLAG_BUDGET]
    check(over and all(t.flags & FLAG_DISK and t.drops for t in over), "flags %s",
          [t.flags for t in traces])
    if WHYOOM:
        processes, folder = checked(directory)
        equal({p["disk_bound_reached"] for p in processes if p["budget_reached"]}, {True},
              "disk_bound_reached")
        equal(folder["disk_bound"], bound, "disk_bound")
        text = subprocess.run([WHYOOM, "check", directory], stdout=subprocess.PIPE,
                              env=CLEAN_ENV).stdout.decode()
        text = " ".join(text.split())
        check("WHYOOM_MAX_DISK" in text and "of at most 12.0 MiB" in text, "check says: %s",
              text[-600:])
    return "%.1f of %d MiB" % (most / MIB, bound // MIB)


@case
def disk_bound_sampled(job):
    """They free room and go on: blocks that live at the end were there all the time."""
    bound = 12 * MIB
    directory, traces, most = bound_kept(job, "sampled", bound)
    check(any(t.checkpoint for t in traces), "nobody made a checkpoint")
    for t in traces:
        sound(t, drops=("budget",))
    return "%.1f of %d MiB, %d with a checkpoint" % (
        most / MIB, bound // MIB, sum(1 for t in traces if t.checkpoint))


@case
def disk_bound_default(job):
    """A tenth of the free space, 16 GiB at most."""
    top = mounted(job, "tmpfs", "size=64m,mode=777")
    try:
        job.run(["guest", "many", "100000"], directory=top + "/t", env={"WHYOOM_ALLOW_TMPFS": "1"})
        check(6 * MIB < account(top + "/t")[0] <= 64 * MIB // 10, "bound %d",
              account(top + "/t")[0])
    finally:
        unmount(top)


@case
def disk_bound_too_small(job):
    """Not even the first file has room: reported once, and the program runs."""
    r = job.run(["guest", "nothing"], env={"WHYOOM_MAX_DISK": "4KiB"})
    check(not r.files and r.err.count("\n") == 1 and "WHYOOM_MAX_DISK" in r.err, "stderr: %r",
          r.err)


@case
def disk_account_damaged(job):
    """Any other file in the account's place: the program is recorded."""
    for i, content in enumerate((b"", b"x", b"\xff" * 4096, os.urandom(4096),
                                 b"WHYOOMD\n" + b"\xff" * 4088, None)):
        directory = job.path("d%d" % i)
        os.mkdir(directory, 0o700)
        if content is None:
            os.mkdir(os.path.join(directory, ACCOUNT))
        else:
            with open(os.path.join(directory, ACCOUNT), "wb") as f:
                f.write(content)
        sound(job.run(["guest", "many", "1000"], directory=directory).trace())


def start_small(directory, argv, **more):
    env = dict(CLEAN_ENV, WHYOOM_DIR=directory, LD_PRELOAD=SHIM, WHYOOM_MODE="full")
    return subprocess.Popen(argv, env=env, **{"stdin": subprocess.DEVNULL, **more})


@case
def small_traces(job):
    """A thousand processes leave less than 1,000 KiB in two files, and every one that recorded
    events is there."""
    directory = job.path("t")
    kinds = [[needs("perl"), "-e", "1"], [needs("true")], [needs("sh"), "-c", ":"]]
    pids = collections.defaultdict(list)
    for i in range(1000):
        p = start_small(directory, kinds[i % 3])
        equal(p.wait(), 0, "exit status")
        pids[i % 3].append(p.pid)
    taken = usage(directory)
    check(taken <= 1000 * 1024, "%d KiB", taken // 1024)
    equal(sorted(os.listdir(directory)), [ACCOUNT, "small.0.whyooms"], "files")
    counted(directory)
    said = "%d KiB" % (taken // 1024)
    if not WHYOOM:
        return said
    processes, _ = checked(directory)
    found = collections.Counter(p["pid"] for p in processes)
    equal({found[p] for p in pids[0]}, {1}, "how often each of perl is there")
    check(all(p["whole"] and p["complete"] and p["small"] and p["end"] == {"how": "exit", "code": 0}
              for p in processes),
          "not all are whole")
    # the other reader sees the same
    with open(os.path.join(directory, "small.0.whyooms"), "rb") as f:
        data = f.read()
    by = {(p["pid"], p["image"]): p for p in processes}
    for i, (pid, image, _, raw) in enumerate(small.traces(data)):
        if i == 20:
            break
        t = Trace("%d.%d" % (pid, image), raw)
        sound(t)
        counts, p = t.check(), by[pid, image]
        equal([counts[k] for k in ("events", "stacks", "spaces")],
              [p["events"], p["stacks"], [{k: v for k, v in p["spaces"][0].items()}]],
              "counts of %d" % pid)
    return said


@case
def small_traces_read_as_before(job):
    """One by its name, the whole file, torn and doubled: each trace once."""
    directory = job.path("t")
    argv, pids = [needs("perl"), "-e", "$| = 1; print 1; <>"], []
    for i in range(5):
        p = start_small(directory, argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(p.stdout.read(1), b"1", "the sign that it records")
        if i == 2:
            with open(os.path.join(directory, "%d.0.whyoom" % p.pid), "rb") as f:
                own = f.read()
        p.communicate()
        pids.append(p.pid)
    shared = os.path.join(directory, "small.0.whyooms")
    with open(shared, "rb") as f:
        data = f.read()
    whole = list(small.traces(data))
    equal([t[0] for t in whole], pids, "processes")
    # as if one had been killed before it could remove its own
    with open(os.path.join(directory, "%d.0.whyoom" % pids[2]), "wb") as f:
        f.write(own)
    for name in ("7.0.whyoom", "8.0.whyoom"):  # and others before they could write any event
        with open(os.path.join(directory, name), "wb") as f:
            f.truncate(65536 if name[0] == "7" else 0)
    processes, folder = checked(directory)
    equal(sorted(p["pid"] for p in processes), sorted(pids), "processes, one with two traces")
    equal([p["small"] for p in processes if p["pid"] == pids[2]], [False], "its own file counts")
    equal(folder["empty"], ["7.0.whyoom", "8.0.whyoom"], "files that hold nothing yet")
    text = subprocess.run([WHYOOM, "check", directory], stdout=subprocess.PIPE, env=CLEAN_ENV)
    check(text.returncode == 0
          and b"2 files have no data yet: 7.0.whyoom, 8.0.whyoom" in text.stdout,
          "check says: %s",
          text.stdout.decode()[-400:])
    for name, count in (("%d.0.whyoom" % pids[1], 1), ("small.0.whyooms", 5)):
        equal(len(checked(os.path.join(directory, name))[0]), count, "traces in %s" % name)
    # killed within that write: all of it is in its own file; without that one it is lost
    third = [i for i in range(len(data)) if data.startswith(small.MAGIC, i)][2]
    with open(shared, "wb") as f:
        f.write(data[:third + 100])
    equal(sorted(p["pid"] for p in checked(directory)[0]), sorted(pids[:3]),
          "one that was not done")
    for name in ("7.0.whyoom", "8.0.whyoom", "%d.0.whyoom" % pids[2]):
        os.unlink(os.path.join(directory, name))
    equal(checked(directory, status=1)[1]["files_left_out"], 1, "lost ones")
    # a write that was cut short costs its own trace, and none after it
    with open(shared, "wb") as f:
        f.write(data[:-100])
    p = start_small(directory, argv)
    p.wait()
    processes, folder = checked(directory, status=1)
    equal(sorted(x["pid"] for x in processes), sorted(pids[:4] + [p.pid]), "after a torn record")
    check(folder["files_left_out"] == 1 and folder["bytes_left_out"] > 100,
          "the torn one is not told")
    for command in (["report"], ["sites"], ["replay"]):
        r = subprocess.run([WHYOOM] + command + [os.path.join(directory, "%d.0.whyoom" % pids[0])],
                           env=CLEAN_ENV,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(r.returncode == 0 and r.stdout, "%s ended with %d: %s", command, r.returncode,
              r.stderr.decode())


@case
def small_traces_emptied(job):
    """A file of small traces without any: no process came so far, or it lost all, which the account
    tells."""
    directory = job.path("t")
    shared = os.path.join(directory, "small.0.whyooms")
    p = start_small(directory, [needs("perl"), "-e", "$| = 1; print 1; <>"], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE)
    equal(p.stdout.read(1), b"1", "the sign that it records")
    p.kill()
    p.communicate()
    open(shared, "w").close()
    equal(checked(directory)[1]["files_left_out"], 0, "lost ones")
    equal(start_small(directory, [needs("perl"), "-e", "1"]).wait(), 0, "exit status")
    size = os.path.getsize(shared)
    os.truncate(shared, 0)
    folder = checked(directory, status=1)[1]
    equal((folder["files_left_out"], folder["bytes_left_out"]), (1, size), "lost ones")


@case
def small_traces_killed(job):
    """Killed at any moment, a process's trace is there once: alone, or among the others."""
    directory, rounds = job.path("t"), 300
    argv = [needs("perl"), "-e", "$| = 1; print 1; $x .= 'y' x 100 for 1 .. 100"]
    pids, rng, longest = [], random.Random(7), 0.0
    for _ in range(20):
        p = start_small(directory, argv, stdout=subprocess.PIPE)
        p.stdout.read(1)
        begin = time.monotonic()
        p.wait()
        longest = max(longest, time.monotonic() - begin)
        pids.append(p.pid)
    for _ in range(rounds):
        p = start_small(directory, argv, stdout=subprocess.PIPE)
        equal(p.stdout.read(1), b"1", "the sign that it records")
        until = time.monotonic() + rng.uniform(0, longest)
        while time.monotonic() < until:
            pass
        p.send_signal(signal.SIGKILL)
        p.wait()
        pids.append(p.pid)
    processes, folder = checked(directory)
    found = collections.Counter(p["pid"] for p in processes)
    wrong = {p: found[p] for p in pids if found[p] != 1}
    check(not wrong, "not there once: %s", wrong)
    check(all(p["whole"] for p in processes), "not all are whole")
    own, shared = [sum(p["small"] == x for p in processes) for x in (False, True)]
    check(own > 10 and shared > 20, "%d alone, %d shared: the moments were ill chosen", own, shared)
    equal(folder["empty"], [], "files that hold nothing")
    return "%d alone, %d among the others" % (own, shared)


@case
def small_traces_at_once(job):
    """Many processes append to the file at the same moment."""
    directory = job.path("t")
    script = "for i in 1 2 3 4 5 6 7 8; do (for k in 1 2 3 4 5; do perl -e 1; done) & done; wait"
    needs("perl")
    started = [start_small(directory, [needs("sh"), "-c", script]) for _ in range(4)]
    equal({p.wait() for p in started}, {0}, "exit status")
    counted(directory)
    processes, _ = checked(directory)
    perl = [p for p in processes if p["exe"] and p["exe"].endswith("perl")]
    equal((len(perl), len({p["pid"] for p in perl})), (160, 160), "processes of perl")
    check(all(p["whole"] for p in processes), "not all are whole")
    # a replaced image's trace went there with its successor's
    equal({p["image"] for p in perl}, {0, 1} & {p["image"] for p in perl}, "images")


@case
def small_traces_on_a_full_disk(job):
    """Until it is full, and then: no signal, and existing traces are whole."""
    top = mounted(job, "tmpfs", "size=600k,mode=777")
    directory, argv = top + "/t", [needs("perl"), "-e", "1"]
    try:
        env = dict(CLEAN_ENV, WHYOOM_DIR=directory, LD_PRELOAD=SHIM, WHYOOM_ALLOW_TMPFS="1",
                   WHYOOM_QUIET="1",
                   WHYOOM_MAX_DISK="1GiB")
        for _ in range(300):
            equal(subprocess.run(argv, env=env, stdin=subprocess.DEVNULL).returncode, 0,
                  "exit status")
        check(os.statvfs(top).f_bavail * 4096 < 200 << 10, "the disk is not full")
        with open(directory + "/small.0.whyooms", "rb") as f:
            data = f.read()
        traces = [t for t, _ in zip(small.traces(data), range(10))]
        check(len(traces) == 10, "%d traces", len(traces))
        for pid, image, _, raw in traces:
            sound(Trace("%d.%d" % (pid, image), raw))
    finally:
        unmount(top)


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
