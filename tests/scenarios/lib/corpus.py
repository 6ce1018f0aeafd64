"""corpus.py - the folders, their labels, and a program made ready to run.

Owns expect.json's reading and the shuffled variants; knows nothing of limits and verdicts."""
import dataclasses
import json
import os
import re
import subprocess
import sys
import zlib

import environment

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(HERE, "..", "..", "analyzer", "knowledge"))
import causes  # noqa: E402

SHARED = os.path.join(HERE, "shared")
CAUSES = causes.names()
MIB = 1 << 20
BIGGEST = 3 << 30  # a program's largest host memory, whatever its limit


class Failure(Exception):
    """The fault of a case."""


@dataclasses.dataclass
class Case:
    """One program under one limit, as it is written or shuffled."""
    folder: str
    expect: dict
    index: int  # of the limit
    variant: bool

    @property
    def limit(self):
        return self.expect["limits"][self.index]

    @property
    def cause(self):
        return self.limit.get("cause", self.expect["cause"])

    @property
    def open(self):
        """The reason why it is known to be judged wrongly, or None."""
        return self.limit.get("open", self.expect.get("open"))

    @property
    def wheel(self):
        return self.expect.get("wheel")

    @property
    def renames(self):
        return self.expect.get("rename", {}) if self.variant else {}

    @property
    def scale(self):
        return self.expect.get("scale", 1) if self.variant else 1

    def names(self, key):
        """The functions of `blame` or `not_blame`, by their names in this variant."""
        listed = self.limit.get(key, self.expect.get(key, []))
        return [shuffled(name, self.renames) for name in listed]

    @property
    def id(self):
        return "%s.%d%s" % (self.folder, self.index, "s" if self.variant else "")

    @property
    def memory(self):
        """The memory that it may take of the machine."""
        limit = self.limit
        bounded = limit["kind"] in ("as", "data", "rss", "cgroup", "shm")
        return min(limit["bytes"], BIGGEST) if bounded else self.expect.get("memory", 1 << 30)

    def title(self):
        return "%-22s %-14s %s" % (self.folder, label(self.limit),
                                   "shuffled" if self.variant else "        ")


def label(limit):
    if limit["kind"] == "none":
        return "no limit"
    return "%s %d MiB" % (limit["kind"], limit["bytes"] // MIB)


def folders():
    return [name for name in sorted(os.listdir(HERE))
            if os.path.exists(os.path.join(HERE, name, "expect.json"))]


def expected(folder):
    with open(os.path.join(HERE, folder, "expect.json")) as f:
        return json.load(f)


def framework(folder, expect):
    """The kind of program: its environment, else its language."""
    return expect.get("wheel") or {"c": "C", "cpp": "C++", "py": "Python"}[
        source_of(folder).rsplit(".", 1)[1]]


def cases(folder, whole, shuffle=True):
    """All cases of a folder; or, not `whole`, one limit as written and another one shuffled (of
    slow-starting ones with an environment, one of the two), chosen by the folder's name, so that
    every position has its turn over the folders."""
    expect = expected(folder)
    count, turn = len(expect["limits"]), zlib.crc32(folder.encode())
    plain, other = range(count), range(count)
    if not whole:
        plain, other = [turn % count], [(turn + 1) % count]
        if "wheel" in expect and expect.get("rename") and shuffle:
            plain, other = (plain, []) if turn >> 16 & 1 else ([], other)
    found = [Case(folder, expect, i, False) for i in plain]
    if shuffle and expect.get("rename"):
        found += [Case(folder, expect, i, True) for i in other]
    return found


def source_of(folder):
    for name in ("main.c", "main.cpp", "main.py"):
        if os.path.exists(os.path.join(HERE, folder, name)):
            return name
    raise Failure("no program")


def shuffled(text, renames):
    for old, new in renames.items():
        if "." not in old:
            text = re.sub(r"\b%s\b" % re.escape(old), new, text)
    return text


def copied(path, work, renames):
    """The file in the work folder, under its new name and with others' new names in it."""
    name = os.path.basename(path)
    to = os.path.join(work, renames.get(name, name))
    with open(path) as f, open(to, "w") as out:
        out.write(shuffled(f.read(), renames))
    return to


def files_of(case):
    folder = os.path.join(HERE, case.folder)
    found = [os.path.join(folder, f) for f in os.listdir(folder) if f != "expect.json"]
    if case.wheel or case.limit["kind"] == "gpu" or "gpu" in case.limit:
        found += [os.path.join(SHARED, f) for f in os.listdir(SHARED)]
    return [path for path in found if os.path.isfile(path)]


def prepare(case, work, python):
    """The command and the environment of a case's program, copied to `work`."""
    name = source_of(case.folder)
    for path in files_of(case):
        copied(path, work, case.renames)
    source = os.path.join(work, case.renames.get(name, name))
    variables = {"SCALE": str(case.scale), **environment.VARIABLES,
                 **case.expect.get("environment", {})}
    if case.wheel:
        variables["WHYOOM_SIMGPU_MACHINE"] = "scenario-%d-%s" % (os.getpid(), case.id)
        return [environment.interpreter(case.wheel), source], variables
    if name.endswith(".py"):
        return [python, source], variables
    program = os.path.join(work, "thing" if case.variant else "prog")
    compiler = "g++" if name.endswith(".cpp") else "gcc"
    done = subprocess.run([compiler, "-O1", "-g", "-DSCALE=%d" % case.scale, "-o", program, source]
                          + case.expect.get("libs", []), capture_output=True, text=True)
    if done.returncode:
        raise Failure("does not compile: " + done.stderr[:2000])
    return [program], variables
