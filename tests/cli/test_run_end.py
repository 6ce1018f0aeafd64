"""Where a container's end is read: `whyoom run` leaves the verdict in the termination log, and
keeps the OOM killer from itself."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from running import DISK, WHYOOM, Case

LEAK = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
kept = []
def remember(i):
    kept.append(bytes(1 << 20))
while True:
    remember(1)
"""


class TerminationLog(Case):
    def setUp(self):
        super().setUp()
        self.log = self.file("termination-log")
        self.option = ("--termination-log", self.log)

    def left(self):
        with open(self.log, "rb") as f:
            return f.read()

    def assert_verdict(self, text):
        self.assertLess(len(text), 1024)
        line = text.decode()  # whole characters
        self.assertTrue(line.startswith("whyoom: leak ("), line)
        self.assertIn("remember", line)
        self.assertIn(" Fix: ", line)
        self.assertTrue(line.endswith(f"More: whyoom report {self.out}"), line)
        self.assertTrue(line.isprintable(), line)

    def test_verdict(self):
        r = self.run_it(sys.executable, "-c", LEAK, options=self.option)
        self.assertEqual(r.returncode, 1)
        self.assert_verdict(self.left())
        self.assertIn("leak", r.stderr)

    def test_with_quiet_and_in_place_of_old_words(self):
        with open(self.log, "w") as f:
            f.write("old words " * 500)
        inode = os.stat(self.log).st_ino
        r = self.run_it(sys.executable, "-c", LEAK, options=(*self.option, "--quiet"))
        self.assertNotIn("whyoom", r.stderr)
        self.assert_verdict(self.left())
        self.assertEqual(os.stat(self.log).st_ino, inode)  # in place: in a container it is a mount

    def test_nothing_where_memory_did_not_fail(self):
        """So that the kubelet falls back to the log, which says more."""
        for program in ("exit 0", "exit 3", "kill -ABRT $$"):
            self.run_it("sh", "-c", program, options=self.option)
            self.assertEqual(self.left(), b"", program)

    def test_a_kill(self):
        r = self.run_it("sh", "-c", "kill -KILL $$", options=self.option)
        self.assertEqual(r.returncode, 137)
        self.assertTrue(self.left().startswith(b"whyoom: "), self.left())

    def test_a_file_that_cannot_be_written_breaks_nothing(self):
        os.mkfifo(self.file("pipe"))
        for path in (self.file("no/such"), self.file("pipe"), "/dev/full", self.dir):
            r = self.run_it("sh", "-c", "exit 5", options=("--termination-log", path))
            self.assertEqual(r.returncode, 5)
            self.assertIn(path, r.stderr)
            self.assertEqual(len(r.stderr.splitlines()), 1)

    def test_needs_a_file(self):
        for arguments in (["--termination-log"], ["--termination-log="]):
            r = subprocess.run([WHYOOM, "run", *arguments], capture_output=True, text=True)
            self.assertEqual(r.returncode, 2, r.stderr)

    def test_the_run_before(self):
        """Killed together with its supervisor, as a container is."""
        p = self.start(sys.executable, "-c", "print(1, flush=True); input()",
                       stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "1\n")
        p.kill()
        p.wait()
        r = self.run_it("cat", self.log, options=self.option)
        self.assertTrue(r.stdout.startswith("The run before this one was killed. whyoom: "), r)
        self.assertIn(os.path.join(self.out, "earlier"), r.stdout)
        self.assertEqual(self.left(), b"")  # this run ended well


def may_mount():
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(may_mount(), "needs the right to mount")
class Container(Case):
    """With /dev/termination-log as the kubelet makes it: a file that is mounted over an empty one.
    /dev is a copy of what programs need, in a mount namespace of its own."""

    def run_there(self, content, program, mount=True):
        dev, log = self.file("dev"), self.file("message")
        os.makedirs(dev, exist_ok=True)
        open(os.path.join(dev, "termination-log"), "w").close()
        with open(log, "w") as f:
            f.write(content)
        os.chmod(log, 0o666)
        nodes = " ".join("null zero full random urandom tty".split())
        script = (f"for n in {nodes}; do touch {dev}/$n; mount --bind /dev/$n {dev}/$n; done;"
                  f"mkdir -p {dev}/shm; mount --bind /dev/shm {dev}/shm;"
                  + (f"mount --bind {log} {dev}/termination-log;" if mount else "")
                  + f"mount --rbind {dev} /dev; exec \"$@\"")
        r = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh",
                            *self.command(*program)],
                           capture_output=True, text=True, timeout=60, cwd=self.dir)
        with open(log) as f:
            return r, f.read()

    def test_verdict(self):
        r, text = self.run_there("", [sys.executable, "-c", LEAK])
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertTrue(text.startswith("whyoom: leak ("), text)

    def test_words_of_the_program_stay(self):
        program = "import sys; open('/dev/termination-log', 'w').write('mine'); sys.exit(2)"
        r, text = self.run_there("", [sys.executable, "-c", program])
        self.assertEqual((r.returncode, text), (2, "mine"), r.stderr)
        r, text = self.run_there("begun before", [sys.executable, "-c", LEAK])
        self.assertEqual((r.returncode, text), (1, "begun before"), r.stderr)


def score(pid="self"):
    with open(f"/proc/{pid}/oom_score_adj") as f:
        return int(f.read())


def set_score(value):
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write(str(value))


def may_spare():
    return subprocess.run(["sh", "-c", "echo -1000 >/proc/self/oom_score_adj"],
                          capture_output=True).returncode == 0


class Spared(Case):
    SCORES = "echo $(cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj)"

    def scores(self, own, **more):
        """Of the target and of its supervisor, for a caller that has `own`."""
        runner = self.run_unprivileged if more.pop("unprivileged", False) else self.run_it

        before = score()
        set_score(own)
        try:
            r = runner("sh", "-c", self.SCORES, **more)
        finally:
            set_score(before)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return [int(n) for n in r.stdout.split()]

    def test_target_keeps_what_it_had(self):
        for own in (score(), 300, 1000):
            target, supervisor = self.scores(own)
            self.assertEqual(target, own)
            self.assertEqual(supervisor, -1000 if may_spare() else own)

    def test_without_the_right_nothing_changes(self):
        for own in (max(score(), 0), 500):
            self.assertEqual(self.scores(own, unprivileged=True), [own, own])


if __name__ == "__main__":
    unittest.main()
