"""The answers of symbol files are kept: a second report is the same to the byte and reads no
symbols; it is the same without a cache directory, or with rubbish in it."""

import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

WHYOOM = os.environ["WHYOOM_EXE"]

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void *kept[4096];

static inline __attribute__((always_inline)) void *entry_of(size_t bytes)
{
	char *block = malloc(bytes);

	if (!block)
		exit(3);
	memset(block, 1, bytes);
	return block;
}

__attribute__((noinline)) static void remember(int i)
{
	kept[i] = entry_of(1 << 20);
}

int main(void)
{
	struct rlimit limit = {256 << 20, 256 << 20};

	setrlimit(RLIMIT_AS, &limit);
	for (int i = 0; i < 4096; i++)
		remember(i);
	return 0;
}
"""


class SymbolCache(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="whyoom-symcache-")
        source, cls.program = (os.path.join(cls.folder, n) for n in ("program.c", "program"))
        with open(source, "w") as f:
            f.write(PROGRAM)
        subprocess.run(["cc", "-O2", "-g", "-o", cls.program, source], check=True)
        cls.trace = os.path.join(cls.folder, "trace")
        done = subprocess.run([WHYOOM, "run", "-o", cls.trace, "--", cls.program],
                              capture_output=True,
                              env={**os.environ, "WHYOOM_CACHE": "off"}, timeout=100)
        assert done.returncode == 3, done

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def report(self, cache, before=(), **variables):
        env = {k: v for k, v in os.environ.items() if k != "WHYOOM_CACHE"}
        env.update(variables)
        if cache:
            env["WHYOOM_CACHE"] = cache
        done = subprocess.run([*before, WHYOOM, "report", "--format", "json", self.trace],
                              capture_output=True, env=env,
                              check=True, timeout=100)
        self.assertEqual(done.stderr, b"")
        return done.stdout

    def test_a_second_report_is_the_same(self):
        cache = os.path.join(self.folder, "same")
        without = self.report("off")
        self.assertIn("entry_of", [f["function"] for f in json.loads(without)["failure"]["stack"]])
        self.assertFalse(os.path.exists(cache))
        self.assertEqual(self.report(cache), without)
        files = glob.glob(os.path.join(cache, "*.symbols"))
        self.assertTrue(files)
        self.assertEqual([os.stat(f).st_mode & 0o777 for f in files], [0o600] * len(files))
        before = {f: os.stat(f).st_ino for f in files}
        self.assertEqual(self.report(cache), without)
        # Nothing was new: nothing is written.
        self.assertEqual({f: os.stat(f).st_ino for f in glob.glob(os.path.join(cache, "*"))},
                         before)

    def test_a_second_report_reads_no_symbols(self):
        if not shutil.which("strace"):
            self.skipTest("no strace")
        cache, log = os.path.join(self.folder, "read"), os.path.join(self.folder, "calls")
        watch = ["strace", "-f", "-y", "-e", "trace=openat,mmap,pread64,read", "-o", log]
        if subprocess.run([*watch, "true"], capture_output=True).returncode:
            self.skipTest("strace may not trace here")

        def touched():
            self.report(cache, watch)
            with open(log) as f:
                return [line for line in f if f"<{self.program}>" in line and "openat(" not in line]

        self.assertTrue(touched())
        self.assertEqual(touched(), [])

    def test_what_is_kept_is_not_trusted(self):
        cache = os.path.join(self.folder, "rubbish")
        without = self.report("off")
        self.report(cache)
        for path in glob.glob(os.path.join(cache, "*")):
            with open(path, "r+b") as f:
                whole = f.read()
                f.seek(0)
                f.truncate()
                f.write(whole[:len(whole) // 2] + b"\xff" * 100)
        self.assertEqual(self.report(cache), without)
        self.assertEqual(self.report(cache), without)

    def test_no_place_is_needed(self):
        without = self.report("off")
        self.assertEqual(self.report("/proc/nowhere"), without)
        self.assertEqual(self.report(None, HOME="", XDG_CACHE_HOME=""), without)
        home = os.path.join(self.folder, "home")
        os.mkdir(home)
        self.assertEqual(self.report(None, HOME=home, XDG_CACHE_HOME=""), without)
        self.assertTrue(glob.glob(os.path.join(home, ".cache", "whyoom", "*.symbols")))

    def test_many_reports_at_once(self):
        cache = os.path.join(self.folder, "many")
        without = self.report("off")
        env = {**os.environ, "WHYOOM_CACHE": cache}
        running = [subprocess.Popen([WHYOOM, "report", "--format", "json", self.trace],
                                    stdout=subprocess.PIPE, env=env)
                   for _ in range(6)]
        for child in running:
            self.assertEqual(child.communicate(timeout=100)[0], without)
            self.assertEqual(child.returncode, 0)
        self.assertEqual(self.report(cache), without)
        self.assertEqual([n for n in os.listdir(cache) if not n.endswith(".symbols")], [])


if __name__ == "__main__":
    unittest.main()
