"""`whyoom what-if`: on a composed trace of PyTorch's blocks, whose figures follow by hand, and on a
program that runs into a limit of the host's memory."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
from writer import *  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
MIB = 1 << 20
CUDA, TORCH = 1, 2
LOAD, ANSWER = 1, 2
BASE = 0x200000000


class Record:
    """A process on a device of 1,000 MiB, of which 100 MiB are not PyTorch's."""

    def __init__(self, conf=None):
        self.definitions = d = Definitions(0)
        d.string(1, "cuMemAlloc_v2")
        d.string(2, "torch")
        for number, function, file in ((LOAD, "Server.load", "/srv/model.py"),
                                       (ANSWER, "Server.answer", "/srv/serve.py")):
            d.code(number, 0x30B, 10 * number, function, file, bytes([0x80, 0]))
            d.stack(number, [("native", 0, 0x1000, True), ("python", number, 0)])
        d.record(SPACE, varint(CUDA) + blob("cuda:0") + varint(0))
        d.record(SPACE, varint(TORCH) + blob("torch:0") + varint(CUDA))
        if conf:
            d.info("env.PYTORCH_CUDA_ALLOC_CONF", conf)
        self.events, self.ticks, self.reserved, self.allocated = Chunk(1, 0), 1000000, 0, 0
        self.levels(CUDA, (96, 900 * MIB), (97, 1000 * MIB))

    def now(self):
        self.ticks += 1000000
        return self.ticks

    def levels(self, space, *levels):
        self.events.levels(LEVEL, [space], levels, ticks=self.now())

    def segment(self, offset, size):
        self.reserved += size
        self.events.extended(SPACE_ALLOC, CUDA, 1, BASE + offset * MIB, size * MIB, 0, 0, 7, 0, 0,
                             0,
                             ticks=self.now())

    def block(self, offset, size, stack=ANSWER):
        self.allocated += size
        self.events.extended(SPACE_ALLOC, TORCH, 2, BASE + offset * MIB, size * MIB, stack, 0, 0, 0,
                             0, 0,
                             ticks=self.now())
        self.told()

    def release(self, offset, size):
        self.allocated -= size
        self.events.extended(SPACE_FREE, TORCH, 2, BASE + offset * MIB, 0, 0, 0, ticks=self.now())
        self.told()

    def told(self):
        self.levels(TORCH, (99, self.reserved * MIB), (100, self.allocated * MIB))

    def refused(self, size):
        for _ in range(2):
            self.events.extended(FAILED, CUDA, 0, 2, 2, size * MIB, 0, 0, 0, 0, 1, 0, 1, 0,
                                 ticks=self.now())
        self.events.extended(FAILED, TORCH, 0, 3, 2, size * MIB, 0, 0, ANSWER, 0, 2, 0, 0, 0,
                             ticks=self.now())

    def bytes(self):
        self.events.extended(EXIT, 1, 1, ticks=self.now())
        return trace([self.definitions, self.events], minor=1, end=(1, 1), end_mono_ns=self.now(),
                     flags=10)


def fragmented():
    """500 MiB of weights, two segments pinned by a block each, and a request of 200 MiB."""
    r = Record()
    r.segment(0, 500)
    r.block(0, 500, LOAD)
    r.segment(500, 150)
    r.block(500, 150)
    r.segment(650, 150)
    r.block(650, 150)
    r.release(500, 150)
    r.release(650, 150)
    r.block(500, 20)
    r.block(520, 120)
    r.block(650, 30)
    r.release(520, 120)
    r.refused(200)
    return r


class WhatIf(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.scratch.name, "4711.0.whyoom")

    def tearDown(self):
        self.scratch.cleanup()

    def save(self, record):
        with open(self.path, "wb") as f:
            f.write(record.bytes())

    def whyoom(self, *args, status=0):
        r = subprocess.run([WHYOOM, *args], capture_output=True, text=True, timeout=120,
                           env={**os.environ, "LC_ALL": "C.UTF-8", "COLUMNS": "80"})
        self.assertEqual(r.returncode, status, r.stderr)
        return r.stdout if status == 0 else r.stderr

    def ask(self, *changes):
        return json.loads(self.whyoom("what-if", "--format", "json", *changes, self.path))

    def rows(self, *changes):
        return [(row["fits"], row["headroom_bytes"] / MIB) for row in self.ask(*changes)["what_if"]]

    def test_as_it_was(self):
        self.save(fragmented())
        answer = self.ask()
        self.assertEqual((answer["space"], answer["pid"]), ("torch:0", 4711))
        self.assertEqual((answer["limit_bytes"], answer["requested_bytes"]),
                         (1000 * MIB, 200 * MIB))
        self.assertEqual(answer["what_if"], [])
        model = answer["model"]
        self.assertEqual((model["match"], model["requests"], model["segments"], model["streams"]),
                         ("identical", 7, 3, 1))
        self.assertIsNone(model["first_difference"])
        self.assertEqual(answer["recorded"]["headroom_bytes"], -100 * MIB)
        refused = answer["recorded"]["refused"]
        self.assertEqual({name: refused[name] / MIB for name in refused if name.endswith("_bytes")},
                         {"segment_bytes": 200, "reserved_bytes": 800, "allocated_bytes": 550,
                          "largest_hole_bytes": 130})

    def test_changes(self):
        self.save(fragmented())
        self.assertEqual(self.rows("--memory", "1100MiB"), [(True, 0)])
        self.assertEqual(self.rows("--memory", "1099MiB"), [(False, -1)])
        (fits, headroom), = self.rows("--expandable-segments")
        self.assertTrue(fits and 100 <= headroom < 150, headroom)
        self.assertEqual(self.rows("--max-split-size-mb", "100"), [(True, 100)])
        # Without the weights their 500 MiB are there for the request.
        for name in ("Server.load", "model.py:10", "/srv/model.py:10"):
            self.assertEqual(self.rows("--without-site", name), [(True, 400)])
        # The first block of serve.py is of 150 MiB: the second one is cut, and so is the request.
        self.assertEqual(self.rows("--cap-growth", "0"), [(True, 250)])

    def test_together(self):
        self.save(fragmented())
        answer = self.ask("--memory", "1050MiB", "--expandable-segments")
        self.assertEqual([row["change"] for row in answer["what_if"]],
                         ["1.03 GiB of memory", "expandable_segments:True",
                          "all of these together"])
        self.assertEqual([row["fits"] for row in answer["what_if"]], [False, True, True])
        self.assertEqual(answer["what_if"][2]["headroom_bytes"] - answer["what_if"][1][
            "headroom_bytes"], 50 * MIB)

    def test_fails_earlier(self):
        self.save(fragmented())
        row, = self.ask("--memory", "700MiB")["what_if"]
        self.assertFalse(row["fits"])
        self.assertEqual((row["refused"]["request"], row["refused"]["bytes"]), (2, 150 * MIB))
        self.assertIn("- 700 MiB of memory: does not fit, -50.0 MiB; refuses 150 MiB after",
                      self.whyoom("what-if", "--memory", "700MiB", self.path))

    def test_not_reproduced(self):
        """The output tells when the model's rows are unreliable."""
        r = Record("new_setting:1")
        r.segment(0, 64)
        r.block(0, 15)
        r.release(0, 15)
        self.save(r)
        model = self.ask()["model"]
        self.assertEqual(model["match"], "not")
        self.assertEqual(model["first_difference"]["what"], "segment")
        self.assertEqual(model["first_difference"]["recorded_bytes"], 64 * MIB)
        self.assertIsNotNone(model["doubt"])
        text = " ".join(self.whyoom("what-if", self.path).split())
        self.assertIn("unreliable. Caution: settings that are not known here.", text)

    def test_wrong(self):
        self.save(fragmented())
        for changes in (["--memory", "much"], ["--memory", "0"], ["--max-split-size-mb", "19"],
                        ["--max-split-size-mb", "x"], ["--cap-growth", "-1"], ["--format", "xml"],
                        ["--pid", "0"],
                        ["--nosuch"], ["--memory"], ["--concurrency", "0"], ["--max-len", "many"],
                        ["--max-len", "0"],
                        ["--max-len", "0%"], ["--max-len", "101%"], ["--max-len", "5%%"],
                        ["--longest", "0", "--max-len", "1"],
                        ["--longest", "10"], ["--expandable-segments"] * 16):
            self.whyoom("what-if", self.path, *changes, status=2)
        for changes, said in ((["--without-site", "nobody"], "no site 'nobody'"),
                              (["--space", "torch:3"], "PyTorch has no blocks in 'torch:3'"),
                              (["--space", "cuda:0"], "--space is torch:N or host"),
                              (["--space", "host", "--expandable-segments"],
                               "is a setting of PyTorch,"),
                              (["--concurrency", "2"], "no two requests, tasks or threads"),
                              (["--concurrency", "2", "--space", "torch:3"],
                               "PyTorch has no blocks in 'torch:3'"),
                              (["--space", "host"],
                               "the trace does not say the limit of the host's memory"),
                              (["--pid", "5"], "no process 5")):
            self.assertIn(said, self.whyoom("what-if", self.path, *changes, status=1))

    def test_does_not_apply(self):
        """Each change that does not apply tells its reason, the others are answered; if none
        applies it is an error."""
        self.save(fragmented())
        changes = ("--without-site", "nobody", "--memory", "1100MiB", "--concurrency", "2",
                   "--expandable-segments")
        answer = self.ask(*changes)
        nobody, memory, two, expandable, together = answer["what_if"]
        for row, why in ((nobody, "no site 'nobody'"), (two, "no two requests")):
            self.assertIn(why, row["why_not"])
            self.assertEqual((row["applies"], row["fits"], row["headroom_bytes"], row["refused"]),
                             (False, None, None, None))
        for row, alone in ((memory, changes[2:4]), (expandable, changes[6:]),
                           (together, changes[2:4] + changes[6:])):
            alone = self.ask(*alone)["what_if"][-1]
            self.assertEqual((row["applies"], row["why_not"], row["fits"], row["headroom_bytes"]),
                             (True, None, True, alone["headroom_bytes"]))
        self.assertEqual((together["change"], answer["lengths"]), ("all that apply together", None))
        text = " ".join(self.whyoom("what-if", *changes, self.path).split())
        self.assertIn("- without nobody: does not apply: no site 'nobody': name a function", text)
        self.assertIn("- 1.07 GiB of memory: fits, 0 B", text)
        # One change alone has no combination.
        self.assertEqual([row["applies"] for row in self.ask(*changes[:4])["what_if"]],
                         [False, True])
        said = self.whyoom("what-if", *changes[:2], *changes[4:6], self.path, status=1)
        self.assertEqual(said.count(": does not apply: "), 2)
        self.assertIn("whyoom: at most 2 requests at once: does not apply: no two requests", said)
        # PyTorch's settings do not affect another space.
        said = self.whyoom("what-if", self.path, "--space", "host", *changes[6:],
                           "--max-split-size-mb", "64", status=1)
        self.assertEqual(said.count("does not apply: it is a setting of PyTorch,"), 2)

    PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
kept = []
def weights():
    return bytearray(100 << 20)
def grow(n):
    kept.append(bytearray(n << 20))
held = weights()
n = 10
while True:
    grow(n)
    n += 2
"""

    def test_host(self):
        traces = os.path.join(self.scratch.name, "traces")
        done = subprocess.run([WHYOOM, "run", "-o", traces, "--quiet", "--", "/usr/bin/python3",
                               "-c", self.PROGRAM],
                              capture_output=True, text=True, timeout=120)
        self.assertIn("MemoryError", done.stderr)
        self.path = traces
        answer = self.ask("--memory", "10GiB", "--without-site", "grow", "--cap-growth", "1MiB",
                          "--memory", "100MiB", "--without-site", "weights")
        self.assertEqual((answer["space"], answer["limit_bytes"]), ("host", 600 * MIB))
        self.assertIsNone(answer["model"])
        self.assertFalse(answer["recorded"]["fits"])
        wanting = -answer["recorded"]["headroom_bytes"]
        self.assertTrue(0 < wanting <= answer["requested_bytes"] + 2 * MIB, wanting)
        larger, without_grow, capped, smaller, without_weights, together = answer["what_if"]
        self.assertEqual(larger["headroom_bytes"], 10 * 1024 * MIB - 600 * MIB - wanting)
        self.assertEqual(smaller["headroom_bytes"], 100 * MIB - 600 * MIB - wanting)
        self.assertTrue(larger["fits"] and without_grow["fits"] and capped["fits"]
                        and without_weights["fits"])
        self.assertFalse(smaller["fits"])
        self.assertAlmostEqual(without_weights["headroom_bytes"], 100 * MIB - wanting, delta=MIB)
        self.assertGreater(without_grow["headroom_bytes"], capped["headroom_bytes"])

    THREADS = """
import os, resource, threading, time
threading.stack_size(262144)
resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))
def answer():
    parts = []
    for _ in range(4):
        try:
            parts.append(bytearray(10 << 20))
        except MemoryError:
            os._exit(3)
        time.sleep(0.01)
    all_here.wait()
def serve(many):
    all_here.clear()
    threads = [threading.Thread(target=answer) for _ in range(many)]
    for t in threads:
        t.start()
    time.sleep(0.05)
    all_here.set()
    for t in threads:
        t.join()
all_here = threading.Event()
for many in (1, 2, 1, 2, 40):
    serve(many)
"""

    def test_concurrency(self):
        traces = os.path.join(self.scratch.name, "traces")
        environment = dict(os.environ, MALLOC_ARENA_MAX="1")
        subprocess.run([WHYOOM, "run", "-o", traces, "--quiet", "--", "/usr/bin/python3", "-c",
                        self.THREADS],
                       capture_output=True, text=True, timeout=120, env=environment)
        self.path = traces
        answer = self.ask("--concurrency", "1", "--concurrency", "4", "--concurrency", "1000")
        one, four, thousand, together = answer["what_if"]
        recorded = answer["recorded"]["headroom_bytes"]
        self.assertLess(recorded, 0)
        self.assertEqual(one["change"], "one request at a time")
        self.assertTrue(one["fits"] and four["fits"] and together["fits"])
        self.assertEqual((thousand["fits"], thousand["headroom_bytes"]), (False, recorded))
        # Three more of them, each with its memory by then.
        self.assertTrue(10 * MIB <= one["headroom_bytes"] - four["headroom_bytes"] <= 3 * 40 * MIB
                        + MIB)
        self.assertEqual(together["headroom_bytes"], one["headroom_bytes"])
        self.path = os.path.join(self.scratch.name, "alone")
        subprocess.run([WHYOOM, "run", "-o", self.path, "--quiet", "--", "/usr/bin/python3", "-c",
                        self.PROGRAM],
                       capture_output=True, text=True, timeout=120)
        self.assertIn("no two requests, tasks or threads overlapped",
                      self.whyoom("what-if", self.path, "--concurrency", "1", status=1))

    def test_concurrency_of_the_driver(self):
        """Four threads hold 200 MiB each of a device, by its driver, and the fourth is refused 200
        more."""
        r = Record()
        threads = [r.events] + [Chunk(i, 0) for i in (2, 3, 4)]
        for i, events in enumerate(threads):
            events.extended(SPACE_ALLOC, CUDA, 1, BASE + 200 * i * MIB, 200 * MIB, ANSWER, 0, 0, 0,
                            0, 0, ticks=r.now())
        r.levels(CUDA, (96, 100 * MIB), (97, 1000 * MIB))
        threads[3].extended(FAILED, CUDA, 0, 2, 2, 200 * MIB, 0, ANSWER, 0, 0, 1, 0, 1, 0,
                            ticks=r.now())
        r.events.extended(EXIT, 1, 1, ticks=r.now())
        with open(self.path, "wb") as f:
            f.write(trace([r.definitions, *threads], minor=1, end=(1, 1), end_mono_ns=r.now(),
                          flags=10))
        answer = self.ask("--space", "cuda:0", "--concurrency", "1", "--memory", "2GiB",
                          "--expandable-segments")
        one, memory, expandable, together = answer["what_if"]
        self.assertEqual([x["applies"] for x in answer["what_if"]], [True, True, False, True])
        self.assertEqual(one["headroom_bytes"] - answer["recorded"]["headroom_bytes"], 600 * MIB)
        self.assertEqual([x["note"] and x["note"].startswith("at most that, as it is a sum over "
                                                             "that one moment")
                          for x in answer["what_if"]], [True, None, None, True])
        self.assertIn("the question is about cuda:0", expandable["why_not"])

    # INPUTS LONGEST MARKS: an input's blocks grow with it and with its square, and stay.
    INPUTS = """
import ctypes, os, resource, sys
longest, marks = int(sys.argv[1]), ctypes.CDLL(None) if sys.argv[2] == "1" else None
if marks:
    marks.whyoom_request_begin.restype = ctypes.c_uint64
    marks.whyoom_request_tokens.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    marks.whyoom_request_end.argtypes = [ctypes.c_uint64]
def embed(n):
    return bytearray(n * 8192)
def scores(n):
    return bytearray(n * n * 8)
def weights(n):
    return bytearray(n * n * 8)
def pages(n):
    return [bytearray(16384) for _ in range(n // 64)]
def keep(n):
    kept.append(bytearray(n * 1024))
def answer(n):
    states, cache = embed(n), pages(n)
    keep(n)
    for layer in range(2):
        old = scores(n)
        new = weights(n)
        del old, new
def serve(n):
    request = marks.whyoom_request_begin(b"chat") if marks else 0
    if marks:
        marks.whyoom_request_tokens(request, n)
    answer(n)
    if marks:
        marks.whyoom_request_end(request)
kept = []
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
ring = bytearray(64 << 20)
try:
    for n in (500, 1500, 900, 300, 1200, 1000, 400, 1800, 7000, 700):
        serve(min(n, longest))
except MemoryError:
    os._exit(3)
"""

    def serve(self, name, longest, marks):
        self.path = os.path.join(self.scratch.name, name)
        done = subprocess.run([WHYOOM, "run", "-o", self.path, "--quiet", "--", "/usr/bin/python3",
                               "-c", self.INPUTS,
                               str(longest), str(int(marks))], capture_output=True, text=True,
                              timeout=120)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return done.returncode == 0

    def test_max_len(self):
        """The answer equals a run with really shorter inputs."""
        lengths = (1000, 3000, 5000, 6600)
        asked = [word for n in lengths for word in ("--max-len", str(n))]
        really = [self.serve(f"at-{n}", n, False) for n in lengths]
        self.assertEqual(really, [True, True, True, False])
        for marks in (True, False):
            self.assertFalse(self.serve(f"all-{marks}", 10000, marks))
            answer = self.ask(*asked, *([] if marks else ["--longest", "7000"]))
            rows = answer["what_if"]
            self.assertEqual([row["fits"] for row in rows], [*really, True])
            self.assertEqual(rows[-1]["headroom_bytes"], rows[0]["headroom_bytes"])
            found = answer["lengths"]
            self.assertEqual((found["from"], found["longest_tokens"]),
                             ("marks" if marks else "longest", 7000))
            self.assertEqual(found["fits_tokens"], int(found["fits_share"] * 7000))
            self.assertEqual(found["reference"] is None, marks)
            self.assertTrue(5000 < found["fits_tokens"] < 6600)
            self.assertTrue(self.serve("below", found["fits_tokens"] * 95 // 100, False))
            self.assertFalse(self.serve("above", found["fits_tokens"] * 105 // 100, False))
        # Without known token counts, the answer is the share that fits.
        self.path = os.path.join(self.scratch.name, "all-False")
        answer = self.ask("--max-len", "4096", "--max-len", "50%")
        share = answer["lengths"]["fits_share"]
        self.assertEqual((answer["lengths"]["from"], answer["lengths"]["fits_tokens"]),
                         ("sizes", None))
        self.assertEqual([row["change"] for row in answer["what_if"][:2]],
                         ["inputs of at most %.3g %% of the longest" % (100 * share),
                          "inputs of at most 50 % of the longest"])
        self.assertEqual([row["fits"] for row in answer["what_if"]], [True, True, True])
        text = " ".join(self.whyoom("what-if", "--max-len", "4096", self.path).split())
        self.assertIn("Inputs of up to %.3g %% of the longest fit; --longest TOKENS"
                      % (100 * share),
                      text)
        # A site that is left out is not made smaller again.
        without, shorter, both = self.ask("--without-site", "embed", "--max-len", "1%")["what_if"]
        self.assertTrue(0 < both["headroom_bytes"] - shorter["headroom_bytes"] < MIB)
        self.assertGreater(both["headroom_bytes"], without["headroom_bytes"])
        self.path = os.path.join(self.scratch.name, "all-True")
        self.assertIn("program's own marks say how long its inputs were, up to 7000 tokens",
                      self.whyoom("what-if", "--max-len", "10", "--longest", "7000", self.path,
                                  status=1))

    def test_max_len_of_nothing(self):
        """Inputs of one size have no length to cap."""
        r = Record()
        for i in range(4):
            r.segment(100 * i, 100)
            r.block(100 * i, 100)
        self.save(r)
        self.assertIn("no memory there depends on the length of the input",
                      self.whyoom("what-if", "--max-len", "10", self.path, status=1))
        answer = self.ask("--max-len", "10", "--memory", "2GiB")
        shorter, memory = answer["what_if"]
        self.assertEqual((shorter["applies"], memory["applies"], answer["lengths"]),
                         (False, True, None))
        self.assertIn("no memory there depends", shorter["why_not"])


if __name__ == "__main__":
    unittest.main()
