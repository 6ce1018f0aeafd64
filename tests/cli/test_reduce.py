"""`whyoom reduce`: a reduced trace is far smaller, has the same cause, and fails when it is
replayed; the program written from it is refused the same request."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
import busy  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "analyzer",
                      "report", "schemas", "reduce-schema.json")
MIB = 1 << 20
LIMIT = 256 * MIB

PROGRAM = busy.HEAD + r"""
/* The prompt is made anew from all that was said. */
static __attribute__((noinline)) char *prompt(char *old, size_t n)
{
	char *p = realloc(old, n);

	if (!p)
		exit(1);
	memset(p, 3, n);
	return p;
}

static void *worker(void *arg)
{
	for (unsigned i = 0; i < 200; i++)
		work(i + (unsigned)(size_t)arg * 1000);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char *text = NULL;

	pthread_create(&thread, NULL, worker, (void *)1);
	for (unsigned i = 0; i < 100000; i++) {
		work(i);
		if (!strcmp(argv[1], "leak") || (!strcmp(argv[1], "killed") && i < 400))
			kept[i] = keep(300 << 10);
		else if (!strcmp(argv[1], "prompt"))
			text = prompt(text, (i + 1) * (2u << 20));
		else if (!strcmp(argv[1], "killed"))
			kill(getpid(), SIGKILL);
		else if (i == 100)
			break;
		usleep(300);
	}
	pthread_join(thread, NULL);
	return 0;
}
"""

DEVICE = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int (*allocate)(unsigned long long *, size_t), (*release)(unsigned long long);

static __attribute__((noinline)) void answer(unsigned i)
{
	unsigned long long scratch, state;

	if (allocate(&scratch, (1 + i % 3) << 20) || allocate(&state, 8 << 20))
		exit(1);
	release(scratch);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;

	((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
	((int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
	((int (*)(void *))dlsym(driver, "cuCtxSetCurrent"))(context);
	allocate = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
	release = (int (*)(unsigned long long))dlsym(driver, "cuMemFree_v2");
	for (unsigned i = 0;; i++) {
		free(malloc(1000 + i));
		answer(i);
		usleep(500);
	}
}
"""


class Reduce(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        source, cls.program = os.path.join(cls.folder, "p.c"), os.path.join(cls.folder, "p")
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-w", "-pthread", "-o", cls.program, source],
                       check=True)
        cls.traces = {}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, what, kind=resource.RLIMIT_AS):
        """Recorded once for all tests."""
        if what not in self.traces:
            def limits():
                if kind is not None:
                    resource.setrlimit(kind, (LIMIT, LIMIT))

            subprocess.run([WHYOOM, "run", "-o", self.path(what), "--", self.program, what],
                           capture_output=True,
                           preexec_fn=limits, env={**os.environ, "MALLOC_ARENA_MAX": "1"})
            self.traces[what] = self.path(what)
        return self.traces[what]

    def whyoom(self, *args, status=0):
        run = subprocess.run([WHYOOM, *args], capture_output=True, text=True)
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stderr if status else run.stdout

    def reduce(self, trace, name, *options):
        answer = json.loads(self.whyoom("reduce", trace, "-o", self.path(name), "--format", "json",
                                        *options))
        try:
            import jsonschema
        except ImportError:
            return answer
        with open(SCHEMA) as f:
            jsonschema.validate(answer, json.load(f))
        return answer

    def report(self, trace):
        return json.loads(self.whyoom("report", "--format", "json", trace))

    def build(self, source):
        """Compiled without a warning, of fewer than 200 lines; run."""
        with open(source) as f:
            self.assertLess(len(f.readlines()), 200)
        done = subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", source[:-2],
                               source, "-pthread", "-ldl"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return source[:-2]

    def replays(self, what):
        """A trace that fails when it is replayed: with hardly any of the limit left before the
        refused request, an allocator's last piece decides, and one trace in some does not fail."""
        for _ in range(5):
            trace = self.trace(what)
            if json.loads(self.whyoom("replay", "--no-touch", "--format", "json",
                                      trace))["same_failure"]:
                return trace
            subprocess.run(["rm", "-rf", self.traces.pop(what)], check=True)
        self.fail("none of five recordings fails when it is replayed")

    def same(self, what, name, cause, times):
        trace, small = self.replays(what), self.path(name)
        answer = self.reduce(trace, name)
        self.assertIs(answer["fails_when_replayed"], True, answer)
        self.assertGreater(answer["original"]["events"], times * answer["reduced"]["events"])
        before, after = self.report(trace), self.report(small)
        for key in ("cause", "space"):
            self.assertEqual(before["verdict"][key], after["verdict"][key])
        self.assertEqual(after["verdict"]["cause"], cause)
        self.assertGreaterEqual(after["verdict"]["confidence"],
                                min(before["verdict"]["confidence"], 0.8) - 0.01)
        self.assertEqual(before["verdict"]["blame"]["function"],
                         after["verdict"]["blame"]["function"])
        for key in ("kind", "requested_bytes", "limit_kind", "stack"):
            self.assertEqual(before["failure"][key], after["failure"][key])
        self.assertEqual(len([p for p in after["processes"] if p["events"]]), 1)
        self.assertEqual(after["processes"][0]["events"], answer["reduced"]["events"])
        # Omitted blocks are in no row: the unaccounted bytes are unchanged.
        old, new = before["ledger"][0], after["ledger"][0]
        self.assertEqual(sum(r["bytes"] for r in new["rows"]) + new["unaccounted_bytes"],
                         new["limit_bytes"])
        self.assertLess(abs(new["unaccounted_bytes"] - old["unaccounted_bytes"]), 4 * MIB)
        return answer

    def test_leak(self):
        answer = self.same("leak", "small", "leak", 100)
        self.assertGreater(answer["limit_less_bytes"], LIMIT / 3)
        replayed = json.loads(self.whyoom("replay", "--format", "json", self.path("small")))
        self.assertIs(replayed["same_failure"], True)

    def test_again(self):
        """A reduced trace can be reduced again, without a loss."""
        first = self.reduce(self.trace("leak"), "once")
        second = self.reduce(self.path("once"), "twice")
        self.assertLessEqual(second["reduced"]["events"], first["reduced"]["events"])
        self.assertEqual(self.report(self.path("twice"))["verdict"]["cause"], "leak")

    def test_prompt(self):
        self.same("prompt", "grown", "prompt-growth", 150)

    def test_program(self):
        """One is written beside the trace, one to stdout; both are refused."""
        self.whyoom("reduce", self.trace("leak"), "-o", self.path("beside.whyoom"), "--emit", "c")
        run = subprocess.run([self.build(self.path("beside.c"))], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"refused, as recorded: \d+ bytes, under a limit of \d+")
        self.whyoom("reduce", self.trace("prompt"), "-o", self.path("alone.c"), "--emit", "c")
        run = subprocess.run([self.build(self.path("alone.c"))], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("/* prompt (p.c:", open(self.path("alone.c")).read())
        self.assertTrue(self.whyoom("reduce", self.path("beside.whyoom"), "--emit",
                                    "c").startswith("/*\n * leak:"))

    def test_program_killed(self):
        trace = self.trace("killed", None)
        self.assertEqual(self.report(trace)["verdict"]["cause"], "leak")
        self.whyoom("reduce", trace, "-o", self.path("ended.c"), "--emit", "c")
        program = self.build(self.path("ended.c"))
        self.assertEqual(subprocess.run([program]).returncode, -9)

    def test_device(self):
        source = self.path("d.c")
        with open(source, "w") as f:
            f.write(DEVICE)
        subprocess.run(["gcc", "-O1", "-g", "-w", "-o", self.path("d"), source, "-ldl"], check=True)
        trace = self.path("recorded")
        subprocess.run([WHYOOM, "run", "--simgpu", "2GiB", "-o", trace, "--", self.path("d")],
                       capture_output=True)
        self.assertEqual(self.report(trace)["verdict"]["cause"], "leak")
        answer = self.reduce(trace, "device")
        self.assertGreater(answer["original"]["events"], 20 * answer["reduced"]["events"])
        self.assertIs(answer["fails_when_replayed"], True)
        after = self.report(self.path("device"))
        self.assertEqual((after["verdict"]["cause"], after["failure"]["space"]), ("leak", "cuda:0"))
        self.assertEqual(after["verdict"]["blame"]["function"], "answer")
        self.whyoom("reduce", trace, "-o", self.path("card.c"), "--emit", "c")
        program = self.build(self.path("card.c"))
        # On a larger card, too.
        run = subprocess.run([WHYOOM, "run", "--simgpu", "3GiB", "-o", self.path("run"), "--",
                              program],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("CUDA_ERROR_OUT_OF_MEMORY", run.stdout)

    def test_text(self):
        out = self.whyoom("reduce", self.trace("leak"), "-o", self.path("told"))
        self.assertRegex(out, r"events +[0-9,]+ of [0-9,]+, [0-9]+ times fewer")
        self.assertRegex(out, r"cause +leak, confidence 0\.\d\d \(before: 0\.\d\d\)")
        self.assertLessEqual(max(map(len, out.splitlines())), max(80, len(self.path("told")) + 4))

    def test_refusals(self):
        self.assertIn("nothing failed in this trace",
                      self.whyoom("reduce", self.trace("fits", None), "-o", self.path("no"),
                                  status=1))
        self.assertFalse(os.path.exists(self.path("no")))
        os.mkdir(self.path("there"))
        self.assertIn("already exists", self.whyoom("reduce", self.trace("leak"), "-o",
                                                      self.path("there"), status=1))
        self.assertEqual(os.listdir(self.path("there")), [])
        self.assertIn("--emit is 'c'", self.whyoom("reduce", self.trace("leak"), "--emit", "rust",
                                                   status=2))
        self.assertIn("--time", self.whyoom("reduce", self.trace("leak"), "-o", "x", "--time", "0",
                                            status=2))
        missing = self.whyoom("reduce", self.trace("leak"), "-o", self.path("no/such/place"),
                              status=1)
        self.assertIn("No such file or directory", missing)

    def test_interrupted(self):
        """The output is made of the findings so far; no other file is left."""
        folder = self.path("clean")
        os.mkdir(folder)
        run = subprocess.Popen([WHYOOM, "reduce", self.trace("leak"), "-o",
                                os.path.join(folder, "small"), "--format", "json"],
                               stdout=subprocess.PIPE, text=True)
        while not os.listdir(folder) and run.poll() is None:
            time.sleep(0.005)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0)
        self.assertEqual(os.listdir(folder), ["small"])
        self.assertLess(json.loads(out)["reduced"]["events"], json.loads(out)["original"]["events"]
                        + 1)
        self.assertEqual(self.report(os.path.join(folder, "small"))["verdict"]["cause"], "leak")


if __name__ == "__main__":
    unittest.main()
