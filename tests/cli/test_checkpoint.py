#!/usr/bin/env python3
"""A trace whose older chunks a checkpoint replaced, through every command: the facts on the earlier
time, the losses, and that no command makes a leak of it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))
import writer  # noqa: E402
# noqa: E402
from writer import SAMPLED_ALLOC, CHECKPOINT, FAILED, LEVEL, NOTICE, SHARED_THREAD, TASK, WENT

WHYOOM = os.environ.get("WHYOOM_EXE", "whyoom")
SECOND = 1000000000
UNTIL = 3000 * SECOND


def server(leaks, parts=2, kept=3000, content=300):
    """An hour of a server with a cache that exchanges its content, the first 50 minutes replaced; a
    request is refused at the end. Its leak, if any, began with it."""
    d = writer.Definitions()
    d.module(1, "/nowhere/server")
    for stack, address in ((1, 0x1000), (2, 0x2000), (3, 0x3000)):
        d.stack(stack, [("native", 1, 0x100, False), ("native", 1, address, False)])
    d.info("limit.as", str(1 << 30))
    d.info("sampled.every", "524288")
    d.info("sampled.exact_from", "65536")
    d.info("malloc.owner", "/lib/libc.so.6")
    events, cache = [], []
    for i in range(kept):
        ticks = UNTIL // kept * i + 1
        if leaks:
            events.append((ticks, 0x10000000000 + i * 262144, 200000, 1))
        if i >= kept - content:  # the cache's present content, and no earlier one
            cache.append(0x20000000000 + i * 262144)
            events.append((ticks + 1, cache[-1], 200000, 2))
    chunks = []
    for n in range(parts):
        p = writer.part(7, n, size=4 * writer.SLOT)
        p.extended(SHARED_THREAD, 1, 1001)
        for ticks, address, size, stack in events[len(events) * n // parts:len(events) * (
            n + 1) // parts]:
            p.alloc(address, size, stack, ticks)
        if n == parts - 1:
            for k in range(1, 11):
                grown = (leaks * kept * k // 10 + content) * 200000
                last = (leaks * kept * (k - 1) // 10 + content * (k > 1)) * 200000
                if k == 10:
                    p.extended(CHECKPOINT, UNTIL // 10 * 9, 200 << 20, 1000000,
                               (100 << 30) + grown - last, 999000, 100 << 30,
                               grown + (10 << 20), 17, ticks=UNTIL)
        chunks.append(p)
    c = writer.Chunk(1, UNTIL + 1, sequence=200, size=8 * writer.SLOT)
    for i in range(600):
        ticks = UNTIL + (i + 1) * SECOND
        c.free(cache[i % content], ticks)
        cache[i % content] = 0x30000000000 + i * 262144
        c.alloc(cache[i % content], 200000, 2, ticks + 1)
        if leaks:
            c.alloc(0x40000000000 + i * 262144, 200000, 1, ticks + 2)
        c.alloc(0x50000000000, 100000, 3, ticks + 3)
        c.free(0x50000000000, ticks + 4)
    if leaks:
        c.levels(FAILED, (0, 0, 1, 12, 200000, 0, 0, 1), ((5, 1023 << 20), (128, 1 << 30)),
                 ticks=UNTIL + 601 * SECOND)
    return [d, *chunks, c]


class Checkpoints(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="checkpoint.")
        self.addCleanup(top.cleanup)
        self.folder = pathlib.Path(top.name) / "t"

    def write(self, chunks, slots=((7, 2, UNTIL), (0, 0, 0)), **more):
        self.folder.mkdir(exist_ok=True)
        (self.folder / "4711.0.whyoom").write_bytes(writer.trace(
            chunks, major=2, minor=4, mode=1, checkpoints=slots, **more))

    def run_it(self, *words, status=0):
        done = subprocess.run([WHYOOM, *words, str(self.folder)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if not status else done.stderr

    def report(self):
        return json.loads(self.run_it("report", "--format", "json"))

    def test_a_leak_of_all_the_time(self):
        self.write(server(True), end=(1, 1), flags=10)
        r = self.report()
        self.assertEqual(r["verdict"]["cause"], "leak")
        past = r["coverage"]["checkpoint"]
        self.assertEqual((past["until_seconds"], past["left_out"], past["damaged"], past["lost"]),
                         (3000, 17, False, False))
        self.assertEqual(len(past["periods"]), 1)
        self.assertFalse(r["coverage"]["trace_complete"])
        # The live blocks are there with their births, from before or after.
        self.assertGreaterEqual(r["verdict"]["blame"]["bytes"], 3600 * 200000)
        text = self.run_it("report")
        self.assertIn("the trace summarises the first 50 min 00 s: it has the blocks that "
                      "outlived them", " ".join(text.split()))
        # The number acquired there before the checkpoint is unknown, and so is the share that
        # stayed.
        self.assertIn("687 MiB leaked in server+0xfff: 3,600 blocks are still there",
                      " ".join(text.split()))
        self.assertIn("There was no room for 17 events", " ".join(text.split()))

    def test_thinned_out(self):
        """Blocks that made room for live ones are reported, with their effect on the error."""
        chunks = server(False)
        for i, (mean, blocks) in enumerate(((1 << 20, 500), (4 << 20, 700))):
            chunks[-1].extended(NOTICE, 8, blocks, mean, 65536, ticks=UNTIL + (601 + i) * SECOND)
        chunks[-1].extended(SAMPLED_ALLOC, 0x60000000000, 4096, 4 << 20, 3, 0,
                            ticks=UNTIL + 604 * SECOND)
        self.write(chunks, end=(1, 0))
        sampled = self.report()["coverage"]["sampled"]
        self.assertEqual([sampled["thinned_" + k] for k in ("times", "blocks", "every_bytes")],
                         [2, 1200, 4 << 20])
        self.assertNotIn("coarser_times", sampled)
        self.assertAlmostEqual(sampled["error_bytes"], 4 << 20, delta=4096)
        text = " ".join(self.run_it("report").split())
        self.assertIn("The live blocks took too much of --max-trace: 2 times the sample was "
                      "thinned, by 1,200 blocks in all", text)
        self.assertIn("now has one for each 4.00 MiB;", text)

    def test_told_in_brief(self):
        """Definitions used up their share: the report tells what is missing, and that the record is
        incomplete."""
        chunks = server(False)
        chunks[0].module(2, "/lib/x86_64-linux-gnu/libc.so.6")
        chunks[0].stack(4, [("native", 1, 0x100, False), ("cut", 0), ("native", 2, 0x4000, False)])
        chunks[-1].alloc(0x60000000000, 1 << 24, 4, UNTIL + 604 * SECOND)
        self.write(chunks, end=(1, 0), in_brief=(1234, 5678))
        c = self.report()["coverage"]
        self.assertEqual((c["brief_stacks"], c["untold"], c["lost_events"], c["trace_complete"]),
                         (1234, 5678, 0, False))
        text = " ".join(self.run_it("report").split())
        self.assertIn("1,234 stacks. There was no room even for these with 5,678 events", text)
        text = " ".join(self.run_it("check").split())
        self.assertIn("ran out of room for stacks: 1,234 are shortened, and 5,678 events have "
                      "none", text)
        sites = json.loads(self.run_it("sites", "--at", "end", "--format", "json"))["sites"]
        self.assertIn("server+0xff", [s["function"] for s in sites])  # and not the omitted ones
        self.assertIn("[frames left out]", json.dumps(sites))

    def test_a_leak_shortly_after(self):
        """The checkpoint covers weeks, the events since a fifteenth: those do not decide alone."""
        self.write(server(True, kept=9000), end=(1, 1), flags=10)
        r = self.report()
        self.assertEqual(r["verdict"]["cause"], "leak")
        self.assertGreaterEqual(r["verdict"]["blame"]["bytes"], 9000 * 200000)

    def test_a_large_cache_shortly_after(self):
        """All of the cache's earlier content is there as well, but newer blocks replaced some."""
        chunks = server(False, kept=9000, content=9000)
        chunks[-1].levels(FAILED, (0, 0, 1, 12, 200000, 0, 0, 1), ((5, 1023 << 20), (128, 1 << 30)),
                          ticks=UNTIL + 601 * SECOND)
        self.write(chunks, end=(1, 1), flags=10)
        self.assertNotEqual(self.report()["verdict"]["cause"], "leak")

    def late(self, exchanged):
        """Kept blocks began half-way, in one request of two; by the sums, `exchanged` more bytes
        lived at each moment without outliving it."""
        d, part, c = server(False)[0], writer.part(7, 0, size=4 * writer.SLOT), writer.Chunk(
            1, UNTIL + 1, sequence=200)
        p, before, kept = part, 0, 0
        p.extended(SHARED_THREAD, 1, 1001)
        for k in range(1, 11):
            for i in range(200 * (k > 5)):
                p.alloc(0x10000000000 + (k * 200 + i) * 262144, 200000, 1,
                        UNTIL * (k - 1) // 10 + UNTIL // 2000 * i)
                kept += 200000
            now = kept + (exchanged if k < 10 else 0)
            p.extended(CHECKPOINT, UNTIL // 10 * (k - 1), 20 << 20, 100000,
                       (10 << 30) + now - before, 99000, 10 << 30,
                       now + (10 << 20), 0, ticks=UNTIL // 10 * k)
            before = now
        for i in range(8):
            c.alloc(0x40000000000 + i * 262144, 200000, 1, UNTIL + (i + 1) * SECOND)
        c.levels(FAILED, (0, 0, 1, 12, 200000, 0, 0, 1), ((5, 1023 << 20), (128, 1 << 30)),
                 ticks=UNTIL + 9 * SECOND)
        self.write([d, part, c], slots=((7, 1, UNTIL), (0, 0, 0)), end=(1, 1), flags=10)
        return self.report()["verdict"]

    def test_a_leak_that_began_late(self):
        self.assertEqual(self.late(20 << 20)["cause"], "leak")

    def test_a_cache_that_is_exchanged(self):
        """Its present content is as even; but as much lived before, and is released."""
        verdict = self.late(190 << 20)
        self.assertEqual(verdict["cause"], "unknown")
        self.assertIn("--max-trace", verdict["next"])

    def anew(self, sizes, since=4):
        """A buffer that was made anew a thousand times in each of as many periods as there are
        sizes, and some times since; the next one is refused."""
        d, p, c = server(False)[0], writer.part(7, 0), writer.Chunk(1, UNTIL + 1, sequence=200)
        p.extended(SHARED_THREAD, 1, 1001)
        for k, size in enumerate(sizes, 1):
            end = UNTIL // len(sizes) * k
            if k == len(sizes):
                p.alloc(0x10000000000, size, 1, end - 700)
            p.extended(WENT, 0, 1, 1000, 1000 * size, size, 1000000, 2000000, ticks=end - 600)
            p.extended(WENT, 0, 2, 100000, 100000 * 300, 400, 10000, 20000, ticks=end - 300)
            p.extended(CHECKPOINT, UNTIL // len(sizes) * (k - 1), 20 << 20, 100000, 1001 * size,
                       99000, 1000 * size, 2 * size, 0,
                       ticks=end)
        for i in range(since):
            c.alloc(0x20000000000 + (i << 32), sizes[-1], 1, UNTIL + 10 * i + 10)
            c.free(0x20000000000 + (i - 1 << 32) if i else 0x10000000000, UNTIL + 10 * i + 11)
        c.levels(FAILED, (0, 0, 1, 12, sizes[-1], 0, 0, 1),
                 ((5, 2 * sizes[-1]), (128, 2 * sizes[-1])), ticks=UNTIL + 1000)
        self.write([d, p, c], slots=((7, 1, UNTIL // len(sizes) * len(sizes)), (0, 0, 0)),
                   end=(1, 1), flags=10)
        return self.report()["verdict"]

    def test_what_was_made_anew(self):
        """One buffer is left; the released ones tell that they grew."""
        verdict = self.anew([k << 24 for k in range(1, 11)])
        self.assertEqual(verdict["cause"], "prompt-growth")
        self.assertEqual(verdict["blame"]["function"], "server+0xfff")
        self.assertGreater(verdict["confidence"], 0.7)
        facts = {e["fact"]: e["value"] for e in verdict["evidence"]}
        self.assertEqual((facts["block size, early"], facts["blocks acquired there"]),
                         (1 << 24, 10005))

    def test_what_was_made_anew_alike(self):
        for sizes in ([10 << 24] * 10, [(k * 7 % 10 + 1) << 24 for k in range(10)],
                      [1 << 24] * 5 + [10 << 24] * 5):
            self.assertNotEqual(self.anew(sizes)["cause"], "prompt-growth", sizes)

    def test_missing_for_a_moment(self):
        """Events without room during a checkpoint are not all events from then on."""
        for flags, words in ((0, "5 events are missing, because there was no room for them while "
                              "a checkpoint replaced older events"),
                             (1, "from then on blocks under 64 KiB are missing")):
            self.write(server(False), flags=flags, dropped=(0, 0, 0, 0, 5))
            self.assertIn(words, " ".join(self.run_it("check").split()))

    def test_a_cache_is_none(self):
        """An excessive request is refused while the cache exchanges its content: the cache did not
        leak, whichever call site is to blame."""
        chunks = server(False)
        chunks[-1].levels(FAILED, (0, 0, 1, 12, 1 << 30, 0, 0, 3), ((5, 200 << 20), (128, 1 << 30)),
                          ticks=UNTIL + 601 * SECOND)
        self.write(chunks, end=(1, 1), flags=10)
        r = self.report()
        self.assertNotIn(r["verdict"]["cause"], ("leak", "state-retention", "prompt-growth"))

    def test_nothing_ran_out(self):
        self.write(server(False), end=(1, 0))
        r = self.report()
        self.assertEqual(r["verdict"]["cause"], "healthy")
        facts = {e["fact"]: e["value"] for e in r["verdict"]["evidence"]}
        self.assertEqual(facts["most that lived at a time before the checkpoint"],
                         300 * 200000 + (10 << 20))

    def test_lost(self):
        """None is whole: the earlier time is lost, and never counts as healthy."""
        chunks = server(False)
        chunks[1].seal = False
        self.write(chunks, end=(1, 0))
        r = self.report()
        self.assertEqual(r["verdict"]["cause"], "unknown")
        self.assertTrue(r["coverage"]["checkpoint"]["lost"])
        self.assertIn("checkpoint", r["coverage"]["gap"])
        self.run_it("check", status=1)

    def test_packed(self):
        self.write(server(True), end=(1, 1), flags=10)
        before = [self.run_it(*words) for words in (("report", "--format", "json"), ("sites",),
                                                    ("check", "--format", "json"))]
        self.run_it("pack")
        after = [self.run_it(*words) for words in (("report", "--format", "json"), ("sites",),
                                                   ("check", "--format", "json"))]
        self.assertEqual(before, after)

    def test_every_other_command(self):
        self.write(server(True), end=(1, 1), flags=10)
        self.assertIn("server+0xfff", self.run_it("sites"))
        self.run_it("map")
        self.run_it("what-if", "--memory", "64GiB")
        self.assertIn("are summarised (a checkpoint): only the blocks that outlived",
                      " ".join(self.run_it("replay").split()))
        small = self.folder.parent / "small"
        self.run_it("reduce", "--time", "3", "-o", str(small))
        self.folder = small  # is a trace of its own, without a past
        self.assertNotIn("checkpoint", self.report()["coverage"])


if __name__ == "__main__":
    unittest.main()
