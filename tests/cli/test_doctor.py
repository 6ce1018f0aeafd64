"""Will it work here? `whyoom doctor` finds each obstacle that a test can make, says the way out,
and its exit status says what follows."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import jsonschema

WHYOOM = pathlib.Path(os.environ["WHYOOM_EXE"])
BUILD = WHYOOM.parent.parent.parent
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((BUILD / "analyzer/report/doctor-schema.json").read_text())
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
ROOT = os.getuid() == 0
STATUS = {"yes": 0, "with limits": 3, "no": 1}
NOBODY = 65534


def compile_c(path, *flags, compiler="gcc", text="int main(void) { return 0; }"):
    subprocess.run([compiler, "-x", "c", "-", "-o", path, *flags], input=text, text=True,
                   check=True)
    return path


class Doctor(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="whyoom-doctor-", dir=DISK))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def doctor(self, *args, exe=WHYOOM, before=None, **env):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("WHYOOM_") and k != "LD_PRELOAD"}
        r = subprocess.run([exe, "doctor", "--format", "json", *args], capture_output=True,
                           text=True, timeout=60, cwd=self.dir, preexec_fn=before,
                           env={**clean, **env})
        self.assertEqual(r.stderr, "")
        answer = json.loads(r.stdout)
        jsonschema.Draft202012Validator(SCHEMA).validate(answer)
        self.assertEqual(r.returncode, STATUS[answer["works"]])
        worst = {c["status"] for c in answer["checks"]}
        self.assertEqual(answer["works"], "no" if "fail" in worst else
                         "with limits" if "warn" in worst else "yes")
        for c in answer["checks"]:
            if c["status"] != "ok":
                self.assertTrue(c["way_out"] or c["check"] == "trial", c)
        self.assertEqual([p for p in os.listdir(self.dir) if "whyoom.doctor" in p], [])
        return answer

    def check(self, answer, name, status, fact):
        found = {c["check"]: c for c in answer["checks"]}
        self.assertIn(name, found)
        self.assertEqual(found[name]["status"], status, found[name])
        self.assertRegex(found[name]["fact"], fact)
        if status == "fail":
            self.assertEqual(answer["works"], "no")
            self.assertTrue(answer["summary"].startswith("whyoom will not work here: "))
        return found[name]

    def fails(self, program, words):
        """That program cannot be recorded, and `whyoom run` says the same."""
        answer = self.doctor("--", program)
        self.check(answer, "program", "fail", words)
        self.assertIn(os.path.basename(program), answer["summary"])
        r = subprocess.run([WHYOOM, "run", "-o", self.dir / "run", "--", program],
                           capture_output=True, text=True, timeout=60)
        self.assertRegex(r.stderr, words)

    def test_here(self):
        answer = self.doctor()
        self.assertIsNone(answer["program"])
        self.assertNotEqual(answer["works"], "no", answer)
        self.check(answer, "trial", "ok", r"/bin/sh was recorded: [\d,]+ events")
        self.check(answer, "library", "ok", r"libwhyoom\.so$")
        self.check(answer, "libc", "ok", r"^glibc 2\.\d+$")
        self.check(answer, "cgroup", "ok", r"version [12]") if os.path.exists(
            "/sys/fs/cgroup/cgroup.controllers") else None
        names = [c["check"] for c in answer["checks"]]
        self.assertEqual(len(names), len(set(names)))

    def test_every_check_is_in_the_manual(self):
        page = (TOP / "analyzer/man/whyoom-doctor.1").read_text()
        listed = set(re.findall(r"^\.It ([a-z]+)$", page, re.M))
        answer = self.doctor("--", "/usr/bin/python3", WHYOOM_OFF="1")
        self.assertEqual({c["check"] for c in answer["checks"]}, listed)

    def test_text_says_the_same(self):
        r = subprocess.run([WHYOOM, "doctor", "--", "/no/such"], capture_output=True, text=True,
                           cwd=self.dir, env={**os.environ, "COLUMNS": "90"})
        lines = r.stdout.splitlines()
        self.assertEqual(lines[0], "whyoom will not work here: cannot run '/no/such': No such file "
                         "or directory")
        self.assertRegex(lines[1], r"^  fail  program +cannot run")
        self.assertRegex(lines[2], r"^ {18}(→|>) is its name right")
        self.assertLessEqual(max(map(len, lines)), 96)
        self.assertEqual(r.returncode, 1)

    def test_wrong_usage(self):
        r = subprocess.run([WHYOOM, "doctor", "--nonsense"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 2)

    def test_resolves_as_run_does(self):
        script = self.dir / "server"
        script.write_text("#!/usr/bin/env python3\n")
        script.chmod(0o755)
        for command in (["python3"], ["/usr/bin/env", "-u", "X", "A=b", "python3", "x.py"],
                        [script]):
            answer = self.doctor("--", *command, PATH="/usr/bin:/bin")
            self.check(answer, "program", "ok", r"python3\S* is linked dynamically")
            self.check(answer, "python", "ok", r"CPython 3\.\d+: its frames are recorded")

    def test_programs_that_cannot_be_recorded(self):
        self.fails(compile_c(self.dir / "static", "-static"), "statically linked")
        self.fails(compile_c(self.dir / "asan", "-fsanitize=address"), "sanitizer")
        wide = bytearray((self.dir / "static").read_bytes())
        wide[4] = 1  # ELFCLASS32
        (self.dir / "narrow").write_bytes(wide)
        (self.dir / "narrow").chmod(0o755)
        self.check(self.doctor("--", self.dir / "narrow"), "program", "fail", "another kind")

    @unittest.skipUnless(shutil.which("musl-gcc"), "needs musl-gcc")
    def test_musl(self):
        self.fails(compile_c(self.dir / "musl", compiler="musl-gcc"), "musl")

    @unittest.skipUnless(ROOT, "needs root to give a file away")
    def test_other_rights(self):
        program = compile_c(self.dir / "setuid")
        os.chown(program, NOBODY, NOBODY)
        program.chmod(0o4755)
        self.fails(program, "changes its user")
        program.chmod(0o2755)
        self.fails(program, "changes its user")
        program.chmod(0o755)
        self.check(self.doctor("--", program), "program", "ok", "dynamically")
        # Capabilities of the file: for whoever is not root, as root has them all.
        os.setxattr(program, "security.capability",
                    bytes.fromhex("0100000200200000000000000000000000000000"))
        self.check(self.doctor("--", program), "program", "ok", "dynamically")
        self.dir.chmod(0o777)
        answer = self.doctor("--", program, before=lambda: os.setuid(NOBODY))
        self.check(answer, "program", "fail", "capabilities")

    def test_pythons(self):
        """The versions that are said to be recorded are those that the recorder knows."""
        abi = (TOP / "shim/python/python_abi.c").read_text()
        known = {int(m) for m in re.findall(r"\.minor = (\d+), \.tested = true", abi)}
        self.assertIn(11, known)
        folder = self.dir / "bin"
        folder.mkdir()
        for minor in range(6, 18):
            shutil.copy("/bin/true", folder / f"python3.{minor}")
            answer = self.doctor("--", f"python3.{minor}", PATH=str(folder))
            self.check(answer, "python", "ok" if minor in known else "warn",
                       f"CPython 3.{minor}:")
        shutil.copy("/bin/true", folder / "python3.13t")
        answer = self.doctor("--", "python3.13t", PATH=str(folder))
        self.check(answer, "python", "warn", "free threading")
        answer = self.doctor(PATH=str(folder))
        said = self.check(answer, "python", "ok", r"3\.8, 3\.9, 3\.10")["fact"]
        self.assertIn("; native stacks only: 3.6, 3.7, ", said)
        self.assertIn("3.13 (free threading)", said)

    def test_without_the_library(self):
        alone = self.dir / "alone"
        alone.mkdir()
        shutil.copy(WHYOOM, alone / "whyoom")
        answer = self.doctor(exe=alone / "whyoom")
        self.check(answer, "library", "fail", "libwhyoom.so is missing")

    def test_library_that_does_not_load(self):
        place = self.dir / "place"
        (place / "bin").mkdir(parents=True)
        (place / "lib").mkdir()
        shutil.copy(WHYOOM, place / "bin/whyoom")
        (place / "lib/libwhyoom.so").write_bytes(b"\x7fELF" + bytes(600))
        answer = self.doctor(exe=place / "bin/whyoom")
        self.check(answer, "trial", "fail", "could not be recorded: .*cannot be preloaded")

    def test_directories(self):
        here = self.dir / "not" / "yet"
        self.check(self.doctor("--dir", here), "disk", "fail", "cannot be written")
        self.check(self.doctor("--dir", here.parent), "disk", "ok", re.escape(str(self.dir)))
        self.assertFalse(here.parent.exists())
        self.check(self.doctor(WHYOOM_DIR=str(here)), "disk", "fail", "cannot be written")
        (self.dir / "file").write_text("")
        self.check(self.doctor("--dir", self.dir / "file"), "disk", "fail", "Not a directory")

    @unittest.skipUnless(os.path.ismount("/dev/shm"), "needs a tmpfs")
    def test_tmpfs(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            answer = self.doctor("--dir", memory)
            found = self.check(answer, "disk", "fail", "is on a tmpfs")
            self.assertIn("--allow-tmpfs", found["way_out"])
            r = subprocess.run([WHYOOM, "run", "-o", memory, "--", "true"], capture_output=True)
            self.assertEqual(r.returncode, 1)
            self.doctor("--dir", memory, "--allow-tmpfs")
            self.assertEqual(os.listdir(memory), [])

    @unittest.skipUnless(ROOT, "needs root to leave it")
    def test_directory_of_another_user(self):
        self.dir.chmod(0o755)
        answer = self.doctor("--dir", self.dir, before=lambda: os.setuid(NOBODY))
        self.check(answer, "disk", "fail", "Permission denied")

    def test_limits(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        answer = self.doctor(before=lower)
        self.check(answer, "limits", "warn", "RLIMIT_DATA: 1.00 GiB, RLIMIT_FSIZE: 16.0 MiB")
        self.assertEqual(answer["works"], "with limits")
        self.assertIn("limits", answer["summary"])

    def test_small_environment(self):
        r = subprocess.run([WHYOOM, "doctor", "--dir", self.dir], capture_output=True, text=True,
                           env={})
        self.assertRegex(r.stdout, r"ok +trial +/bin/sh was recorded")

    def test_switched_off(self):
        answer = self.doctor(WHYOOM_OFF="1")
        self.check(answer, "switch", "warn", "nothing is recorded")
        self.check(answer, "trial", "ok", "was recorded")

    def test_another_preload(self):
        library = compile_c(self.dir / "libother.so", "-shared", "-fPIC", text="int other;")
        answer = self.doctor(LD_PRELOAD=str(library))
        self.check(answer, "preload", "ok", "libother.so, and whyoom goes in front")
        self.check(answer, "trial", "ok", "was recorded")

    def test_leaves_traces_alone(self):
        subprocess.run([WHYOOM, "run", "-o", "traces", "--", "true"], cwd=self.dir, check=True)
        before = sorted(p.name for p in (self.dir / "traces").iterdir())
        self.doctor("--dir", "traces")
        self.assertEqual(sorted(p.name for p in (self.dir / "traces").iterdir()), before)


if __name__ == "__main__":
    unittest.main()
