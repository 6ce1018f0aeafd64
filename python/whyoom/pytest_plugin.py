"""pytest_plugin.py - limits of memory for tests:

    @pytest.mark.whyoom(peak="200 MiB", leaks=0)

A marked test runs in a child, `whyoom run -- python -m pytest ...`, from its fixtures' set-up to
their teardown; so it is recorded whatever it does, and a test that the kernel kills is a failure
with a verdict. The child marks the call of the test, and what is judged lies between these marks.
This file owns the hooks of both sides and the wording; _measure.py reads the trace."""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import whyoom
from whyoom import _measure, _program

CHILD = "WHYOOM_PYTEST_REPORTS"  # in a child: where its reports go; a line of JSON each
TEST = "WHYOOM_PYTEST_TEST"  # the test that it is for
MARK = "pytest"  # the name of the request that the call is
SHOWN = 5  # sites in a failure
SAMPLE_EVERY = 64 << 10  # bytes, before the test
BURN = 40
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
# Options of the session that are not the child's: they choose tests, or write files.
DROPPED = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw",
           "--stepwise", "--pdb", "--trace")
DROPPED_WITH_VALUE = ("--junitxml", "--junit-xml", "--report-log", "--html", "-k", "-m",
                      "--deselect", "-n", "--numprocesses", "--dist")


def pytest_addoption(parser):
    group = parser.getgroup("whyoom", "limits of memory")
    group.addoption("--no-whyoom", action="store_true",
                    help="run tests marked whyoom like all others, without limits")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "whyoom(peak=None, leaks=None, warm_up=1, space='host'): run the test under "
        "`whyoom run`; it fails if it holds more than `peak` at a time, or leaves more than "
        "`leaks` behind (sizes: bytes, or text such as '200 MiB'); before leaks are measured it "
        "runs warm_up times")


class Limits:
    """The mark's arguments."""

    def __init__(self, mark):
        known = dict(mark.kwargs)
        if mark.args:
            raise ValueError("whyoom's mark has named arguments only: peak, leaks")
        self.peak = take_size("peak", known.pop("peak", None))
        self.leaks = take_size("leaks", known.pop("leaks", None))
        self.warm_up = known.pop("warm_up", 1) if self.leaks is not None else 0
        self.space = known.pop("space", "host")
        if known:
            raise ValueError(f"whyoom's mark has no argument {', '.join(sorted(known))}")


def take_size(name, value):
    """Bytes of 200, "200 MiB", "1.5 GB"."""
    if value is None or isinstance(value, int):
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(value))
    if not found or found[2].upper() not in UNITS:
        raise ValueError(f"{name}: '{value}' is no size; write '200 MiB' or a number of bytes")
    return int(float(found[1]) * UNITS[found[2].upper()])


def size(bytes):
    """As whyoom words it: 1.50 MiB, 23 bytes."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if bytes < 1024 or unit == "TiB":
            break
        bytes /= 1024
    if unit == "bytes":
        return f"{bytes} bytes"
    return f"{bytes:.{max(0, 2 - len(str(int(bytes))) + 1)}f} {unit}"


# --- in the child ---

def pytest_collection_modifyitems(config, items):
    wanted = os.environ.get(TEST)
    if wanted:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid != wanted])
        items[:] = [i for i in items if i.nodeid == wanted]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if CHILD in os.environ:
        limits, test = Limits(item.get_closest_marker("whyoom")), item.runtest
        item.runtest = lambda: measured(test, limits)


def measured(test, limits):
    """Run the test between marks. Nothing else is between them, so nothing else is judged."""
    for _ in range(limits.warm_up):
        test()
    gc.collect()
    record_all()
    with whyoom.request(MARK):
        test()
        gc.collect()


def record_all():
    """From a sample of the blocks, which is enough for pytest's own, to all of them. A recorder
    follows when its process allocates, and a thread when its countdown to the next sample is over:
    it is random, and longer than BURN times its mean once in e**BURN tests."""
    control = subprocess.Popen([_program.program(), "ctl", str(os.getpid()), "mode", "full",
                                "--wait", "10000"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=_program.environment())
    while control.poll() is None:
        bytearray(4 << 20)
        time.sleep(0.002)
    said = control.stderr.read().decode(errors="replace").strip()
    control.stderr.close()
    if control.returncode:
        raise _program.Error(said.removeprefix("whyoom: "), control.returncode)
    for _ in range(BURN * SAMPLE_EVERY // 1024):
        bytearray(1024)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    path = os.environ.get(CHILD)
    if path and reporter:
        data = reporter[0].hook.pytest_report_to_serializable(config=reporter[0], report=report)
        with open(path, "a") as f:
            f.write(json.dumps(data) + "\n")


reporter = []


def pytest_sessionstart(session):
    if CHILD in os.environ:
        reporter[:] = [session.config]


# --- in the session ---

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    mark = item.get_closest_marker("whyoom")
    if not mark or CHILD in os.environ or item.config.getoption("no_whyoom"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        reports = Run(item, Limits(mark)).reports()
    except (ValueError, _program.Error) as error:
        reports = [failed(item, "setup", f"whyoom: {error}")]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    # what the tests before this one left set up for others that do not come
    item.session._setupstate.teardown_exact(nextitem)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def failed(item, when, text, sections=()):
    return pytest.TestReport(nodeid=item.nodeid, location=item.location,
                             keywords={item.name: 1}, outcome="failed", longrepr=text, when=when,
                             sections=sections)


class Run:
    """A marked test's run in a child."""

    def __init__(self, item, limits):
        self.item, self.limits = item, limits
        cache = getattr(item.config, "cache", None)
        name = re.sub(r"[^\w.-]+", "-", item.nodeid)[-100:]
        if cache:
            self.folder = str(cache.mkdir("whyoom") / name)
            self.kept = True
        else:
            self.folder = tempfile.mkdtemp(prefix="whyoom-pytest-", dir="/var/tmp")
            self.kept = False
        os.makedirs(self.folder, exist_ok=True)
        self.trace = os.path.join(self.folder, "trace")
        self.said = os.path.join(self.folder, "output")
        self.answers = os.path.join(self.folder, "reports")

    def command(self):
        config = self.item.config
        positional = list(config.args)
        options, given = [], iter(config.invocation_params.args)
        for argument in map(str, given):
            name = argument.split("=")[0]
            if argument in positional:
                positional.remove(argument)
            elif name in DROPPED_WITH_VALUE:
                if "=" not in argument:
                    next(given, None)
            elif name not in DROPPED:
                options.append(argument)
        options += ["-p", "no:cacheprovider", "--rootdir", str(config.rootpath)]
        for plugin, option in (("xdist", "-n0"), ("_cov", "--no-cov")):
            if config.pluginmanager.hasplugin(plugin):
                options.append(option)
        return [_program.program(), "run", "-o", self.trace, "--allow-tmpfs", "--python-objects",
                "--mode", "sampled", "--sample-every", str(SAMPLE_EVERY), "--quiet",
                "--", sys.executable, "-m", "pytest", *options,
                str(getattr(self.item, "path", self.item.fspath))]

    def reports(self):
        for name in (self.answers, self.said):
            if os.path.exists(name):
                os.unlink(name)
        environment = dict(os.environ, **{CHILD: self.answers, TEST: self.item.nodeid})
        with open(self.said, "w") as output:
            status = subprocess.run(self.command(), stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT, env=environment,
                                    cwd=self.item.config.invocation_params.dir).returncode
        reports = self.read()
        call = next((r for r in reports if r.when == "call"), None)
        if not call and not any(r.outcome != "passed" for r in reports):
            return [*reports, self.died(status)]
        if call and call.outcome == "passed":
            self.judge(call)
        elif call and call.outcome == "failed":
            call.sections.append(("whyoom", self.verdict()))
        if all(r.outcome != "failed" for r in reports) or not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)
        return reports

    def read(self):
        config = self.item.config
        if not os.path.exists(self.answers):
            return []
        reports = []
        with open(self.answers) as lines:
            for line in lines:
                report = config.hook.pytest_report_from_serializable(config=config,
                                                                     data=json.loads(line))
                if isinstance(report.longrepr, list):  # why it was skipped: JSON has no tuples
                    report.longrepr = tuple(report.longrepr)
                reports.append(report)
        return reports

    def died(self, status):
        with open(self.said, errors="replace") as f:
            said = f.read()
        how = f"signal {status - 128}" if status > 128 else f"exit status {status}"
        return failed(self.item, "call",
                      f"whyoom: the test's process ended before the test did: {how}\n\n"
                      + self.verdict(), [("Captured output of the child", said[-4000:])])

    def verdict(self):
        """What `whyoom report` says, for a test that failed; it may have failed for other
        reasons."""
        try:
            report = whyoom.report(self.trace)
            return report.text() if report.failure.kind != "none" else "no request was refused"
        except _program.Error as error:
            return str(error)

    def judge(self, call):
        limits = self.limits
        if limits.peak is None and limits.leaks is None:
            return
        found = _measure.measure(self.trace, MARK, limits.space)
        if not found:
            call.outcome = "failed"
            call.longrepr = f"whyoom: the test was not recorded; see whyoom check {self.trace}"
            return
        told = []
        if limits.peak is not None and found.peak_bytes > limits.peak:
            told.append(self.tell(f"held {size(found.peak_bytes)} at its peak; the limit is "
                                  f"{size(limits.peak)}", found.peak))
        if limits.leaks is not None and found.leaked_bytes > limits.leaks:
            told.append(self.tell(f"left {size(found.leaked_bytes)} behind; the limit is "
                                  f"{size(limits.leaks)}", found.leaked))
        call.user_properties.append(("whyoom_peak_bytes", found.peak_bytes))
        call.user_properties.append(("whyoom_leaked_bytes", found.leaked_bytes))
        if told:
            call.outcome = "failed"
            more = f"\n\nmore: whyoom open {self.trace}" if self.kept else ""
            call.longrepr = "\n\n".join(told) + more

    def tell(self, what, sites):
        """The sentence, and the lines to blame, each with how the test came there."""
        lines = {}
        for site in sites:
            key = where(site.blamed)
            bytes, blocks, first = lines.get(key, (0, 0, site))
            lines[key] = bytes + site.bytes, blocks + site.blocks, first
        ranked = sorted(lines.items(), key=lambda entry: -entry[1][0])
        text = [f"{self.item.name} {what}"]
        for key, (bytes, blocks, site) in ranked[:SHOWN]:
            text.append(f"  {size(bytes):>10}  {key}, {blocks} block{'s' * (blocks != 1)}")
            text += [f"                called by {where(f)}" for f in self.callers(site)]
        if len(ranked) > SHOWN:
            text.append(f"              and {len(ranked) - SHOWN} more lines")
        return "\n".join(text)

    def callers(self, site):
        """From the blamed frame out to the test."""
        frames = list(site.frames)
        outer = frames[frames.index(site.blamed) + 1:] if site.blamed in frames else []
        path = str(getattr(self.item, "path", self.item.fspath))
        last = max((i for i, f in enumerate(outer) if f["file"] and same(f["file"], path)),
                   default=-1)
        return [f for f in outer[:last + 1] if (f["file"] or "").endswith(".py")][:6]


def same(file, path):
    return os.path.basename(file) == os.path.basename(path)


def where(frame):
    if not frame:
        return "an unknown line"
    if not frame["file"]:
        return frame["function"]
    line = "" if frame["line"] is None else f":{frame['line']}"
    file = frame["file"]
    short = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{frame['function']} ({short if not short.startswith('..') else file}{line})"
