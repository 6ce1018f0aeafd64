#!/usr/bin/env python3
"""The CPU time of `whyoom run` beside its program: one budget, for any number of processes. The
bounds leave room for a busy machine; -s prints the figures."""

import os
import signal
import sys
import time
import unittest

from running import Case, until

SETTLE, SECONDS = 3, 5
# That many processes of two threads, like a server's workers.
CROWD = """
import os, threading, time
kept = [bytearray(1000) for _ in range(2000)]
for _ in range(%d):
    if not os.fork():
        break
threading.Thread(target=time.sleep, args=(300,), daemon=True).start()
os.write(1, b"up\\n")
%s
"""
IDLE = "time.sleep(300)"
GROWS = """
while True:
    kept.append(bytearray(b"x") * (1 << 20))
    time.sleep(0.05)
"""
MOVES = """
while True:
    kept.append(bytearray(b"x") * (8 << 20))
    time.sleep(0.2)
    kept.pop()
    time.sleep(0.2)
"""
# name, processes, their work, options, the bound, in thousandths of a core
CROWDS = [
    ("2 idle", 2, IDLE, [], 5),
    ("16 idle", 16, IDLE, [], 5),
    ("50 idle", 50, IDLE, [], 5),
    ("16 idle, --off", 16, IDLE, ["--off"], 1),
    ("1 that grows", 1, GROWS, [], 10),
    ("16 that move", 16, MOVES, [], 10),
]
NOISE = 1.5  # each look is dearer with caches that others have emptied


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


class Cost(Case):
    def begin(self, number, count, does, options):
        self.out = os.path.join(self.dir, f"traces{number}")
        said = f"said{number}"
        with open(self.file(said), "w") as out:
            p = self.start(sys.executable, "-c", CROWD % (count - 1, does), options=options,
                           stdout=out,
                           start_new_session=True)
        self.addCleanup(os.killpg, p.pid, signal.SIGKILL)
        self.assertTrue(until(lambda: self.read(said).count("up") == count, 60), self.read(said))
        return p

    def test_of_a_core(self):
        running = [self.begin(i, count, does, options) for i,
                   (_, count, does, options, _) in enumerate(CROWDS)]
        time.sleep(SETTLE)
        before, begun = [cpu_seconds(p.pid) for p in running], time.monotonic()
        time.sleep(SECONDS)
        passed = time.monotonic() - begun
        share = [1000 * (cpu_seconds(p.pid) - b) / passed for p, b in zip(running, before)]
        for (name, *_, most), took in zip(CROWDS, share):
            print(f"\n{name}: {took / 10:.3f} % of a core, of at most {most / 10} %", end="")
        for (name, *_, most), took, p in zip(CROWDS, share, running):
            self.assertIsNone(p.poll(), name)
            self.assertLess(took, NOISE * most, name)


if __name__ == "__main__":
    unittest.main()
