#!/usr/bin/env python3
"""fork, vfork, exec, posix_spawn, ends of processes: each image has a file of its own, or none."""

import sys

from harness import *

CASES = {}


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def forked(job, what):
    """Parent and child each hold exactly their own events."""
    r = job.run(["processes", what])
    child = r.pids("child")[0]
    parent = [t.pid for t in r.traces if t.pid != child]
    equal(len(r.traces), 2, "traces")
    compare_blocks(r, r.trace(pid=parent[0]), tids=parent)
    compare_blocks(r, r.trace(pid=child), tids=[child])
    for t in r.traces:
        sound(t)
    c, p = r.trace(pid=child), r.trace(pid=parent[0])
    equal((c.ppid, bool(c.flags & 4), bool(p.flags & 4)), (parent[0], True, False),
          "parent and flags")
    check(not any(e.size in (111, 112, 113) for e in c.all("ALLOC")),
          "the parent's events in the child's file")
    check(not any(e.size == 321 for e in p.all("ALLOC")), "the child's events in the parent's file")
    equal((c.end_how, c.end_code), (1, 3), "the child's end")
    return r, p, c


@case
def fork(job):
    r, p, c = forked(job, "fork")
    equal([e.fields[0] for e in p.all("FORK")], [c.pid], "FORK")


@case
def raw_fork(job):
    """syscall(SYS_clone) as fork, which libc does not see."""
    forked(job, "raw-fork")


@case
def fork_while_threads_allocate(job):
    """60 forks in a storm of threads: no child hangs, none writes into its parent's file."""
    r = job.run(["processes", "fork-threads"])
    shown = r.pids("child")
    parents = [t for t in r.traces if not t.flags & 4]
    equal((len(parents), len(r.traces)), (1, 61), "parents and traces")
    for t in r.traces:
        sound(t)
    compare_blocks(r, parents[0], tids=[t for t in parents[0].tids.values()])
    for pid in shown:
        compare_blocks(r, r.trace(pid=pid), tids=[pid])


@case
def fork_latecomer(job):
    """In a child a new thread is the first to be recorded: the one that forked keeps its state to
    itself."""
    r = job.run(["processes", "latecomer"],
                env={"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "1TiB",
                     "WHYOOM_EXACT_FROM": "64KiB"})
    children = [t for t in r.traces if t.flags & 4]
    equal(len(children), 20, "children with a trace")
    for t in children:
        sound(t)
        by_thread = {t.tids[n]: sum(e.kind == "ALLOC" and e.size == 70000 for e in events)
                     for n, events in t.events_of.items()}
        equal(sorted(by_thread.values()), [2000] * 3, "blocks by thread")
        check(t.pid in by_thread, "the thread that forked has its own id")


@case
def fork_loader_held(job):
    """A fork, libc's or not, while another thread holds the lock of the loader's list: the child,
    in which it stays locked, records, opens and closes loaded libraries, and ends."""
    for what in ("loader-held", "loader-held-raw"):
        job.run(["processes", what], preload=False, timeout=20)
        r = job.run(["processes", what], timeout=20)
        child = r.pids("child")[0]
        t = r.trace(pid=child)
        sound(t)
        compare_blocks(r, t, tids=[child])
        equal((t.end_how, t.end_code), (1, 3), "the child's end")
        equal(t.infos.get("modules.unseen"), None, "unseen modules")


@case
def fork_setenv(job):
    """A child's first event comes from within setenv(), when `environ` still points to freed
    memory."""
    r = job.run(["processes", "setenv"],
                env={"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "1TiB",
                     "WHYOOM_EXACT_FROM": "512"})
    children = [t for t in r.traces if t.flags & 4]
    equal(len(children), 20, "children with a trace")
    for t in children:
        sound(t)
        equal([e.size for e in t.all("ALLOC")], [512, 70000], "blocks")


@case
def fork_chaos(job):
    """Threads that fork while others allocate and signals come, children with threads and children:
    in every mode each block keeps its content, every process ends well, and every trace is
    whole."""
    notes = []
    for mode, env in (("full", {}),
                      ("sampled", {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "4KiB",
                                   "WHYOOM_EXACT_FROM": "32KiB"}),
                      ("large only", {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "1TiB",
                                      "WHYOOM_EXACT_FROM": "64KiB"}),
                      ("budget", {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "4KiB",
                                  "WHYOOM_EXACT_FROM": "32KiB",
                                  "WHYOOM_MAX_TRACE": "1MiB"})):
        r = job.run(["chaos", "1.5"], env=env)
        children = int(r.out)
        check(children > 2, "%s: %d children", mode, children)
        check(len(r.traces) > children / 2, "%s: %d traces of %d children", mode, len(r.traces),
              children)
        for t in r.traces:
            sound(t, drops=("signal", "budget", "no-thread") if mode == "budget"
                  else ("signal", "no-thread"))
        notes.append("%s: %d children" % (mode, children))
    return ", ".join(notes)


@case
def fork_storm(job):
    """Four threads fork a hundred children each, which exit, _exit, execute or abort: each has its
    own trace, whole."""
    r = job.run(["processes", "storm"])
    children = [t for t in r.traces if t.flags & 4]
    equal(len(children), 400, "children with a trace")
    ends = {}
    for t in r.traces:
        sound(t)
    for t in children:
        equal(sum(321 <= e.size < 324 for e in t.all("ALLOC")), 40, "blocks of child %d" % t.pid)
        ends[t.end_how, t.end_code] = ends.get((t.end_how, t.end_code), 0) + 1
    equal((ends.get((1, 11)), ends.get((1, 12)), ends.get((3, 0))), (100, 100, 100),
          "ends, of %s" % ends)
    parent = [t for t in r.traces if not t.flags & 4 and t.pid == r.pid]
    compare_blocks(r, parent[0], tids=list(parent[0].tids.values()))


@case
def fork_of_the_stopped(job):
    """Another thread has just released memory, which another owner has by the time of the fork: no
    child releases it again."""
    notes = []
    for work in "chunks", "depth", "threads", "periods":
        for mode in {}, {"WHYOOM_MODE": "sampled", "WHYOOM_EXACT_FROM": "1",
                         "WHYOOM_MAX_TRACE": "4MiB"}:
            forks = 0
            # on a busy machine a fork takes so long that the others' moments pass meanwhile
            for _ in range(5):
                r = job.run(["stopped", work], env=mode, rc=None)
                if r.rc == 77:
                    raise Skip(r.out.strip())
                equal((r.rc, r.err), (0, ""), "the end of " + work)
                for _, _, path in [f for f in r.files if os.path.getsize(f[2]) < 1 << 20][::20]:
                    sound(Trace(path))
                forks += int(r.out)
                if forks > 40:
                    break
            check(forks > 40, "%s: %d forks", work, forks)
            notes.append(forks)
    return "%d forks" % sum(notes)


@case
def fork_tree(job):
    r = job.run(["processes", "tree"])
    for t in r.traces:
        sound(t)
        compare_blocks(r, t, tids=[t.pid])
    equal(len(r.traces), 1 + 2 + 4 + 8, "traces")


@case
def vfork_exec(job):
    """A vfork child writes nothing into its parent's trace; the executed program has its own
    file."""
    r = job.run(["processes", "vfork"])
    child = r.pids("child")[0]
    parent = [t for t in r.traces if t.all("ALLOC") and any(e.size == 111 for e in t.all("ALLOC"))]
    equal(len(parent), 1, "parents")
    compare_blocks(r, parent[0], tids=[parent[0].pid])
    sound(parent[0])
    t = r.trace(pid=child)
    sound(t)
    check(sum(e.size == 654 for e in t.all("ALLOC")) == 500, "the executed child's blocks")


@case
def spawn(job):
    r = job.run(["processes", "spawn"])
    child = r.pids("child")[0]
    parent = [t for t in r.traces if any(e.size == 111 for e in t.all("ALLOC"))]
    compare_blocks(r, parent[0], tids=[parent[0].pid])
    sound(parent[0])
    equal(sum(e.size == 654 for e in r.trace(pid=child).all("ALLOC")), 500,
          "the spawned child's blocks")


@case
def exec_chain(job):
    """Five images of one pid: a file each, numbered; the former ones are marked as replaced."""
    r = job.run(["processes", "exec", "4"])
    equal([(t.pid, t.image) for t in r.traces], [(r.pid, i) for i in range(5)], "pid and image")
    for t in r.traces:
        sound(t)
        n = 4 - t.image
        equal(sum(e.size == 1000 + n for e in t.all("ALLOC")), 300, "blocks of image %d" % t.image)
        equal(t.end_how, 1 if n == 0 else 3, "end of image %d" % t.image)


@case
def exec_fails(job):
    """An execve that fails leaves the image as it was."""
    r = job.run(["processes", "exec-fails"])
    t = r.trace()
    sound(t)
    compare_blocks(r)
    equal((t.end_how, t.end_code), (1, 0), "the end")


@case
def trivial_processes_leave_nothing(job):
    """No file of a process that does nothing, and no directory in the current one."""
    r = job.run(["processes", "true"], env={"WHYOOM_DIR": None}, directory=None, cwd=job.path())
    equal(r.err, "", "stderr")
    r = job.run(["/bin/sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done"])
    check(len(r.files) <= 1, "litter: %s", r.files)
    equal([n for n in os.listdir(job.top) if n.startswith("whyoom.")], [],
          "litter in the current directory")


@case
def ends(job):
    """_exit, abort and SIGSEGV end the program as without us, and the trace has all knowable
    facts."""
    for what, rc in (("exit-now", 7), ("abort", -signal.SIGABRT), ("segv", -signal.SIGSEGV)):
        r = job.run(["processes", what], rc=rc)
        t = r.trace()
        sound(t)
        equal(sum(e.size == 123 for e in t.all("ALLOC")), 500, what)
        if rc >= 0:
            equal((t.end_how, t.end_code), (1, rc), what)
        else:
            check((t.end_how, t.end_code) in ((0, 0), (2, -rc)), "%s: end %d, %d", what, t.end_how,
                  t.end_code)


@case
def quits_while_busy(job):
    """Every end from main and from a thread, exec from a thread, cancelled threads, a main that
    ends first."""
    for what, rc, end in (("exit", 3, (1, 3)), ("exit-thread", 3, (1, 3)),
                          ("exit-now-thread", 3, (1, 3)),
                          ("raw-thread", 3, (1, 3)), ("quick-thread", 3, (0, 0)),
                          ("abort-thread", -signal.SIGABRT, (2, signal.SIGABRT)),
                          ("exec", 3, (3, 0)), ("cancel", 3, (1, 3)), ("main-first", 0, (1, 0))):
        for _ in range(2):
            r = job.run(["quit", what], rc=rc, timeout=30)
            t = r.trace(pid=r.pid, image=0)
            check(not t.torn and not t.bad_checksums, "%s: torn %d, checksums %d", what, t.torn,
                  t.bad_checksums)
            equal(t.end_how, end[0], "%s: end" % what)
            if end[0] in (1, 2):
                equal(t.end_code, end[1], "%s: status" % what)
            extra = {k: n for k, n in t.drops.items() if k != "no-thread"}
            check(not extra, "%s: dropped %s", what, extra)
            if what == "main-first":
                equal(sum(e.size == 300 for e in t.all("ALLOC")), 150000, "blocks")


@case
def cancelled(job):
    """Six hundred threads are cancelled as they begin, allocate, wait or compute; their blocks are
    released, and both are recorded."""
    plain, r = job.run(["quit", "cancel-storm"], preload=False,
                       rc=3), job.run(["quit", "cancel-storm"], rc=3)
    (gone, released), (gone_here, released_here) = (map(int, x.out.split()) for x in (plain, r))
    equal((gone, gone_here), (600, 600), "cancelled threads")
    check(released and released_here, "%d without us and %d with had begun", released,
          released_here)
    t = r.trace()
    sound(t)
    equal(sum(e.size == 701 for e in t.all("ALLOC")), released_here, "clean-ups")
    live = read.Trace(t.path, t.data).replay()
    equal((live["double_allocs"], live["unmatched_frees"]), (0, 0), "double and unmatched")
    return "%d of 600 had begun" % released_here


@case
def daemons(job):
    """Both forks of a daemon: its own file, whole, after its parent's end."""
    r = job.run(["quit", "daemon"])
    pid = r.pids("daemon")[0]
    deadline = time.monotonic() + 20
    while os.path.exists("/proc/%d/maps" % pid) and open("/proc/%d/stat" % pid).read().split()[
        2] != "Z":
        check(time.monotonic() < deadline, "the daemon does not end")
        time.sleep(0.02)
    t = r.trace(pid=pid)
    sound(t)
    equal(sum(e.size == 300 for e in t.all("ALLOC")), 10000, "blocks")


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
