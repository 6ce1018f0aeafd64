#!/usr/bin/env python3
"""Node.js: a program with workers, buffers, zlib, child processes and sockets prints the same."""

import os
import sys

import harness
from harness import check, need, output


def program(job):
    node = need("node")
    job.about("Node.js " + harness.version([node, "--version"], r"v([\d.]+)"),
              "workers, shared memory, crypto, zlib, child processes, sockets, WebAssembly")
    got = job.both(lambda side: output(side,
                                       side.run([node, os.path.join(harness.HERE, "program.js")])))
    check(got[0] == "status 3", "the program ends with %s: %s" % (got[0], got[2]))
    check(got[1].count(b"\n") == 7, "it printed only %s" % got[1])
    found = job.preload.traces(least=100000, processes=5)
    return "%d traces, %d events" % (len(found), sum(p["events"] for p in found))


def fatal(job):
    """The heap's limit: node ends itself by SIGABRT, with the same words."""
    node = need("node")
    job.about("Node.js " + harness.version([node, "--version"], r"v([\d.]+)"),
              "its end by a full heap")

    def die(side):
        rc, out, err = side.run([node, "--max-old-space-size=20", "-e",
                                 "const a = []; for (;;) a.push({a: [1, 2]});"])
        return harness.how(rc), out, [line for line in err.splitlines() if b"FATAL" in line]

    got = job.both(die)
    check(got[0] == "SIGABRT" and got[2], "it ended with %s" % (got,))
    job.preload.traces(least=1000)


if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, {"program": program, "fatal": fatal}))
