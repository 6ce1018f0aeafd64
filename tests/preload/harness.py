"""harness.py - runs a test program under the preload and hands its traces to the checks.

Owns the environment of the programs (only they get LD_PRELOAD), temporary directories, and the
comparison of a trace with a program's oracle log. Knows nothing of single tests.

From the environment, set by meson: WHYOOM_TEST_SHIM (the library), WHYOOM_TEST_PROGS (where the
programs were built), WHYOOM_TEST_TMP (a directory on a real file system), WHYOOM_TEST_RUNNER (a
command in front of each program, for another architecture).
"""

import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import tracefile

SHIM = os.environ.get("WHYOOM_TEST_SHIM", "")
PROGS = os.environ.get("WHYOOM_TEST_PROGS", "")
TMP = os.environ.get("WHYOOM_TEST_TMP", "/var/tmp")
RUNNER = shlex.split(os.environ.get("WHYOOM_TEST_RUNNER", ""))
ORACLE_MARK = 12345677
KINDS = {1: "ALLOC", 2: "FREE", 3: "UNFREE", 4: "MAP", 5: "UNMAP", 6: "ADVISE", 7: "BRK",
         8: "FAILED", 9: "BEGIN", 10: "END"}
CLEAN_ENV = {k: v for k, v in os.environ.items()
             if not k.startswith("WHYOOM") and k not in ("LD_PRELOAD", "MALLOC_ARENA_MAX", "MALLOC_PERTURB_",
                                                         "GLIBC_TUNABLES", "PYTHONMALLOC")}


class Skip(Exception):
    pass


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


class Result:
    """How a run ended, and what it left behind."""

    def __init__(self, rc, out, err, directory, oracle, pid, seconds=0.0):
        self.rc, self.out, self.err, self.dir, self.pid = rc, out, err, directory, pid
        self.oracle_path, self.seconds = oracle, seconds
        self._traces = None

    @property
    def traces(self):
        if self._traces is None:
            self._traces = tracefile.traces(self.dir)
        return self._traces

    def trace(self, pid=None, image=None):
        found = [t for t in self.traces
                 if (pid is None or t.pid == pid) and (image is None or t.image == image)]
        check(len(found) == 1, "%d traces in %s (pid %s, image %s): %s; stderr: %s", len(found), self.dir, pid,
              image, [os.path.basename(t.path) for t in self.traces], self.err[-600:])
        return found[0]

    def oracle(self):
        """{tid: [(kind, a, b, c, d)]} of the log."""
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
        self.n = 0

    def close(self, keep):
        if not keep:
            subprocess.run(["chmod", "-R", "u+rwx", self.top], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(self.top, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    def env(self, preload=True, directory=None, oracle=None, extra=None):
        env = dict(CLEAN_ENV)
        own = {}
        if preload:
            own["LD_PRELOAD"] = SHIM if preload is True else preload
            if directory is not None:
                own["WHYOOM_DIR"] = directory
        if oracle:
            own["ORACLE"] = oracle
        own.update(extra or {})
        if not RUNNER:
            env.update(own)
            return env, []
        args = []
        for k, v in own.items():
            args += ["-E", "%s=%s" % (k, v)]
        return env, args

    def start(self, argv, preload=True, env=None, directory="", cwd=None, **popen):
        """A Popen and the directory of its traces. argv[0] without a slash is a test program."""
        self.n += 1
        if directory == "":
            directory = self.path("trace%d" % self.n)
        oracle = self.path("oracle%d" % self.n)
        full, args = self.env(preload, directory, oracle, env)
        argv = list(argv)
        if "/" not in argv[0]:
            argv[0] = prog(argv[0])
        if RUNNER:
            argv = RUNNER + args + argv
        p = subprocess.Popen(argv, env=full, cwd=cwd or self.top, stdin=subprocess.DEVNULL, **popen)
        return p, directory, oracle

    def run(self, argv, preload=True, env=None, directory="", rc=0, timeout=120, cwd=None, **popen):
        start = time.monotonic()
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        p, directory, oracle = self.start(argv, preload, env, directory, cwd, **popen)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise Failed("%s hangs (%d s); stderr: %s" % (argv, timeout, text(err)[-800:]))
        r = Result(p.returncode, text(out), text(err), directory, oracle, p.pid, time.monotonic() - start)
        if rc is not None and r.rc != rc:
            raise Failed("%s ended with %s, not %s; stderr: %s" % (argv, how(r.rc), how(rc), r.err[-1500:]))
        return r


def text(b):
    return b.decode(errors="replace") if isinstance(b, bytes) else (b or "")


def how(rc):
    return "signal %s" % signal.Signals(-rc).name if rc is not None and rc < 0 else "status %s" % rc


# ---- comparisons with the oracle ----

BLOCK = ("ALLOC", "FREE", "UNFREE")


def between_marks(events, last=False):
    """The events of one thread from after the first mark to before the second one."""
    begin = end = None
    for i, e in enumerate(events):
        if e.kind == "ALLOC" and e.size == ORACLE_MARK and begin is None:
            check(i + 1 < len(events) and events[i + 1].kind == "FREE", "the mark's free is missing")
            begin = i + 2
        if e.kind == "ALLOC" and e.size == ORACLE_MARK + 1:
            end = i
    check(begin is not None, "no opening mark in the trace of %d events", len(events))
    check(end is not None or last, "no closing mark in the trace")
    return events[begin:end]


def trace_thread(trace, tid, mark=True):
    """The events of the thread with this tid that holds a mark (tids may be used again)."""
    found = [s for s in trace.thread_of_tid(tid)
             if not mark or any(e.kind == "ALLOC" and e.size == ORACLE_MARK for e in trace.events_of.get(s, []))]
    check(len(found) == 1, "%d threads with tid %d in the trace", len(found), tid)
    return trace.events_of[found[0]]


def compare_blocks(result, trace=None, tids=None, loose_free=True):
    """Each thread's blocks in the trace are exactly those of the oracle. Returns their number."""
    trace = trace or result.trace()
    check(not trace.torn, "torn: %s", trace.torn[:3])
    total = 0
    for tid, log in result.oracle().items():
        if tids and tid not in tids:
            continue
        if not any(e[0] == "BEGIN" for e in log):
            continue
        evs = between_marks(trace_thread(trace, tid))
        got, want = [], []
        for e in evs:
            if e.kind == "ALLOC":
                got.append(("ALLOC", e.address, e.size, e.api))
            elif e.kind == "FREE":
                got.append(("FREE", e.address, 1 if e.flags & 0x10 else 0, 0))
            elif e.kind == "UNFREE":
                got.append(("UNFREE", e.address, 0, 0))
        for kind, a, b, c, d in log:
            if kind in BLOCK:
                want.append((kind, a, b, c))
        for i, (g, w) in enumerate(zip(got, want)):
            check(g == w, "thread %d, block event %d: trace has %s, the program did %s (before: %s)", tid, i,
                  show(g), show(w), [show(x) for x in want[max(0, i - 2) : i]])
        check(len(got) == len(want), "thread %d: %d block events in the trace, %d by the program; first extra: %s",
              tid, len(got), len(want), show((got[len(want):] or want[len(got):])[0]))
        compare_failed(evs, log)
        total += len(got)
    check(total, "the oracle is empty")
    return total


def compare_failed(evs, log):
    got = [(e.size, e.api, e.f["result"]) for e in evs if e.kind == "FAILED"]
    want = [(a, b, c) for kind, a, b, c, d in log if kind == "FAILED"]
    equal(got, want, "FAILED (size, api, errno)")


def show(x):
    return "%s %#x %s" % (x[0], x[1], list(x[2:]))


def nothing_dropped(trace):
    check(not trace.dropped, "dropped: %s", trace.dropped)


def sound(trace):
    """What every trace of a program that ended by itself must hold."""
    check(not trace.torn, "torn: %s", trace.torn[:3])
    trace.check_seals()
    for evs in trace.events_of.values():
        for e in evs:
            if e.stack and e.stack not in trace.stacks:
                raise Failed("stack %d of %s is not defined" % (e.stack, e))


class Replay:
    """Live blocks over all threads, settled as the format describes."""

    def __init__(self, trace, window_ns=100000):
        self.repairs = self.doubles = self.unmatched = 0
        evs = [(s, e) for s, e in trace.events(("ALLOC", "FREE", "UNFREE"))]
        per_ns = (trace.hz or 10**9) / 1e9
        window = window_ns * per_ns
        live, early = {}, {}
        frees = {}
        for i, (s, e) in enumerate(evs):
            if e.kind == "FREE":
                frees.setdefault(e.address, []).append(i)
        used = set()
        for i, (s, e) in enumerate(evs):
            if i in used:
                continue
            a = e.address
            if e.kind == "ALLOC":
                if a in live:
                    nxt = [j for j in frees.get(a, ()) if j > i and j not in used
                           and evs[j][1].ticks - e.ticks <= window and evs[j][0] != s]
                    if nxt:
                        used.add(nxt[0])
                        self.repairs += 1
                    else:
                        self.doubles += 1
                live[a] = e
            elif e.kind == "FREE":
                early[(s, a)] = live.get(a)
                if live.pop(a, None) is None:
                    self.unmatched += 1
            else:
                old = early.pop((s, a), None)
                if old is not None:
                    live[a] = old
        self.live = live


def main(argv, cases):
    """Runs the case that is named; 0 passed, 1 failed, 77 skipped."""
    if len(argv) == 2 and argv[1] == "--list":
        print("\n".join(sorted(cases)))
        return 0
    names = argv[1:] or sorted(cases)
    status = 0
    for name in names:
        if name not in cases:
            print("no case %r" % name, file=sys.stderr)
            return 2
        job = Job(name)
        ok = False
        start = time.monotonic()
        try:
            note = cases[name](job)
            ok = True
            print("ok %s%s (%.1f s)" % (name, ": %s" % note if note else "", time.monotonic() - start))
        except Skip as e:
            ok = True
            print("SKIP %s: %s" % (name, e))
            status = status or 77
        except (Failed, tracefile.Broken) as e:
            print("FAILED %s: %s\n  (kept: %s)" % (name, e, job.top))
            status = 1
        finally:
            job.close(keep=not ok and not os.environ.get("WHYOOM_TEST_DISCARD"))
        sys.stdout.flush()
    return status
