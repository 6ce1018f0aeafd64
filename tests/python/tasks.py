#!/usr/bin/env python3
"""tasks.py LIBRARY PYTHON - end to end: whose each block of tasks_program.py is, by the tasks in
the trace of the real library. Green threads' and trio's packages come from PyPI, once for each
version of Python; without them their part is left out, and that is said."""

import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "golden"))

import read  # noqa: E402

UNIT = 1 << 20
PACKAGES = ["greenlet", "gevent", "trio", "exceptiongroup", "typing_extensions"]
WATCHED = os.environ.get("WHYOOM_PYTHON_WATCH") != "0"


def packages(python):
    """The folder that they were installed in, or None."""
    version = subprocess.run(python + ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             stdout=subprocess.PIPE).stdout.decode().strip()
    cache = os.environ.get("WHYOOM_TEST_CACHE") or os.path.expanduser("~/.cache/whyoom-tests")
    folder = os.path.join(cache, "tasks-" + version)
    if os.path.isdir(folder):
        return folder
    said = ""
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        for pip in ([sys.executable], python):
            done = subprocess.run(
                pip + ["-m", "pip", "install", "-q", "--no-cache-dir", "--only-binary=:all:",
                       "--retries=2", "--timeout=30", "--disable-pip-version-check",
                       "--python-version", version, "--target", work + "/to"] + PACKAGES,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            if done.returncode == 0:
                try:
                    os.rename(work + "/to", folder)
                except OSError:
                    pass  # another was quicker
                return folder
            said = (done.stdout.decode(errors="replace").strip().splitlines() or [""])[-1]
    print("SKIP green threads, trio: %s" % said[:200])
    return None


class Blocks:
    """Tasks of the program's own blocks, by label, in the order of the events."""

    def __init__(self, trace):
        self.order = []
        trace.replay(self.event)

    def event(self, kind, ticks, thread, *rest):
        if kind != "ALLOC" or rest[1] < UNIT:
            return
        task = rest[-1] if rest[-2] == "task" else None
        self.order.append((rest[1] // UNIT, task))

    def tasks(self, label):
        return {task for other, task in self.order if other == label}


def check(ways, blocks, told):
    problems, passed = [], 0

    def expect(ok, *what):
        nonlocal passed
        passed += bool(ok)
        if not ok:
            problems.append(" ".join(str(w) for w in what))

    for name, way in ways.items():
        labels = way["labels"]
        found = {label: blocks.tasks(label) for label in labels}
        if way.get("begun_by_caller"):  # its first step is a call of whoever makes the task
            caller = set.intersection(*found.values())
            found = {label: tasks - caller for label, tasks in found.items()}
            expect(len(caller) == 1, name, "is not begun by one:", caller)
        if name == "none":
            expect(found[labels[0]] == {None}, name, found)
            continue
        expect(all(len(tasks) == 1 and None not in tasks for tasks in found.values()), name,
               "is not one task each:", found)
        after = "after" in name or name == "asyncio.to_thread"
        if way["apart"] and (told or not after):
            expect(len(set().union(*found.values())) == len(labels), name, "not apart:", found)
        if not after and len(labels) > 1:
            turns = [label for label, _ in blocks.order if label in found]
            changes = sum(a != b for a, b in zip(turns, turns[1:]))
            expect(changes >= 2 * len(labels), name, "took no turns:", turns)
    expect(ways["asyncio.gather"] and len(ways) > 2, "the program did nothing")
    return passed, problems


def main():
    library, python = sys.argv[1], sys.argv[2:]
    folder = packages(python)
    with tempfile.TemporaryDirectory(prefix="whyoom-tasks.") as work:
        expected = os.path.join(work, "expected.json")
        env = dict(os.environ, LD_PRELOAD=library, WHYOOM_DIR=os.path.join(work, "trace"),
                   WHYOOM_ALLOW_TMPFS="1")
        if folder:
            env["PYTHONPATH"] = folder
        done = subprocess.run(python + [os.path.join(HERE, "tasks_program.py"), expected], env=env)
        if done.returncode:
            print("the program ended with", done.returncode)
            print("0 passed, 1 failed")
            return 1
        with open(expected) as f:
            ways = json.load(f)
        traces = [read.Trace(path, data) for path,
                  data in read.files([os.path.join(work, "trace")])]
        traces = [t for t in traces if "python" in t.infos]
        sizes = sorted(traces, key=lambda t: len(t.data))
        passed, problems = check(ways, Blocks(sizes[-1]), WATCHED)
        said = sizes[-1].infos.get("python.tasks")
        green = "greenlet" in ways
        if said != ("contexts, green threads" if green else "contexts"):
            problems.append("python.tasks is %r" % said)
        for problem in problems[:20]:
            print("FAIL", problem)
        print("%s: %s; dropped %d" % (sizes[-1].infos["python"], ", ".join(ways),
                                      sum(sizes[-1].dropped)))
        print("%d passed, %d failed" % (passed, len(problems)))
        return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
