"""`whyoom replay` of requests to a device's driver: it fails again at the same request, on a
simulated device; and on a device of another size where the program itself fails there."""

import json
import os
import subprocess
import tempfile
import unittest

WHYOOM = os.environ["WHYOOM_EXE"]
HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
WAYS = ("leak", "small", "traffic", "pool", "pages")


class ReplayDevice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.folder.name, "requests")
        subprocess.run(["gcc", "-O1", "-g", "-w", "-o", cls.program,
                        os.path.join(HERE, "programs", "device_requests.c"), "-ldl"],
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def record(self, way, memory, **variables):
        out = tempfile.mkdtemp(dir=self.folder.name)
        # Contexts would differ with the device.
        subprocess.run([WHYOOM, "run", "-o", out + "/t", "--simgpu", memory, "--", self.program,
                        way], capture_output=True,
                       env={**os.environ, "WHYOOM_SIMGPU_CONTEXT": "64MiB", **variables})
        return out + "/t"

    def replay(self, trace, *options):
        run = subprocess.run([WHYOOM, "replay", "--format", "json", *options, trace],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_nothing_left(self):
        """The replay removes its simulated device."""
        def machines():
            return {name for name in os.listdir("/dev/shm") if "through-" in name}

        before = machines()
        self.replay(self.record(WAYS[0], "512MiB"))
        self.assertLessEqual(machines(), before)

    def test_same_failure(self):
        for way in WAYS:
            with self.subTest(way):
                r = self.replay(self.record(way, "1GiB"))
                self.assertIs(r["same_failure"], True, r)
                self.assertEqual(r["original"], r["replayed"])
                self.assertGreater(r["original"]["event"], 20)
                self.assertLess(r["headroom_bytes"], 0)
                # The memory beside it is not replayed: nearly all of the device is.
                self.assertGreater(r["peak_live"], 0.75 * 1024 * MIB)
                self.assertIn("device", r)

    def test_other_sizes(self):
        """A replay on half the device fails where the program itself fails there; and more is
        enough."""
        for way in WAYS:
            with self.subTest(way):
                small, large = self.record(way, "512MiB"), self.record(way, "1GiB")
                there, here = self.replay(small)["original"], self.replay(
                    large, "--memory", "512MiB")["replayed"]
                self.assertEqual((here["event"], here["requested_bytes"]),
                                 (there["event"], there["requested_bytes"]))
                self.assertIsNone(self.replay(small, "--memory", "1GiB")["replayed"])

    def test_neighbour(self):
        """Another process's memory is held beside the replay."""
        shared = {"WHYOOM_SIMGPU_MACHINE": "replay-%d" % os.getpid()}
        library = os.path.join(os.path.dirname(WHYOOM), "..", "..", "shim", "simgpu",
                               "libwhyoom-simgpu.so")
        if not os.path.exists(library):
            self.skipTest("not in a build tree")
        holder = subprocess.Popen([self.program, "hold"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, env={
            **os.environ, "LD_PRELOAD": library, "WHYOOM_SIMGPU": "1GiB",
            "WHYOOM_SIMGPU_CONTEXT": "64MiB", **shared})
        try:
            self.assertEqual(holder.stdout.readline(), b"holds\n")
            trace = self.record("leak", "1GiB", **shared)
        finally:
            holder.communicate()
        r = self.replay(trace)
        self.assertIs(r["same_failure"], True)
        self.assertLess(r["original"]["event"], 20)  # alone it comes to 31

    def test_text(self):
        run = subprocess.run([WHYOOM, "replay", self.record("leak", "1GiB")], capture_output=True,
                             text=True)
        self.assertIn("Reproduced: it fails where it failed, under device memory of 1.00 GiB",
                      run.stdout)
        self.assertRegex(" ".join(run.stdout.split()),
                         r"The [0-9]+ requests and releases were repeated on ")


if __name__ == "__main__":
    unittest.main()
