#!/usr/bin/env python3
"""`whyoom diff` on pairs of runs. A regression is a program and the same with a few words of its
source changed: the changed line must be the first change. An equal pair is two runs of the same
program, whose sizes, pauses and hash seeds differ from run to run: no line may be called a change.

    pairs.py [--keep DIR] [NAME...]      names of regressions or of programs; default: all
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
WHYOOM = os.environ["WHYOOM_EXE"]
PROGS = os.path.join(HERE, "progs")

# Program: how it is recorded, and how many equal runs are made of it.
PROGRAMS = {
    "server": ("server.c", [], 4),
    "workers": ("workers.c", [], 4),
    "index": ("index.cc", [], 2),
    "device": ("device.c", ["--simgpu", "2GiB"], 3),
    "agent": ("agent.py", [], 4),
    "loop": ("loop.py", [], 4),
    "sampled": ("server.c", ["--mode", "sampled", "--sample-every", "32KiB"], 3),
}

LEAK = ("/*@handle*/", "if (n % 20 == 0) /* a hundredth of all */\n"
        "\t\tkept[kept_count++] = filled(malloc(1000), 1000); /*@changed*/")
# Blank lines above, and two functions in the other order.
MOVED = ("/*@top*/", "\n" * 40)


def swapped(text):
    """The functions between @swap and @swapped in the other order."""
    before, rest = text.split("/*@swap*/")
    first, after = rest.split("/*@swapped*/")
    functions = re.split(r"\n(?=static )", first)
    assert len(functions) == 3, functions
    return before + functions[0] + "\n" + functions[2] + "\n" + functions[1] + after


# Name: program, changes of the source (old, new), the mark of the line that changed.
REGRESSIONS = {
    "leak of one percent": ("server", [LEAK], "@changed"),
    "the same, lines moved": ("server", [LEAK, MOVED], "@changed"),
    "the same, functions in another order": ("server", [LEAK, MOVED, swapped], "@changed"),
    "the same, a function renamed": ("server", [LEAK, ("turn(", "take_turn("),
                                                ("render(", "answer(")], "@changed"),
    "larger buffer": ("server", [("256 << 10", "320 << 10")], "@packed"),
    "larger buffer, lines moved": ("server", [("256 << 10", "320 << 10"), MOVED, swapped],
                                   "@packed"),
    "new cache": ("server", [
        ("/*@swapped*/", "\n/*@swapped*/\nstatic void memoize(unsigned key)\n{\n"
         "\tif (!kept[key % 500])\n\t\tkept[key % 500] = filled(malloc(700), 700); /*@changed*/"
         "\n}\n"), ("/*@handle*/", "memoize((unsigned)n);")], "@changed"),
    "larger history": ("server", [("malloc(600), 600", "malloc(1000), 1000")], "@history"),
    "two more tables": ("server", [("TABLES 48", "TABLES 50")], "@table"),
    "cache twice as large": ("server", [("CACHE 300", "CACHE 600")], "@cache"),
    "forgotten release": ("server", [("free(packed);", "if (n % 50) free(packed);")], "@packed"),
    "a table less": ("server", [("TABLES 48", "TABLES 47")], "@table"),
    "leak in a sample": ("sampled", [
        ("/*@handle*/", "kept[kept_count++] = filled(malloc(4000), 4000); /*@changed*/")],
        "@changed"),
    "larger output of threads": ("workers", [("48 << 10", "80 << 10")], "@output"),
    "leak of threads": ("workers", [
        ("/*@serve*/", "if (left % 6 == 0) /* of all threads together */\n"
         "\t\tkept[kept_count++ & 1023] = filled(2000); /*@changed*/")], "@changed"),
    "more threads": ("workers", [("WORKERS 4", "WORKERS 8")], "@scratch"),
    "larger model": ("workers", [("6 << 20", "13 << 19")], "@model"),
    "longer vectors": ("index", [("embed(256)", "embed(320)"), ("/*@top*/", "\n" * 9)], "@vector"),
    "larger scores": ("index", [("64 << 10", "160 << 10")], "@scores"),
    "larger pool on a device": ("device", [("get(4 * MIB)", "get(5 * MIB)")], "@pool"),
    "leak on a device": ("device", [
        ("/*@step*/", "if (n % 3 == 0) kept[kept_count++] = get(MIB); /*@changed*/")], "@changed"),
    "list that grows": ("agent", [
        ("# @respond", "kept.append(bytearray(1024))  # @changed")], "@changed"),
    "cache without bound": ("agent", [("> 100:", "> 300:")], "@cache"),
    "larger scores of Python": ("agent", [("400 << 10", "600 << 10")], "@scores"),
    "sessions that are kept": ("loop", [
        ("# @talk", "kept.append(session) if n % 20 == 0 else None")], "@session"),
    "pages that are kept": ("loop", [
        ("# @talk", "kept.append(bytes(2000))  # @changed")], "@changed"),
}


class Pairs:
    def __init__(self, folder):
        self.folder = folder
        self.passed = self.failed = 0
        self.python = sys.executable

    def build(self, name, source, text):
        """The program of that source; all of one name have the same paths in their traces."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, source)
        with open(path, "w") as out:
            out.write(text)
        if source.endswith(".py"):
            return [self.python, path]
        compiler = "g++" if source.endswith(".cc") else "gcc"
        exe = os.path.join(folder, source.split(".")[0])
        subprocess.run([compiler, "-O2", "-g", "-w", "-I", os.path.join(TOP, "include"), "-o", exe,
                        path, "-lpthread", "-ldl"], check=True)
        return [exe]

    def record(self, name, command, options):
        trace = os.path.join(self.folder, name + ".trace")
        done = subprocess.run([WHYOOM, "run", "-o", trace, *options, "--", *command],
                              capture_output=True, text=True)
        assert done.returncode == 0, (name, done.returncode, done.stderr)
        return trace

    def diff(self, a, b):
        done = subprocess.run([WHYOOM, "diff", "--format", "json", a, b], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def tell(self, good, name, result):
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED {name}: {result['sentence']}")
            for p in result["changes"][:4]:
                print("   ", p["space"], p["kind"], p["seen_by"], p["function"], p["line"],
                      p["change_bytes"], p["noise_bytes"])

    def base(self, program):
        source, options, runs = PROGRAMS[program]
        command = self.build(program, source, open(os.path.join(PROGS, source)).read())
        return [self.record(f"{program}-{n}", command, options) for n in range(runs)]

    def regression(self, name):
        program, changes, mark = REGRESSIONS[name]
        source, options, _ = PROGRAMS[program]
        text = open(os.path.join(PROGS, source)).read()
        for change in changes:
            if callable(change):
                text = change(text)
                continue
            assert change[0] in text, (name, change[0])
            text = text.replace(*change)
        line = 1 + [mark in one for one in text.split("\n")].index(True)
        short = re.sub(r"\W", "-", name)
        trace = self.record(short, self.build(short, source, text), options)
        return program, trace, line

    def run(self, names):
        regressions = [n for n in REGRESSIONS
                       if not names or n in names or REGRESSIONS[n][0] in names]
        programs = sorted({REGRESSIONS[n][0] for n in regressions} | set(
            p for p in PROGRAMS if not names or p in names))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            bases = dict(zip(programs, pool.map(self.base, programs)))
            planted = list(zip(regressions, pool.map(self.regression, regressions)))
            for (name, (_, _, line)), result in zip(planted, pool.map(
                    lambda p: self.diff(bases[p[1][0]][0], p[1][1]), planted)):
                first = result["changes"][0] if result["changes"] else {}
                self.tell(first.get("line") == line, f"{name}, line {line}", result)
            pairs = [(p, *pair) for p in programs for pair in itertools.combinations(bases[p], 2)]
            for pair, result in zip(pairs, pool.map(lambda p: self.diff(*p[1:]), pairs)):
                self.tell(not result["changes"], "equal: " + " ".join(
                    os.path.basename(p) for p in pair), result)
        print(f"shown: {len(regressions)} regressions, {len(pairs)} equal pairs")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs = Pairs(args.keep or folder)
        os.makedirs(pairs.folder, exist_ok=True)
        pairs.run(args.names)
    print(f"{pairs.passed} passed, {pairs.failed} failed")
    return pairs.failed > 0


sys.exit(main())
