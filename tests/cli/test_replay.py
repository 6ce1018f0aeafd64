"""`whyoom replay`: programs that run into a limit fail again at the same request, without the
program; others do not."""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
import busy  # noqa: E402
from test_what_if import CUDA, Record, fragmented  # noqa: E402
from writer import Chunk, Definitions, trace  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "analyzer",
                      "report", "schemas", "replay-schema.json")
MIB = 1 << 20
LIMIT = 256 * MIB

# The size of each piece of a session, and the ending: by its argument.
PROGRAM = busy.HEAD + r"""
#define KIB 1024ul
#define THREADS 3

static void serve(unsigned steps, size_t n)
{
	for (unsigned i = 0; i < steps; i++) {
		work(i);
		kept[i] = keep(n);
		usleep(500);
	}
}

static void *worker(void *arg)
{
	for (unsigned i = 0; i < 400; i++)
		work(i + (unsigned)(size_t)arg * 1000);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	pthread_t threads[THREADS];

	if (!strcmp(what, "leak")) {
		serve(100000, 300 * KIB);
	} else if (!strcmp(what, "fits")) {
		serve(200, 300 * KIB);
	} else if (!strcmp(what, "threads")) {
		for (size_t i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, worker, (void *)i);
		serve(100000, 700 * KIB);
	} else if (!strcmp(what, "mapped")) {
		char *p = mmap(NULL, 100 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(p, 1, 50 << 20);
		munmap(p + (40 << 20), 20 << 20);
		serve(100000, 500 * KIB);
	} else if (!strcmp(what, "killed")) {
		serve(300, 300 * KIB);
		kill(getpid(), SIGKILL);
	}
	return 0;
}
"""


def build(folder):
    source, program = os.path.join(folder, "p.c"), os.path.join(folder, "p")
    with open(source, "w") as f:
        f.write(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-w", "-pthread", "-o", program, source], check=True)
    return program


class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = build(cls.folder.name)
        cls.traces = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def trace(self, what, kind=resource.RLIMIT_AS, limit=LIMIT):
        """Recorded once for all tests."""
        if what not in self.traces:
            out = os.path.join(self.folder.name, what)

            def limits():
                if kind is not None:
                    resource.setrlimit(kind, (limit, limit))

            # With several arenas chance decides which one the last piece comes from.
            subprocess.run([WHYOOM, "run", "-o", out, "--", self.program, what],
                           capture_output=True, preexec_fn=limits,
                           env={**os.environ, "MALLOC_ARENA_MAX": "1"})
            self.traces[what] = out
        return self.traces[what]

    def replay(self, trace, *options):
        run = subprocess.run([WHYOOM, "replay", "--format", "json", *options, trace],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        answer = json.loads(run.stdout)
        try:
            import jsonschema
        except ImportError:
            return answer
        with open(SCHEMA) as f:
            jsonschema.validate(answer, json.load(f))
        return answer

    def same(self, answer):
        self.assertIs(answer["same_failure"], True, answer)
        self.assertEqual(answer["original"]["event"], answer["replayed"]["event"])
        self.assertEqual(answer["original"]["requested_bytes"],
                         answer["replayed"]["requested_bytes"])
        self.assertEqual(answer["allocators"][0]["peak_live"], answer["peak_live"])
        self.assertEqual(answer["original"]["stack"], answer["replayed"]["stack"])
        self.assertIn("serve", [f["function"] for f in answer["replayed"]["stack"]])

    def test_leak(self):
        r = self.replay(self.trace("leak"))
        self.same(r)
        # Pages decide which of the two finds no room first: the kept blocks, or the work's.
        wanted = r["original"]["requested_bytes"]
        self.assertTrue(wanted == 300 * 1024 or 100 <= wanted <= 30000, wanted)
        self.assertEqual(r["limit_kind"], "RLIMIT_AS")
        self.assertEqual(r["allocators"][0]["name"], "glibc")
        self.assertLess(abs(r["resident_curve"]["deviation"]), 0.1)

    def test_speed(self):
        trace = self.trace("leak")
        r = self.replay(trace)
        self.assertIsNone(r["speed"])
        speed = r["original"]["seconds"] / 1.5
        began = time.monotonic()
        r = self.replay(trace, "--speed", "%f" % speed)
        self.assertGreater(time.monotonic() - began, 1.4)
        self.same(r)
        self.assertAlmostEqual(r["speed"], speed, places=4)
        for wrong in ("0", "-1", "fast", "2x", "nan", ""):
            run = subprocess.run([WHYOOM, "replay", "--speed", wrong, trace], capture_output=True,
                                 text=True)
            self.assertEqual(run.returncode, 2, wrong)
            self.assertIn("--speed", run.stderr)

    def test_data(self):
        out = self.trace("data", None)
        subprocess.run(["rm", "-rf", out])

        def limits():
            resource.setrlimit(resource.RLIMIT_DATA, (200 * MIB, 200 * MIB))

        subprocess.run([WHYOOM, "run", "-o", out, "--", self.program, "leak"], capture_output=True,
                       preexec_fn=limits)
        r = self.replay(out)
        self.same(r)
        self.assertEqual(r["limit_kind"], "RLIMIT_DATA")

    def test_threads(self):
        self.same(self.replay(self.trace("threads")))

    def replay_threads(self, name, *options):
        """Under glibc's own number of arenas: at the limit it lives on from the arenas of its
        threads. If the threads contended, arenas took so much of the limit that it is recorded
        again."""
        for n in range(5):
            r = self.replay(self.record_threads(f"{name}.{n}", *options))
            if r["allocators"][0]["peak_live"] > LIMIT / 2:
                break
        return r

    def record_threads(self, name, *options):
        out = os.path.join(self.folder.name, name)

        def limits():
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

        subprocess.run([WHYOOM, "run", "-o", out, *options, "--", self.program, "threads"],
                       capture_output=True,
                       preexec_fn=limits)
        return out

    def close(self, answer):
        """The same line, within a few of its 700 KiB: any thread may get the last piece, and which
        arena a thread gets depends on whom it meets on a busy machine."""
        self.assertIs(answer["same_failure"], True, answer)
        self.assertGreaterEqual(answer["replayed"]["event"], 0.95 * answer["original"]["event"])
        self.assertEqual(answer["replayed"]["requested_bytes"], 700 * 1024)
        self.assertEqual(answer["original"]["stack"], answer["replayed"]["stack"])

    def test_arenas(self):
        r = self.replay_threads("arenas")
        self.close(r)
        # The threads' stacks are not charged to the rest.
        self.assertLess(r["beside_bytes"], 12 * MIB)

    def test_sampled(self):
        """A trace at its largest size has only large blocks from then on."""
        r = self.replay_threads("sampled", "--max-trace", "2MiB")
        self.assertTrue(any("not recorded" in n for n in r["notes"]), r["notes"])
        self.close(r)

    def test_mappings(self):
        self.same(self.replay(self.trace("mapped")))

    def test_healthy(self):
        r = self.replay(self.trace("fits", None))
        self.assertIs(r["same_failure"], True)
        self.assertIsNone(r["original"])
        self.assertIsNone(r["replayed"])

    def test_killed(self):
        r = self.replay(self.trace("killed", None))
        if r["original"]:  # else the machine had so much left that it was no OOM kill
            self.assertEqual(r["original"]["kind"], "oom-kill")
        self.assertGreater(r["allocators"][0]["peak_resident"], 0.8 * 300 * 300 * 1024)

    def test_more_memory(self):
        r = self.replay(self.trace("leak"), "--memory", "4GiB")
        self.assertIsNone(r["replayed"])
        self.assertIs(r["allocators"][0]["granted"], True)
        self.assertGreater(r["lasts_seconds"], 1)

    def test_less_memory(self):
        r = self.replay(self.trace("leak"), "--memory", "128MiB")
        self.assertIs(r["same_failure"], False)
        self.assertLess(r["replayed"]["event"], 0.7 * r["original"]["event"])
        self.assertIn("serve", [f["function"] for f in r["replayed"]["stack"]])

    def test_no_touch(self):
        r = self.replay(self.trace("leak"), "--no-touch")
        self.same(r)
        self.assertLess(r["allocators"][0]["peak_resident"], r["peak_live"] / 4)

    def test_compare(self):
        r = self.replay(self.trace("leak"), "--compare", "glibc,jemalloc,mimalloc")
        self.assertEqual([a["name"] for a in r["allocators"]], ["glibc", "jemalloc", "mimalloc"])
        for a in r["allocators"]:
            if a["missing"]:
                self.assertIn(a["name"], a["missing"])
            else:
                self.assertLessEqual(a["peak_live"], r["peak_live"])
                self.assertGreater(a["peak_resident"], 0)

    def test_text(self):
        run = subprocess.run([WHYOOM, "replay", self.trace("leak")], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("Reproduced: it fails where it failed, under "
                                              "RLIMIT_AS of 256 MiB"), run.stdout)
        self.assertRegex(run.stdout, r"recorded +[\d.]+ (KiB|B) refused after .* at event [0-9,]+")
        self.assertRegex(run.stdout, r"glibc +\S+ MiB +\S+ MiB +\S+ % +\S+ MiB +[0-9,]+")
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 80)

    def held(self, trace, *options):
        """It stops with its blocks available; both end with the test."""
        whyoom = subprocess.Popen([WHYOOM, "replay", "--hold", *options, trace],
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        try:
            pid = None
            for line in whyoom.stderr:
                found = re.match(r"whyoom: process (\d+) is stopped at the failure", line)
                if found:
                    pid = int(found.group(1))
                    break
            self.assertIsNotNone(pid)
            with open("/proc/%d/status" % pid) as f:
                self.assertRegex(f.read(), r"State:\s+T")
        finally:
            whyoom.terminate()
            whyoom.wait()
            whyoom.stderr.close()
        for _ in range(100):
            if not os.path.exists("/proc/%d" % pid):
                return
            subprocess.run(["sleep", "0.05"])
        self.fail("the player outlived the command")

    def test_hold(self):
        self.held(self.trace("leak"))
        self.held(self.trace("leak"), "--until", "failure")
        self.held(self.trace("fits", None), "--until", "end")
        done = subprocess.run([WHYOOM, "replay", "--hold", self.trace("fits", None)],
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0)

    def blocks(self, count, size, page=4096):
        """Blocks without samples: all of them count as written."""
        chunk = Chunk(1, 0)
        for i in range(count):
            chunk.alloc(0x10000000 + i * size, size - page, ticks=1000 * (i + 1))
        return trace([Definitions(0), chunk], end=(1, 0), end_mono_ns=1000 * (count + 1))

    def test_another_machine(self):
        """From another C library and page size: pieces of its mappings are whole pages there,
        too."""
        page = 65536
        d, chunk = Definitions(0), Chunk(1, 0)
        d.info("page.size", str(page))
        d.info("libc", "2.17")
        d.info("malloc.owner", "/lib64/libc.so.6")
        for i in range(50):
            chunk.alloc(0x10000000 + i * page, 40000, ticks=1000 * (i + 1))
        for i in range(0, 50, 2):
            chunk.free(0x10000000 + i * page, ticks=1000 * (i + 51))
        path = os.path.join(self.folder.name, "4713.0.whyoom")
        with open(path, "wb") as f:
            f.write(trace([d, chunk], end=(1, 0), end_mono_ns=200000))
        r = self.replay(path)
        self.assertIs(r["same_failure"], True)
        self.assertEqual(r["peak_live"], 50 * 40000)
        self.assertEqual(r["allocators"][0]["peak_live"], 50 * 40000)
        self.assertEqual(r["allocators"][0]["end_live"], 25 * 40000)
        self.assertTrue(any("Pages had 64.0 KiB" in n for n in r["notes"]), r["notes"])
        self.assertTrue(any("glibc 2.17" in n for n in r["notes"]), r["notes"])

    def test_torn(self):
        """The machine went down: the file ends anywhere."""
        whole = self.trace("leak")
        name = next(n for n in os.listdir(whole) if n.endswith(".whyoom") and n != "run.whyoom")
        with open(os.path.join(whole, name), "rb") as f:
            data = f.read()
        path, most = os.path.join(self.folder.name, name), self.replay(whole)["peak_live"]
        for part in range(2, 9):
            with open(path, "wb") as f:
                f.write(data[: len(data) // part // 4096 * 4096 + 77])
            r = self.replay(path)
            self.assertGreater(r["peak_live"], 0)
            if r["peak_live"] < most:
                break
        self.assertLess(r["peak_live"], most)
        self.assertIsNone(r["replayed"])
        self.assertEqual(r["allocators"][0]["peak_live"], r["peak_live"])

    def test_no_room(self):
        """4 TiB: refused before it starts, with the size that would fit; that much, and all of it
        without writing, is played."""
        path = os.path.join(self.folder.name, "4712.0.whyoom")
        with open(path, "wb") as f:
            f.write(self.blocks(4096, 1 << 30))
        run = subprocess.run([WHYOOM, "replay", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stdout)
        found = re.search(r"would write to 4\.\S+ TiB.* enough up to event ([0-9,]+)", run.stderr)
        self.assertIsNotNone(found, run.stderr)
        self.assertLess(int(found.group(1).replace(",", "")), 4096)
        self.assertIn("--no-touch", run.stderr)
        r = self.replay(path, "--no-touch")
        self.assertIsNone(r["replayed"])
        self.assertEqual(r["allocators"][0]["peak_live"], r["peak_live"])
        r = self.replay(path, "--memory", "1536MiB")
        self.assertLessEqual(r["replayed"]["event"], 1)
        self.assertLess(r["allocators"][0]["peak_resident"], 1536 * MIB)

    def save(self, record):
        path = os.path.join(self.folder.name, "4711.0.whyoom")
        with open(path, "wb") as f:
            f.write(record.bytes())
        return path

    def test_torch(self):
        """Without a GPU: the refused request is the seventh."""
        trace = self.save(fragmented())
        r = self.replay(trace)
        self.assertIs(r["same_failure"], True)
        self.assertEqual((r["replayed"]["space"], r["replayed"]["event"],
                          r["replayed"]["requested_bytes"]),
                         ("torch:0", 7, 200 * MIB))
        self.assertEqual(r["headroom_bytes"], -100 * MIB)
        r = self.replay(trace, "--memory", "1100MiB")
        self.assertIsNone(r["replayed"])
        self.assertEqual(r["headroom_bytes"], 0)
        # The replay reports the request that fails earlier.
        r = self.replay(trace, "--memory", "850MiB")
        self.assertIs(r["same_failure"], False)
        self.assertEqual((r["replayed"]["event"], r["replayed"]["requested_bytes"]), (3, 150 * MIB))

    def test_driver(self):
        """cuMemAlloc's own: 900 of 1,000 MiB were free at first; 800 are taken."""
        record = Record()
        record.segment(0, 500)
        record.segment(500, 300)
        record.levels(CUDA, (96, 100 * MIB), (97, 1000 * MIB))
        record.events.extended(21, CUDA, 0, 2, 2, 200 * MIB, 0, 0, 2, 0, 1, 0, 0, 0,
                               ticks=record.now())
        trace = self.save(record)
        r = self.replay(trace)
        self.assertIs(r["same_failure"], True)
        self.assertEqual((r["original"]["space"], r["original"]["event"]), ("cuda:0", 3))
        self.assertEqual(r["headroom_bytes"], -100 * MIB)
        self.assertIsNone(self.replay(trace, "--memory", "1100MiB")["replayed"])
        self.assertEqual(self.replay(trace, "--memory", "800MiB")["replayed"]["event"], 2)

    def test_settings(self):
        """Other settings of PyTorch's, put to the model: the free ranges of 150 MiB segments serve
        200 MiB when pages move."""
        trace = self.save(fragmented())
        r = self.replay(trace, "--alloc-conf", "expandable_segments:True")
        self.assertIs(r["same_failure"], False)
        self.assertIsNone(r["replayed"])
        self.assertEqual(r["torch"]["alloc_conf"], "expandable_segments:True")
        self.assertEqual(r["torch"]["model"]["granted_refusals"], 1)
        self.assertIsNone(r["torch"]["own"])
        r = self.replay(trace, "--alloc-conf", "per_process_memory_fraction:0.7")
        self.assertEqual(r["replayed"]["event"], 3)
        self.assertEqual(r["torch"]["model"]["failed_at"]["reserved_bytes"], 650 * MIB)

    def through(self, lines, status=0):
        """Run the replay with a program in PyTorch's place; return that program's arguments, and
        the command."""
        fake, seen = os.path.join(self.folder.name,
                                  "python"), os.path.join(self.folder.name, "seen")
        with open(fake, "w") as f:
            f.write("#!/bin/sh\n(echo \"$PYTORCH_CUDA_ALLOC_CONF\"; echo $WHYOOM_SIMGPU; echo $3 "
                    "$4; cat $2) >%s\n"
                    "cat <<'EOF'\n%s\nEOF\nexit %d\n" % (seen, "\n".join(lines), status))
        os.chmod(fake, 0o755)
        run = subprocess.run([WHYOOM, "replay", "--format", "json", "--through", "torch",
                              "--python", fake, "--alloc-conf",
                              "max_split_size_mb:64", self.save(fragmented())], capture_output=True,
                             text=True)
        with open(seen) as f:
            return f.read().splitlines(), run

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"),
                     "it would be asked on the machine's own device")
    def test_through(self):
        """PyTorch's own allocator gets the model's requests; the answers are compared."""
        answer = ["torch 9.9", "device Simulated", "peak_reserved %d" % (800 * MIB),
                  "peak_allocated %d" % (800 * MIB),
                  "granted 0", "refused 7 %d %d %d" % (200 * MIB, 800 * MIB, 550 * MIB), "done 1"]
        seen, run = self.through(answer)
        self.assertEqual(seen[:3], ["max_split_size_mb:64", str(1000 * MIB), "%d 0" % (1000 * MIB)])
        self.assertEqual(seen[3:], [
            "r %d" % (900 * MIB), "a 1 %d 0 0 1" % (500 * MIB), "a 2 %d 0 0 1" % (150 * MIB),
            "a 3 %d 0 0 1" % (150 * MIB), "f 2", "f 3", "a 4 %d 0 0 1" % (20 * MIB),
            "a 5 %d 0 0 1" % (120 * MIB),
            "a 6 %d 0 0 1" % (30 * MIB), "f 5", "a 7 %d 0 0 0" % (200 * MIB)])
        r = json.loads(run.stdout)["torch"]
        self.assertEqual(r["own"]["failed_at"]["event"], 7)
        self.assertEqual(r["own"]["device"], "simulated")
        # With that setting the model splits no block of 64 MiB and more.
        self.assertEqual(r["agree"], r["model"]["failed_at"] is not None
                         and r["model"]["failed_at"]["event"] == 7 and
                         r["model"]["peak_reserved"] == 800 * MIB)
        answer[2] = "peak_reserved %d" % (801 * MIB)
        self.assertIs(json.loads(self.through(answer)[1].stdout)["torch"]["agree"], False)

    def test_through_fails(self):
        _, run = self.through(["error no torch here"], 1)
        self.assertEqual(run.returncode, 1)
        self.assertIn("did not answer: no torch here", run.stderr)
        run = subprocess.run([WHYOOM, "replay", "--through", "torch", "--python", "/no/python",
                              self.save(fragmented())],
                             capture_output=True, text=True)
        self.assertIn("cannot start /no/python: No such file", run.stderr)

    def test_without_blocks(self):
        run = subprocess.run([WHYOOM, "replay", "--alloc-conf", "backend:native",
                              self.trace("leak")],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("PyTorch had no blocks", run.stderr)

    def test_usage(self):
        for arguments, words in ((["replay"], "no trace"),
                                 (["replay", "--compare", "dlmalloc", "x"], "glibc, jemalloc"),
                                 (["replay", "--memory", "much", "x"], "--memory is a size"),
                                 (["replay", "--python", "python3", "x"],
                                  "--python is for --through torch"),
                                 (["replay", "--through", "jax", "x"], "--through is torch"),
                                 (["replay", "--alloc-conf", "backend:native,max_split_size_mb:3",
                                   "x"],
                                  "'max_split_size_mb:3', at character 16: max_split_size_mb takes "
                                  "a number of MiB"),
                                 (["replay", "--alloc-conf", "max_split:3", "x"],
                                  "there are expandable_segments"),
                                 (["replay", "--alloc-conf", "backend:cudaMallocAsync", "x"],
                                  "is the driver's allocator")):
            run = subprocess.run([WHYOOM, *arguments], capture_output=True, text=True)
            self.assertEqual(run.returncode, 2)
            self.assertIn(words, run.stderr)


if __name__ == "__main__":
    unittest.main()
