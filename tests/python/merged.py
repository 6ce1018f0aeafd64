#!/usr/bin/env python3
"""merged.py LIBRARY PYTHON - end to end: the stacks that the real library wrote, decoded from the
trace, against the Python stack at each of the places of merged_program.py. Python frames must stand
where the interpreter ran them, each run directly after its own native frame."""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "preload"))

import tracefile  # noqa: E402
from lines import Code  # noqa: E402


def readelf(*arguments):
    return subprocess.run(("readelf", "-W") + arguments, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode(errors="replace")


class Interpreter:
    """The parts of an ELF file that run Python code. Compilers split the evaluation function: the
    parts without the symbol are known by their unwind entries, and by holding no other symbol."""

    def __init__(self, path):
        self.symbols = []
        for line in readelf("--dyn-syms", path).splitlines():
            parts = line.split()
            if len(parts) == 8 and parts[3] == "FUNC" and parts[6] != "UND":
                start = int(parts[1], 16)
                self.symbols.append((start, start + int(parts[2], 0), parts[7]))
        named = [s[:2] for s in self.symbols if s[2] == "_PyEval_EvalFrameDefault"]
        self.parts = set(named)
        self.path = path
        self.entries = None

    def holds(self, address):
        return any(a <= address < b for a, b in self.parts)

    def adopt(self, address):
        """A part that runs Python code, though it has no name. False: it has another one."""
        if self.entries is None:
            self.entries = [(int(a, 16), int(b, 16)) for a, b in re.findall(
                r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", readelf("-wf", self.path))]
        for a, b in self.entries:
            if a <= address < b and not any(a <= s < b for s, _, _ in self.symbols):
                self.parts.add((a, b))
                return True
        return False


class Checker:
    def __init__(self, trace):
        self.trace = trace
        self.problems = []
        self.ranges = {}
        self.with_native = 0
        for ident, module in trace.modules.items():
            name = os.path.basename(module["path"])
            if name.startswith("python") or name.startswith("libpython"):
                found = Interpreter(module["path"])
                if found.parts:
                    self.ranges[ident] = found

    def is_eval(self, frame):
        found = self.ranges.get(frame[1])
        return bool(found) and found.holds(self.address(frame))

    @staticmethod
    def address(frame):
        """Within the call; a return address may lie in the next function."""
        return frame[2] if frame[3] else frame[2] - 1

    def learn(self, stack):
        for frame, inner in zip(stack, stack[1:]):
            if frame[0] == "native" and inner[0] == "python" and not self.is_eval(frame):
                if frame[1] in self.ranges:
                    self.ranges[frame[1]].adopt(self.address(frame))

    def python(self, frame):
        code = self.trace.codes[frame[1]]
        made = Code.__new__(Code)
        made.version, made.first, made.table = code["version"], code["line"], code["lines"]
        return [code["name"], code["file"], made.line(frame[2] - 1)]

    def check(self, want, stack):
        got = [self.python(f) for f in stack if f[0] == "python"]
        if got != want["frames"]:
            self.problems.append("%s of %d: got %r, expected %r" %
                                 (want["kind"], want["size"], got[-4:], want["frames"][-4:]))
            return
        if not stack or stack[-1][0] == "python":
            self.problems.append("%d: nothing native made the block" % want["size"])
        if stack[0][0] == "python" and self.ranges:
            self.problems.append("%d: Python before the thread's start" % want["size"])
        if not self.ranges:
            return
        self.with_native += 1
        for i, frame in enumerate(stack):
            follows = i + 1 < len(stack) and stack[i + 1][0] == "python"
            if frame[0] == "native" and self.is_eval(frame) and not follows:
                self.problems.append("%d: an evaluation that runs nothing at %d" %
                                     (want["size"], i))
            if frame[0] == "native" and follows and not self.is_eval(frame):
                self.problems.append("%d: Python frames after a stranger at %d" %
                                     (want["size"], i))


def main():
    library, python = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="whyoom-merged.") as work:
        expected = os.path.join(work, "expected.json")
        env = dict(os.environ, LD_PRELOAD=library, WHYOOM_DIR=os.path.join(work, "trace"),
                   WHYOOM_ALLOW_TMPFS="1")
        done = subprocess.run(python + [os.path.join(HERE, "merged_program.py"), expected], env=env)
        if done.returncode:
            print("the program ended with", done.returncode)
            print("0 passed, 1 failed")
            return 1
        with open(expected) as f:
            wants = json.load(f)
        trace = None
        for each in tracefile.traces(os.path.join(work, "trace")):
            if "python" in each.info and any(
                    e.size == wants[0]["size"] for e in each.all("ALLOC")):
                trace = each
        if trace is None:
            print("no trace of the interpreter")
            print("0 passed, 1 failed")
            return 1
        checker = Checker(trace)
        stacks = {(kind, e.size): e.stack for kind in ("ALLOC", "MAP") for e in trace.all(kind)}
        for ident in set(stacks.values()):
            checker.learn(trace.stack(ident) if ident else [])
        for want in wants:
            ident = stacks.get((want["kind"], want["size"]))
            if not ident:
                checker.problems.append("%s of %d is not in the trace" %
                                        (want["kind"], want["size"]))
                continue
            checker.check(want, trace.stack(ident))
        if any(len(i.parts) > 4 for i in checker.ranges.values()):
            checker.problems.append("Python frames follow more functions than evaluate it")
        for problem in checker.problems[:20]:
            print("FAIL", problem)
        print("%s: %d stacks, %d with the native frames' places; dropped %r" %
              (trace.info["python"].decode(), len(wants), checker.with_native, trace.dropped))
        bad = len(checker.problems)
        print("%d passed, %d failed" % (max(len(wants) - bad, 0), bad))
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
