#!/usr/bin/env python3
"""`whyoom ctl` against a running program: it answers and obeys, and so does its trace."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

WHYOOM = os.environ.get("WHYOOM_EXE", "whyoom")
LIBRARY = os.path.join(os.path.dirname(WHYOOM), "..", "..", "shim", "libwhyoom.so")
# Keeps its blocks until a line comes, releases them, and goes on.
BUSY = """
import sys, threading, time
kept = [bytearray(5000 + i) for i in range(500)]
stop = False
def work():
    while not stop:
        some = [bytearray(3000 + i) for i in range(1000)]
        time.sleep(0.001)
t = threading.Thread(target=work)
t.start()
print("ready", flush=True)
sys.stdin.readline()
kept.clear()
print("released", flush=True)
sys.stdin.readline()
stop = True
t.join()
"""


class Ctl(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory(prefix="ctl.", dir=os.environ.get("TMPDIR")
                                               or "/var/tmp")
        self.addCleanup(self.top.cleanup)
        self.trace = os.path.join(self.top.name, "trace")

    def start(self, program=BUSY, **env):
        p = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, LD_PRELOAD=LIBRARY, WHYOOM_DIR=self.trace,
                                      PYTHONMALLOC="malloc", **env))
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def ctl(self, *words, status=0):
        done = subprocess.run([WHYOOM, "ctl", *map(str, words)], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if not status else done.stderr

    def finish(self, p):
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.wait(60), 0)
        done = subprocess.run([WHYOOM, "check", "--format", "json", self.trace],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["processes"][0]

    def test_a_pause_loses_no_release(self):
        p = self.start(WHYOOM_MODE="full")
        # nothing has passed
        self.assertRegex(self.ctl(p.pid, "status"), r": full; trace of [0-9.]+ [KM]iB\n")
        self.assertIn("paused", self.ctl(p.pid, "pause"))
        time.sleep(0.3)
        p.stdin.write("\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), "released\n")
        self.assertRegex(self.ctl(p.pid, "status"), r"; paused; blocks of [0-9.]+ [MG]iB passed in "
                         r"pauses; trace")
        self.assertRegex(self.ctl(p.pid, "resume"),
                         r"full; blocks of [0-9.]+ [MG]iB passed in pauses; trace")
        process = self.finish(p)
        # All of the 500 were acquired before the pause and released in it.
        self.assertLess(process["spaces"][0]["live_bytes"], 500 * 5000)
        done = subprocess.run([WHYOOM, "report", "--format", "json", self.trace],
                              capture_output=True, text=True)
        self.assertGreater(json.loads(done.stdout)["coverage"]["paused_seconds"], 0.25)
        self.assertEqual(process["torn_chunks"] + process["bad_checksums"]
                         + process["unknown_records"], 0)

    def test_modes(self):
        p = self.start(WHYOOM_MODE="sampled")
        self.assertIn("512 KiB", self.ctl(p.pid))
        self.assertIn("64.0 KiB", self.ctl(p.pid, "mode", "sampled", "--sample-every", "64KiB",
                                           "--exact-from", "2MiB"))
        self.assertIn("full", self.ctl(self.trace, "mode", "full"))
        self.assertEqual(self.ctl(p.pid, "flush"), "")
        p.stdin.write("\n")
        self.finish(p)

    def test_one_that_is_idle(self):
        """Its state is in the trace, and needs no answer; a command is obeyed at its next event."""
        idle = self.start('import sys; print("ready", flush=True); sys.stdin.readline(); kept = '
                          '[bytearray(9000) for _ in range(9000)];'
                          'print("went on", flush=True); sys.stdin.readline()',
                          WHYOOM_MODE="sampled", WHYOOM_SAMPLE_EVERY="32KiB")
        time.sleep(0.5)  # its allocations for the read are done
        began = time.monotonic()
        for where in idle.pid, self.trace:
            self.assertRegex(self.ctl(where, "status"), r": sampled, one block for 32.0 KiB, all "
                             r"from 1.00 MiB on; trace of [0-9.]+ [KM]iB\n")
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual(self.ctl(idle.pid, "pause", "--wait", "100"),
                         f"{idle.pid}: idle; pause takes effect at the next event\n")
        self.assertIn("; pause takes effect at the next event\n", self.ctl(idle.pid))
        idle.stdin.write("\n")
        idle.stdin.flush()
        self.assertEqual(idle.stdout.readline(), "went on\n")
        self.assertIn("; paused", self.ctl(idle.pid))
        self.assertNotIn("takes effect", self.ctl(idle.pid))

    def test_a_supervisor_stands_for_its_children(self):
        run = subprocess.Popen([WHYOOM, "run", "-o", self.trace, "--", sys.executable, "-c",
                                'import os, time; os.fork(); os.write(1, b"ready\\n"); '
                                'time.sleep(60)'],
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        self.addCleanup(run.stdout.close)
        for _ in range(2):
            self.assertEqual(run.stdout.readline(), "ready\n")
        said = self.ctl(run.pid, "status").splitlines()
        self.assertEqual(said[0], f"{run.pid} is whyoom run; of what it started:")
        children = {int(name.split(".")[0]) for name in os.listdir(self.trace) if name[0].isdigit()}
        self.assertEqual(len(children), 2)
        self.assertEqual({int(line.split(":")[0]) for line in said[1:]}, children)

    def test_refusals(self):
        idle = self.start('import sys; print("ready", flush=True); sys.stdin.readline()')
        idle.stdin.write("\n")
        idle.stdin.close()
        idle.wait(60)
        self.assertIn(f"there is no process {idle.pid} here: give",
                      self.ctl(idle.pid, "pause", status=1))
        self.assertIn("no trace of a process that runs here",
                      self.ctl(self.trace, "pause", status=1))
        trace, = (os.path.join(self.trace, name) for name in os.listdir(self.trace)
                  if name.endswith(".whyoom"))
        self.assertRegex(self.ctl(trace, "status"), f"^{idle.pid}: full; .*; has ended\n")
        self.assertIn("has ended: whyoom report", self.ctl(trace, "pause", status=1))
        zombie = subprocess.Popen(["true"])
        while open(f"/proc/{zombie.pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
            time.sleep(0.01)
        self.assertIn("nobody has waited for it yet", self.ctl(zombie.pid, status=1))
        zombie.wait()
        own = subprocess.Popen(["sleep", "60"])
        self.addCleanup(own.kill)
        self.assertRegex(self.ctl(own.pid, "pause", status=1),
                         r"\(sleep\) is not being recorded.*: start it with whyoom run")
        if os.getuid() == 0:
            other = self.start('print("ready", flush=True); input()')
            os.chown(os.path.join(self.trace, f"{other.pid}.0.whyoom"), 65534, 65534)
            # a server that has given up being root
            self.assertIn("pause takes effect", self.ctl(other.pid, "pause"))
            path = os.path.join(self.trace, f"{other.pid}.0.whyoom")
            for each in (self.top.name, self.trace, path):
                os.chmod(each, 0o777)
            program = os.open(WHYOOM, os.O_PATH)  # any user who may read its folder
            self.addCleanup(os.close, program)
            done = subprocess.run([f"/proc/self/fd/{program}", "ctl", path, "pause"],
                                  capture_output=True, text=True,
                                  user=65533, pass_fds=[program], timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("user 65534's: run whyoom ctl as that user", done.stderr)
            self.assertIn("full", self.ctl(other.pid, "status"))  # root may look
        self.ctl(own.pid, "mode", "half", status=2)
        self.ctl(status=2)
        fake = os.path.join(self.top.name, "1.0.whyoom")
        with open(fake, "wb") as f:
            f.write(bytes(65536))
        self.assertIn("no trace", self.ctl(fake, status=1))
        link = os.path.join(self.top.name, "link.whyoom")
        os.symlink(fake, link)
        self.ctl(link, status=1)


if __name__ == "__main__":
    unittest.main()
