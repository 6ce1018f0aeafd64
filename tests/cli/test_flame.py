"""`whyoom flame` and `whyoom sites --tree`: pictures of a composed trace, and the sums of old
traces."""

import glob
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden")
sys.path.insert(0, GOLDEN)
from test_map import validate  # noqa: E402
from writer import *  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
MIB = 1 << 20
MEASURES = {"live": "live_bytes", "peak": "peak_bytes", "total": "total_bytes",
            "count": "total_blocks"}
UTF8, ASCII = {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}

FLAME = """\
live at the peak in torch:0: 0.98 GiB in 10 stacks
all from app.py:1 › main
▌serve serve.py:5  61 %▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▌load serve.py:9  31 %▓▓▓▌pa…▓▏
▌Model.forward modeling.py:40  48 %░░░▌evil\\x1…▓ ▌to module.py:70  31 %░░░
▌attention modeling.py:41  41 %░░▌mlp░
▓▓ your code, ░░ library, ▏ several, narrower than a column
"""
NARROW = """\
live at the peak in torch:0: 0.98 GiB in
10 stacks
all from app.py:1 > main
|serve serve.py:5  61 %#|load  31 %##|##
|Model.forward-----|e..#|to  31 %----
|attention------|--
## your code, -- library
"""
TREE = """\
live at the peak in torch:0: 0.98 GiB in 10 stacks
 0.98 GiB  100 %  app.py:1
                  main  app.py:2
  612 MiB   61 %  ├─ serve  serve.py:5
  480 MiB   48 %  │  ├─ Model.forward  modeling.py:40
  410 MiB   41 %  │  │  ├─ attention  modeling.py:41
 70.0 MiB  7.0 %  │  │  └─ mlp  modeling.py:42
  120 MiB   12 %  │  ├─ evil\\x1b[31m  serve.py:6
 12.0 MiB  1.2 %  │  └─ (itself)
  310 MiB   31 %  ├─ load  serve.py:9
                  │  to  module.py:70
 70.0 MiB  7.0 %  ├─ parse  serve.py:11
 8.00 MiB  0.8 %  └─ … 4 more, 8,388,608 bytes
"""
NARROW_TREE = """\
live at the peak in torch:0: 0.98 GiB in
10 stacks
 0.98 GiB  app.py:1
           main  app.py:2
  612 MiB  |- serve  serve.py:5
  480 MiB  |  |- Model.forward  mod..:40
  410 MiB  |  |  |- attention  mode..:41
 70.0 MiB  |  |  `- mlp  modeling.py:42
  120 MiB  |  |- evil\\x1b[31m  serve..:6
 12.0 MiB  |  `- (itself)
  310 MiB  |- load  serve.py:9
           |  to  module.py:70
 70.0 MiB  |- parse  serve.py:11
 8.00 MiB  `- ... 4 more, 8,388,608 by..
"""


def served():
    """A server: two libraries' frames below its own, small ones, and bytes of a caller itself."""
    d = Definitions(0)
    codes = [("<module>", "/srv/app.py"), ("main", "/srv/app.py"), ("serve", "/srv/serve.py"),
             ("Model.forward", "/opt/lib/python3.11/site-packages/lm/modeling.py"),
             ("attention", "/opt/lib/python3.11/site-packages/lm/modeling.py"),
             ("mlp", "/opt/lib/python3.11/site-packages/lm/modeling.py"),
             ("evil\x1b[31m", "/srv/serve.py"), ("load", "/srv/serve.py"),
             ("to", "/opt/lib/python3.11/site-packages/lm/module.py"),
             ("parse", "/srv/serve.py"), *((f"tiny{i}", "/srv/serve.py") for i in range(4))]
    lines = [1, 2, 5, 40, 41, 42, 6, 9, 70, 11, 12, 13, 14, 15]
    for i, (name, file) in enumerate(codes):
        d.code(i + 1, 0x30B, lines[i], name, file, bytes([0x80, 0]))
    sizes = {(1, 2, 3, 4, 5): 410, (1, 2, 3, 4, 6): 70, (1, 2, 3, 7): 120, (1, 2, 8, 9): 310,
             (1, 2, 10): 70, (1, 2, 3): 12,
             **{(1, 2, 11 + i): 2 for i in range(4)}}
    d.record(SPACE, varint(1) + blob("cuda:0") + varint(0))
    d.record(SPACE, varint(2) + blob("torch:0") + varint(1))
    d.info("torch.blocks", "recorded")
    a = Chunk(1, 0)
    at = 0x10000000
    for n, (frames, size) in enumerate(sizes.items()):
        d.stack(n + 1, [("native", 0, 0x1000, True)] + [("python", f, 0) for f in frames])
        a.extended(SPACE_ALLOC, 2, 3, at, size * MIB, n + 1, 0, 7, 0, 0, 0,
                   ticks=1000000 * (n + 1))
        at += size * MIB
    a.extended(EXIT, 1, 0, ticks=10000000)
    return trace([d, a], minor=1, end=(1, 0), end_mono_ns=10000000, flags=10)


def run(*words, columns=80, locale=UTF8, status=0, **more):
    env = {**os.environ, "COLUMNS": str(columns), **locale, **more}
    done = subprocess.run([WHYOOM, *words], capture_output=True, text=True, timeout=60, env=env,
                          encoding="utf-8")
    assert done.returncode == status, done.stderr
    return done.stdout if not status else done.stderr


def on_terminal(*words, **more):
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **UTF8, **more}
    with subprocess.Popen([WHYOOM, *words], stdout=theirs, env=env) as p:
        os.close(theirs)
        out = b""
        try:
            while part := os.read(ours, 65536):
                out += part
        except OSError:
            pass  # the other end is closed
        os.close(ours)
    assert p.returncode == 0
    return out.decode().replace("\r\n", "\n")


class Served(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.path = os.path.join(self.scratch.name, "4711.0.whyoom")
        with open(self.path, "wb") as f:
            f.write(served())

    def test_flame(self):
        self.assertEqual(run("flame", self.path), FLAME)
        self.assertEqual(run("flame", self.path, columns=40, locale=ASCII), NARROW)

    def test_tree(self):
        words = "sites", "--tree", "--space", "torch:0", self.path
        self.assertEqual(run(*words), TREE)
        self.assertEqual(run(*words, columns=40, locale=ASCII), NARROW_TREE)

    def test_every_line_fits(self):
        for columns in range(40, 200, 7):
            for words in (("flame",), ("sites", "--tree", "--space", "torch:0")):
                for locale in (UTF8, ASCII):
                    text = run(*words, self.path, columns=columns, locale=locale)
                    assert max(map(len, text.splitlines())) <= columns
                    assert "\x1b" not in text and (locale is UTF8 or text.isascii())

    def test_colour(self):
        """On a terminal only, and with the same picture."""
        for words in (("flame",), ("sites", "--tree", "--space", "torch:0")):
            coloured = on_terminal(*words, self.path)
            assert "\x1b[" in coloured
            plain = run(*words, self.path)
            assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
            assert on_terminal(*words, self.path, NO_COLOR="1") == plain
            assert on_terminal(*words, self.path, TERM="dumb") == plain

    def test_depth(self):
        """Rows below it are counted, and so are the frames of a tree."""
        text = run("flame", "--depth", "1", self.path)
        assert "serve" in text and "forward" not in text
        assert "… 2 more rows: --depth 0" in text
        text = run("sites", "--tree", "--space", "torch:0", "--depth", "3", self.path)
        assert "serve" in text and "forward" not in text
        assert "… 2 more, 629,145,600 bytes" in text

    def test_limit(self):
        """One callee a frame; the others are one line with their sum. 0 shows all of them."""
        text = run("sites", "--tree", "--space", "torch:0", "-n", "1", self.path)
        assert "… 6 more, 406,847,488 bytes" in text and "load" not in text
        text = run("sites", "--tree", "--space", "torch:0", "-n", "0", self.path)
        assert "more" not in text and "tiny0" in text and "tiny3" in text

    def test_json(self):
        d = json.loads(run("flame", "--format", "json", self.path))
        validate(d, "flame-schema.json")
        roles = {n["function"]: n["role"] for n in d["nodes"]}
        assert roles["serve"] == "own" and roles["attention"] == "library"
        assert roles[None] is None
        assert d == json.loads(run("sites", "--tree", "--space", "torch:0", "--format", "json",
                                   self.path))

    def test_wrong_usage(self):
        assert "--measure is live, peak" in run("flame", "--measure", "x", self.path, status=2)
        assert "--at is failure" in run("flame", "--at", "x", self.path, status=2)
        assert "--depth" in run("flame", "--depth", "-1", self.path, status=2)
        assert "no space 'x'" in run("flame", "--space", "x", self.path, status=1)
        assert "--tree" in run("sites", "--depth", "3", self.path, status=2)
        assert "live, peak or total" in run("sites", "--tree", "--by", "leaked", self.path,
                                            status=2)


def add_up(d):
    """The root's value, after a look at each node's."""
    below = [0] * len(d["nodes"])
    for i, n in enumerate(d["nodes"]):
        assert (n["parent"] is None) == (n["depth"] == 0) == (i == 0)
        if i:
            parent = d["nodes"][n["parent"]]
            assert n["parent"] < i and parent["depth"] == n["depth"] - 1 and not parent["more"]
            below[n["parent"]] += n["value"]
    for n, sum_below in zip(d["nodes"], below):
        assert n["more"] or n["value"] == n["itself"] + sum_below
    assert d["nodes"][0]["value"] == d["value"]
    return d["value"]


class Sums(unittest.TestCase):
    def test_as_sites(self):
        """For each space, moment and measure of old traces."""
        compared = 0
        for path in sorted(glob.glob(os.path.join(GOLDEN, "v*", "*"))):
            if not os.path.isdir(path):
                continue
            for space in ("host", "torch:0", "cuda:0"):
                for at in ("peak", "end", "failure"):
                    where = ("--space", space, "--at", at, "--format", "json")
                    done = subprocess.run([WHYOOM, "sites", "-n", "0", "--by", "total", *where,
                                           path], capture_output=True, text=True, timeout=60)
                    if done.returncode:
                        assert run("flame", *where, path, status=1) == done.stderr
                        continue
                    sites = json.loads(done.stdout)["sites"]
                    for measure, member in MEASURES.items():
                        d = json.loads(run("flame", *where, "--measure", measure, path))
                        if not any(n["itself"] and not n["function"] for n in d["nodes"][:1]):
                            self.assertEqual(add_up(d), sum(s[member] for s in sites),
                                             (path, space, at, measure))
                            compared += 1
        assert compared > 50


if __name__ == "__main__":
    unittest.main()
