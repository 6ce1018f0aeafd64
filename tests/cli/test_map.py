"""`whyoom map`, and the device's part of `whyoom report` and `whyoom sites`, on a composed trace: a
fragmented cache of PyTorch's, and a request that neither it nor the driver could serve."""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from writer import *  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMAS = os.path.join(os.path.dirname(WHYOOM), "..", "report")
MIB = 1 << 20
CUDA, TORCH = 1, 2


def oom(request=15 * MIB, status=1):
    d = Definitions(0)
    d.string(1, "cuMemAlloc_v2")
    d.string(2, "cudaMalloc")
    d.string(3, "torch")
    d.code(1, 0x30B, 10, "Server.load", "/srv/model.py", bytes([0x80, 0]))
    d.code(2, 0x30B, 20, "Server.answer\x1b[31m", "/srv/serve.py", bytes([0x80, 0]))
    d.stack(1, [("native", 0, 0x1000, True), ("python", 1, 0)])
    d.stack(2, [("native", 0, 0x1000, True), ("python", 2, 0)])
    d.record(SPACE, varint(CUDA) + blob("cuda:0") + varint(0))
    d.record(SPACE, varint(TORCH) + blob("torch:0") + varint(CUDA))
    d.info("cuda.driver", "/usr/lib/libcuda.so.1")
    d.info("torch.blocks", "recorded")
    a = Chunk(1, 0)
    clock = iter(range(1000000, 1 << 40, 1000000))

    def alloc(space, address, size, stack, retry=0):
        a.extended(SPACE_ALLOC, space, 1 if space == CUDA else 3, address, size, stack, 0, 7, 0,
                   2 if space == CUDA else 0, retry, ticks=next(clock))

    alloc(CUDA, 0x10000000, 400 * MIB, 1)
    alloc(TORCH, 0x10000000, 400 * MIB, 1)
    for i in range(10):
        alloc(CUDA, 0x50000000 + 20 * MIB * i, 20 * MIB, 2)
        alloc(TORCH, 0x50000000 + 20 * MIB * i, 8 * MIB, 2)
        alloc(TORCH, 0x50000000 + 20 * MIB * i + 8 * MIB, 4 * MIB, 2)
        a.extended(SPACE_FREE, TORCH, 3, 0x50000000 + 20 * MIB * i, 0, 0, 0, ticks=next(clock))
    a.levels(LEVEL, [TORCH], [(99, 600 * MIB), (100, 440 * MIB)], ticks=next(clock))
    for attempt in range(2):
        flat = [CUDA, 0, 2, 2, 16 * MIB, 0, 0, 2, 2, 96, 10 * MIB, 97, 1000 * MIB, 1, 2, 5, 0]
        a.extended(FAILED, *flat, ticks=next(clock))
    a.extended(FAILED, TORCH, 0, 3, 2, request, 0, 0, 2, 0, 3, 0, 5, 0, ticks=next(clock))
    a.extended(SPACE_FREE, TORCH, 3, 0x10000000, 0, 0, 0, ticks=next(clock))
    a.extended(EXIT, 1, status, ticks=next(clock))
    return trace([d, a], minor=1, end=(1, status), end_mono_ns=next(clock), flags=10)


def validate(answer, schema):
    try:
        import jsonschema
    except ImportError:
        return
    with open(os.path.join(SCHEMAS, schema)) as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(answer)


class Map(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.scratch.name, "4711.0.whyoom")
        self.write(oom())

    def write(self, trace):
        with open(self.path, "wb") as f:
            f.write(trace)

    def tearDown(self):
        self.scratch.cleanup()

    def whyoom(self, *args, status=0, **env):
        r = subprocess.run([WHYOOM, *args], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "LC_ALL": "C.UTF-8", **env})
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def map(self, *args):
        m = json.loads(self.whyoom("map", "--format", "json", *args, self.path))
        validate(m, "map-schema.json")
        return m

    def test_of_the_failure(self):
        m = self.map()
        self.assertEqual((m["space"], m["at"], m["pid"]), ("torch:0", "failure", 4711))
        self.assertEqual(m["live_bytes"], 440 * MIB)
        self.assertEqual(m["bytes"], 600 * MIB)
        self.assertEqual((m["requested_bytes"], m["segment_bytes"]), (15 * MIB, 16 * MIB))
        self.assertEqual((m["device_free_bytes"], m["reserved_bytes"]), (10 * MIB, 600 * MIB))
        self.assertEqual(len(m["segments"]), 11)
        self.assertEqual(m["largest_hole_bytes"], 8 * MIB)
        self.assertEqual((m["room"]["live_blocks"], m["room"]["live_bytes"]), (1, 4 * MIB))
        part = m["segments"][1]
        self.assertEqual([(b["bytes"], b["site"]) for b in part["blocks"]],
                         [(8 * MIB, None), (4 * MIB, 1), (8 * MIB, None)])
        self.assertEqual(part["held_by"], [{"site": 1, "bytes": 4 * MIB, "blocks": 1}])
        self.assertEqual(m["sites"][0]["function"], "Server.load")
        self.assertEqual(m["sites"][0]["bytes"], 400 * MIB)

    def test_other_moments_and_spaces(self):
        self.assertEqual(self.map("--at", "end")["live_bytes"], 40 * MIB)
        # One torch block a millisecond-step; after the fourth event the first of them is there.
        early = self.map("--at", "0.0042")
        self.assertEqual(early["live_bytes"], 408 * MIB)
        self.assertEqual(self.map("--at", "peak")["live_bytes"], 448 * MIB)
        cuda = self.map("--space", "cuda:0")
        self.assertEqual((cuda["live_bytes"], cuda["live_blocks"]), (600 * MIB, 11))
        self.assertEqual(self.map("--space", "host", "--at", "end")["live_blocks"], 0)
        self.assertIn("there is host, cuda:0, torch:0",
                      self.whyoom("map", "--space", "cuda:7", self.path, status=1))
        self.assertIn("failed in host",
                      self.whyoom("map", "--space", "host", "--at", "failure", self.path, status=1))
        self.whyoom("map", "--at", "soon", self.path, status=2)

    def test_schema_is_strict(self):
        try:
            import jsonschema
        except ImportError:
            return
        with open(os.path.join(SCHEMAS, "map-schema.json")) as f:
            valid = jsonschema.Draft202012Validator(json.load(f)).is_valid
        for change in (lambda m: m.pop("segments"), lambda m: m.update(schema=2),
                       lambda m: m["segments"][0].pop("held_by"),
                       lambda m: m["segments"][0]["blocks"][0].update(address=4096),
                       lambda m: m["room"].update(live_blocks=-1), lambda m: m.update(at="soon"),
                       lambda m: m["unattributed"][0].pop("own_bytes")):
            m = self.map()
            self.assertTrue(valid(m))
            change(m)
            self.assertFalse(valid(m))

    def strips(self, columns, *args):
        """Each strip with the text beside or above it, and those of the request."""
        text = self.whyoom("map", *args, self.path, COLUMNS=str(columns))
        found, above = [], ""
        for line in text.splitlines():
            if line.startswith("  ["):
                strip, _, beside = line[3:].partition("]")
                found.append((strip, (beside or above).strip()))
            above = line
        return found

    def test_to_scale(self):
        """A column covers as many bytes in the request as in the segments, and no fewer than a
        strip needs."""
        for columns in (40, 80, 120):
            strips = self.strips(columns, "-n", "0")
            # the request, its segment, and those of 400 and 20 MiB
            self.assertEqual(len(strips), 13)
            largest = max(len(strip) for strip, _ in strips)
            self.assertLessEqual(largest, columns - 5)
            self.assertGreaterEqual(largest, columns - 7)
            unit = 400 / largest
            for (strip, _), size in zip(strips, (15, 16, 400, *[20] * 10)):
                self.assertAlmostEqual(len(strip), size / unit, delta=1, msg=(columns, size))

    def test_who_keeps_a_segment(self):
        for columns in (40, 80, 120):
            words = " ".join(self.whyoom("map", "-n", "0", self.path, COLUMNS=str(columns)).split())
            self.assertEqual(words.count("20.0 MiB, 20 % live, largest hole 8.00 MiB; 1 block of B "
                                         "(4.00 MiB)"), 10)
            self.assertIn("400 MiB, full: 1 block of A (400 MiB)", words)
            self.assertIn("15.0 MiB would fit into the segment 0x50000000 (^) with the "
                          "fewest blocks out of the way: "
                          "1 block of B (4.00 MiB).", words)
            self.assertNotIn("stream", words)  # of which nothing was recorded

    def test_equal_segments_once(self):
        """One stands for all of its layout; a segment where room could be made is drawn by
        itself."""
        text = self.whyoom("map", self.path, COLUMNS="80")
        self.assertEqual(re.findall(r"^  (0x\w+|\[\w+\]  0x\w+)", text, re.M)[1:],
                         ["0x50000000", "0x51400000"])
        self.assertEqual(re.findall("and .* like it.*", text),
                         ["and 8 like it: 160 MiB, 128 MiB of it in holes"])
        self.assertNotIn("like it", self.whyoom("map", "-n", "0", self.path))

    def test_sizes_that_print_alike(self):
        """The refused request and the largest free range differ by less than three digits show."""
        self.write(oom(request=8 * MIB + 4096))
        for command, words in (("map", ("the largest with 8.000 MiB", "a block of 8.004 MiB")),
                               ("report", ("Refused by torch:0: 8.004 MiB",
                                           "the largest with 8.000 MiB"))):
            text = " ".join(self.whyoom(command, self.path, COLUMNS="80").split())
            for expected in words:
                self.assertIn(expected, text)

    def on_a_terminal(self, **env):
        ours, theirs = pty.openpty()
        r = subprocess.Popen([WHYOOM, "map", self.path], stdout=theirs, env={
            **{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm",
            "LC_ALL": "C.UTF-8", **env})
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            if not more:
                break
            text += more
        os.close(ours)
        self.assertEqual(r.wait(), 0)
        return text.decode()

    def test_colour(self):
        coloured = self.on_a_terminal()
        self.assertIn("\x1b[", coloured)
        self.assertNotIn("\x1b[31m Server", coloured)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            plain = self.on_a_terminal(**env)
            self.assertNotIn("\x1b", plain)
            self.assertEqual(plain, re.sub(r"\x1b\[[0-9;]*m", "", coloured))

    def test_drawn(self):
        for columns in (40, 60, 80, 120, 200):
            for lang in ("C", "C.UTF-8"):
                text = self.whyoom("map", self.path, COLUMNS=str(columns), LC_ALL=lang)
                self.assertNotIn("\x1b", text)  # neither ours, without a terminal, nor theirs
                for line in text.splitlines():
                    self.assertLessEqual(len(line), columns, line)
                self.assertIn("refused, 15.0 MiB", text)
                hole = "." if lang == "C" else "\u00b7"
                self.assertRegex(text, r"\[[Bb%s]+\]" % hole)
                self.assertIn("^", text)
                if columns > 40:  # if there is room for names
                    self.assertIn("Server.load", text)
        few = self.whyoom("map", "-n", "2", self.path, COLUMNS="80")
        self.assertIn("and 1 more: 400 MiB", few)
        self.assertEqual(len([line for line in self.whyoom(
            "map", "-n", "0", self.path, COLUMNS="80").splitlines() if "0x" in line]), 12)

    def test_report(self):
        text = self.whyoom("report", "--format", "json", self.path)
        r = json.loads(text)
        f = r["failure"]
        self.assertEqual((f["kind"], f["space"]), ("cuda-oom", "torch:0"))
        self.assertEqual((f["requested_bytes"], f["segment_bytes"]), (15 * MIB, 16 * MIB))
        self.assertEqual((f["limit_kind"], f["limit_bytes"]), ("device memory", 1000 * MIB))
        self.assertEqual(r["verdict"]["cause"], "fragmentation")
        self.assertEqual(r["coverage"]["cuda"], "/usr/lib/libcuda.so.1")
        self.assertEqual(r["coverage"]["torch"], "recorded")
        self.assertEqual(r["device"]["attempts"], 3)
        self.assertEqual(r["device"]["unattributed_bytes"], 390 * MIB)
        self.assertEqual([(s["blocks"], s["largest_bytes"]) for s in r["device"]["sites"]],
                         [(1, 400 * MIB), (10, 4 * MIB)])
        ledger = r["ledger"][0]
        self.assertEqual(ledger["space"], "cuda:0")
        self.assertEqual(sum(row["bytes"] for row in ledger["rows"]) + ledger["unaccounted_bytes"],
                         1000 * MIB)
        validate(r, "report-schema.json")
        for args in ((), ("--verbose",)):
            text = self.whyoom("report", *args, self.path, COLUMNS="60")
            self.assertNotIn("\x1b", text)
            for words in ("Refused by torch:0: 15.0 MiB, after 3 attempts", "Server.load",
                          "the largest with 8.00 MiB", "What the memory of cuda:0 looked like",
                          "no event explains 390 MiB, which are unaccounted (context",
                          "One live block of 4.00 MiB is all that keeps the request out of a "
                          "segment"):
                self.assertIn(words, " ".join(text.split()))
        wide = self.whyoom("report", self.path, COLUMNS="80")
        self.assertRegex(wide, r"40\.0 MiB +10 blocks of 4\.00 MiB +Server\.answer")
        self.assertRegex(wide, r"400 MiB +1 block +Server\.load")

    def test_exit_in_spite_of_it(self):
        self.assertIn("exit status 1 after", self.whyoom("report", self.path))
        self.write(oom(status=0))
        self.assertIn("exit status 0 (although memory was refused) after",
                      self.whyoom("report", self.path))

    def test_sites(self):
        s = json.loads(self.whyoom("sites", "--space", "torch:0", "--format", "json", self.path))
        self.assertEqual(s["at"], "failure")
        self.assertEqual([(x["function"], x["bytes"], x["live_blocks"]) for x in s["sites"]],
                         [("Server.load", 400 * MIB, 1), ("Server.answer\x1b[31m", 40 * MIB, 10)])
        s = json.loads(self.whyoom("sites", "--space", "cuda:0", "--format", "json", self.path))
        self.assertEqual(s["sites"][0]["bytes"], 400 * MIB)
        self.assertIn("no space 'nowhere'",
                      self.whyoom("sites", "--space", "nowhere", self.path, status=1))

    def test_nothing_of_a_device(self):
        a = Chunk(1, 0)
        a.alloc(0x1000, 100, 0, 10)
        a.alloc(0x2000, 200, 0, 20)
        self.write(trace([a]))
        m = self.map()
        self.assertEqual((m["space"], m["live_bytes"], m["live_blocks"]), ("host", 300, 2))
        r = json.loads(self.whyoom("report", "--format", "json", self.path))
        self.assertNotIn("device", r)
        self.assertIsNone(r["coverage"]["cuda"])


if __name__ == "__main__":
    unittest.main()
