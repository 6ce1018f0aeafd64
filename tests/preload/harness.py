"""harness.py - runs a test program under the preload and hands its traces to the checks.

Owns the environment of the programs (only they get LD_PRELOAD), temporary directories, the end of
programs that hang, and the comparison of a trace with a program's oracle log. Knows nothing of
single tests.

From the environment, set by meson: WHYOOM_TEST_SHIM (the library), WHYOOM_TEST_PROGS (the folder
of the built programs), WHYOOM_TEST_TMP (a directory on a real file system), WHYOOM_TEST_RUNNER (a
command in front of each program, for another architecture), WHYOOM_TEST_LIMIT (seconds for a case,
after which its running program counts as hung)."""

import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "golden"), os.path.join(HERE, "..", "lib")]
sys.dont_write_bytecode = True
import hung  # noqa: E402
import read  # noqa: E402  the reader that was written from the document alone
import small  # noqa: E402

SHIM = os.environ.get("WHYOOM_TEST_SHIM", "")
PROGS = os.environ.get("WHYOOM_TEST_PROGS", "")
TMP = os.environ.get("WHYOOM_TEST_TMP", "/var/tmp")
LIMIT = float(os.environ.get("WHYOOM_TEST_LIMIT", "inf"))
RUNNER = shlex.split(os.environ.get("WHYOOM_TEST_RUNNER", ""))
MARK = 12345677
DROPS = ["no-space", "no-memory", "signal", "nested", "budget", "definition", "no-thread", "vfork",
         "rights"]
KINDS = {1: "ALLOC", 2: "FREE", 3: "UNFREE", 4: "MAP", 5: "UNMAP", 6: "ADVISE", 7: "BRK",
         8: "FAILED", 9: "BEGIN", 10: "END"}
BLOCKS = ("ALLOC", "FREE", "UNFREE")
NOT_OURS = ("LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_PERTURB_", "GLIBC_TUNABLES", "PYTHONMALLOC")
# In mode sampled each block counts as large, and all large blocks are recorded: a program's calls
# must be there as in mode full, through the table of recorded blocks.
MODES = {"full": {}, "sampled": {"WHYOOM_MODE": "sampled", "WHYOOM_EXACT_FROM": "1"}}
SAMPLED = os.environ.get("WHYOOM_TEST_MODE") == "sampled"
CLEAN_ENV = {k: v for k, v in os.environ.items() if not k.startswith("WHYOOM")
             and k not in NOT_OURS}


class Skip(Exception):
    """The reason why this machine cannot run the case."""


class Failed(AssertionError):
    pass


def check(ok, fmt, *args):
    if not ok:
        raise Failed(fmt % args if args else fmt)


def equal(got, want, what):
    if got != want:
        raise Failed("%s: got %r, want %r" % (what, got, want))


def prog(name):
    path = os.path.join(PROGS, name)
    if not os.path.exists(path):
        raise Failed("test program %s was not built in %s" % (name, PROGS))
    return path


class Trace(read.Trace):
    """A trace with its events by thread, as written; a signal handler's by their time."""

    def __init__(self, path, data=None):
        super().__init__(path, data)
        self.tids = {}
        self.events_of = {}
        self.sides = 0
        for chunk in sorted(self.chunks, key=lambda c: (c[1], c[2])):
            self.sides += chunk[8]
            for e in self.chunk_events(chunk):
                e.kind = {1: "ALLOC", 2: "FREE", 3: "UNFREE"}.get(e.kind) or read.NAMES[e.kind]
                self.events_of.setdefault(e.thread, []).append(e)
        for serial, (tid, _) in self.names.items():
            self.tids.setdefault(serial, tid)

    @property
    def drops(self):
        return {DROPS[i] if i < len(DROPS) else str(i): n for i, n in enumerate(self.dropped) if n}

    def all(self, kind):
        return [e for evs in self.events_of.values() for e in evs if e.kind == kind]

    def thread(self, tid, marked=True):
        """The events of the thread with this tid (that holds a mark: tids are used again)."""
        found = [evs for s, evs in self.events_of.items() if self.tids.get(s) == tid
                 and (not marked or any(e.kind == "ALLOC" and e.size == MARK for e in evs))]
        check(len(found) == 1, "%d threads with tid %d in %s", len(found), tid, self.path)
        return found[0]

    def notices(self):
        return {e.fields[0]: e.fields[1] for e in self.all("NOTICE")}


class Result:
    """The end of a run, and its files."""

    def __init__(self, rc, out, err, directory, oracle, pid, seconds):
        self.rc, self.out, self.err, self.dir, self.pid = rc, out, err, directory, pid
        self.oracle_path, self.seconds = oracle, seconds
        self._traces = None

    @property
    def files(self):
        found = []
        if os.path.isdir(self.dir):
            for name in os.listdir(self.dir):
                part = name.split(".")
                if len(part) == 3 and part[2] == "whyoom" and part[0].isdigit():
                    found.append((int(part[0]), int(part[1]), os.path.join(self.dir, name)))
        return sorted(found)

    @property
    def traces(self):
        if self._traces is None:
            self._traces = [Trace(path) for _, _, path in self.files] + self.small
            self._traces.sort(key=lambda t: (t.pid, t.image))
        return self._traces

    @property
    def small(self):
        """The traces of processes that share a file."""
        return [Trace(*t) for t in small.there(self.dir)] if os.path.isdir(self.dir) else []

    def trace(self, pid=None, image=None):
        found = [t for t in self.traces if pid in (None, t.pid) and image in (None, t.image)]
        check(len(found) == 1, "%d traces for pid %s, image %s: %s; stderr: %s", len(found), pid,
              image,
              [os.path.basename(f[2]) for f in self.files], self.err[-600:])
        return found[0]

    def pids(self, what):
        return [int(x.split()[2]) for x in self.out.splitlines() if x.startswith("pid %s " % what)]

    def oracle(self):
        """{tid: [(kind, a, b, c, d)]}: the program's calls."""
        out = {}
        with open(self.oracle_path, "rb") as f:
            used = struct.unpack("<Q", f.read(8))[0]
            data = f.read(used * 40)
        for kind, tid, a, b, c, d in struct.iter_unpack("<IIQQQQ", data):
            out.setdefault(tid, []).append((KINDS[kind], a, b, c, d))
        return out


class Job:
    """A directory of its own for each case; removed when the case passed."""

    def __init__(self, name):
        os.makedirs(TMP, exist_ok=True)
        self.top = tempfile.mkdtemp(prefix="t-%s-" % name, dir=TMP)
        self.count = 0
        self.until = time.monotonic() + LIMIT
        self.started = []

    def close(self, keep):
        for p, token in self.started:
            if p.poll() is None:
                hung.end(p.pid, token)
        if not keep:
            shutil.rmtree(self.top, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    def start(self, argv, preload=True, env=None, directory="", cwd=None, **popen):
        """Return a Popen, in a session of its own, and the paths of its traces and its oracle.
        argv[0] without a slash: a test program. Processes that still run at the end of the case
        are killed. preload: True, False, or the value of LD_PRELOAD. A value None in env removes
        the variable."""
        self.count += 1
        if directory == "":
            directory = self.path("trace%d" % self.count)
        own = {"ORACLE": self.path("oracle%d" % self.count)}
        if preload:
            own.update(MODES["sampled" if SAMPLED else "full"])
            own["LD_PRELOAD"] = SHIM if preload is True else preload
            if directory is not None:
                own["WHYOOM_DIR"] = directory
        own.update(env or {})
        own = {k: v for k, v in own.items() if v is not None}
        argv = list(argv)
        if "/" not in argv[0]:
            argv[0] = prog(argv[0])
        full = dict(CLEAN_ENV)
        if RUNNER:
            passed = []
            for k, v in own.items():
                passed += ["-E", "%s=%s" % (k, v)]
            argv = RUNNER + passed + argv
        else:
            full.update(own)
        p = subprocess.Popen(argv, env=full, cwd=cwd or self.top, stdin=subprocess.DEVNULL,
                             start_new_session=True,
                             **popen)
        self.started.append((p, "ORACLE=" + own["ORACLE"]))
        return p, directory, own["ORACLE"]

    def run(self, argv, preload=True, env=None, directory="", rc=0, timeout=120, cwd=None, **popen):
        """Run to the end of the program and of all processes that hold its output. rc None: any.
        timeout: in seconds; less if the case has less left."""
        start = time.monotonic()
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        p, directory, oracle = self.start(argv, preload, env, directory, cwd, **popen)
        timeout = max(min(timeout, self.until - start), 1)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.hangs(p, argv, timeout)
        r = Result(p.returncode, words(out), words(err), directory, oracle, p.pid,
                   time.monotonic() - start)
        if rc is not None and r.rc != rc:
            raise Failed("%s ended with %s, not %s; stderr: %s"
                         % (argv, how(r.rc), how(rc), r.err[-1500:]))
        return r


    def hangs(self, p, argv, seconds):
        """Print what the program is doing, end it and all its children, and fail."""
        token = self.started[-1][1]
        now = hung.told(p.pid, token)
        hung.end(p.pid, token)
        try:
            err = p.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired as e:  # another process holds its output
            err = e.stderr
        raise Failed("%s hangs (%.0f s):\n%s\nstderr: %s" % (argv, seconds, "\n".join(now),
                                                             words(err)[-800:]))


def words(b):
    return b.decode(errors="replace") if isinstance(b, bytes) else (b or "")


def how(rc):
    return signal.Signals(-rc).name if rc is not None and rc < 0 else "status %s" % rc


# ---- comparisons ----


def between_marks(events):
    """The events of one thread from after its first mark to before its second one."""
    begin = end = None
    for i, e in enumerate(events):
        if e.kind == "ALLOC" and e.size == MARK and begin is None:
            rest = [j for j in range(i + 1, len(events)) if events[j].kind in BLOCKS]
            check(rest and events[rest[0]].kind == "FREE", "the mark's free is missing")
            begin = rest[0] + 1
        elif e.kind == "ALLOC" and e.size == MARK + 1:
            end = i
    check(begin is not None and end is not None, "no marks in a trace of %d events", len(events))
    return events[begin:end]


def show(x):
    return "%s %#x %s" % (x[0], x[1], list(x[2:]))


def same(got, want, what):
    for i, (g, w) in enumerate(zip(got, want)):
        check(g == w, "%s, event %d: the trace has %s, the program did %s; before: %s; then the "
              "trace has %s",
              what, i, show(g), show(w), [show(x) for x in want[max(0, i - 2) : i]],
              [show(x) for x in got[i + 1 : i + 3]])
    check(len(got) == len(want), "%s: %d events in the trace, %d by the program; the first extra: "
          "%s", what,
          len(got), len(want), show((got[len(want) :] or want[len(got) :] or [("", 0)])[0]))


def uncancelled(events):
    """Without releases that were undone at once: a call that is bound to fail need not be noted."""
    out = []
    for e in events:
        if e[0] == "UNFREE" and out and out[-1][0] == "FREE" and out[-1][1] == e[1]:
            out.pop()
        else:
            out.append(e)
    return out


def block_tuples(events):
    """The blocks that compare_blocks() compares."""
    out = []
    for e in events:
        if e.kind == "ALLOC":
            out.append(("ALLOC", e.address, e.size, e.api))
        elif e.kind == "FREE":
            out.append(("FREE", e.address, int(e.realloc), 0))
        elif e.kind == "UNFREE":
            out.append(("UNFREE", e.address, 0, 0))
    return out


def without_empty(events):
    """Without blocks of no bytes, and their releases; and without a release's other half, which is
    left out if there may be none."""
    out, empty = [], set()
    for e in events:
        if e[0] == "ALLOC" and not e[2]:
            empty.add(e[1])
        elif e[0] == "FREE" and e[1] in empty:
            empty.remove(e[1])
        else:
            out.append(("FREE", e[1], 0, 0) if e[0] == "FREE" else e)
    return out


def compare_blocks(result, trace=None, tids=None):
    """Each thread's blocks in the trace are exactly the oracle's, in its order. Return their
    number."""
    total = 0
    for tid, log in result.oracle().items():
        if (tids and tid not in tids) or not any(e[0] == "BEGIN" for e in log):
            continue
        t = trace or result.trace()
        events = between_marks(t.thread(tid))
        want = [e[:4] for e in log if e[0] in BLOCKS]
        got = block_tuples(events)
        if SAMPLED:
            got, want = without_empty(got), without_empty(want)
        same(uncancelled(got), uncancelled(want), "thread %d" % tid)
        equal([(e.fields[4], e.fields[1], e.fields[3]) for e in events if e.kind == "FAILED"],
              [e[1:4] for e in log if e[0] == "FAILED"], "FAILED (size, api, errno)")
        total += len(want)
    check(total, "the oracle is empty")
    return total


def undamaged(directory):
    """The trace of any ordinary end, by SIGKILL too, is whole: `whyoom check` names no damage."""
    if os.environ.get("WHYOOM_EXE") and any(name.endswith(".whyoom")
                                            for name in os.listdir(directory)):
        done = subprocess.run([os.environ["WHYOOM_EXE"], "check", "--format", "json", directory],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        if "no header yet" not in done.stderr:
            check(done.stdout, "check says nothing: %s", done.stderr)
            damages = [p["damage"] for p in json.loads(done.stdout)["processes"] if p["damage"]]
            check(not damages and not done.returncode, "said to be damaged: %s %s",
                  damages, done.stderr)


def sound(trace, drops=()):
    """Rules for every trace; drops: the reasons that may have struck."""
    check(not trace.torn, "%d torn chunks", trace.torn)
    check(not trace.bad_checksums, "%d wrong checksums", trace.bad_checksums)
    check(not trace.unknown, "%d unknown records", trace.unknown)
    extra = {k: n for k, n in trace.drops.items() if k not in drops}
    check(not extra, "dropped: %s", extra)
    for evs in trace.events_of.values():
        for e in evs:
            check(not e.stack or trace.stacks.get(e.stack), "stack %d of a %s is not defined",
                  e.stack, e.kind)


def main(argv, cases):
    """Run the named cases; 0 passed, 1 failed, 77 skipped."""
    if argv[1:] == ["--list"]:
        print("\n".join(sorted(cases)))
        return 0
    if argv[1:2] == ["--listed"]:
        odd = set(argv[2:]) ^ set(cases)
        print("FAILED: cases that only one side knows: %s" % sorted(odd) if odd else "ok")
        return 1 if odd else 0
    # with all processes that a case has started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    status = 0
    for name in argv[1:] or sorted(cases):
        if name not in cases:
            print("no case %r" % name, file=sys.stderr)
            return 2
        job, ok, start = Job(name), False, time.monotonic()
        try:
            note = cases[name](job)
            ok = True
            print("ok %s%s (%.1f s)" % (name, ": %s" % note if note else "",
                                        time.monotonic() - start))
        except Skip as e:
            ok = True
            print("SKIP %s: %s" % (name, e))
            status = status or 77
        except Failed as e:
            # the reason last: the closing lines of a whole run quote a test's last line
            print("(kept: %s)\nFAILED %s: %s" % (job.top, name, e))
            status = 1
        finally:
            job.close(keep=not ok)
        sys.stdout.flush()
    return status
