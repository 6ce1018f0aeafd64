#!/usr/bin/env python3
"""Rights that are given up: the recording goes on, or the losses are counted and their reason
named."""

import stat
import sys

from harness import *
from test_guest import open_to_all, root

CASES = {}
BLOCKS = 60000  # more than fits into a chunk, so that there are new ones on the way
# In the header: the times by enum trace_right, the start of losses, children, and the right
RIGHTS = 512
KINDS = ["unknown", "user", "group", "capability", "root", "namespace", "seccomp", "landlock"]


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def rights_of(t):
    """The header: the rights that were given up, whether events are lost for it by now, the number
    of children without a trace, and the right that caused that."""
    ticks = struct.unpack_from("<16Q", t.data, RIGHTS)
    stopped, children, kind = struct.unpack_from("<QQI", t.data, RIGHTS + 128)
    return {KINDS[i] for i, n in enumerate(ticks) if n}, bool(stopped), children, KINDS[kind]


def counters(path):
    """[(pid, tid, blocks)] of the program's processes and threads."""
    with open(path, "rb") as f:
        data = f.read()
    rows = [struct.unpack_from("<3Q", data, at) for at in range(64, len(data), 64)]
    return [row for row in rows if row[1]]


def all_traces(directory):
    """The traces of the directory, and of its users' directories."""
    found = []
    for top, _, names in os.walk(directory):
        found += [Trace(os.path.join(top, n)) for n in names if n.endswith(".whyoom")
                  and n[0].isdigit()]
        found += [Trace(*t) for t in small.there(top)]
    return found


def give_up(job, *ways, blocks=BLOCKS, env=None, preload=None, rc=0, **kw):
    """Run the program; return its traces, and for each of its threads the numbers of its blocks and
    of its recorded ones."""
    if RUNNER:
        raise Skip("emulated")
    root()
    shim = open_to_all(job)
    os.makedirs(job.path("place"))
    r = job.run(["rights", str(blocks), *ways], preload=preload or shim, rc=None,
                directory=job.path("t"),
                env={"COUNTERS": job.path("counters"), "PLACE": job.path("place"), **(env or {})},
                **kw)
    if r.rc == 77:
        raise Skip("this kernel does not know " + ways[-1])
    check(r.rc == rc, "%s ended with %s; %s", ways, how(r.rc), r.err[-500:])
    traces = all_traces(job.path("t"))
    told = {}
    for t in traces:
        for serial, evs in t.events_of.items():
            told[t.pid, t.tids[serial]] = told.get((t.pid, t.tids[serial]), 0) + sum(
                e.kind == "ALLOC" and e.size == 902 for e in evs)
    rows = [(pid, tid, n, told.get((pid, tid), 0)) for pid, tid,
            n in counters(job.path("counters"))]
    check(rows and all(n >= 400 for _, _, n, _ in rows), "the program's own count: %s", rows)
    return r, traces, rows


def nothing_lost(job, *ways, right=None, **kw):
    r, traces, rows = give_up(job, *ways, **kw)
    for t in traces:
        sound(t)
    for pid, tid, blocks, recorded in rows:
        equal(recorded, blocks, "blocks of process %d, thread %d (%s)" % (pid, tid, " ".join(ways)))
    equal(r.err, "", "stderr")
    if right:
        first = [t for t in traces if t.pid == rows[0][0]][0]
        given, stopped, children, _ = rights_of(first)
        check(right in given and not stopped and not children, "the header says: %s",
              rights_of(first))
    job.close(keep=False)
    return "%d blocks" % sum(x[2] for x in rows)


def each(job, ways, **kw):
    for w in ways:
        nothing_lost(Job(job.top.rsplit("/", 1)[1]), *(w if isinstance(w, tuple) else (w,)), **kw)
    return "%d ways" % len(ways)


@case
def rights_user(job):
    return each(job, ["setuid", "seteuid", "setreuid", "setresuid", "setfsuid", "call:setuid",
                      "call:setreuid", "call:setresuid"],
                right="user")


@case
def rights_group(job):
    return each(job, ["setgid", "setegid", "setregid", "setresgid", "setfsgid", "setgroups",
                      "initgroups", "call:setgid",
                      ("setgroups", "setgid", "setuid")], right="group")


@case
def rights_capabilities(job):
    return each(job, ["capset", "call:capset"], right="capability")


@case
def rights_root(job):
    return each(job, ["chroot", "call:chroot", "pivot", ("chroot", "setuid")], right="root")


@case
def rights_namespaces(job):
    return each(job, ["unshare", "call:unshare", "setns", "unshare-user"], right="namespace")


@case
def rights_landlock(job):
    return each(job, ["landlock"], right="landlock")


@case
def rights_seccomp(job):
    """Filters that forbid opening, mapping, or unrelated calls, and the strict mode."""
    return each(job, ["harmless-filter", "no-opening", "no-mapping", ("no-opening", "no-mapping"),
                      "sandbox", "strict"],
                right="seccomp")


@case
def rights_taken_again(job):
    """Given up for a while only, like a server that acts for its users."""
    return each(job, [("seteuid", "again", "seteuid", "again", "chroot")], right="user")


@case
def rights_calls_fail(job):
    """Then errno is the real one, and no right counts as given up."""
    r, traces, rows = give_up(job, "fails")
    equal([n for _, _, _, n in rows], [n for _, _, n, _ in rows], "blocks")
    given, stopped, children, _ = rights_of(traces[0])
    check(given <= {"user", "group"} and not stopped and not children, "the header says: %s",
          rights_of(traces[0]))


@case
def rights_threads(job):
    """While other threads allocate: the C library asks each of them to follow."""
    return each(job, [("thread", "thread", "setgid", "setuid"), ("thread", "thread", "chroot")])


@case
def rights_vfork(job):
    """A child of vfork that gives up its user: not its parent's."""
    r, traces, rows = give_up(job, "vfork")
    given, stopped, children, _ = rights_of([t for t in traces if t.pid == rows[0][0]][0])
    check(not given and not stopped, "the header says: %s", given)


@case
def rights_forks(job):
    """Children of processes of another user have a directory for their traces, which only that user
    can read."""
    each(job, [("setuid", "fork"), ("fork", "setuid"), ("setgid", "setuid", "fork", "fork"),
               ("seteuid", "fork", "again", "fork"), ("capset", "fork")],
         blocks=20000)
    r, traces, rows = give_up(job, "setuid", "fork", blocks=20000)
    place = job.path("t", "uid.65534")
    st = os.stat(place)
    equal((st.st_uid, stat.S_IMODE(st.st_mode)), (65534, 0o700), "the place")
    files = [os.path.join(place, n) for n in os.listdir(place)]
    equal([(os.stat(f).st_uid, stat.S_IMODE(os.stat(f).st_mode)) for f in files], [(65534, 0o600)],
          "the child's file")
    equal(stat.S_IMODE(os.stat(job.path("t")).st_mode), 0o711, "our directory")


@case
def rights_place_refused(job):
    """A directory with other files in it is not opened to everybody, nor one that others may write
    to; links that a user has planted are not followed. Children are counted then."""
    for what in ("other files", "writable", "link"):
        here = Job("rights-place")
        shim = open_to_all(here)
        os.mkdir(here.path("place"))
        os.mkdir(here.path("t"), 0o700)
        if what == "other files":
            open(here.path("t", "diary.txt"), "w").close()
        elif what == "writable":
            os.chmod(here.path("t"), 0o777)
        else:
            os.symlink(here.path("place"), here.path("t", "uid.65534"))
        mode = os.stat(here.path("t")).st_mode
        here.run(["rights", "400", "setuid", "fork"], preload=shim, directory=here.path("t"),
                 env={"COUNTERS": here.path("counters"), "PLACE": here.path("place")})
        equal(os.stat(here.path("t")).st_mode, mode, "mode of the directory (%s)" % what)
        equal(os.listdir(here.path("place")), [], "what is where a link leads")
        traces = [t for t in all_traces(here.path("t"))]
        if what == "writable":  # there each user can make a file
            equal(len(traces), 2, "traces")
        else:
            equal([rights_of(t)[2:] for t in traces], [(1, "user")], "children without a trace (%s)"
                  % what)
        here.close(keep=False)


@case
def rights_forks_counted(job):
    """After chroot and in a sandbox a child can have no file: counted in its parent's, with the
    reason."""
    for way, kind in (("chroot", "root"), ("landlock", "landlock"), ("no-opening", "seccomp"),
                      ("sandbox", "seccomp")):
        here = Job("rights-forks")
        r, traces, rows = give_up(here, way, "fork", blocks=400)
        t = [t for t in traces if t.pid == rows[0][0]][0]
        equal(len(traces), 1, "traces (%s)" % way)
        equal(rights_of(t)[2:], (1, kind), "children without a trace, and the reason (%s)" % way)
        equal(set(t.drops), {"rights"}, "what is dropped (%s)" % way)
        equal(rows[0][2], rows[0][3], "the parent's blocks (%s)" % way)
        here.close(keep=False)


@case
def rights_unseen(job):
    """By a system call that goes past the C library: the losses are counted, and their reason
    named."""
    r, traces, rows = give_up(job, "asm")
    t = traces[0]
    lost = t.drops.get("rights", 0)
    (_, _, blocks, recorded), = rows
    check(set(t.drops) == {"rights"} and lost >= blocks - recorded > 0,
          "%d of %d blocks recorded, dropped: %s", recorded,
          blocks, t.drops)
    given, stopped, _, kind = rights_of(t)
    equal((stopped, kind), (True, "unknown"), "the header")


@case
def rights_in_little_room(job):
    """The strict mode with little reserved room: recording ends there, counted."""
    r, traces, rows = give_up(job, "sandbox", blocks=400000, env={"WHYOOM_MAX_TRACE": "2MiB"})
    t = traces[0]
    (_, _, blocks, recorded), = rows
    lost = t.drops.get("rights", 0)
    check(blocks > recorded > 10000, "%d of %d blocks recorded", recorded, blocks)
    check(set(t.drops) == {"rights"} and lost >= blocks - recorded, "dropped: %s of %d", t.drops,
          blocks - recorded)
    equal(rights_of(t)[1::2], (True, "seccomp"), "the header")
    check(os.stat(t.path).st_blocks * 512 <= 2 << 20, "the file takes %d KiB",
          os.stat(t.path).st_blocks / 2)


@case
def rights_checkpoints(job):
    """Live blocks take the place of older events in a file that cannot be opened: it keeps to its
    size."""
    r, traces, rows = give_up(job, "chroot", "setuid", blocks=400000, env={
        "WHYOOM_MAX_TRACE": "3MiB", "WHYOOM_MODE": "sampled", "WHYOOM_EXACT_FROM": "1"})
    t = traces[0]
    sound(t)
    check(t.checkpoint, "no checkpoint in a trace of %d KiB", len(t.data) >> 10)
    held = os.stat(t.path).st_blocks * 512
    check(held <= 3 << 20, "the file takes %d KiB", held >> 10)
    return "checkpoint %d, %d KiB on disk" % (t.checkpoint, held >> 10)


@case
def rights_near_limits(job):
    """The address space and the size of files are limited, and memory is locked: as ever."""
    return each(job, [("limit-memory", "setuid"), ("limit-file", "setuid"), ("lock", "setuid")])


@case
def rights_from_python(job):
    """A server that binds, gives up its user and works, by threads and by processes."""
    root()
    shim = open_to_all(job)
    script = """
import multiprocessing, multiprocessing.popen_fork, os, threading
def work(n):
    for i in range(n): bytes(5003)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
work(30000)
if __name__ == '__main__':
    ts = [threading.Thread(target=work, args=(30000,)) for _ in range(3)]
    for t in ts: t.start()
    for t in ts: t.join()
    c = multiprocessing.get_context('fork')
    ps = [c.Process(target=work, args=(30000,)) for _ in range(3)]
    for p in ps: p.start()
    for p in ps: p.join(); assert not p.exitcode
"""
    with open(job.path("server.py"), "w") as f:
        f.write(script)
    os.chmod(job.path("server.py"), 0o644)
    r = job.run([sys.executable, job.path("server.py")], preload=shim, directory=job.path("t"))
    traces = all_traces(job.path("t"))
    for t in traces:
        sound(t)
    blocks = [sum(5003 <= e.size < 5080 for e in t.all("ALLOC")) for t in traces]
    equal(sorted(n // 30000 for n in blocks), [1, 1, 1, 4], "blocks of four processes: %s" % blocks)
    equal(r.err, "", "stderr")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
