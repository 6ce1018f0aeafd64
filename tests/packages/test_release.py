"""A release made twice from the same commit has the same bytes, in two folders; its checksums and
its SBOM are right. Builds everything two times: a quarter of an hour on two cores."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["WHYOOM_SOURCE"])
RELEASE = SOURCE / "packaging/release"
VERSION = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())[1]


def release(*args):
    return subprocess.run([RELEASE, *args], capture_output=True, text=True)


class Release(unittest.TestCase):
    def test_twice(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as d:
            first, second = pathlib.Path(d, "one"), pathlib.Path(d, "elsewhere/two")
            for out in (first, second):
                r = release("--out", out)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertEqual([p.name for p in out.parent.glob(".release-*")], [])
            names = sorted(p.name for p in first.iterdir())
            self.assertEqual(names, sorted(p.name for p in second.iterdir()))
            for name in names:
                self.assertEqual((first / name).read_bytes(), (second / name).read_bytes(), name)
            self.contents(first, names)

    def contents(self, out, names):
        arch = os.uname().machine
        self.assertIn(f"whyoom-{VERSION}-{arch}.tar.xz", names)
        self.assertTrue([n for n in names if n.startswith(f"whyoom_{VERSION}_")])
        sums = dict(reversed(s.split("  ")) for s in
                    (out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sorted(sums), [n for n in names if n != "SHA256SUMS"])
        for name, value in sums.items():
            self.assertEqual(hashlib.sha256((out / name).read_bytes()).hexdigest(), value)
        sbom = json.loads((out / "whyoom.cdx.json").read_text())
        self.assertEqual((sbom["bomFormat"], sbom["specVersion"]), ("CycloneDX", "1.5"))
        self.assertEqual(sbom["metadata"]["component"]["version"], VERSION)
        parts = {c["name"]: c for c in sbom["components"]}
        for name in ("libdw-dev", "libelf-dev", "libc6-dev", "zlib1g-dev"):
            self.assertTrue(parts[name]["version"], name)
        for name, value in sums.items():
            if name in parts:
                self.assertEqual(parts[name]["hashes"][0]["content"], value)
        refs = [c["bom-ref"] for c in sbom["components"]]
        self.assertEqual(len(refs), len(set(refs)))

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as d:
            r = release("--out", d)
            self.assertEqual((r.returncode, r.stdout), (1, ""))
            self.assertIn("there already", r.stderr)
            r = release("--out", os.path.join(d, "new"), "--tag", "no-such-tag")
            self.assertEqual(r.returncode, 1)
            self.assertIn("no-such-tag", r.stderr)
            self.assertEqual(os.listdir(d), [])


if __name__ == "__main__":
    unittest.main()
