#!/usr/bin/env python3
"""OpenJDK: its compiler, and a program under each of its collectors, print the same; so do its own
ends by a full heap."""

import os
import shutil
import sys

import harness
from harness import check, need, output, version


def compiled(side):
    """The class files, made by this side's own compiler."""
    here = os.path.join(side.job.top, "java")
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(here)
    side.run([need("javac"), "-J-Xmx256m", "-d", here, os.path.join(harness.HERE, "Program.java")],
             rc=0)
    return here


def java(side, *words):
    # perf's file in /tmp and the count of processors are the machine's, not the program's
    return output(side, side.run([need("java"), "-XX:-UsePerfData", "-XX:ActiveProcessorCount=2",
                                  *words], timeout=400))


def program(job, collector):
    need("java", "javac")
    job.about("OpenJDK " + version([need("java"), "-version"], r'version "([^"]+)"'),
              "threads, null checks and stack overflows by SIGSEGV, mapped files, children; %s"
              % collector)
    words = ["-Xmx96m", "-XX:MaxDirectMemorySize=64m", "-XX:+Use" + collector]

    def session(side):
        where = compiled(side)
        files = {n: os.path.getsize(os.path.join(where, n)) for n in sorted(os.listdir(where))}
        return files, java(side, *words, "-cp", where, "Program", side.top)

    files, got = job.both(session)
    check(got[0] == "status 7" and got[1].count(b"OutOfMemoryError") == 2,
          "the program ends with %s" % (got,))
    found = job.preload.traces(least=20000, processes=2)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def ends(job):
    """Interpreted only, and both ways to end at a full heap; no time of the machine is in what is
    compared."""
    need("java", "javac")
    job.about("OpenJDK " + version([need("java"), "-version"], r'version "([^"]+)"'),
              "interpreted; ends by a full heap")

    def session(side):
        where = compiled(side)
        got = [java(side, "-Xint", "-Xmx96m", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=16m",
                    "-version")[0]]
        for way in ("ExitOnOutOfMemoryError", "CrashOnOutOfMemoryError"):
            how, out, err = java(side, "-Xmx96m", "-XX:MaxDirectMemorySize=2g", "-XX:+UseSerialGC",
                                 "-XX:+" + way, "-XX:-CreateCoredumpOnCrash",
                                 "-XX:ErrorFile=" + side.path("hs_err"), "-cp", where, "Program",
                                 side.top)
            got.append((how, out.split(b"\n#")[0]))
        return got, os.path.exists(side.path("hs_err"))

    got = job.both(session)
    check(got[0][1][0] == "status 3" and got[0][2][0] == "status 1" and got[1],
          "it ends with %s" % (got,))
    job.preload.traces(least=5000, processes=3)


CASES = {c: lambda job, c=c: program(job, c) for c in ("SerialGC", "ParallelGC", "G1GC", "ZGC")}
CASES["ends"] = ends

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
