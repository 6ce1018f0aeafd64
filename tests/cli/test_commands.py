"""Rules for every command: help, versions, suggestions, and an error if a result could not be
written."""

import os
import subprocess
import unittest

WHYOOM = os.environ["WHYOOM_EXE"]


def whyoom(*args, **more):
    return subprocess.run([WHYOOM, *args], capture_output=True, text=True, timeout=60, **more)


def commands():
    text = whyoom("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in text.splitlines()]


class Commands(unittest.TestCase):
    def test_help_lists_what_exists(self):
        self.assertLessEqual({"run", "report", "sites", "check"}, set(commands()))

    def test_each_has_help(self):
        for name in commands():
            for args in ([name, "--help"], [name, "-h"], ["help", name]):
                r = whyoom(*args)
                self.assertEqual((r.returncode, r.stderr), (0, ""), args)
                self.assertTrue(r.stdout.startswith(f"Usage: whyoom {name} "), args)
                for line in r.stdout.splitlines():
                    self.assertLessEqual(len(line), 100, line)

    def test_nothing_is_wrong_usage(self):
        r = whyoom()
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("Commands:", r.stderr)

    def test_unknown(self):
        for word, meant in (("rnu", "run"), ("reprot", "report"), ("chek", "check"),
                            ("site", "sites")):
            r = whyoom(word)
            self.assertEqual(r.returncode, 2)
            self.assertIn(f"did you mean '{meant}'", r.stderr)
        r = whyoom("zzzzzz")
        self.assertEqual(r.returncode, 2)
        self.assertNotIn("did you mean", r.stderr)
        self.assertEqual(whyoom("--no-such").returncode, 2)
        for name in commands():
            self.assertEqual(whyoom(name, "--no-such-option").returncode, 2, name)

    def test_version(self):
        self.assertRegex(whyoom("--version").stdout, r"^whyoom \d+\.\d+\.\d+\n$")

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([WHYOOM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 1)
        self.assertIn("No space left", r.stderr)

    def test_missing_trace_is_an_error(self):
        for name in commands():
            if name in ("run", "doctor", "attach", "detach"):  # of a program or a process
                continue
            traces = 2 if name == "diff" else 1
            words = ["collect"] if name == "fleet" else []
            r = whyoom(name, *words, *["/no/such/trace"] * traces)
            self.assertEqual((r.returncode, r.stdout), (1, ""), name)
            self.assertIn("/no/such/trace", r.stderr)
            if name != "explain":  # which reads standard input
                self.assertEqual(whyoom(name).returncode, 2, name)


if __name__ == "__main__":
    unittest.main()
