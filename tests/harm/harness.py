"""harness.py - runs real programs without the preload and with it, and compares what they did.

Owns the environments of both sides, the directories they run in, and the check of the traces. Knows
nothing of single programs.

From the environment, set by meson: WHYOOM_TEST_SHIM (the library), WHYOOM_EXE (the analyzer),
WHYOOM_TEST_TMP (a directory on a real file system). WHYOOM_HARM_RESULTS names a file to which a
line of JSON is added for each case, from which tests/harm/all makes its table.

WHYOOM_HARM_MODE: full (the default); sampled, with a sample so dense that both ways of each call
are taken all the time; switched: `whyoom ctl` changes the mode and pauses the recording while the
program runs; attached: it is not preloaded, but `whyoom attach` and `whyoom detach` come to each of
its processes while it runs, and again.
"""

import gzip
import hashlib
import http.client
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SHIM = os.environ.get("WHYOOM_TEST_SHIM", "")
WHYOOM = os.environ.get("WHYOOM_EXE", "")
TMP = os.environ.get("WHYOOM_TEST_TMP", "/var/tmp")
RESULTS = os.environ.get("WHYOOM_HARM_RESULTS", "")
PYTHON = "/usr/bin/python3"
NOT_OURS = ("LD_", "WHYOOM", "PYTHON", "MALLOC_", "GLIBC_", "NODE_", "GIT_", "DEBUGINFOD", "MESON",
            "MAKE")
MODE = os.environ.get("WHYOOM_HARM_MODE", "full")
DENSE = {"WHYOOM_MODE": "sampled", "WHYOOM_SAMPLE_EVERY": "8KiB", "WHYOOM_EXACT_FROM": "64KiB"}
MODES = {"full": {}, "sampled": DENSE, "switched": {}, "attached": {}}
# What `whyoom ctl` asks for, in turn; and how often it must have been answered for a case to count.
ASKED = ["mode sampled --sample-every 8KiB --exact-from 64KiB", "pause", "status", "resume",
         "mode full", "pause", "flush",
         "mode sampled", "resume", "mode sampled --sample-every 1MiB --exact-from 4KiB",
         "mode full"]
ANSWERS = 10
ATTACHES = 3  # that must have been detached from again for a case to count in mode attached
# A shell's vfork child allocates in its parent's memory; nothing is written there, but counted.
EXPLAINED = {"vfork"}


class Failed(AssertionError):
    pass


class Skip(Exception):
    """The reason why this machine cannot run the case."""


def check(ok, message):
    if not ok:
        raise Failed(message)


def need(*programs):
    """Paths of programs; without one the case is skipped."""
    found = []
    for p in programs:
        path = shutil.which(p) or shutil.which(p, path="/usr/sbin:/sbin")
        if not path:
            raise Skip("there is no %s" % p)
        found.append(path)
    return found if len(found) > 1 else found[0]


def records_nothing():
    """The case is about a program that is not recorded: there is no mode of it."""
    if MODE != "full":
        raise Skip("nothing is recorded")


def how(rc):
    return signal.Signals(-rc).name if rc is not None and rc < 0 else "status %s" % rc


class Switcher(threading.Thread):
    """Asks whatever is being recorded in a directory for the one and the other, until it is told to
    stop."""

    def __init__(self, side):
        super().__init__(daemon=True)
        self.side, self.answers, self.over = side, 0, threading.Event()

    def run(self):
        for words in itertools.cycle(ASKED):
            if self.over.is_set():
                return
            if os.path.isdir(self.side.trace):
                # who has ended, or does nothing, does not answer
                p = subprocess.run([self.side.job.whyoom, "ctl", self.side.trace, *words.split(),
                                    "--wait", "20"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   user=self.side.job.user,
                                   env=self.side.env(preload=False))
                self.answers += p.stdout.count(b"\n")
            self.over.wait(0.02)

    def stop(self):
        self.over.set()
        self.join(60)
        return self.answers


class Attacher(threading.Thread):
    """Attaches to the processes of a side, one after the other, and detaches, until it is told to
    stop. The side's processes are those whose TMPDIR is its directory, or that run in it."""

    def __init__(self, side):
        super().__init__(daemon=True)
        self.side, self.attaches, self.over = side, 0, threading.Event()
        self.said = ""  # why the last one was refused
        self.mark = ("TMPDIR=%s" % side.top).encode()

    def is_ours(self, pid):
        try:
            if (os.readlink("/proc/%s/cwd" % pid) + "/").startswith(self.side.top + "/"):
                return True
            with open("/proc/%s/environ" % pid, "rb") as f:
                return self.mark in f.read().split(b"\0")
        except OSError:
            return False

    def whyoom(self, *words):
        p = subprocess.run([self.side.job.whyoom, *words], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env=self.side.env(preload=False, extra={"TMPDIR": "/"}),
                           user=self.side.job.user)
        self.said = p.stderr.strip() or self.said
        return p.returncode

    def visit(self, pid):
        """Most processes end within the time that this takes."""
        if self.whyoom("attach", "-o", self.side.trace, pid):
            return
        self.over.wait(0.3)
        self.attaches += self.whyoom("detach", pid) == 0

    def run(self):
        while not self.over.is_set():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if not self.over.is_set() and self.is_ours(pid):
                    self.visit(pid)
            self.over.wait(0.02)

    def stop(self):
        self.over.set()
        self.join(60)
        return self.attaches


class Side:
    """One of the two: a name, whether it has the preload, and where it runs and traces."""

    def __init__(self, job, name):
        self.job, self.name, self.recorded = job, name, name == "preload"
        self.preloaded = self.recorded and MODE != "attached"
        self.switcher = None
        self.top = os.path.join(job.top, name)
        self.trace = os.path.join(self.top, "trace")
        os.makedirs(self.top)

    def path(self, *parts):
        return os.path.join(self.top, *parts)

    def env(self, extra=None, preload=True):
        env = {k: v for k, v in os.environ.items() if not k.startswith(NOT_OURS)}
        env.update({"LC_ALL": "C.UTF-8", "TMPDIR": self.top, "HOME": self.top, "TZ": "UTC"})
        if self.preloaded and preload:
            env["LD_PRELOAD"] = self.job.shim
            env["WHYOOM_DIR"] = self.trace
            env.update(MODES[MODE])
        env.update(extra or {})
        return env

    def start(self, argv, env=None, preload=True, **popen):
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("cwd", self.top)
        if self.job.user:
            popen.update(user=self.job.user, group=pwd.getpwnam(self.job.user).pw_gid,
                         extra_groups=[])
        if MODE in ("switched", "attached") and self.recorded and preload and not self.switcher:
            self.switcher = (Switcher if MODE == "switched" else Attacher)(self)
            self.switcher.start()
        return subprocess.Popen(argv, env=self.env(env, preload), **popen)

    def run(self, argv, env=None, preload=True, timeout=240, data=None, rc=None, **popen):
        """(exit status, stdout, stderr) of a run to its end. rc: the status that it must have."""
        if data is not None:
            popen["stdin"] = subprocess.PIPE
        p = self.start(argv, env, preload, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        try:
            out, err = p.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise Failed("%s: %s hangs (%d s): %s" % (self.name, argv, timeout, tail(out + err)))
        if rc is not None and p.returncode != rc:
            raise Failed("%s: %s ended with %s: %s" % (self.name, argv, how(p.returncode),
                                                       tail(out + err)))
        return p.returncode, out, err

    def traces(self, least, processes=1, explained=EXPLAINED):
        """What `whyoom check` says of the traces: whole, no event dropped for another reason than
        the explained ones, `least` events in the largest one, so many processes. (A sample has
        fewer, and processes with next to none leave no trace.)"""
        if MODE != "full":
            least = processes = 1
        if self.switcher:
            self.job.answers = self.switcher.stop()
            if MODE == "attached" and not self.job.answers:
                return []
        p = subprocess.run([WHYOOM, "check", "--format", "json", self.trace], capture_output=True,
                           text=True,
                           timeout=300, env=self.env(preload=False))
        if MODE == "attached" and "no traces in this directory" in p.stderr:
            return []  # what recorded nothing leaves none
        check(p.returncode == 0, "whyoom check ends with %s: %s"
              % (how(p.returncode), p.stderr[-2000:]))
        found = json.loads(p.stdout)["processes"]
        check(len(found) >= processes, "%d traces, at least %d were expected"
              % (len(found), processes))
        most = max(x["events"] for x in found)
        check(most >= least, "the largest trace has %d events, less than %d: was it recorded?"
              % (most, least))
        for x in found:
            check(set(x["dropped_by"]) <= explained, "events were dropped in %s: %s"
                  % (x["trace"], x["dropped_by"]))
        return found


class Job:
    """A case's directory; removed when it passed."""

    def __init__(self, name):
        os.makedirs(TMP, exist_ok=True)
        self.name, self.shim, self.whyoom, self.user = name, SHIM, WHYOOM, None
        self.program, self.what = name, ""
        self.answers = None
        self.begin(TMP)

    def begin(self, below):
        self.top = tempfile.mkdtemp(prefix="harm-%s-" % self.name, dir=below)
        self.plain = Side(self, "plain")
        self.preload = Side(self, "preload")
        self.sides = (self.plain, self.preload)

    def about(self, program, what):
        """For the table: the program with its version, and what it was made to do."""
        self.program, self.what = program, what

    def source(self, name, text):
        """The path of a file with that text."""
        path = os.path.join(self.top, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def for_user(self, user):
        """Everything runs as that user, where root runs the tests: some programs refuse root. The
        tree itself may lie in somebody's home, so the job moves to where all can go."""
        if os.getuid():
            return
        shutil.rmtree(self.top)
        self.begin("/var/tmp")
        os.chmod(self.top, 0o755)
        self.shim = shutil.copy(SHIM, os.path.join(self.top, "libwhyoom.so"))
        self.whyoom = shutil.copy(WHYOOM, os.path.join(self.top, "whyoom"))
        for s in self.sides:
            shutil.chown(s.top, user)
        self.user = user

    def both(self, what):
        """what(side) on each, one after the other; their results must be equal. Returns it."""
        results = [what(s) for s in self.sides]
        same(results[1], results[0], "")
        return results[0]

    def switched(self):
        """In mode switched: that the program was asked often enough; how often it answered."""
        if self.answers is None or self.answers < ANSWERS:
            raise Skip("the same, but only %d answers to `whyoom ctl`: too short"
                       % (self.answers or 0))
        return "%d answers to ctl" % self.answers

    def attached(self):
        """In mode attached: that its processes were attached to often enough; how often."""
        if self.answers is None and self.preload.switcher:
            self.answers = self.preload.switcher.stop()
        if (self.answers or 0) < ATTACHES:
            said = self.preload.switcher.said if self.preload.switcher else ""
            raise Skip("the same, but only %d attaches: too short%s"
                       % (self.answers or 0, ", or " + said if said else ""))
        return "%d attaches" % self.answers

    def close(self, keep):
        for s in self.sides:
            if s.switcher:
                s.switcher.stop()
        if not keep:
            shutil.rmtree(self.top, ignore_errors=True)


def version(argv, pattern):
    """What a program says its version is."""
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, text=True)
    m = re.search(pattern, p.stdout)
    return m[1] if m else "?"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(true, why, seconds=60):
    limit = time.monotonic() + seconds
    while not true():
        check(time.monotonic() < limit, why() if callable(why) else why)
        time.sleep(0.05)


class Connection:
    """One that is kept, and made anew where the server has closed it (as it does when it is
    reloaded)."""

    def __init__(self, port):
        self.port, self.c = port, None

    def get(self, path):
        """(status, digest of the body as it was before a server compressed it: how that is cut into
        blocks is chance)"""
        for patience in (2, 1, 0):
            try:
                self.c = self.c or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.c.request("GET", path, headers={"Accept-Encoding": "gzip"})
                r = self.c.getresponse()
                body = r.read()
                if r.getheader("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                return r.status, hashlib.sha256(body).hexdigest()[:16]
            except (http.client.RemoteDisconnected, ConnectionError):
                self.close()
                if not patience:
                    raise

    def close(self):
        if self.c:
            self.c.close()
        self.c = None


def at_once(client, count):
    """client(0), client(1) ... in a thread each; returns when the last one has ended."""
    threads = [threading.Thread(target=client, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def requests(port, paths, threads):
    """{path: [what Connection.get() gave]}, each path once from each of the threads. Answers that
    differ from thread to thread are all there."""
    seen, lock, failures = {}, threading.Lock(), []

    def client():
        c = Connection(port)
        try:
            for path in paths:
                answer = c.get(path)
                with lock:
                    seen.setdefault(path, set()).add(answer)
        except (OSError, http.client.HTTPException) as e:
            failures.append("%s: %r" % (path, e))
        c.close()

    at_once(lambda _: client(), threads)
    check(not failures, "requests failed: %s" % failures[:3])
    return {path: sorted(answers) for path, answers in seen.items()}


def stop(p, sig, why="", seconds=60):
    """How a process ends that was sent a signal."""
    p.send_signal(sig)
    try:
        return how(p.wait(seconds))
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        raise Failed("%s does not end by %s: %s" % (p.args[0], sig, why() if callable(why)
                                                    else why))


def tail(b):
    return (b.decode(errors="replace") if isinstance(b, bytes) else b)[-1500:]


def same(got, want, where):
    """Results with the preload and without; says where they differ."""
    if got == want:
        return
    if isinstance(want, dict) and isinstance(got, dict):
        for k in sorted(set(got) | set(want), key=str):
            same(got.get(k), want.get(k), "%s[%r]" % (where, k))
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)) and len(got) == len(want):
        for i, (g, w) in enumerate(zip(got, want)):
            same(g, w, "%s[%d]" % (where, i))
    if isinstance(want, bytes) and isinstance(got, bytes):
        at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w),
                  min(len(got), len(want)))
        got, want = got[max(0, at - 60) : at + 300], want[max(0, at - 60) : at + 300]
        where += " from byte %d" % at
    raise Failed("%s: with the preload %r, without %r" % (where or "the results differ", got, want))


def output(side, result):
    """A result without the names of the side's own directory."""
    rc, out, err = result
    here = side.top.encode()
    return how(rc), out.replace(here, b"TOP"), err.replace(here, b"TOP")


def main(argv, cases):
    """Runs the cases that are named; 0 passed, 1 failed, 77 nothing but skipped."""
    for what in (SHIM, WHYOOM):
        if not os.path.exists(what):
            print("WHYOOM_TEST_SHIM and WHYOOM_EXE must name the library and the analyzer",
                  file=sys.stderr)
            return 2
    passed = failed = skipped = 0
    for name in argv[1:] or sorted(cases):
        if name not in cases:
            print("no case %r; there are %s" % (name, " ".join(sorted(cases))), file=sys.stderr)
            return 2
        job, start, good, outcome = Job(name.replace("/", "-")), time.monotonic(), False, "the same"
        try:
            note = cases[name](job)
            if MODE == "switched":
                note = ", ".join(filter(None, [note, job.switched()]))
            if MODE == "attached":
                note = ", ".join(filter(None, [note, job.attached()]))
            good = True
            passed += 1
            print("ok %s%s (%.1f s)" % (name, ": %s" % note if note else "",
                                        time.monotonic() - start))
        except Skip as e:
            good = True
            skipped += 1
            outcome = "not run: %s" % e
            print("SKIP %s: %s" % (name, e))
        except Failed as e:
            failed += 1
            outcome = "differs"
            print("FAILED %s: %s\n  (kept: %s)" % (name, e, job.top))
        finally:
            job.close(not good)
        if RESULTS:
            with open(RESULTS, "a") as f:
                case = "%s %s" % (os.path.basename(argv[0]), name)
                print(json.dumps({"case": case, "program": job.program, "what": job.what,
                                  "mode": MODE, "outcome": outcome}), file=f)
        sys.stdout.flush()
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 77 if skipped and not passed else 0
