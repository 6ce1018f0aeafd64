"""A program under a pseudo-terminal, with its screen as pyte shows it."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

UP, DOWN = "\033OA", "\033OB"  # in the mode that keypad() asks for


class Terminal:
    """The program and its terminal; `shell` is the terminal's own side, as it was before."""

    def __init__(self, *command, columns=100, rows=30, **env):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.resize(columns, rows)
        self.shell = os.ttyname(slave)
        self.slave = slave  # kept open, as a shell does
        self.before = termios.tcgetattr(slave)
        # pyte does not know how xterm repeats a character.
        env = {"TERM": "screen-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"], **env}
        for name in ("HOME", "TMPDIR"):
            if name in os.environ:
                env.setdefault(name, os.environ[name])
        self.pid = os.fork()
        if not self.pid:
            try:
                os.close(self.master)
                os.setsid()
                fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
                # A session's leader cannot be suspended, so the program is a child in a group of
                # its own in the foreground, as a shell starts it.
                child = os.fork()
                if not child:
                    os.setpgid(0, 0)
                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
                    os.tcsetpgrp(slave, os.getpid())
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
                    for fd in (0, 1, 2):
                        os.dup2(slave, fd)
                    os.execve(command[0], [str(c) for c in command],
                              {k: v for k, v in env.items() if v is not None})
                while True:
                    _, status = os.waitpid(child, 0)
                    code = os.waitstatus_to_exitcode(status)
                    os._exit(code if code >= 0 else 128 - code)
            except OSError as e:
                os.write(slave, f"{command[0]}: {e}".encode())
            finally:
                os._exit(127)

    def program(self):
        """The pid of the program itself."""
        path = f"/proc/{self.pid}/task/{self.pid}/children"
        for _ in range(3000):
            with open(path, encoding="ascii") as f:
                children = f.read().split()
            if children:
                return int(children[0])
            time.sleep(0.02)
        raise AssertionError("it has not started")

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.2):
        """Take what comes until it is silent for a moment."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if ready:
                try:
                    got = os.read(self.master, 65536)
                except OSError:
                    return
                self.raw += got
                self.stream.feed(got)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def line(self, words):
        lines = [line for line in self.text().splitlines() if words in line]
        assert lines, f"{words!r} is not in\n{self.text()}"
        return lines[0]

    def until(self, check, seconds=60):
        """Read on until `check()` raises no AssertionError and returns None or what is true.

        A frame may be half drawn or one behind at any moment, on a busy machine for long."""
        end = time.monotonic() + seconds
        while True:
            try:
                got = check()
                assert got is None or got, self.text()
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
            self.read(0.1)

    def wait_for(self, words, seconds=60, gone=False):
        def check():
            assert (words in self.text()) != gone, f"{words!r}, gone {gone}:\n{self.text()}"

        self.until(check, seconds)
        return self.text()

    def press(self, keys):
        os.write(self.master, keys.encode())
        self.read()

    def state(self):
        """The program's state as ps shows it: "S", "T"."""
        with open(f"/proc/{self.program()}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def wait(self, seconds=60):
        """The exit status, 128 + N for a signal."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = None
                self.read(0.1)
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it still runs:\n{self.text()}")

    def close(self):
        if self.pid:
            try:
                os.kill(self.program(), signal.SIGKILL)
            except (AssertionError, ProcessLookupError):
                pass
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.slave)
        os.close(self.master)
