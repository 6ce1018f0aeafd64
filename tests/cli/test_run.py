"""`whyoom run` from outside: it exits as its program does, leaves the program's surroundings as
they were, and maintains its directory.

WHYOOM_EXE names the program under test. Needs only Python; run by pytest or unittest."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from running import WHYOOM, Case, until


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
    """The program sees the same environment as without whyoom."""

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
        self.both(["grep", "-E",
                   "^((Sig|Shd)(Pnd|Blk|Ign|Cgt)|Umask|Cpus_allowed:|NoNewPrivs|Seccomp:)",
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
        # systemd hands sockets to the process whose pid is LISTEN_PID
        script = 'export LISTEN_PID=$$; exec "$@"'
        r = subprocess.run(["sh", "-c", script, "sh",
                            *self.command("sh", "-c", "echo $$ $LISTEN_PID")],
                           capture_output=True, text=True, cwd=self.dir)
        pid, listen = r.stdout.split()
        self.assertEqual(pid, listen)

    def test_stdin_passes_through(self):
        r = self.run_it("wc", "-c", input="x" * 100000)
        self.assertEqual(r.stdout.strip(), "100000")

    def test_does_not_hold_pipes_open(self):
        # a reader of our stdout sees its end when the program closes it, not when it exits
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
            # either it cannot start and reports that, or it works
            self.assertTrue(r.returncode == plain.returncode or
                            (r.returncode in (1, 126) and "whyoom" in r.stderr), (n, r))

    def test_no_more_processes_allowed(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        r = self.run_unprivileged("true", preexec_fn=limit)
        self.assertEqual(r.returncode, 126)
        self.assertIn("cannot start a process", r.stderr)


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
                       "import time\nx = bytearray(30 << 20)\nprint('up', "
                       "flush=True)\ntime.sleep(30)",
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
        r = self.run_it(sys.executable, "-c", self.GROW, preexec_fn=self.limited,
                        options=["--quiet"])
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
