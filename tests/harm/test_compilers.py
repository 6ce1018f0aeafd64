#!/usr/bin/env python3
"""Compilers make the same objects, to the bit, and say the same of wrong programs."""

import hashlib
import os
import shutil
import sys

import harness
from harness import check, need, output

SOURCES = ["shim/stack/eh_frame.c", "shim/python/python_code.c", "shim/stack/stack.c",
           "shim/stack/unwind.c", "shim/note.c",
           "tests/bench/workloads/storm.c"]
WRONG = """
#include <stdio.h>
struct s { int a; };
int f(struct s *p) { return p->b + undeclared; }
int g(void) { char *q = 5; printf("%s", 3); }
#error "on purpose"
"""


def tree(side, below):
    """{file: its digest} of what was built."""
    found = {}
    for folder, _, names in os.walk(side.path(below)):
        for n in names:
            path = os.path.join(folder, n)
            with open(path, "rb") as f:
                found[os.path.relpath(path, side.path(below))] = hashlib.sha256(
                    f.read()).hexdigest()
    return found


def build(side, compiler, more):
    """A make of two jobs at a time, in a copy of the sources that has the same path on both
    sides."""
    here = os.path.join(side.job.top, "build")
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(here)
    objects = []
    rules = []
    for s in SOURCES:
        name = os.path.basename(s)
        shutil.copy(os.path.join(harness.TOP, s), here)
        objects.append(name[:-2] + ".o")
    shutil.copytree(os.path.join(harness.TOP, "shim"), os.path.join(here, "shim"),
                    ignore=shutil.ignore_patterns("*.c", "simgpu"))
    shutil.copytree(os.path.join(harness.TOP, "include"), os.path.join(here, "include"))
    flags = ("-std=gnu11 -O2 -g -fPIC -frandom-seed=1 -D_GNU_SOURCE -Iinclude -Ishim "
             "-DWHYOOM_VERSION='\"1\"' " + more)
    rules.append("all: storm %s" % " ".join(objects))
    rules.append("%%.o: %%.c\n\t%s %s -c -o $@ $<" % (compiler, flags))
    rules.append("storm: storm.o\n\t%s %s -o $@ $< -lpthread" % (compiler, flags))
    with open(os.path.join(here, "Makefile"), "w") as f:
        f.write("\n".join(rules) + "\n")
    rc, out, err = side.run([need("make"), "-j2", "-O"], cwd=here, rc=0)
    # Jobs end in any order.
    result = harness.how(rc), sorted(out.splitlines()), sorted(err.splitlines())
    os.rename(here, side.path("build"))
    files = {k: v for k, v in tree(side, "build").items() if k.endswith(".o") or k == "storm"}
    check(len(files) == len(SOURCES) + 1, "built only %s" % sorted(files))
    return result, files


def diagnose(side, compiler):
    return output(side, side.run([compiler, "-x", "c", "-Wall", "-c", "-o", "/dev/null", "-"],
                                 data=WRONG.encode()))


def c_compiler(job, name, more):
    compiler = need(name)
    job.about("%s %s" % (name, harness.version([compiler, "--version"], r"(\d+\.[\d.]+)")),
              "a parallel build: %s, to the bit; wrong programs" % more)
    job.both(lambda side: build(side, compiler, more))
    said = job.both(lambda side: diagnose(side, compiler))
    check(said[0] == "status 1" and b"undeclared" in said[2], "the wrong program: %s" % (said,))
    found = job.preload.traces(least=50000, processes=8)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def templates(job, name):
    """A C++ unit with much of the standard library: the largest process here."""
    compiler = need(name)
    job.about("%s %s" % (name, harness.version([compiler, "--version"], r"(\d+\.[\d.]+)")),
              "a C++ file full of templates, to the bit")

    def compile(side):
        here = os.path.join(job.top, "unit")
        os.makedirs(here, exist_ok=True)
        shutil.copy(os.path.join(harness.TOP, "tests/bench/workloads/templates.cc"), here)
        rc = side.run([compiler, "-std=c++17", "-O1", "-g", "-DINSTANCES=1", "-frandom-seed=1",
                       "-o", "out",
                       "templates.cc"], cwd=here, rc=0)
        with open(os.path.join(here, "out"), "rb") as f:
            made = hashlib.sha256(f.read()).hexdigest()
        done = side.run([os.path.join(here, "out")], rc=0)
        os.unlink(os.path.join(here, "out"))
        return rc, made, done

    job.both(compile)
    found = job.preload.traces(least=1000000, processes=3)
    return "%d events" % max(p["events"] for p in found)


CASES = {
    "gcc": lambda job: c_compiler(job, "gcc", "-Wall"),
    "gcc-lto": lambda job: c_compiler(job, "gcc", "-flto=2"),
    "clang": lambda job: c_compiler(job, "clang", "-Wall"),
    "g++": lambda job: templates(job, "g++"),
    "clang++": lambda job: templates(job, "clang++"),
}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
