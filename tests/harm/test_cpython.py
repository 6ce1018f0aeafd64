#!/usr/bin/env python3
"""CPython's own tests of threads, processes and forks: each test ends as it does without us.

The two sides run side by side. A test that ended differently is run again, alone, on both: it is a
flake only when every further run agrees with the plain side's outcomes; else it is harm.

CPython forks in processes that have threads, which now and then blocks a child for good with
nobody's help. So a module that hangs is harm if a thread waits inside libwhyoom.so, or if it hangs
again.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import harness
from harness import Failed, Skip, check

TIMEOUT = 300  # some four times what the slowest module takes
AGAIN = 4
# Fewer outcomes than this, and the module did not really run.
LEAST = {"test_threading": 150, "test_subprocess": 250, "test_multiprocessing_fork": 300,
         "test_multiprocessing_spawn": 300,
         "test_multiprocessing_forkserver": 300, "test_asyncio": 1500, "test_mmap": 20,
         "test_ctypes": 300, "test_faulthandler": 20,
         "test_signal": 30, "test_gc": 20, "test_os": 200, "test_socket": 300, "test_posix": 80}


class Hangs(Failed):
    """A side that did not end; its native stacks."""

    def __init__(self, p):
        super().__init__("%s hangs: %s" % (p.side.name, log(p)))
        found = subprocess.run(["pgrep", "-s", str(p.pid)], capture_output=True, text=True)
        self.side = p.side.name
        self.stacks = "".join(
            subprocess.run(["gdb", "-p", pid, "-batch", "-ex", "thread apply all bt 12"],
                           capture_output=True, text=True).stdout for pid in found.stdout.split())
        self.ours = bool(re.search(r"^#[0-3] .*libwhyoom", self.stacks, re.M))


def outcome(case):
    for kind in ("error", "failure", "skipped"):
        if case.find(kind) is not None:
            return kind
    return case.get("result", "") + "/" + case.get("status", "")


def start(side, module, label, only=()):
    where = side.path(label)
    os.makedirs(where)
    report = os.path.join(where, "report.xml")
    short = tempfile.mkdtemp(prefix="h-")  # sockets lie there: a path may have 108 bytes
    atexit.register(shutil.rmtree, short, ignore_errors=True)
    argv = [harness.PYTHON, "-m", "test", "--timeout", str(TIMEOUT + 60), "--tempdir", short,
            "--junit-xml", report]
    argv += ["-i", "*VSOCK*"]  # one port for both sides, and in a virtual machine nobody answers
    for name in only:
        argv += ["-m", name]
    log = open(os.path.join(where, "log"), "wb")
    with log:
        p = side.start(argv + [module], stdout=log, stderr=subprocess.STDOUT, cwd=where,
                       env={"TMPDIR": short, "PYTHONDONTWRITEBYTECODE": "1"},
                       start_new_session=True)
    p.report, p.log, p.side = report, log.name, side
    return p


def finish(p):
    """(exit status, {test: outcome})"""
    try:
        rc = p.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        hangs = Hangs(p)
        os.killpg(p.pid, 9)
        p.wait()
        raise hangs
    if not os.path.exists(p.report):
        raise Failed("%s left no report, %s: %s" % (p.side.name, harness.how(rc), log(p)))
    cases = {}
    for case in ElementTree.parse(p.report).getroot().iter("testcase"):
        # A test that several subclasses inherit has one name for each of them.
        cases[case.get("name")] = outcome(case)
    return rc, cases


def log(p):
    with open(p.log, errors="replace") as f:
        return f.read()[-1500:]


def again(job, module, names):
    """Names whose outcome differs for certain, and those that flake."""
    harm, flakes = {}, []
    seen = {s.name: {n: set() for n in names} for s in job.sides}
    for k in range(AGAIN):
        for p in [start(s, module, "again%d" % k, names) for s in job.sides]:
            _, cases = finish(p)
            for n in names:
                seen[p.side.name][n].add(cases.get(n, "missing"))
    for n in names:
        if seen["preload"][n] <= seen["plain"][n]:
            flakes.append(n)
        else:
            harm[n] = (sorted(seen["plain"][n]), sorted(seen["preload"][n]))
    return harm, flakes


def both(job, module, label):
    """What finish() gives for both sides; the one that hangs ends the other."""
    started = [start(s, module, label) for s in job.sides]
    try:
        return started, [finish(p) for p in started]
    finally:
        for p in started:
            if p.poll() is None:
                os.killpg(p.pid, 9)
                p.wait()


def run(job, module):
    here = subprocess.run([harness.PYTHON, "-c", "import test.%s" % module], capture_output=True)
    if here.returncode:
        raise Skip("%s has no test.%s (package libpython3-testsuite)" % (harness.PYTHON, module))
    job.about("CPython " + harness.version([harness.PYTHON, "--version"], r"([\d.]+)"),
              "its own " + module)
    try:
        started, results = both(job, module, "first")
    except Hangs as hangs:
        print("  %s: %s hangs, again:\n%s" % (module, hangs.side, hangs.stacks))
        check(not hangs.ours, "hangs inside libwhyoom.so")
        try:
            started, results = both(job, module, "second")
        except Hangs as again:
            raise Failed("%s, then %s hangs: %s" % (hangs.side, again.side, again.stacks[-4000:]))
    (rc_plain, plain), (rc_ours, ours) = results
    check(len(plain) >= LEAST[module], "only %d tests ran: %s" % (len(plain), log(started[0])))
    names = sorted(n for n in set(plain) | set(ours) if plain.get(n) != ours.get(n))
    note = "%d tests" % len(plain)
    if names:
        print("  %s ended differently, again: %s"
              % (module, [(n, plain.get(n), ours.get(n)) for n in names]))
        harm, flakes = again(job, module, names)
        check(not harm, "(without, with the preload): %s\n%s" % (harm, log(started[1])))
        note += ", flaking on both sides: %s" % " ".join(flakes)
    else:
        check(rc_plain == rc_ours, "status %s without, %s with: %s"
              % (rc_plain, rc_ours, log(started[1])))
    found = job.preload.traces(least=5000)
    return "%s, %d traces, %d events" % (note, len(found), sum(p["events"] for p in found))


CASES = {module: lambda job, module=module: run(job, module) for module in LEAST}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
