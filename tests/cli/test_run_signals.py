"""`whyoom run` passes signals on, each once, and leaves the terminal to its program."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import unittest

from running import WHYOOM, Case, runs, until


class Signals(Case):
    COUNTER = (
        "import os, signal, sys, time\n"
        "def got(n, f):\n"
        "    os.write(1, b'%d\\n' % n)\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,\n"
        "          signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT, signal.SIGRTMIN):\n"
        "    signal.signal(s, got)\n"
        "os.write(1, b'ready %d\\n' % os.getpid())\n"
        "end = time.monotonic() + 20\n"
        "while time.monotonic() < end:\n"
        "    time.sleep(0.05)\n"
    )

    def counter(self, **more):
        p = self.start(sys.executable, "-u", "-c", self.COUNTER, **more)
        line = p.stdout.readline().split()
        self.assertEqual(line[0], "ready")
        return p, int(line[1])

    def finish(self, p, pid):
        """End the program from outside; return its output."""
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(p.wait(10), 137)
        return [int(x) for x in p.stdout.read().split()]

    def test_each_is_passed_on_once(self):
        p, pid = self.counter()
        sent = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                signal.SIGQUIT, signal.SIGWINCH, signal.SIGRTMIN]
        for s in sent:
            p.send_signal(s)
            time.sleep(0.15)
        self.assertEqual(self.finish(p, pid), [int(s) for s in sent])

    def test_to_the_group_arrives_once(self):
        p, pid = self.counter(start_new_session=True)
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.killpg(p.pid, s)
            time.sleep(0.2)
        p.send_signal(signal.SIGINT)  # and one to us alone, after those
        self.assertEqual(self.finish(p, pid), [2, 15, 2, 2])

    def test_to_every_process_in_turn_arrives_once(self):
        # as systemd stops a service
        p, pid = self.counter()
        kids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(p.pid)], capture_output=True,
                              text=True).stdout.split()
        self.assertIn(str(pid), kids)
        for k in [str(p.pid), *kids]:
            os.kill(int(k), signal.SIGTERM)
        self.assertEqual(self.finish(p, pid), [15])

    def test_by_name_reaches_the_program(self):
        # `pkill whyoom` finds us and not the witness
        p, pid = self.counter()
        names = {}
        for k in subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(p.pid)],
                                capture_output=True, text=True).stdout.splitlines():
            names[int(k.split()[0])] = k.split()[1]
        self.assertEqual([n for n in names.values() if "whyoom" in n], [])
        p.terminate()
        self.assertEqual(self.finish(p, pid), [15])

    def test_default_disposition_kills_and_the_code_says_so(self):
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            p = self.start("sleep", "30")
            until(lambda: subprocess.run(["pgrep", "-x", "-P", str(p.pid), "sleep"],
                                         stdout=subprocess.DEVNULL).returncode == 0)
            time.sleep(0.3)
            p.send_signal(s)
            self.assertEqual(p.wait(10), 128 + s)
            self.assertEqual(p.stderr.read(), "")  # it was stopped on purpose: no verdict is due

    def test_in_the_first_moments(self):
        # to us alone and to the group, at 200 moments from before we block signals until the
        # program runs: it ends by the signal, whichever process gets it
        for i in range(200):
            p = self.start("sleep", "30", start_new_session=True, stdout=subprocess.DEVNULL)
            time.sleep(0.0002 * (i // 2))
            (os.killpg if i % 2 else os.kill)(p.pid, signal.SIGTERM)
            self.assertIn(p.wait(10), (-signal.SIGTERM, 128 + signal.SIGTERM))
            p.stderr.close()

    def test_killed_itself_it_takes_the_program_along(self):
        p, pid = self.counter()
        p.kill()
        p.wait()
        self.assertTrue(until(lambda: not runs(pid)))

    def test_stopped_and_continued_program(self):
        p, pid = self.counter()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        self.assertNotIn(self.state(p.pid), "Tt")  # SIGSTOP to the program is its own business
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)
        p.send_signal(signal.SIGUSR1)
        self.assertEqual([x for x in self.finish(p, pid) if x != signal.SIGCONT], [signal.SIGUSR1])

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    def test_our_children_are_not_lost_when_sigchld_was_ignored(self):
        r = self.run_it("sh", "-c", "exit 5",
                        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(r.returncode, 5)


class Terminal(Case):
    """In a session of its own with a pseudo-terminal, below a shell with job control."""

    def shell(self):
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       dict(os.environ, PS1="$ ", WHYOOM_DIR="",
                            BASH_SILENCE_DEPRECATION_WARNING="1"))
        self.tty = fd
        self.text = ""

        def end():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(fd)
            os.waitpid(pid, 0)

        self.addCleanup(end)
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)

    def send(self, text):
        os.write(self.tty, text.encode())

    def expect(self, what, seconds=15):
        end = time.monotonic() + seconds
        while what not in self.text:
            if time.monotonic() > end:
                self.fail(f"{what!r} did not come: {self.text!r}")
            try:
                self.text += os.read(self.tty, 4096).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
        self.text = self.text.partition(what)[2]

    def run_line(self, program):
        return f"{WHYOOM} run -o {self.out} -- {program}"

    def test_is_a_terminal_and_interactive(self):
        self.shell()
        self.send(self.run_line("sh -c 'test -t 0 && test -t 1 && read x && echo got-$x-'") + "\n")
        time.sleep(0.5)
        self.send("word\n")
        self.expect("got-word-")

    def test_ctrl_c_arrives_once(self):
        self.shell()
        with open(self.file("p.py"), "w") as f:
            f.write(Signals.COUNTER.replace("b'%d\\n' % n", "b'sig-%d.\\n' % n"))
        self.send(self.run_line(f"{sys.executable} p.py") + "; echo code-$?-\n")
        self.expect("ready")
        self.send("\x03")
        self.expect("sig-2.")
        time.sleep(0.4)
        self.send("\x1c")  # Ctrl-\
        self.expect("sig-3.")
        self.assertNotIn("sig-2.", self.text)

    def test_ctrl_c_ends_it(self):
        self.shell()
        self.send(self.run_line("sh -c 'echo begun.; exec sleep 30'") + "; echo code-$?-\n")
        self.expect("begun.\r")
        time.sleep(0.3)
        self.send("\x03")
        self.expect("code-130-")

    def test_ctrl_z_fg_and_bg(self):
        self.shell()
        # one process: a shell within vfork cannot be stopped
        with open(self.file("p.py"), "w") as f:
            f.write("import os, time\nprint('begun.', flush=True)\nfor i in range(100):\n"
                    "    if os.path.exists('go'):\n        os._exit(7)\n    time.sleep(0.1)\n")
        self.send(self.run_line(f"{sys.executable} p.py") + "; echo first-$?-\n")
        self.expect("begun.\r")
        time.sleep(0.3)
        self.send("\x1a")
        self.expect("Stopped")
        self.send("jobs\n")
        self.expect("Stopped")
        self.send("bg\n")
        self.expect("&")
        self.send("fg; echo code-$?-\n")
        time.sleep(0.5)
        self.send("\x1a")
        self.expect("Stopped")
        open(self.file("go"), "w").close()
        self.send("fg; echo again-$?-\n")
        self.expect("again-7-")

    def test_background_reader_is_stopped_and_resumes(self):
        self.shell()
        self.send(self.run_line("sh -c 'read x; echo got-$x-'") + " &\n")
        time.sleep(1)
        self.send("jobs\n")
        self.expect("Stopped")
        self.send("fg\n")
        time.sleep(0.3)
        self.send("late\n")
        self.expect("got-late-")

    def test_window_size(self):
        self.shell()
        self.send(self.run_line("sh -c 'trap \"stty size; exit\" WINCH; echo begun.; "
                                "while :; do sleep 0.1; done'") + "\n")
        self.expect("begun.\r")
        fcntl.ioctl(self.tty, termios.TIOCSWINSZ, b"\x21\x00\x4d\x00\x00\x00\x00\x00")
        self.expect("33 77")

    def test_in_a_pipeline(self):
        self.shell()
        self.send(self.run_line("sh -c 'echo to-the-pipe'") + " | tr a-z A-Z\n")
        self.expect("TO-THE-PIPE")


if __name__ == "__main__":
    unittest.main()
