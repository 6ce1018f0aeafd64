#!/usr/bin/env python3
"""Two readers, one format: the analyzer and read.py must agree on the golden traces, on their kept
true contents, and on a fresh trace of the real library.

test_golden.py WHYOOM DUMP [LIBWHYOOM CHURN]"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from checks import unsound

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE.parent / "scenarios"), str(HERE.parent / "scenarios" / "lib")]
from consistent import contradictions  # noqa: E402

WHYOOM, DUMP = sys.argv[1:3] if len(sys.argv) > 2 else (None, None)
LIBRARY, CHURN = sys.argv[3:5] if len(sys.argv) > 4 else (None, None)
COMMON = ("pid", "events", "dropped", "torn_chunks", "bad_checksums", "unknown_records", "repairs",
          "unmatched_frees", "double_allocs", "marks", "tasks", "stacks")


def run(*command, **options):
    """Exit status 1 of `whyoom check` means a damaged trace, whose content it still tells."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, timeout=120,
                          **options)
    assert done.returncode in ((0, 1) if "check" in command else (0,)), (command, done.returncode)
    return done.stdout


def reader(*arguments):
    return run(sys.executable, HERE / "read.py", *arguments)


def essence(process):
    out = {key: process[key] for key in COMMON}
    out["threads"] = sorted((t["tid"], t["allocs"], t["frees"]) for t in process["threads"])
    # The second reader follows the host's blocks; tests/cli/test_devices.py has the other spaces.
    out["spaces"] = [{k: s[k] for k in ("space", "allocs", "frees", "live_blocks", "live_bytes",
                                             "most_live_blocks")}
                     for s in process["spaces"] if s["space"] == "host"]
    return out


def checks(text):
    return {os.path.basename(p["trace"]): essence(p) for p in json.loads(text)["processes"]}


class Agreement(unittest.TestCase):
    maxDiff = 4000

    def agree(self, folder):
        mine, other = run(WHYOOM, "check", "--format", "json", folder), reader(folder)
        self.assertEqual(checks(mine), checks(other))
        for path in sorted(pathlib.Path(folder).glob("**/*.whyoom")):
            self.events(run(DUMP, "events", path), reader("--events", path))
            stacks = [sorted(text.split("\n\n")) for text in
                      (run(DUMP, "stacks", path), reader("--stacks", path))]
            self.assertEqual(*stacks)
        return checks(mine)

    def events(self, mine, other):
        mine, other = mine.splitlines(), other.splitlines()
        self.assertEqual(len(mine), len(other))
        for a, b in zip(mine, other):
            ns_a, rest_a = a.split(" ", 1)
            ns_b, rest_b = b.split(" ", 1)
            self.assertEqual(rest_a, rest_b)
            # One rounds a rate, the other each time.
            self.assertLessEqual(abs(int(ns_a) - int(ns_b)), 2 + (int(ns_b) >> 30), (a, b))

    def test_goldens(self):
        folders = sorted(p for p in HERE.glob("v*/*") if p.is_dir())
        self.assertGreaterEqual(len(folders), 3)
        for folder in folders:
            with self.subTest(golden=folder.name):
                found = self.agree(folder)
                expected = json.loads((folder.parent / f"{folder.name}.json").read_text())
                self.assertEqual(json.loads(json.dumps(found)), expected)

    def test_no_contradiction(self):
        """No report of a golden trace says something against itself."""
        for folder in sorted(p for p in HERE.glob("v*/*") if p.is_dir()):
            with self.subTest(golden=folder.name):
                answer = json.loads(run(WHYOOM, "report", "--format", "json", folder))
                self.assertEqual(contradictions(answer), [])

    def test_checkpoints(self):
        """Both tell alike which chunks a checkpoint replaced; a damaged trace is not whole."""
        for name, number, damaged in (("checkpoint", 2, 0), ("unwhole", 4, 5)):
            folder = HERE / "v2" / name
            done = subprocess.run([WHYOOM, "check", "--format", "json", folder],
                                  stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1 if damaged else 0)
            mine, other = (json.loads(text)["processes"] for text in (done.stdout, reader(folder)))
            for one, two in zip(mine, other):
                one["checkpoint"].pop("until_seconds")
                keys = "checkpoint", "paused_bytes", "brief_stacks", "untold"
                self.assertEqual([one[k] for k in keys], [two[k] for k in keys])
                self.assertEqual(one["whole"], not one["checkpoint"]["damaged"])
            self.assertEqual((mine[0]["checkpoint"]["number"], mine[0]["checkpoint"]["damaged"]),
                             (number, damaged))

    def test_rights(self):
        """The rights given up, whether that ended the recording, and the number of children without
        a trace."""
        text = run(WHYOOM, "check", "--format", "json", HERE / "v2" / "rights")
        mine, other = (json.loads(x)["processes"] for x in (text, reader(HERE / "v2" / "rights")))
        self.assertEqual([p["pid"] for p in mine], [4711, 4712])
        for one, two in zip(mine, other):
            r = one["rights"]
            self.assertEqual({"given_up": sorted(r["given_up_seconds"]),
                              "stopped": r["stopped_seconds"] > 0,
                              "children": r["children"], "reason": r["reason"]}, two["rights"])
        self.assertEqual((mine[0]["dropped_by"], mine[0]["rights"]["reason"]),
                         ({"rights": 321}, "seccomp"))
        self.assertEqual(mine[1]["rights"]["reason"], None)

    def test_unrecorded(self):
        folder = HERE / "v2" / "unrecorded"
        mine, other = (json.loads(text)["processes"][0] for text in
                       (run(WHYOOM, "check", "--format", "json", folder), reader(folder)))
        for key in ("unrecorded", "unrecorded_programs"):
            self.assertEqual(mine[key], other[key])
        self.assertEqual((mine["unrecorded"], len(mine["unrecorded_programs"])), (12, 9))
        text = run(WHYOOM, "check", folder)
        self.assertRegex(text, r"unrecorded +/")
        self.assertIn("/usr/local/bin/musl (linked with musl, started 2 times)",
                      " ".join(text.split()))
        self.assertIn("/usr/local/bin/musl (linked with musl, started 2 times)",
                      " ".join(run(WHYOOM, "report", folder).split()))

    def test_how_the_killed_one_ended(self):
        """The supervisor's file tells the end that the killed process could not record."""
        text = run(WHYOOM, "check", "--format", "json", HERE / "v1" / "killed")
        ends = {p["pid"]: p["end"] for p in json.loads(text)["processes"]}
        self.assertEqual(ends[200], {"how": "signal", "code": 9})
        self.assertEqual(ends[201], {"how": "unknown"})

    @unittest.skipUnless(LIBRARY, "no recording library in this build")
    def test_fresh_trace(self):
        # Beside this script: /tmp may be memory, where the library writes no trace.
        with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
            env = dict(os.environ, LD_PRELOAD=LIBRARY, WHYOOM_DIR=os.path.join(folder, "t"),
                       WHYOOM_ALLOW_TMPFS="1")
            done = subprocess.run([CHURN], env=env, timeout=60)
            self.assertEqual(done.returncode, 17)
            found = self.agree(os.path.join(folder, "t"))
            self.assertEqual(len(found), 1)
            facts = next(iter(found.values()))
            self.assertGreater(facts["events"], 20000)
            self.assertEqual([facts[k] for k in ("dropped", "torn_chunks", "bad_checksums",
                                                 "double_allocs", "unmatched_frees")], [0] * 5)
            self.assertGreaterEqual(len(facts["threads"]), 5)
            self.all_is_checked(pathlib.Path(folder) / "t")

    def all_is_checked(self, folder):
        """Every relevant byte that the library writes has a check, as the document says, and both
        readers find a change."""
        path, = folder.glob("*.whyoom")
        data, first = path.read_bytes(), 65536
        self.assertEqual(unsound(data), [])
        # Of the header; of the first chunk's header, which is of definitions; and of its first
        # definition.
        for at in (4, 40, 64, 112, 130, 3072 + 384, first + 12, first + 30, first + 64 + 9):
            path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1:])
            self.assertTrue(unsound(path.read_bytes()) or at < 8, at)
            done = subprocess.run([WHYOOM, "check", "--format", "json", folder],
                                  stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, at)
            damage = json.loads(done.stdout)["processes"][0]["damage"]
            self.assertTrue(damage and damage["places"], at)
        path.write_bytes(data)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
