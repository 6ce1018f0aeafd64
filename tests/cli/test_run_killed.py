#!/usr/bin/env python3
"""A kill unrelated to memory: by hand, by timeout, of a program that grows and of one that does
not."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

from running import WHYOOM, Case

WORK = """
import time
kept = []
def remember():
    kept.append(bytearray(1 << 20))
def serve():
    print("up", flush=True)
    for _ in range(%d):
        remember()
    began = time.monotonic()
    while True:
        for _ in range(3):
            bytearray(200000)
        %s
        time.sleep(0.01)
serve()
"""
GROWS = WORK % (1, "remember()")
STEADY = WORK % (60, "pass")


class Killed(Case):
    def report(self):
        done = subprocess.run([WHYOOM, "report", "--format", "json", self.out], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def kill(self, program, number):
        p = self.start(sys.executable, "-c", program)
        self.assertEqual(p.stdout.readline(), "up\n")
        time.sleep(3)
        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
            children = [int(pid) for pid in f.read().split()]
        for pid in children:
            with open(f"/proc/{pid}/maps") as f:
                if ".whyoom" in f.read():  # not the witness
                    os.kill(pid, number)
        self.assertEqual(p.wait(60), 128 + number)
        return p.stderr.read(), self.report()

    def check_growth(self, said, report):
        self.assertEqual(report["failure"]["kind"], "none")  # no request was refused
        self.assertIn(report["verdict"]["cause"], ("leak", "state-retention"))
        self.assertEqual(report["verdict"]["blame"]["function"], "remember")
        self.assertTrue(report["verdict"]["fixes"])
        summary = report["verdict"]["summary"]
        self.assertRegex(summary, r"remember.* Memory had not run out: .*[0-9.]+ [MGT]iB (were )?"
                         r"free")
        self.assertRegex(summary, r" would have been full .* later\.")
        self.assertIn("Memory had not run out", " ".join(said.split()))
        self.assertNotIn("when memory runs out", said)

    def test_by_hand_while_it_grows(self):
        said, report = self.kill(GROWS, signal.SIGKILL)
        self.assertRegex(report["verdict"]["summary"],
                         "Memory had not run out: SIGKILL ended it with .* free")
        self.check_growth(said, report)

    def test_by_hand_while_it_does_not(self):
        said, report = self.kill(STEADY, signal.SIGKILL)
        self.assertEqual((report["verdict"]["cause"], report["failure"]["kind"]),
                         ("healthy", "none"))
        summary = report["verdict"]["summary"]
        self.assertRegex(summary, "^SIGKILL ended it with .* free: memory had not run out")
        self.assertNotIn("growing", summary)
        self.assertNotIn("would have been full", summary)

    def test_by_timeout(self):
        """The report is about the process with the memory, not about the started one."""
        r = self.run_it("timeout", "-s", "KILL", "4", sys.executable, "-c", GROWS)
        self.assertEqual(r.returncode, 137)
        report = self.report()
        root, = (p for p in report["processes"] if "timeout" in p["cmdline"])
        self.assertNotEqual(report["failure"]["pid"], root["pid"])
        self.check_growth(r.stderr, report)


if __name__ == "__main__":
    unittest.main()
