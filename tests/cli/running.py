"""Shared by the tests of `whyoom run`: a directory of their own, and programs started through
it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from waiting import until  # noqa: E402, F401

WHYOOM = os.environ["WHYOOM_EXE"]
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")  # a tmpfs would be refused


def default_signals():
    """As in a terminal: nohup and background jobs ignore some signals."""
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(s, signal.SIG_DFL)


def runs(pid):
    """A zombie that no parent reaps does not, as under a PID 1 that is no init."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="whyoom-cli-", dir=DISK)
        self.out = os.path.join(self.dir, "traces")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def command(self, *program, options=()):
        return [WHYOOM, "run", "-o", self.out, *options, "--", *program]

    def run_it(self, *program, options=(), **more):
        more.setdefault("cwd", self.dir)
        more.setdefault("timeout", 60)
        return subprocess.run(
            self.command(*program, options=options), capture_output=True, text=True, **more
        )

    def run_unprivileged(self, *program, **more):
        """As nobody if we are root, with a copy of the program that nobody can read."""
        global WHYOOM
        if os.getuid() != 0:
            return self.run_it(*program, **more)
        here = tempfile.mkdtemp(prefix="whyoom-cli-", dir=DISK)
        self.addCleanup(shutil.rmtree, here, ignore_errors=True)
        os.chmod(here, 0o755)
        os.chmod(self.dir, 0o777)
        for part, source in (("bin", WHYOOM), ("lib", os.path.join(
                os.path.dirname(WHYOOM), "../../shim/libwhyoom.so"))):
            os.mkdir(os.path.join(here, part))
            shutil.copy(source, os.path.join(here, part))
        kept, WHYOOM = WHYOOM, os.path.join(here, "bin/whyoom")
        try:
            return self.run_it(*program, user=65534, group=65534, extra_groups=[], **more)
        finally:
            WHYOOM = kept

    def start(self, *program, options=(), **more):
        more.setdefault("cwd", self.dir)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        more.setdefault("preexec_fn", default_signals)
        p = subprocess.Popen(self.command(*program, options=options), text=True, **more)

        def end():
            if p.poll() is None:
                p.kill()
                p.wait()
            for pipe in (p.stdin, p.stdout, p.stderr):
                if pipe and not pipe.closed:
                    pipe.close()

        self.addCleanup(end)
        return p

    def file(self, name):
        return os.path.join(self.dir, name)

    def read(self, name):
        with open(self.file(name)) as f:
            return f.read()
