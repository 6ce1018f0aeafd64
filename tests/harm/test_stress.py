#!/usr/bin/env python3
"""stress-ng: memory, mappings, processes, threads and signals, each stressor with a number of
rounds to do, verified by itself: it ends the same way and has done as many."""

import re
import sys

import harness
from harness import check, need, version

# Rounds that take well under a second. Stressors that run by the clock, change the machine or want
# to use up its memory, or its disk (forkheavy, resources), are not among them; nor is mutex, whose
# threads run in real time: where they leave their creator no CPU, it says that it could not create
# them.
GROUPS = {
    "memory": "malloc:20000 brk:20000 bigheap:200 stackmmap:10 context:500 bad-altstack:100 "
              "atomic:10 memfd:8 env:4 vm:40 fault:100",
    "mappings": "mmapaddr:300 mremap:40 munmap:40 mmapmany:2 mprotect:40 madvise:4 msync:10 "
                "remap:4 vm-segv:60 userfaultfd:100 shm:4 shm-sysv:4 mlock:20 mincore:40 "
        "pagemove:2",
    "processes": "fork:300 vfork:300 clone:60 exec:40 exit-group:40 daemon:40 spawn:40 zombie:100 "
        "wait:40 "
                 "session:20 switch:500 ptrace:100 rlimit:6 prctl:20 set:6 personality:20 chroot:4 "
        "close:30",
    "signals": "sigabrt:60 sigchld:60 sigfd:300 sigfpe:300 signal:1000 signest:300 sigpending:300 "
        "sigpipe:60 "
               "sigq:200 sigrt:200 sigsegv:300 sigsuspend:80 sigtrap:200 kill:500 longjmp:200 "
        "timer:200",
    "threads": "pthread:200 futex:100 membarrier:4 dynlib:20 "
               "seccomp:30 affinity:60",
}
# In processes that have lost the way to their trace (chroot), their rights or their room.
LOSSES = {"vfork", "no_space", "no_memory", "definition"}
MORE = {"malloc": ["--malloc-pthreads", "2"], "bigheap": ["--bigheap-growth", "64K"],
        "mremap": ["--mremap-bytes", "4M"], "memfd": ["--memfd-bytes", "4M"],
        "shm": ["--shm-bytes", "1M"],
        "shm-sysv": ["--shm-sysv-bytes", "1M"], "userfaultfd": ["--userfaultfd-bytes", "1M"],
        "vm": ["--vm-bytes", "8M"]}


def stressors(side, group):
    got = {}
    for one in GROUPS[group].split():
        name, rounds = one.split(":")
        rc, out, err = side.run([need("stress-ng"), "--" + name, "2", "--%s-ops" % name, rounds,
                                 "--timeout", "100s",
                                 "--verify", "--metrics-brief", "--log-brief", "--temp-path",
                                 side.top, *MORE.get(name, [])],
                                timeout=200)
        text = (out + err).decode(errors="replace")
        # Its processes look at the sum of their rounds now and then: a few more, or fewer, are as
        # many.
        done = re.search(r"^%s +(\d+) " % re.escape(name), text, re.M)
        left = re.search(r"^.*(?:terminated on signal|aborted|corrupted|SIGSEGV at|fail: .*)$",
                         text, re.M)
        got[name] = {"ends": harness.how(rc),
                     "rounds": bool(done and int(done[1]) * 2 >= int(rounds)),
                     "complaint": re.sub(r"\d+|0x[0-9a-f]+", "N", left[0]) if left else ""}
    return got


def group(job, name):
    job.about("stress-ng " + version([need("stress-ng"), "--version"], r"version ([\d.]+)"),
              "%s: %s" % (name, " ".join(x.split(":")[0] for x in GROUPS[name].split())))
    got = job.both(lambda side: stressors(side, name))
    idle = sorted(n for n, r in got.items() if not r["rounds"])
    check(len(idle) * 3 <= len(got), "most stressors did not run: %s" % got)
    found = job.preload.traces(least=1, explained=LOSSES)
    return "%d stressors%s, %d traces, %d events" % (
        len(got), ", done in part: " + " ".join(idle) if idle else "", len(found),
        sum(p["events"] for p in found))


CASES = {name: lambda job, name=name: group(job, name) for name in GROUPS}

if __name__ == "__main__":
    sys.exit(harness.main(sys.argv, CASES))
