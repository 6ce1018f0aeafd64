#!/usr/bin/env python3
"""A guest that must not harm: full disks, limits, gone directories, privacy, options, setuid."""

import shutil
import stat
import sys
import tempfile

from harness import *

CASES = {}
AFTER = 300 * 400


def case(f):
    CASES[f.__name__.replace("_", "-")] = f
    return f


def root():
    if os.getuid() != 0:
        raise Skip("needs root")


def counts(t):
    return (sum(e.size == 901 for e in t.all("ALLOC")), sum(e.size == 902 for e in t.all("ALLOC")))


def whole(job, *args, **kw):
    """The host does a hostile thing and no event is lost."""
    r = job.run(["guest", *args], **kw)
    t = r.trace()
    sound(t)
    equal(counts(t), (400, AFTER), "blocks before and after")
    equal(r.err, "", "stderr")
    return r


def accounted(r, reasons):
    """Events are lost: all of them are counted, in the trace or on stderr."""
    t = r.trace()
    check(not t.torn, "torn")
    before, after = counts(t)
    lost = sum(t.drops.get(x, 0) for x in reasons)
    equal(before, 400, "blocks before")
    check(set(t.drops) <= set(reasons), "dropped: %s", t.drops)
    if after < AFTER:
        check(lost >= AFTER - after, "%d of %d blocks are missing, %d events counted as lost",
              AFTER - after, AFTER, lost)
    check(r.err.count("\n") <= 1, "more than one line: %s", r.err)
    return "%d of %d recorded, %s" % (after, AFTER, t.drops)


@case
def closes_all_descriptors(job):
    whole(job, "closefrom")


@case
def changes_directory(job):
    whole(job, "chdir", "/")


@case
def relative_directory(job):
    """WHYOOM_DIR is relative, and the host changes its directory."""
    job.run(["guest", "chdir", "/"], directory="rel", cwd=job.path())
    found = Result(0, "", "", job.path("rel"), "", 0, 0)
    sound(found.trace())
    equal(counts(found.trace()), (400, AFTER), "blocks before and after")


@case
def changes_root(job):
    root()
    os.mkdir(job.path("root"))
    whole(job, "chroot", job.path("root"))


@case
def drops_privileges(job):
    root()
    whole(job, "setuid")


@case
def installs_seccomp(job):
    """A filter that allows only malloc's calls: the host lives, and no event is lost."""
    whole(job, "seccomp")


@case
def sandboxed_by_seccomp(job):
    """The same, but other calls kill, as in browsers' and sshd's sandboxes."""
    job.run(["guest", "seccomp-kill"], preload=False)
    whole(job, "seccomp-kill")


@case
def without_proc(job):
    """/proc is not mounted, as in a bare chroot or container: the recording does not need it."""
    root()
    script = 'umount -l /proc || exit 77; LD_PRELOAD="$1" WHYOOM_DIR="$2" exec "$3" nothing'
    r = job.run([shutil.which("unshare") or "/usr/bin/unshare", "-m", "/bin/sh", "-c", script, "sh",
                 SHIM, job.path("t"), prog("guest")],
                preload=False, directory=job.path("t"), rc=None)
    if r.rc in (1, 77):
        raise Skip("no mount namespace of one's own here: " + r.err.strip()[-100:])
    equal((how(r.rc), r.err), ("status 0", ""), "the end")
    t = r.trace()
    sound(t)
    equal(counts(t), (400, AFTER), "blocks")


@case
def clock_jumps(job):
    """The time of day leaps and the monotonic clock stands still: no event is lost, and times do
    not go back."""
    for order in ("jumping:ours", "ours:jumping"):
        names = {"ours": SHIM, "jumping": os.path.join(PROGS, "libjumping_clock.so")}
        r = whole(job, "nothing", preload=":".join(names[x] for x in order.split(":")))
        for evs in r.trace().events_of.values():
            times = [e.ticks for e in evs]
            check(times == sorted(times), "times go back")


@case
def removes_our_directory(job):
    r = job.run(["guest", "rmdir", job.path("trace1")])
    equal(r.rc, 0, "exit status")


@case
def limit_of_descriptors(job):
    """RLIMIT_NOFILE 3 while running: the next chunk has no descriptor to be opened with."""
    r = job.run(["guest", "nofile"])
    return accounted(r, ["no-memory", "no-space"])


@case
def limit_of_file_size(job):
    """RLIMIT_FSIZE 64 KiB: no SIGXFSZ, the loss is counted."""
    r = job.run(["guest", "fsize"])
    return accounted(r, ["no-space", "no-memory"])


@case
def limits_from_the_start(job):
    """No room for any file from the first moment on."""
    import resource

    for what, n in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_FSIZE, 70000)):
        r = job.run(["guest", "nothing"], preexec_fn=lambda: resource.setrlimit(what, (n, n)),
                    stdout=subprocess.PIPE)
        check(r.err.count("\n") <= 1, "stderr: %s", r.err)
        if not r.files:
            check("whyoom" in r.err, "nothing is recorded and nothing is said")


def mounted(job, kind, options):
    root()
    top = job.path("mnt")
    os.makedirs(top, exist_ok=True)
    if subprocess.run(["mount", "-t", kind, "-o", options, "whyoom-test", top],
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("cannot mount a %s" % kind)
    return top


def unmount(top):
    subprocess.run(["umount", "-l", top], check=False)


@case
def tmpfs_refused(job):
    """Its pages are memory: refused, reported once; written on request."""
    top = mounted(job, "tmpfs", "size=64m,mode=777")
    try:
        r = job.run(["guest", "nothing"], directory=top + "/t")
        check(not r.files, "a trace on tmpfs: %s", r.files)
        check(r.err.count("\n") == 1 and "tmpfs" in r.err, "stderr: %r", r.err)
        r = job.run(["guest", "nothing"], directory=top + "/u", env={"WHYOOM_ALLOW_TMPFS": "1"})
        sound(r.trace())
    finally:
        unmount(top)


@case
def disk_full(job):
    """1.5 MiB of room: the host runs on, no SIGBUS, the loss is counted."""
    top = mounted(job, "tmpfs", "size=1536k,mode=777")
    try:
        r = job.run(["guest", "many", "600000"], directory=top + "/t",
                    env={"WHYOOM_ALLOW_TMPFS": "1", "WHYOOM_MAX_DISK": "1GiB"})
        t = r.trace()
        check(not t.torn and set(t.drops) == {"no-space"}, "torn %d, dropped %s", t.torn, t.drops)
        got, lost = sum(e.size == 48 for e in t.all("ALLOC")), t.drops["no-space"]
        check(0 < got < 600000 and got + lost >= 600000, "%d recorded, %d lost", got, lost)
        check(r.err.count("\n") <= 1, "stderr: %r", r.err)
        return "%d of 600000 recorded, the rest is counted" % got
    finally:
        unmount(top)


@case
def disk_full_from_the_start(job):
    top = mounted(job, "tmpfs", "size=16k,mode=777")
    try:
        r = job.run(["guest", "nothing"], directory=top + "/t", env={"WHYOOM_ALLOW_TMPFS": "1"})
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
    finally:
        unmount(top)


@case
def read_only_directory(job):
    top = mounted(job, "tmpfs", "size=1m,ro")
    try:
        r = job.run(["guest", "nothing"], directory=top + "/t", env={"WHYOOM_ALLOW_TMPFS": "1"})
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
        r = job.run(["guest", "nothing"], directory="/proc/nowhere/t")
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
        r = job.run(["guest", "nothing"], directory="/proc/nowhere/t", env={"WHYOOM_QUIET": "1"})
        equal(r.err, "", "stderr when quiet")
    finally:
        unmount(top)


@case
def private_files(job):
    """0700 and 0600 whatever the umask is; links are not followed."""
    for mask in (0, 0o077):
        r = job.run(["guest", "nothing"], preexec_fn=lambda: os.umask(mask))
        equal(stat.S_IMODE(os.stat(r.dir).st_mode), 0o700, "mode of the directory")
        equal(stat.S_IMODE(os.stat(r.files[0][2]).st_mode), 0o600, "mode of the file")
    os.mkdir(job.path("elsewhere"))
    os.symlink(job.path("elsewhere"), job.path("link"))
    for name in ("link", "link/", "link//"):
        r = job.run(["guest", "nothing"], directory=job.path(name))
        equal(os.listdir(job.path("elsewhere")), [], "what lies behind a link")
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)


def open_to_all(job):
    """Move the job to a folder for every user, with a copy of the library, and return its path: the
    tree itself may lie in a user's home."""
    job.close(keep=False)
    job.top = tempfile.mkdtemp(prefix="whyoom-test-", dir="/var/tmp")
    os.chmod(job.top, 0o755)
    return shutil.copy(SHIM, job.path("libwhyoom.so"))


@case
def said_once(job):
    """Children without a trace: the first reports it, all are counted."""
    root()
    shim = open_to_all(job)
    os.mkdir(job.path("t"), 0o700)
    os.mkdir(job.path("empty"))
    script = ("import os\nos.chroot('%s')\nfor i in range(5):\n if not os.fork(): os._exit(0 * "
              "len(bytes(5000)))\n os.wait()")
    r = job.run([sys.executable, "-c", script % job.path("empty")], preload=shim,
                directory=job.path("t"))
    check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
    equal(r.trace().drops.get("rights", 0), 5, "children counted")
    # started by exec with fewer rights, none can be counted: on request the first of them reports
    # its own
    os.mkdir(job.path("closed"), 0o700)
    for verbose in "0", "1":
        r = job.run(["/bin/sh", "-c", "setpriv --reuid 65534 --clear-groups /bin/sh -c '/bin/true; "
                     "/bin/true'; exit 3"],
                    preload=shim, env={"WHYOOM_DIR": None, "WHYOOM_VERBOSE": verbose},
                    directory=None,
                    cwd=job.path("closed"), rc=3)
        check(r.err.count("\n") == int(verbose) and r.err.startswith("whyoom" * int(verbose)),
              "stderr: %r", r.err)
    # in a reachable directory they have a place
    os.mkdir(job.path("open"), 0o755)
    r = job.run(["/bin/sh", "-c", "setpriv --reuid 65534 --clear-groups /bin/sh -c '/bin/true; "
                 "/bin/true'; exit 3"],
                preload=shim, env={"WHYOOM_DIR": None}, directory=None, cwd=job.path("open"), rc=3)
    equal(r.err, "", "stderr")


@case
def descendants_without_a_file(job):
    """Started by exec with the same rights and without room: counted, and on request reported once
    for all."""
    # the folder, its account, one trace
    top = mounted(job, "tmpfs", "size=64m,mode=777,nr_inodes=4")
    try:
        script = "for i in 1 2 3 4 5; do env sh -c '/bin/true; /bin/true'; done; exit 3"
        r = job.run(["/bin/sh", "-c", script], directory=top + "/t",
                    env={"WHYOOM_ALLOW_TMPFS": "1"}, rc=3)
        equal(r.err, "", "stderr")
        lost = r.trace().drops.get("no-space", 0)
        check(lost >= 15, "%d of 15 are counted", lost)
    finally:
        unmount(top)
    top = mounted(job, "tmpfs", "size=64m,mode=777,nr_inodes=4")
    try:
        r = job.run(["/bin/sh", "-c", script], directory=top + "/t",
                    env={"WHYOOM_ALLOW_TMPFS": "1", "WHYOOM_VERBOSE": "1"}, rc=3)
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
    finally:
        unmount(top)
    # nor is there room for the first one's: it reports, and no later one does
    top = mounted(job, "tmpfs", "size=64m,mode=777,nr_inodes=2")
    try:
        r = job.run(["/bin/sh", "-c", script], directory=top + "/t",
                    env={"WHYOOM_ALLOW_TMPFS": "1"}, rc=3)
        check(r.err.count("\n") == 1 and r.err.startswith("whyoom"), "stderr: %r", r.err)
    finally:
        unmount(top)


@case
def shared_directory_refused(job):
    """A directory that others may write: its owner could plant a link."""
    os.mkdir(job.path("open"))
    os.chmod(job.path("open"), 0o777)
    r = job.run(["guest", "nothing"], directory=job.path("open"))
    for f in r.files:
        equal(stat.S_IMODE(os.stat(f[2]).st_mode), 0o600, "mode of the file")


@case
def dormant_when_setuid(job):
    """AT_SECURE: no recording, no message."""
    root()
    open_to_all(job)
    copy = job.path("guest")
    shutil.copy(prog("guest"), copy)
    shutil.copy(SHIM, "/usr/lib/libwhyoom-test-%d.so" % os.getpid())
    lib = "/usr/lib/libwhyoom-test-%d.so" % os.getpid()
    try:
        # a setuid library in a system directory, by name without a slash, is preloaded even then
        os.chmod(lib, 0o4755)
        os.chmod(copy, 0o4755)
        os.chmod(job.top, 0o777)
        r = job.run(["/bin/sh", "-c", "exec setpriv --reuid 65534 --clear-groups sh -c "
                     "'LD_PRELOAD=%s exec %s nothing'"
                     % (os.path.basename(lib), copy)], preload=False,
                    env={"WHYOOM_DIR": job.path("d")})
        equal(r.err, "", "stderr")
        check(not os.path.exists(job.path("d")), "a setuid program was recorded")
    finally:
        os.unlink(lib)


@case
def switched_off(job):
    r = job.run(["calls", "successes"], env={"WHYOOM_OFF": "1"})
    check(not r.files and not r.err, "files %s, stderr %r", r.files, r.err)
    job.run(["calls", "failures"], env={"WHYOOM_OFF": "1"})
    job.run(["maps", "raw"], env={"WHYOOM_OFF": "1"})


@case
def wrong_options(job):
    """Reported once, with the name; the default is used."""
    for name, value in (("WHYOOM_MAX_TRACE", "much"), ("WHYOOM_PYTHON", "maybe"),
                        ("WHYOOM_CMDLINE", "2"),
                        ("WHYOOM_OFF", "perhaps")):
        r = job.run(["guest", "nothing"], env={name: value})
        check(r.err.count("\n") == 1 and name in r.err and value in r.err, "%s=%s: %r", name, value,
              r.err)
        sound(r.trace())
        r = job.run(["guest", "nothing"], env={name: value, "WHYOOM_QUIET": "1"})
        equal(r.err, "", "stderr when quiet")


@case
def command_line(job):
    r = job.run(["guest", "nothing", "--token=secret"])
    equal(r.trace().infos.get("cmdline", "").split("\0")[1:], ["nothing", "--token=secret"],
          "cmdline")
    for more in ([""], ["", ""], ["x", "", "y", ""]):
        r = job.run(["guest", "nothing", *more])
        equal(r.trace().infos.get("cmdline", "").split("\0")[1:], ["nothing", *more], "cmdline")
    r = job.run(["guest", "nothing", "--token=secret"], env={"WHYOOM_CMDLINE": "0"})
    check("cmdline" not in r.trace().infos, "the command line is there")
    with open(r.files[0][2], "rb") as f:
        check(b"--token=secret" not in f.read(), "the command line is somewhere in the file")


@case
def facts(job):
    """The facts about the process."""
    t = job.run(["guest", "nothing"], env={"LD_LIBRARY_PATH": "/nowhere"}).trace()
    for key in ("exe", "cmdline", "cwd", "limit.as", "limit.data", "limit.stack", "page.size",
                "cpus", "kernel", "libc",
                "malloc.owner", "whyoom.version", "cgroup.version"):
        check(t.infos.get(key), "no %s in %s", key, sorted(t.infos))
    if not RUNNER:
        equal(t.infos["exe"], os.path.realpath(prog("guest")), "exe")
    check("libc" in t.infos["malloc.owner"], "malloc.owner %s", t.infos["malloc.owner"])
    check(t.all("LEVEL"), "no levels")
    check(any(dict(e.levels).get(1, 0) > 100 << 10 for e in t.all("LEVEL")),
          "no RSS among the levels")


@case
def budget(job):
    """At WHYOOM_MAX_TRACE small blocks are left out, large ones go on, and the trace says so. (In
    mode sampled, where all of them live, so that a checkpoint would take most of it.)"""
    r = job.run(["guest", "many", "2000000"], env={"WHYOOM_MAX_TRACE": "3MiB"}, timeout=200)
    t = r.trace()
    sound(t, drops=("budget",))
    check(t.flags & 1, "the flag")
    check(1 in t.notices(), "no notice: %s", t.notices())
    small = sum(e.size == 48 for e in t.all("ALLOC"))
    check(0 < small < 2000000 and t.drops.get("budget", 0) >= 2000000 - small,
          "%d small, dropped %s", small, t.drops)
    equal(sum(e.size == 100000 for e in t.all("ALLOC")), 50, "large blocks")
    size = os.stat(t.path).st_size
    check(size < 6 << 20, "the file has %d bytes", size)
    return "%d of 2000000 small ones, file %d KiB" % (small, size >> 10)


@case
def memory_of_our_own(job):
    """A trace of many chunks stays out of the process: written back and dropped."""
    a, b = [int(job.run(["storm", "2", "800000"], preload=preload,
                        env={"COUNTERS": job.path("c")}).out)
            for preload in (False, True)]
    check(b - a <= 16 * 1024, "%d KiB more at the peak", b - a)
    return "%d KiB more at the peak" % (b - a)


def resident(job, *args):
    """The recorder's addition to resident memory, the part in the trace's mappings (KiB), the
    frames of its distinct stacks, and the run."""
    r, plain = job.run(["resident", *args]), job.run(["resident", *args], preload=False)
    got, without = ({k: int(v) for k, v in map(str.split, x.out.splitlines())} for x in (r, plain))
    return got["resident"] - without["resident"], got["trace"], got["frames"], r


@case
def memory_of_stacks(job):
    """At most 16 MiB, and 64 bytes a frame of each distinct stack."""
    each = {}
    for n in ("2000", "20000"):
        more, _, frames, r = resident(job, "stacks", n)
        t = r.trace()
        sound(t)
        distinct = {e.stack for e in t.all("ALLOC") if 40 <= e.size < 47}
        equal(len(distinct), int(n), "distinct stacks")
        check(more * 1024 <= (16 << 20) + 64 * frames, "%d KiB more are resident with %d frames",
              more, frames)
        each[frames] = more
    (few, kib), (many, more) = sorted(each.items())
    check((more - kib) * 1024 <= 64 * (many - few), "%d KiB more for %d frames more", more - kib,
          many - few)
    return "%d KiB more with %d frames, %d KiB with %d" % (kib, few, more, many)


@case
def sealed_chunks_are_given_back(job):
    """Written chunks are not resident any more: two threads' windows are, however long the
    trace."""
    more, trace, _, r = resident(job, "blocks", "3000000")
    size = os.stat(r.files[0][2]).st_size
    check(size > 20 << 20, "a trace of %d KiB only", size >> 10)
    check(trace <= 2048, "%d KiB of the trace are resident", trace)
    check(more <= 16 * 1024, "%d KiB more are resident", more)
    note = "%d KiB of a trace of %d KiB are resident; %d KiB more in all" % (
        trace, size >> 10, more)
    # nor does the page cache keep all of it, once it has reached the disk
    if shutil.which("fincore"):
        cached = int(subprocess.run(["fincore", "-b", "-n", "-o", "RES", r.files[0][2]],
                                    stdout=subprocess.PIPE).stdout)
        check(cached <= size // 2, "%d KiB of %d are in the page cache", cached >> 10, size >> 10)
        note += "; %d KiB in the page cache" % (cached >> 10)
    return note


if __name__ == "__main__":
    sys.exit(main(sys.argv, CASES))
