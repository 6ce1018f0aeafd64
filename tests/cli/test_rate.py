#!/usr/bin/env python3
"""--max-rate: a storm of blocks stays within it, estimates are right within the reported error, and
the losses are reported. Blocks that pass in a pause are counted."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

WHYOOM = os.environ.get("WHYOOM_EXE", "whyoom")
LIBRARY = os.path.join(os.path.dirname(WHYOOM), "..", "..", "shim", "libwhyoom.so")
LIMIT = 256 << 10
# Makes and drops lists of blocks of some KiB as fast as it can, and keeps some; prints the kept
# bytes at the end.
STORM = """
import sys, time
end, kept, n = time.monotonic() + float(sys.argv[1]), [], 0
while time.monotonic() < end:
    some = [bytearray(9000 + i % 3000) for i in range(500)]
    n += 1
    if n % 20 == 0 and len(kept) < 40000:
        kept += some[:200]
    if len(sys.argv) > 2:
        time.sleep(0.001)
print(sum(map(len, kept)), flush=True)
sys.stdin.readline()
"""


class Rate(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="rate.", dir=os.environ.get("TMPDIR")
                                          or "/var/tmp")
        self.addCleanup(top.cleanup)
        self.trace = os.path.join(top.name, "trace")

    def start(self, *words, **env):
        p = subprocess.Popen([sys.executable, "-c", STORM, *words], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, LD_PRELOAD=LIBRARY, WHYOOM_DIR=self.trace,
                                      PYTHONMALLOC="malloc",
                                      WHYOOM_MODE="sampled", WHYOOM_SAMPLE_EVERY="16KiB", **env))
        self.addCleanup(p.kill)
        self.addCleanup(p.stdout.close)
        return p

    def report(self):
        done = subprocess.run([WHYOOM, "report", "--format", "json", self.trace],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def storm(self, **env):
        """Bytes of the events that it wrote, its kept bytes, and the report."""
        p = self.start("5", **env)
        kept = int(p.stdout.readline())
        p.kill()  # with all live blocks
        p.wait()
        done = subprocess.run([WHYOOM, "check", "--format", "json", self.trace],
                              capture_output=True, text=True)
        process = json.loads(done.stdout)["processes"][0]
        return process, kept, self.report()

    def committed(self):
        """Bytes of events, by the headers of the chunks."""
        total = 0
        for path in glob.glob(os.path.join(self.trace, "*.whyoom")):
            with open(path, "rb") as f:
                data = f.read()
            for at in range(65536, len(data), 65536):
                if data[at:at + 4] == b"Chnk" and data[at + 4] in (1, 3):
                    total += int.from_bytes(data[at + 40:at + 44], "little")
        return total

    def test_a_storm_stays_within(self):
        process, kept, report = self.storm(WHYOOM_MAX_RATE=str(LIMIT))
        self.assertEqual(process["dropped"], 0)
        limited = self.committed()
        # It runs five seconds; the first look comes after the rate was exceeded.
        self.assertLess(limited, LIMIT * 5 * 1.5)
        sampled = report["coverage"]["sampled"]
        self.assertGreaterEqual(sampled["coarser_times"], 1)
        self.assertGreater(sampled["coarsest_every_bytes"], 16 << 10)
        # Live bytes by the record against the program's count, with four errors as margin: a
        # cautious one, as the error is of the sum alone.
        done = subprocess.run([WHYOOM, "sites", "--at", "end", "--format", "json", self.trace],
                              capture_output=True, text=True)
        self.assertLess(abs(json.loads(done.stdout)["live_bytes"] - kept),
                        4 * sampled["error_bytes"] + (8 << 20))
        self.assertGreater(kept, 64 << 20)

    def test_without_it_would_not(self):
        self.storm()
        self.assertGreater(self.committed(), LIMIT * 5 * 2)

    def test_mode_full_refuses_it(self):
        done = subprocess.run([WHYOOM, "run", "-o", self.trace, "--max-rate", "1MiB", "--", "true"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--max-rate needs --mode sampled", done.stderr)

    def test_a_pause_is_counted(self):
        p = self.start("3", "slowly")
        time.sleep(0.7)

        def ctl(*words):
            done = subprocess.run([WHYOOM, "ctl", str(p.pid), *words], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        ctl("pause")
        time.sleep(0.7)
        ctl("resume")
        p.stdout.readline()
        p.kill()
        p.wait()
        # 500 blocks of 9 to 12 thousand bytes at a time: at least some hundred times in that time.
        passed = self.report()["coverage"]["paused_bytes"]
        self.assertGreater(passed, 20 * 500 * 9000)
        self.assertLess(passed, 2000 * 500 * 12000)


if __name__ == "__main__":
    unittest.main()
