"""`whyoom run` from outside: it exits as its program does, passes signals and the terminal through,
leaves the program's surroundings as they were, and looks after its directory.

WHYOOM_EXE names the program under test. Needs nothing but Python; run by pytest or unittest."""

import fcntl
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

WHYOOM = os.environ["WHYOOM_EXE"]
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")  # a tmpfs would be refused


def until(what, seconds=10):
    """Waits for a condition; the last value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.01)
    return what()


def default_signals():
    """As in a terminal: nohup and background jobs have some of them ignored."""
    for s in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(s, signal.SIG_DFL)


def runs(pid):
    """A zombie that nobody takes, as where PID 1 is no init, does not."""
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
        """As nobody where we are root, with a copy of the program that nobody can read."""
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


class ExitStatus(Case):
    def test_every_exit_code(self):
        for code in list(range(0, 256, 17)) + [1, 2, 126, 127, 128, 129, 137, 255]:
            self.assertEqual(self.run_it("sh", "-c", f"exit {code}").returncode, code)

    def test_death_by_signal(self):
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV, signal.SIGUSR1):
            r = self.run_it("sh", "-c", f"ulimit -c 0; kill -{sig.value} $$")
            self.assertEqual(r.returncode, 128 + sig.value, r.stderr)

    def test_missing_program_is_127_and_leaves_nothing(self):
        r = self.run_it("no-such-program-here")
        self.assertEqual(r.returncode, 127)
        self.assertIn("no-such-program-here", r.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_not_executable_is_126(self):
        with open(self.file("plain"), "w") as f:
            f.write("text")
        r = self.run_it("./plain")
        self.assertEqual(r.returncode, 126)
        self.assertEqual(self.run_it("/").returncode, 126)
        self.assertFalse(os.path.exists(self.out))

    def test_bad_interpreter_is_127(self):
        with open(self.file("script"), "w") as f:
            f.write("#!/no/such/interpreter\n")
        os.chmod(self.file("script"), 0o755)
        self.assertEqual(self.run_it("./script").returncode, 127)
        self.assertFalse(os.path.exists(self.out))

    def test_script_without_interpreter_line(self):
        with open(self.file("script"), "w") as f:
            f.write("exit 9\n")
        os.chmod(self.file("script"), 0o755)
        self.assertEqual(self.run_it("./script").returncode, 9)

    def test_wrong_usage_is_2(self):
        for args in (["run"], ["run", "--"], ["run", "--no-such", "true"], ["run", "-o"],
                     ["run", "--max-trace", "many", "true"], ["run", "--python=no", "true"],
                     ["run", "--stacks=2", "true"], ["rnu", "true"], []):
            r = subprocess.run([WHYOOM, *args], capture_output=True, text=True, cwd=self.dir)
            self.assertEqual(r.returncode, 2, args)
            self.assertIn("--help", r.stderr)
            self.assertEqual(r.stdout, "")

    def test_success_says_nothing(self):
        r = self.run_it("echo", "hello")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "hello\n", ""))


class Surroundings(Case):
    """The program sees what it would have seen without us."""

    def both(self, program, **more):
        plain = subprocess.run(program, capture_output=True, text=True, cwd=self.dir, **more)
        seen = self.run_it(*program, **more)
        self.assertEqual(seen.stdout, plain.stdout)
        self.assertEqual(seen.returncode, plain.returncode)
        return plain

    def test_descriptors(self):
        r, w = os.pipe()
        plain = self.both(["sh", "-c", "ls -l /proc/self/fd | sed 's/.* \\([0-9]* -> \\)/\\1/; "
                           "s/[0-9]*\\]//; s/fd -> .*//' | grep -v '/proc/\\|total'"],
                          pass_fds=(r, w), stdin=subprocess.DEVNULL)
        self.assertIn(f"{w} -> ", plain.stdout)
        os.close(r)
        os.close(w)

    def test_masks_dispositions_limits_and_directory(self):
        def odd():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGRTMIN})
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            os.umask(0o027)
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))

        # grep itself, not a shell, which would change some of it
        self.both(["grep", "-E", "^((Sig|Shd)(Pnd|Blk|Ign|Cgt)|Umask|Cpus_allowed:|NoNewPrivs|Seccomp:)",
                   "/proc/self/status"], preexec_fn=odd)
        self.both(["cat", "/proc/self/limits"], preexec_fn=odd)
        self.both(["pwd"])

    def test_arguments(self):
        self.both(["printf", "<%s>", "", " ", "a b", "--help", "-o", "*", "$HOME", "\n", "--"])

    def test_environment_differs_by_what_is_needed_only(self):
        env = {"PATH": os.environ["PATH"], "A": "1", "EMPTY": ""}
        r = self.run_it("env", "-0", env=env)
        got = dict(x.split("=", 1) for x in r.stdout.split("\0") if x)
        self.assertTrue(got.pop("LD_PRELOAD").endswith("/libwhyoom.so"))
        self.assertEqual(got.pop("WHYOOM_DIR"), os.path.realpath(self.out))
        self.assertRegex(got.pop("WHYOOM_TREE"), "^[1-9][0-9]*$")
        self.assertEqual(got, env)

    def test_goes_in_front_of_a_preload(self):
        env = dict(os.environ, LD_PRELOAD="libm.so.6")
        r = self.run_it("sh", "-c", "echo $LD_PRELOAD", env=env)
        self.assertRegex(r.stdout, r"^/.*/libwhyoom\.so:libm\.so\.6$")

    def test_options_become_variables(self):
        r = self.run_it("env", options=["--max-trace", "3MiB", "--no-stacks", "--quiet",
                                        "--python=off", "--no-cmdline", "--python-objects"])
        for line in ("WHYOOM_MAX_TRACE=3145728", "WHYOOM_STACKS=0", "WHYOOM_QUIET=1",
                     "WHYOOM_PYTHON=off", "WHYOOM_CMDLINE=0", "PYTHONMALLOC=malloc"):
            self.assertIn(line + "\n", r.stdout)

    def test_variables_that_name_our_pid_name_the_program(self):
        # systemd hands sockets to the process whose pid LISTEN_PID says
        script = 'export LISTEN_PID=$$; exec "$@"'
        r = subprocess.run(["sh", "-c", script, "sh", *self.command("sh", "-c", "echo $$ $LISTEN_PID")],
                           capture_output=True, text=True, cwd=self.dir)
        pid, listen = r.stdout.split()
        self.assertEqual(pid, listen)

    def test_stdin_passes_through(self):
        r = self.run_it("wc", "-c", input="x" * 100000)
        self.assertEqual(r.stdout.strip(), "100000")

    def test_does_not_hold_pipes_open(self):
        # whoever reads our stdout sees its end when the program closes it, not when it exits
        p = self.start("sh", "-c", "echo first; exec >&-; exec sleep 30")
        start = time.monotonic()
        self.assertEqual(p.stdout.read(), "first\n")
        self.assertLess(time.monotonic() - start, 10)
        p.terminate()
        p.wait()

    def test_does_not_hold_an_inherited_pipe_open(self):
        r, w = os.pipe()
        p = self.start("sh", "-c", f"exec {w}>&-; exec sleep 30", pass_fds=(w,))
        os.close(w)
        self.assertEqual(os.read(r, 1), b"")
        os.close(r)
        p.terminate()
        p.wait()

    def test_small_address_space(self):
        r = self.run_it(sys.executable, "-c", "print('ran')",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (500 << 20,) * 2))
        self.assertEqual(r.stdout, "ran\n", r.stderr)

    def test_few_descriptors(self):
        for n in range(4, 12):
            def limit():
                resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
            plain = subprocess.run(["true"], preexec_fn=limit)
            r = self.run_it("true", preexec_fn=limit)
            # either it cannot start at all and says so, or it works
            self.assertTrue(r.returncode == plain.returncode or
                            (r.returncode in (1, 126) and "whyoom" in r.stderr), (n, r))

    def test_no_more_processes_allowed(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        r = self.run_unprivileged("true", preexec_fn=limit)
        self.assertEqual(r.returncode, 126)
        self.assertIn("cannot start a process", r.stderr)


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
        """Ends the program from outside, returns what it had written."""
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
            self.assertEqual(p.stderr.read(), "")  # somebody stopped it: no verdict is due

    def test_in_the_first_moments(self):
        # to us alone and to the group, at 200 moments from before we block signals until the
        # program runs: it ends by the signal, whoever of us has it
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
                       dict(os.environ, PS1="$ ", WHYOOM_DIR="", BASH_SILENCE_DEPRECATION_WARNING="1"))
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
        with open(self.file("p.py"), "w") as f:  # one process: a shell within vfork cannot be stopped
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


class Directory(Case):
    def test_private(self):
        old = os.umask(0)
        try:
            self.run_it(sys.executable, "-c", "pass")
        finally:
            os.umask(old)
        self.assertEqual(os.stat(self.out).st_mode & 0o777, 0o700)
        for name in os.listdir(self.out):
            self.assertEqual(os.stat(os.path.join(self.out, name)).st_mode & 0o777, 0o600, name)

    def test_default_name(self):
        p = subprocess.Popen([WHYOOM, "run", "true"], cwd=self.dir)
        self.assertEqual(p.wait(), 0)
        self.assertEqual(os.listdir(self.dir), [f"whyoom.{p.pid}"])

    def test_variable_names_it(self):
        subprocess.run([WHYOOM, "run", "true"], cwd=self.dir, check=True,
                       env=dict(os.environ, WHYOOM_DIR="by-variable"))
        self.assertTrue(os.path.exists(self.file("by-variable/run.whyoom")))

    def test_tmpfs_is_refused_unless_allowed(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
            out = os.path.join(shm, "t")
            r = subprocess.run([WHYOOM, "run", "-o", out, "true"], capture_output=True, text=True)
            self.assertEqual(r.returncode, 1)
            self.assertIn("tmpfs", r.stderr)
            self.assertFalse(os.path.exists(out))
            r = subprocess.run([WHYOOM, "run", "--allow-tmpfs", "-o", out, "true"])
            self.assertEqual(r.returncode, 0)
            self.assertTrue(os.path.exists(os.path.join(out, "run.whyoom")))

    def test_current_directory_on_a_tmpfs_falls_back(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
            p = subprocess.Popen([WHYOOM, "run", "pwd"], cwd=shm, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            out, err = p.communicate()
            self.addCleanup(shutil.rmtree, f"/var/tmp/whyoom.{p.pid}", ignore_errors=True)
            self.assertEqual((p.returncode, out.strip()), (0, shm))
            self.assertIn(f"/var/tmp/whyoom.{p.pid}", err)
            self.assertEqual(os.listdir(shm), [])

    def test_a_link_is_not_followed(self):
        os.mkdir(self.file("real"))
        os.symlink("real", self.out)
        r = self.run_it("true")
        self.assertEqual(r.returncode, 1)
        self.assertEqual(os.listdir(self.file("real")), [])

    def test_a_file_or_missing_parent_is_an_error(self):
        open(self.out, "w").close()
        self.assertEqual(self.run_it("true").returncode, 1)
        r = subprocess.run([WHYOOM, "run", "-o", self.file("no/such"), "true"], capture_output=True)
        self.assertEqual(r.returncode, 1)

    def test_earlier_traces_move_aside_and_three_are_kept(self):
        for i in range(6):
            self.assertEqual(self.run_it(sys.executable, "-c", f"x = [0] * {i}").returncode, 0)
        earlier = os.path.join(self.out, "earlier")
        self.assertEqual(len(os.listdir(earlier)), 3)
        for d in os.listdir(earlier):
            self.assertIn("run.whyoom", os.listdir(os.path.join(earlier, d)))
        self.assertEqual(len([n for n in os.listdir(self.out) if n == "run.whyoom"]), 1)

    def test_foreign_files_stay(self):
        os.mkdir(self.out)
        with open(os.path.join(self.out, "notes.txt"), "w") as f:
            f.write("mine")
        with open(os.path.join(self.out, "fake.whyoom"), "w") as f:
            f.write("not a trace")
        self.run_it("true")
        self.run_it("true")
        self.assertTrue({"notes.txt", "fake.whyoom"} <= set(os.listdir(self.out)))

    def test_a_killed_run_is_reported_at_the_next_start(self):
        p = self.start(sys.executable, "-c",
                       "import time\nx = bytearray(30 << 20)\nprint('up', flush=True)\ntime.sleep(30)",
                       start_new_session=True)
        self.assertEqual(p.stdout.readline(), "up\n")
        os.killpg(p.pid, signal.SIGKILL)  # everything at once, as a container dies
        p.wait()
        r = self.run_it("echo", "next")
        self.assertEqual((r.returncode, r.stdout), (0, "next\n"))
        self.assertIn("was killed", r.stderr)
        self.assertIn(os.path.join(self.out, "earlier"), r.stderr)
        self.assertEqual(self.run_it("echo", "third").stderr, "")  # once

    def test_in_use_by_another_run(self):
        p = self.start("sleep", "30")
        self.assertTrue(until(lambda: os.path.exists(os.path.join(self.out, "run.whyoom"))))
        r = self.run_it("true")
        self.assertEqual(r.returncode, 1)
        self.assertIn("another", r.stderr)
        p.terminate()
        p.wait()

    def test_a_run_inside_a_run(self):
        r = self.run_it("sh", "-c", f"{WHYOOM} run sh -c 'exit 3'; echo inner $?")
        self.assertEqual((r.returncode, r.stdout), (0, "inner 3\n"))

    def test_disk_full(self):
        if os.getuid() != 0:
            self.skipTest("needs root to mount a small file system")
        image, mount = self.file("image"), self.file("small")
        os.mkdir(mount)
        with open(image, "wb") as f:
            f.truncate(1 << 20)
        mkfs = shutil.which("mkfs.ext2") or "/sbin/mkfs.ext2"
        if not os.path.exists(mkfs) or subprocess.run([mkfs, "-q", "-F", image]).returncode or \
           subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True).returncode:
            self.skipTest("no small file system can be mounted here")
        try:
            try:
                with open(os.path.join(mount, "fill"), "wb", buffering=0) as f:
                    while f.write(b"x" * 4096):
                        pass
            except OSError:
                pass
            r = subprocess.run([WHYOOM, "run", "-o", os.path.join(mount, "t"), "sh", "-c",
                                "echo ran; exit 4"], capture_output=True, text=True)
            # the directory may or may not have found room; the program's result is its own
            self.assertIn(r.returncode, (1, 4), r.stderr)
            if r.returncode == 4:
                self.assertEqual(r.stdout, "ran\n")
            self.assertIn("whyoom", r.stderr)
        finally:
            subprocess.run(["umount", mount])

    def test_file_size_limit(self):
        r = self.run_it("sh", "-c", "echo ran; exit 4",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual((r.returncode, r.stdout), (4, "ran\n"), r.stderr)

    def test_read_only_directory_without_rights(self):
        os.mkdir(self.file("closed"), 0o555)
        self.out = self.file("closed/traces")
        r = self.run_unprivileged("true")
        self.assertEqual(r.returncode, 1)
        self.assertIn("closed/traces", r.stderr)
        os.chmod(self.file("closed"), 0o755)


class Watching(Case):
    def check(self):
        r = subprocess.run([WHYOOM, "check", "--format", "json", self.out], capture_output=True,
                           text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def supervisor(self):
        """Events of run.whyoom, read here from the format's description."""
        with open(os.path.join(self.out, "run.whyoom"), "rb") as f:
            data = f.read()
        self.assertEqual(data[:8], b"WHYOOMT\n")
        events, at = [], 65536
        while at + 64 <= len(data):
            head = data[at:at + 64]
            self.assertEqual(head[:4], b"Chnk")
            kind = int.from_bytes(head[4:6], "little")
            size = int.from_bytes(head[8:12], "little")
            committed = int.from_bytes(head[40:44], "little")
            p, end = at + 64, at + 64 + committed
            if kind == 1:
                time_ns = int.from_bytes(head[24:32], "little")
                while p < end:
                    def varint():
                        nonlocal p
                        value = shift = 0
                        while True:
                            value |= (data[p] & 127) << shift
                            shift += 7
                            p += 1
                            if data[p - 1] < 128:
                                return value
                    self.assertEqual(data[p], 15)
                    p += 1
                    number, length = varint(), varint()
                    stop = p + length
                    time_ns += varint()
                    fields = []
                    while p < stop:
                        fields.append(varint())
                    events.append((time_ns, number, fields))
                self.assertEqual(p, end)
            at += size
        return data, events

    def levels(self, events, number):
        for t, n, f in events:
            if n == number:
                yield t, f[0], dict(zip(f[2::2], f[3::2]))

    def test_growth_is_seen_from_outside(self):
        self.run_it(sys.executable, "-c",
                    "import time\nkeep = []\nfor i in range(12):\n"
                    "    keep.append(bytearray(b'x') * (8 << 20))\n    time.sleep(0.05)")
        data, events = self.supervisor()
        rss = [v[1] for _, _, v in self.levels(events, 23) if 1 in v]
        self.assertGreater(max(rss) - min(rss), 50 << 20)
        self.assertGreaterEqual(len(rss), 4)
        self.assertTrue(any(7 in v for _, _, v in self.levels(events, 23)))   # PSS
        virt = [v for _, _, v in self.levels(events, 23) if 17 in v]
        self.assertTrue(virt)
        for v in virt:  # the parts add up to the whole, but for what moved between two readings
            parts = sum(v.get(k, 0) for k in (16, 17, 18, 19, 20))
            self.assertLess(abs(parts - v[5]), 16 << 20)

    def test_the_end_is_recorded(self):
        self.run_it("sh", "-c", "exit 3")
        _, events = self.supervisor()
        self.assertEqual([(f[1], f[2], f[3]) for _, n, f in events if n == 29], [(1, 3, 1)])
        self.run_it("sh", "-c", "kill -9 $$")
        _, events = self.supervisor()
        self.assertEqual([(f[1], f[2], f[3]) for _, n, f in events if n == 29], [(2, 9, 1)])

    def test_the_file_is_sealed_and_says_the_exit(self):
        self.run_it("sh", "-c", "exit 3")
        data, _ = self.supervisor()
        self.assertEqual(int.from_bytes(data[112:116], "little"), 1)
        self.assertEqual(int.from_bytes(data[116:120], "little"), 3)

    def test_sigkill_of_everything_loses_no_sample(self):
        p = self.start(sys.executable, "-c",
                       "import time\nprint('up', flush=True)\nkeep = []\n"
                       "while True:\n    keep.append(bytearray(b'x') * (4 << 20))\n    time.sleep(0.02)",
                       start_new_session=True)
        p.stdout.readline()
        time.sleep(1.2)
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        data, events = self.supervisor()
        self.assertEqual(int.from_bytes(data[112:116], "little"), 0)
        last = max(t for t, _, _ in events)
        self.assertLess(killed - last, 1e9)  # a sample each 25 to 100 ms, on a busy machine
        self.assertGreater(len(list(self.levels(events, 23))), 5)
        self.assertEqual(self.check()["processes"][0]["torn_chunks"], 0)

    def test_descendants_are_seen_also_after_their_parent_left(self):
        self.run_it("sh", "-c", "(sleep 1.5 & echo $! > grandchild); sleep 1.2")
        pid = int(self.read("grandchild"))
        _, events = self.supervisor()
        self.assertIn(pid, {who for _, who, _ in self.levels(events, 23)})

    def test_those_that_leave_no_trace_are_named(self):
        r = self.run_it("sh", "-c", "env -u LD_PRELOAD sleep 2.5; exit 0")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for command in ("check", "report"):
            said = subprocess.run([WHYOOM, command, self.out], capture_output=True, text=True)
            self.assertRegex(" ".join(said.stdout.split()),
                             r"1 process left no trace .*: sleep \([0-9]+\)", said.stderr)

    def test_returns_when_the_program_does_not_its_daemons(self):
        start = time.monotonic()
        self.assertEqual(self.run_it("sh", "-c", "setsid sleep 20 >/dev/null 2>&1 </dev/null & exit 6")
                         .returncode, 6)
        self.assertLess(time.monotonic() - start, 5)

    def test_counters_of_the_cgroup_at_start_and_end(self):
        self.run_it("true")
        _, events = self.supervisor()
        groups = [v for _, _, v in self.levels(events, 22)]
        self.assertIn(56, groups[0])  # the machine's memory, everywhere
        if 49 in groups[0]:
            self.assertEqual(groups[0][49], groups[-1][49])
            self.assertIn(32, groups[-1])  # what others have in the cgroup that it has left

    def test_death_by_the_oom_killer(self):
        mine = [line.split(":", 2) for line in open("/proc/self/cgroup").read().splitlines()]
        v1 = [p for _, c, p in mine if "memory" in c.split(",")]
        top = "/sys/fs/cgroup/memory" + v1[0] if v1 else "/sys/fs/cgroup" + mine[0][2]
        group = os.path.join(top, f"whyoom-test-{os.getpid()}")
        try:
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
            with open(os.path.join(group, "memory.limit_in_bytes" if v1 else "memory.max"), "w") as f:
                f.write("100M")
        except OSError as e:
            # without the right to make cgroups: SIGKILL as the OOM killer sends it is tested above
            print(f"note: no cgroup can be made here ({e})")
            return

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))

        r = self.run_it(sys.executable, "-c",
                        "import time\nx = []\nwhile True:\n    x.append(b'x' * (1 << 20))\n"
                        "    time.sleep(0.01)", preexec_fn=enter)
        self.assertEqual(r.returncode, 137)
        self.assertIn("killed by SIGKILL", r.stderr)
        self.assertIn("cgroup", r.stderr)
        _, events = self.supervisor()
        groups = [v for _, _, v in self.levels(events, 22)]
        self.assertEqual(groups[-1][49], groups[0][49] + 1)
        used = [v[32] for v in groups if 32 in v]
        self.assertGreater(max(used), 60 << 20)

    def test_costs_little(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run_it("sleep", "3", options=["--off"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertLess(cpu, 0.3)


class Verdict(Case):
    GROW = "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n"

    def limited(self):
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    def test_after_a_failure_in_at_most_ten_lines(self):
        r = self.run_it(sys.executable, "-c", self.GROW, preexec_fn=self.limited)
        self.assertEqual(r.returncode, 1)
        head, _, tail = r.stderr.partition("MemoryError\n")
        self.assertIn("whyoom", tail)
        self.assertIn(self.out, tail)
        self.assertLessEqual(len(tail.splitlines()), 10, tail)

    def test_a_request_that_failed_counts_even_when_the_exit_is_clean(self):
        r = self.run_it(sys.executable, "-c",
                        f"try:\n    exec({self.GROW!r})\nexcept MemoryError:\n    pass\n",
                        preexec_fn=self.limited)
        self.assertEqual(r.returncode, 0)
        self.assertIn("whyoom", r.stderr)

    def test_an_ordinary_error_is_not_our_business(self):
        r = self.run_it("sh", "-c", "echo mine >&2; exit 1")
        self.assertEqual((r.returncode, r.stderr), (1, "mine\n"))

    def test_quiet(self):
        r = self.run_it(sys.executable, "-c", self.GROW, preexec_fn=self.limited, options=["--quiet"])
        self.assertNotIn("whyoom", r.stderr)


class Visibility(Case):
    def build(self, text, *args):
        cc = shutil.which("cc")
        if not cc:
            self.skipTest("no C compiler")
        with open(self.file("p.c"), "w") as f:
            f.write(text)
        r = subprocess.run([cc, "-o", self.file("p"), self.file("p.c"), *args], capture_output=True)
        if r.returncode:
            self.skipTest("cannot build it: " + r.stderr.decode(errors="replace")[:200])
        return "./p"

    def test_static_program_warns_and_runs(self):
        p = self.build("#include <stdio.h>\nint main(){puts(\"static\");return 8;}", "-static")
        r = self.run_it(p)
        self.assertEqual((r.returncode, r.stdout), (8, "static\n"))
        self.assertIn("statically linked", r.stderr)

    def test_sanitized_programs_run(self):
        for sanitizer in ("address", "thread"):
            p = self.build("#include <stdio.h>\nint main(){puts(\"sane\");return 8;}",
                           "-fsanitize=" + sanitizer)
            r = self.run_it(p)
            self.assertEqual((r.returncode, r.stdout), (8, "sane\n"), r.stderr)
            self.assertIn("sanitizer", r.stderr)

    def test_programs_with_a_sanitizer_inside_run(self):
        """clang links the runtime statically: there is no library to see."""
        for sanitizer in ("address", "thread"):
            with open(self.file("p.c"), "w") as f:
                f.write("#include <stdio.h>\nint main(){puts(\"sane\");return 8;}")
            r = subprocess.run(["clang", "-fsanitize=" + sanitizer, "-o", "p", "p.c"], cwd=self.dir,
                               capture_output=True) if shutil.which("clang") else None
            if not r or r.returncode:
                self.skipTest("no clang that has it")
            r = self.run_it("./p")
            self.assertEqual((r.returncode, r.stdout), (8, "sane\n"), r.stderr)
            self.assertIn("sanitizer", r.stderr)

    def test_musl_program_runs(self):
        p = self.build("int main(){return 8;}", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        r = self.run_it(p)
        self.assertIn("musl", r.stderr)
        self.assertIn(r.returncode, (8, 127))  # without musl the loader is missing

    def test_other_machine_is_left_to_exec(self):
        with open("/bin/true", "rb") as f:
            data = bytearray(f.read())
        data[18:20] = b"\x16\x00"  # EM_S390
        with open(self.file("p"), "wb") as f:
            f.write(data)
        os.chmod(self.file("p"), 0o755)
        plain = subprocess.run(["sh", "-c", "./p"], cwd=self.dir, capture_output=True).returncode
        self.assertIn(self.run_it("./p").returncode, (plain, 126, 127))

    def test_setuid_program_warns(self):
        if os.getuid() != 0:
            self.skipTest("needs root to make one")
        shutil.copy("/bin/true", self.file("p"))
        os.chown(self.file("p"), 1, 1)
        os.chmod(self.file("p"), 0o4755)
        r = self.run_it("./p")
        self.assertEqual(r.returncode, 0)
        self.assertIn("changes its user", r.stderr)


class Init(Case):
    """As PID 1 of a pid namespace, as in a container."""

    def setUp(self):
        super().setUp()
        self.unshare = ["unshare", "-pf", "--mount-proc"]
        if os.getuid() != 0:
            self.unshare = ["unshare", "-Urpf", "--mount-proc"]
        if subprocess.run([*self.unshare, "true"], capture_output=True).returncode:
            self.skipTest("no pid namespaces here")

    def inside(self, *program, **more):
        return subprocess.run([*self.unshare, *self.command(*program)], capture_output=True,
                              text=True, cwd=self.dir, timeout=60, **more)

    def test_exit_status(self):
        self.assertEqual(self.inside("sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.inside("sh", "-c", "kill -9 $$").returncode, 137)

    def test_orphans_are_reaped(self):
        script = ("for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &) ; done; sleep 0.6; "
                  "ps -eo stat= | grep -c Z || true")
        self.assertEqual(self.inside("sh", "-c", script).stdout.strip(), "0")

    def test_term_reaches_the_program(self):
        p = subprocess.Popen([*self.unshare, *self.command(
            "sh", "-c", "trap 'echo term; exit 9' TERM; echo up; while :; do sleep 0.1; done")],
            stdout=subprocess.PIPE, text=True, cwd=self.dir)
        self.assertEqual(p.stdout.readline(), "up\n")
        kid = int(subprocess.run(["ps", "-o", "pid=", "--ppid", str(p.pid)], capture_output=True,
                                 text=True).stdout)
        os.kill(kid, signal.SIGTERM)
        self.assertEqual(p.communicate(timeout=20)[0], "term\n")
        self.assertEqual(p.returncode, 9)

    def test_restart_after_a_kill_reports(self):
        p = subprocess.Popen([*self.unshare, *self.command(
            sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")],
            stdout=subprocess.PIPE, text=True, cwd=self.dir)
        self.assertEqual(p.stdout.readline(), "up\n")
        kid = int(subprocess.run(["ps", "-o", "pid=", "--ppid", str(p.pid)], capture_output=True,
                                 text=True).stdout)
        os.kill(kid, signal.SIGKILL)  # PID 1: the whole namespace goes
        p.communicate(timeout=20)
        r = self.inside("echo", "again")  # the same pids again
        self.assertEqual((r.returncode, r.stdout), (0, "again\n"))
        self.assertIn("was killed", r.stderr)


if __name__ == "__main__":
    unittest.main()
