"""A command that is interrupted, or finds no room, leaves no half-made output, temporary file or
process, and ends by the signal that ended it."""

import glob
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
import busy  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
LIMIT = 64 << 20

PROGRAM = busy.HEAD + r"""
int main(void)
{
	for (unsigned i = 0;; i++) {
		work(i);
		kept[i % 100000] = keep(60 << 10);
	}
}
"""


class Interrupted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="whyoom-interrupted-")
        cls.folder = cls.temporary.name
        program = os.path.join(cls.folder, "program")
        with open(program + ".c", "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-O1", "-o", program, program + ".c", "-pthread"], check=True)
        cls.trace = os.path.join(cls.folder, "trace")
        subprocess.run([WHYOOM, "run", "--quiet", "-o", cls.trace, "--", program],
                       capture_output=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))
        cls.log = os.path.join(cls.folder, "log")
        with open(cls.log, "w") as f:
            f.write("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
                    "GiB\nnothing\n" * 20000)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.work = tempfile.TemporaryDirectory(prefix="work-", dir=self.folder)
        self.out = os.path.join(self.work.name, "out")
        self.tmp = os.path.join(self.work.name, "tmp")
        os.mkdir(self.out)
        os.mkdir(self.tmp)

    def tearDown(self):
        self.work.cleanup()

    def path(self, name):
        return os.path.join(self.out, name)

    def start(self, *args, **more):
        return subprocess.Popen([WHYOOM, *args], env={**os.environ, "TMPDIR": self.tmp}, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    def nothing_beside(self, *whole):
        self.assertLessEqual(set(os.listdir(self.out)), set(whole))
        self.assertEqual(os.listdir(self.tmp), [])

    def no_player_of(self, pid):
        """No process works in this test's folder or its cgroup."""
        for status in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(status, "rb") as f:
                    ours = b"TMPDIR=" + self.tmp.encode() in f.read().split(b"\0")
            except OSError:
                continue
            self.assertFalse(ours, status)
        self.assertEqual(glob.glob("/sys/fs/cgroup/whyoom-replay-%d" % pid) +
                         glob.glob("/sys/fs/cgroup/*/whyoom-replay-%d" % pid), [])

    def content(self, name):
        """None: it is missing. A directory is a set of whole traces."""
        if os.path.isdir(self.path(name)):
            checked = subprocess.run([WHYOOM, "check", self.path(name)], capture_output=True,
                                     text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
            return "traces"
        if not os.path.exists(self.path(name)):
            return None
        with open(self.path(name)) as f:
            return f.read()

    def whole(self, *args):
        """The seconds that it takes."""
        begin = time.monotonic()
        process = self.start(*args)
        _, words = process.communicate()
        self.assertEqual(process.returncode, 0, words)
        return time.monotonic() - begin

    def interrupt(self, args, outputs, signals=(signal.SIGTERM,), moments=5, same=True):
        """At moments that divide its time evenly. Output that was whole before the signal may be
        there, and nothing else; `same`: equal to each undisturbed output."""
        seconds = self.whole(*args)
        contents = {name: self.content(name) for name in outputs}
        ended = 0
        for i in range(moments):
            for name in outputs:
                subprocess.run(["rm", "-rf", self.path(name)], check=True)
            process = self.start(*args)
            time.sleep(seconds * i / moments)
            number = signals[i % len(signals)]
            process.send_signal(number)
            _, words = process.communicate(timeout=60)
            self.assertIn(process.returncode, (0, -number), words)
            ended += process.returncode == -number
            self.nothing_beside(*outputs)
            for name in outputs:
                content = self.content(name)
                if content and same:
                    self.assertEqual(content, contents[name])
            self.no_player_of(process.pid)
        self.assertGreater(ended, 0)

    def test_report(self):
        self.interrupt(["report", "-o", self.path("r"), self.trace], ["r"],
                       (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))

    def test_map(self):
        self.interrupt(["sites", "--format", "json", "-o", self.path("s"), self.trace], ["s"])

    def test_explain(self):
        self.interrupt(["explain", "-o", self.path("e"), self.log], ["e"])

    def test_pack(self):
        self.interrupt(["pack", "-o", self.path("p"), self.trace], ["p"],
                       (signal.SIGINT, signal.SIGTERM))

    def test_replay(self):
        self.interrupt(["replay", "-o", self.path("r"), self.trace], ["r"],
                       (signal.SIGINT, signal.SIGTERM), moments=4, same=False)

    def test_reduce(self):
        self.interrupt(["reduce", "-o", self.path("small"), "--emit", "c", self.trace],
                       ["small", "small.c"], moments=4, same=False)

    def test_reduce_to_a_program(self):
        """Its trace is a temporary one. SIGINT ends the search, a second one the command."""
        args = ["reduce", "-o", self.path("small.c"), "--emit", "c", self.trace]
        self.interrupt(args, ["small.c"], moments=2, same=False)
        process = self.start(*args)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        process.communicate()
        self.assertIn(process.returncode, (0, -signal.SIGINT))
        self.nothing_beside("small.c")

    def test_what_was_there_stays(self):
        """An existing output is unchanged, until the new one is whole."""
        with open(self.path("r"), "w") as f:
            f.write("before")
        process = self.start("report", "-o", self.path("r"), self.trace)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        if process.returncode:
            self.assertEqual(process.returncode, -signal.SIGTERM)
            with open(self.path("r")) as f:
                self.assertEqual(f.read(), "before")
        self.nothing_beside("r")

    def test_slow_sink(self):
        """A reader that is slow, or never reads, delays no command."""
        read, write = os.pipe()
        process = subprocess.Popen([WHYOOM, "sites", "-n", "0", "-v", "--format", "json",
                                    self.trace], stdout=write)
        os.close(write)
        time.sleep(0.2)
        process.terminate()
        self.assertIn(process.wait(timeout=60), (0, -signal.SIGTERM))
        os.close(read)
        os.mkfifo(self.path("fifo"))
        process = self.start("report", "-o", self.path("fifo"), self.trace)
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.nothing_beside("fifo")

    def test_no_room(self):
        """As on a full disk."""
        with open(self.path("r"), "w") as f:
            f.write("before")
        for args in (["report", "-v", "-o", self.path("r"), self.trace],
                     ["pack", "-o", self.path("p"), self.trace],
                     ["reduce", "-o", self.path("small"), self.trace], ["replay", self.trace]):
            process = self.start(*args,
                                 preexec_fn=lambda: resource.setrlimit(
                                     resource.RLIMIT_FSIZE, (300, 300)))
            _, words = process.communicate()
            self.assertEqual(process.returncode, 1, words)
            self.assertIn("File too large", words)
            self.nothing_beside("r")
            with open(self.path("r")) as f:
                self.assertEqual(f.read(), "before")


if __name__ == "__main__":
    unittest.main()
