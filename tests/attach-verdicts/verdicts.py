#!/usr/bin/env python3
"""Attaches to composed programs that leak, when they hold a part of what they may, and compares the
verdict on their end with the label.

    tests/attach-verdicts/verdicts.py [--whyoom PATH] [--seed S] [--count N] [--keep DIR]

The programs are those of tests/scenarios/compose, started without the recorder. Before a request
each looks at its resident size, and from --part of its limit on it waits until it has been attached
to; then it goes on to its end. One that ends earlier is not counted. --cause takes another cause,
--least is what share must be right. The last line adds up: N passed, N failed."""
import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(HERE, "..", "scenarios")
sys.path[:0] = [os.path.join(SCENARIOS, "compose"), os.path.join(SCENARIOS, "lib"), SCENARIOS]
import composition  # noqa: E402
import judge  # noqa: E402
import limits  # noqa: E402
from corpus import Failure  # noqa: E402
from environment import wheel  # noqa: E402

TIMEOUT = 120
PAGE = resource.getpagesize()

GATE_C = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void gated(long number)
{
	static int open_now;
	char text[64] = "";
	long all = 0, resident = 0;
	int fd;

	if (!__atomic_load_n(&open_now, __ATOMIC_RELAXED)) {
		fd = open("/proc/self/statm", O_RDONLY);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
			sscanf(text, "%%ld %%ld", &all, &resident);
		close(fd);
		if (resident >= %d) {
			close(open("%s/waits", O_CREAT | O_WRONLY, 0600));
			while (access("%s/go", F_OK)) { /* as a server that works */
				void *volatile scratch = malloc(1000);

				usleep(2000);
				free(scratch);
			}
			__atomic_store_n(&open_now, 1, __ATOMIC_RELAXED);
		}
	}
	serve(number);
}
#define serve gated
"""
GATE_PYTHON = """
import os as gate_os, time as gate_time
ungated = serve
gate_open = False


def gate():
    global gate_open
    with open("/proc/self/statm") as f:
        if int(f.read().split()[1]) < %d:
            return
    open("%s/waits", "w").close()
    while not gate_os.path.exists("%s/go"):
        gate_time.sleep(0.002)
    gate_open = True


def serve(number):
    if not gate_open:
        gate()
    return ungated(number)


"""


def arguments():
    p = argparse.ArgumentParser(description="attached programs against whyoom's verdicts")
    p.add_argument("--whyoom", default=os.path.realpath(os.path.join(
        HERE, "..", "..", "build", "default", "analyzer", "cmd", "whyoom")))
    p.add_argument("--attach", help="another whyoom that attaches")
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--seed", default="attached")
    p.add_argument("--count", type=int, default=40, help="programs that are attached to")
    p.add_argument("--part", type=float, default=0.3)
    p.add_argument("--cause", default="leak")
    p.add_argument("--mode", default="full", choices=("full", "sampled"))
    p.add_argument("--least", type=float, default=0.95)
    p.add_argument("--keep", metavar="DIR")
    return p.parse_args()


def with_gate(text, language, pages, work):
    """The program's text, with the gate in front of each request."""
    if language == "python":
        return re.sub(r"^(async )?def main\(", lambda m: (GATE_PYTHON % (
            pages, work, work)).lstrip("\n") + m.group(0), text, count=1, flags=re.M)
    at = max(text.rfind('#include "%s.h"' % name) for name in ("loop", "threads"))
    return text[:at] + GATE_C % (pages, work, work) + text[at:]


def written(c, work, options):
    """The command and the environment of the program with the gate."""
    module, keep = (composition.render_python, composition.render_python.rendered) \
        if c.language == "python" else (composition.render_c, composition.render_c.rendered)
    pages = int(c.limit["bytes"] * options.part) // PAGE
    module.rendered = lambda *a: with_gate(keep(*a), c.language, pages, work)
    try:
        return composition.written(c, work, options.python)
    finally:
        module.rendered = keep


def fits(c):
    """Whether one process holds the memory, of the host, and serves requests."""
    return (c.limit["kind"] in ("as", "data", "rss", "cgroup") and "neighbour" not in c.limit and
            c.structure != "processes" and c.carrier not in ("torch", "cuda") and
            c.mode == "full" and "forked" not in c.structure)


class Ended(Exception):
    """The program ended before it was to be attached to."""


def child_of(process):
    """The program itself: a shell or prlimit may have started it in its place."""
    return limits.family(process.pid)[-1]


def attached(process, work, options):
    """Attach once the program waits, and let it go on."""
    until = time.monotonic() + TIMEOUT
    while not os.path.exists(os.path.join(work, "waits")):
        if process.poll() is not None or time.monotonic() > until:
            raise Ended()
        time.sleep(0.005)
    pid = child_of(process)
    done = subprocess.run([options.attach or options.whyoom, "attach", "--mode", options.mode,
                           "-o", os.path.join(work, "trace"), str(pid)],
                          capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise Failure("attach: " + (done.stderr or done.stdout).strip())
    open(os.path.join(work, "go"), "w").close()


def run(c, work, runner, options):
    """Run the program to its end. Its status."""
    command, extra = written(c, work, options)
    kind, size = c.limit["kind"], c.limit["bytes"]
    env = {**os.environ, **extra}
    env.pop("WHYOOM_MODE", None)
    with contextlib.ExitStack() as stack:
        if kind in ("as", "data"):
            command = ["prlimit", "--%s=%d" % (kind, size), *command]
        elif kind == "cgroup" and not runner.cgroup.why:
            command = runner.cgroup.inside(
                stack.enter_context(runner.cgroup.made(size)), command)
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if kind == "rss" or (kind == "cgroup" and runner.cgroup.why):
                threading.Thread(target=limits.kill_at, args=(process, size, 0),
                                 daemon=True).start()
            attached(process, work, options)
            return process.wait(timeout=TIMEOUT)
        finally:
            if process.poll() is None:
                for pid in reversed(limits.family(process.pid)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()


def judged(c, work, status, options):
    """What is wrong with the verdict; None: cause and blame are right."""
    answer, _ = judge.report(options.whyoom, os.path.join(work, "trace"), dict(os.environ))
    verdict, coverage = answer["verdict"], answer["coverage"]
    for ledger in answer["ledger"]:
        if sum(r["bytes"] for r in ledger["rows"]) + ledger["unaccounted_bytes"] != ledger[
                "limit_bytes"]:
            return "the ledger does not add up", verdict
    if not coverage.get("attached") or coverage["attached"]["after_seconds"] is None:
        return "the report does not say that it was attached", verdict
    if not any(r["class"] == "there before whyoom came" for r in answer["ledger"][0]["rows"]):
        return "the ledger has no row of what was there before", verdict
    if status == 0:
        return "the program ended well: its label is wrong", verdict
    if verdict["cause"] not in c.causes:
        return "says %s: %s" % (verdict["cause"], verdict["summary"]), verdict
    if not (judge.matches(judge.blamed_and_caller(verdict)[0], c.blamed()) or
            judge.matches(judge.blamed_and_caller(verdict)[1], c.blamed())):
        return "blames %s, not %s" % (judge.blamed_and_caller(verdict)[0] or "nobody",
                                      " or ".join(c.blamed())), verdict
    return None, verdict


def main():
    options = arguments()
    known = subprocess.run([options.attach or options.whyoom, "attach", "--help"],
                           capture_output=True, text=True)
    if known.returncode:
        print("SKIP this whyoom does not attach\n0 passed, 0 failed, 1 skipped")
        return 77
    runner = limits.Runner(options.whyoom, None)
    top = options.keep or tempfile.mkdtemp(prefix="attached.")
    passed = failed = ended = number = 0
    while passed + failed < options.count and number < 20 * options.count:
        c, = composition.compositions("%s-%d" % (options.seed, number), 1,
                                      {"cause": options.cause})
        number += 1
        if not fits(c):
            continue
        work = os.path.join(os.path.realpath(top), "%s-%d" % (options.seed, number - 1))
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        try:
            wrong, verdict = judged(c, work, run(c, work, runner, options), options)
            sure = verdict["confidence"]
        except Ended:
            ended += 1
            shutil.rmtree(work, ignore_errors=True)
            continue
        except wheel.Skip:
            continue
        except (Failure, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as e:
            wrong, sure = "%s: %s" % (type(e).__name__, e), 0
        passed += not wrong
        failed += bool(wrong)
        print("%-5s %-14s %s %.2f  %s" % ("FAIL" if wrong else "ok", os.path.basename(work),
                                          c.title().split(None, 1)[1], sure, wrong or ""),
              flush=True)
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    if not options.keep:
        shutil.rmtree(top, ignore_errors=True)
    share = passed / max(1, passed + failed)
    print("%d of %d right (%.0f %%); %d ended before they were to be attached to" % (
        passed, passed + failed, 100 * share, ended))
    enough = share >= options.least and passed + failed == options.count
    print("%d passed, %d failed" % (passed if not enough else passed + failed,
                                    0 if enough else max(1, failed)))
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
