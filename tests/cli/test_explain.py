"""`whyoom explain`: stories, formats, unknown programs, and logs that are long or no logs.
The texts of logs/ are judged in test_explain_corpus.py."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import jsonschema

WHYOOM = os.environ["WHYOOM_EXE"]
LOGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logs")
SCHEMA = os.path.join(os.path.dirname(WHYOOM), "../report/explain-schema.json")
with open(SCHEMA) as f:
    VALIDATOR = jsonschema.Draft202012Validator(json.load(f))
sys.path.insert(0, os.path.join(LOGS, "../../../analyzer/knowledge"))
import causes  # noqa: E402

CAUSES = (*causes.names(), "unknown")


def explain(*args, log=None, columns=80, **environment):
    env = dict(os.environ, COLUMNS=str(columns), LC_ALL="C.UTF-8", XDG_CONFIG_HOME="/nonexistent",
               **environment)
    if isinstance(log, str):
        log = log.encode()
    return subprocess.run([WHYOOM, "explain", *args], input=log, capture_output=True, env=env,
                          timeout=120)


def explain_json(log):
    done = explain("--format", "json", log=log)
    assert done.returncode == 0 and not done.stderr, done.stderr
    result = json.loads(done.stdout.decode())
    VALIDATOR.validate(result)
    return result


TORCH = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {requested}. GPU 0 has a "
         "total capacity "
         "of 23.65 GiB of which {free} is free. Including non-PyTorch memory, this process has "
         "20.81 GiB "
         "memory in use. Of the allocated memory {live} is allocated by PyTorch, and {gap} is "
         "reserved by "
         "PyTorch but unallocated.\n")


class Story(unittest.TestCase):
    def test_order_of_time(self):
        log = ("2026-05-01 10:00:09 (Worker_TP1) ERROR Worker proc VllmWorker-1 died unexpectedly, "
               "shutting down "
               "executor.\n"
               "2026-05-01 10:00:01 WARNING Sequence group 7 is preempted by "
               "PreemptionMode.RECOMPUTE mode because "
               "there is not enough KV cache space. total_num_cumulative_preemption=51\n"
               "2026-05-01 10:00:05 ERROR " + TORCH.format(requested="3.00 GiB", free="1.66 GiB",
                                                           live="12.09 GiB", gap="4.84 GiB"))
        result = explain_json(log)
        self.assertEqual([m["kind"] for m in result["messages"]],
                         ["retry", "failure", "consequence"])
        self.assertEqual([m["fields"]["line"] for m in result["messages"]], [2, 3, 1])
        self.assertEqual(result["verdict"]["cause"], "fragmentation")
        text = explain(log=log).stdout.decode()
        self.assertIn("What the log says, by time", text)
        self.assertLess(text.index("10:00:01"), text.index("10:00:05"))
        self.assertLess(text.index("10:00:05"), text.index("10:00:09"))

    def test_gap_of_pytorch(self):
        for gap, cause in (("4.84 GiB", "fragmentation"), ("100.00 MiB", "unknown")):
            result = explain_json(TORCH.format(requested="3.00 GiB", free="1.66 GiB",
                                               live="12.09 GiB",
                                               gap=gap))
            message = result["messages"][0]
            self.assertEqual(result["verdict"]["cause"], cause)
            fields = message["fields"]
            self.assertEqual(fields["reserved_bytes"],
                             fields["allocated_bytes"] + fields["reserved_unallocated_bytes"])
            self.assertEqual(fields["requested_bytes"], 3 << 30)

    def test_unknown_names_candidates(self):
        result = explain_json(TORCH.format(requested="20.00 MiB", free="1.00 MiB", live="20.60 GiB",
                                           gap="10.00 MiB"))
        verdict = result["verdict"]
        self.assertEqual((verdict["cause"], verdict["confidence"]), ("unknown", 0))
        self.assertIn(verdict["runner_up"]["cause"], CAUSES)
        self.assertIn("whyoom run", verdict["next"])

    def test_traceback_says_what_it_did(self):
        frames = ("Traceback (most recent call last):\n"
                  '  File "/opt/venv/lib/python3.12/site-packages/transformers/modeling_utils.py", '
                  'line 4300, '
                  "in from_pretrained\n")
        result = explain_json(frames + TORCH.format(requested="20.00 MiB", free="1.00 MiB",
                                                    live="20.60 GiB", gap="10.00 MiB"))
        self.assertEqual(result["verdict"]["cause"], "oversized-model")
        self.assertIn("transformers", [f["for"] for f in result["verdict"]["fixes"]])

    def test_nothing_known(self):
        for log in ("", "all is well\n", "x" * 100000):
            result = explain_json(log)
            self.assertEqual(result["messages"], [])
            self.assertEqual(result["verdict"]["cause"], "unknown")


# What programs say that are not known, and the space that they name.
FAILED = {
    "host": ("ERROR acme-server: out of memory while building the index",
             "acme: failed to allocate 4.00 GiB for the batch",
             "acme.errors.OutOfMemoryError: cannot grow the list",
             "acme: error: insufficient memory, 12 GB are needed",
             "thread 'main' panicked at src/pool.rs:81: failed to allocate 1073741824 bytes"),
    "mapping": ("mmap failed: out of memory",),
    "pool": ("acme.errors.OutOfMemoryError: cannot grow the arena",),
    "disk": ("error: not enough disk space",),
    "device": ("FATAL: GPU 0 out of memory (tried to allocate 2048 MB)",
               "error: unable to allocate device buffer of 536870912 bytes",
               "engine exited: VK_ERROR_OUT_OF_DEVICE_MEMORY"),
    "limit": ("acme-db: query failed: memory limit exceeded (8.1 GiB of 8.0 GiB used)",),
    "shared": ("ERROR shared memory exhausted, cannot create segment 7",)}
# Advice, settings, source code, and lacks of something else.
PROSE = ("INFO set ACME_CACHE=0 to avoid out of memory errors",
         "If you run out of memory, lower --batch", "WARN retrying after out of memory",
         "see https://docs.example/out-of-memory for help", "memory limit: 8 GiB, used 3 GiB",
         "ERROR failed to allocate IP address from pool", "error: could not allocate port 8080",
         "RuntimeError: out of bounds memory access",
         "DEBUG allocator: failed to allocate 4 KiB from the fast path, using the slow one",
         "This may fail with out of memory on small machines", "test_out_of_memory PASSED",
         "  except torch.cuda.OutOfMemoryError:", "    raise OutOfMemoryError('failed')",
         "# failed: out of memory", "commit 7f3a: fix crash on out of memory",
         "catch (OutOfMemoryError e) { log.error(e); }", "Failed to allocate a license seat",
         "error handling: out of memory is retried", "[ERROR] memory limit of 8 GiB not exceeded")


class UnknownProgram(unittest.TestCase):
    def test_its_words_count(self):
        for name, lines in FAILED.items():
            for line in lines:
                messages = explain_json(line + "\n")["messages"]
                self.assertEqual([(m["from"], m["fields"]["message"]) for m in messages],
                                 [("a program", name)], line)

    def test_prose_does_not(self):
        self.assertEqual(explain_json("\n".join(PROSE))["messages"], [])

    def test_a_known_message_outranks_it(self):
        log = "\n".join((*FAILED["host"], "memory allocation of 77 bytes failed", ""))
        self.assertEqual([m["from"] for m in explain_json(log)["messages"]], ["Rust"])


class WithATrace(unittest.TestCase):
    """`report --log`: the messages beside the recording."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="whyoom-log-",
                                              dir=os.environ.get("WHYOOM_TEST_TMP"))
        self.addCleanup(scratch.cleanup)
        self.traces = os.path.join(scratch.name, "traces")

    def run_and_report(self, program, log, *args):
        subprocess.run([WHYOOM, "run", "-o", self.traces, "--", sys.executable, "-c", program],
                       capture_output=True, timeout=60)
        r = subprocess.run([WHYOOM, "report", "--log", "-", *args, self.traces], input=log,
                           capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def report_json(self, program, log):
        report = json.loads(self.run_and_report(program, log, "--format", "json"))
        with open(os.path.join(os.path.dirname(SCHEMA), "report-schema.json")) as f:
            jsonschema.Draft202012Validator(json.load(f)).validate(report)
        return report

    def test_the_failure_is_found_in_the_log(self):
        report = self.report_json(
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
                "bytearray(3 << 30)",
            "fine so far\nDefaultCPUAllocator: can't allocate memory: you tried to allocate "
                "3221225472 bytes."
            " Error code 12 (Cannot allocate memory)\nterminate called: std::bad_alloc\n")
        self.assertEqual(report["failure"]["requested_bytes"] >> 30, 3)
        self.assertEqual(report["log"]["messages"][0]["recorded"], "failure")

    def test_the_kernels_log_says_who_was_killed(self):
        program = "import os, signal; x = bytearray(50 << 20); os.kill(os.getpid(), signal.SIGKILL)"
        name = os.path.basename(os.path.realpath(sys.executable))[:15]
        kernel = (f"[1.5] Out of memory: Killed process 999999 ({name}) total-vm:9kB, "
                  f"anon-rss:9kB, "
                  "file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n")
        text = self.run_and_report(program, kernel)
        self.assertIn("kernel, failure: this failure", text)
        report = json.loads(subprocess.run(
            [WHYOOM, "report", "--log", "-", "--format", "json", self.traces], input=kernel,
            capture_output=True, text=True, timeout=60).stdout)
        self.assertEqual(report["failure"]["kind"], "oom-kill")
        self.assertIn("kernel's log", report["failure"]["evidence"])

    def test_where_nothing_was_refused_the_log_decides(self):
        with open(os.path.join(LOGS, "corpus.json")) as f:
            known = {case["log"]: case for case in json.load(f)}
        name = next(n for n in sorted(known) if n.startswith("vllm")
                    and known[n]["cause"] != "unknown")
        with open(os.path.join(LOGS, name)) as f:
            report = self.report_json("raise SystemExit(1)", f.read())
        self.assertEqual(report["failure"]["kind"], "none")
        self.assertEqual(report["verdict"]["cause"], known[name]["cause"])

    def test_a_log_that_is_not_there(self):
        self.run_and_report("pass", "")
        r = subprocess.run([WHYOOM, "report", "--log", "/nonexistent", self.traces],
                           capture_output=True,
                           text=True, timeout=60)
        self.assertEqual(r.returncode, 1)
        self.assertIn("/nonexistent", r.stderr)


class Robust(unittest.TestCase):
    def test_control_characters_do_not_reach_the_terminal(self):
        done = explain("-v", log=b"MemoryError: \x1b[31mred\x07\n")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"\x1b", done.stdout)
        self.assertIn(b"\\x1b[31mred", done.stdout)

    def test_long_log_in_bounded_memory(self):
        """A log of 100 MB, with a message in the middle, in seconds and a few megabytes."""
        line = (b"INFO 05-01 12:34:56 [loggers.py:111] Engine 000: Avg prompt throughput: 12.3 "
                b"tokens/s\n")
        oom = TORCH.format(requested="3.00 GiB", free="1.66 GiB", live="12.09 GiB",
                           gap="4.84 GiB").encode()
        with tempfile.NamedTemporaryFile() as f:
            half = line * (50_000_000 // len(line))
            f.write(half)
            f.write(oom)
            f.write(half)
            f.flush()
            script = ("import resource, subprocess, sys, time\n"
                      "t = time.monotonic()\n"
                      "out = subprocess.run(sys.argv[1:], capture_output=True, check=True).stdout\n"
                      "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                      "print(usage.ru_maxrss, usage.ru_utime + usage.ru_stime)\n"
                      "sys.stdout.write(out.decode())\n")
            done = subprocess.run(["/usr/bin/env", "python3", "-c", script, WHYOOM, "explain",
                                   "--format",
                                   "json", f.name], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            first, rest = done.stdout.split("\n", 1)
            kib, seconds = first.split()
            result = json.loads(rest)
            print(f"shown: 100 MB of log explained in {float(seconds):.1f} s with {int(kib) >> 10} "
                  f"MiB")
            self.assertEqual(result["verdict"]["cause"], "fragmentation")
            self.assertEqual(result["messages"][0]["fields"]["line"], len(half) // len(line) + 1)
            self.assertLess(int(kib), 64 << 10)
            self.assertLess(float(seconds), 20)

    def test_a_message_that_fills_the_log(self):
        line = TORCH.format(requested="3.00 GiB", free="1.66 GiB", live="12.09 GiB", gap="4.84 GiB")
        result = explain_json(line * 20000)
        self.assertEqual(len(result["messages"]), 1)
        self.assertEqual(result["messages"][0]["fields"]["count"], 20000)

    def test_what_cannot_be_read(self):
        for path, words in (("/no/such/log", b"/no/such/log"), ("/", b"directory")):
            done = explain(path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.assertEqual(explain("a", "b").returncode, 2)
        self.assertEqual(explain("--format", "yaml").returncode, 2)

    def test_output_file(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "out")
            done = explain("--format", "json", "-o", path, log="MemoryError\n")
            self.assertEqual((done.returncode, done.stdout), (0, b""))
            with open(path) as f:
                self.assertEqual(len(json.load(f)["messages"]), 1)


class Knowledge(unittest.TestCase):
    def test_a_file_of_ones_own(self):
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(os.path.join(d, "whyoom", "knowledge"))
            with open(os.path.join(d, "whyoom", "knowledge", "mine.know"), "w") as f:
                f.write("framework = mine\nname = Mine\n[message full]\nkind = failure\nspace = "
                        "host\n"
                        "needle = the jar is full\npattern = the jar is full at (?<used_MiB>{NUM}) "
                        "MiB\n"
                        "cause = leak 0.7\nmeaning = The jar held {used_bytes}.\nfix = Empty the "
                        "jar.\n")
            env = dict(os.environ, XDG_CONFIG_HOME=d)
            done = subprocess.run([WHYOOM, "explain", "--format", "json"],
                                  input=b"the jar is full at 3 MiB\nMemoryError\n",
                                  capture_output=True, env=env)
        result = json.loads(done.stdout)
        self.assertEqual([m["from"] for m in result["messages"]], ["Mine", "Python"])
        self.assertEqual(result["messages"][0]["fields"]["used_bytes"], 3 << 20)
        self.assertEqual(result["verdict"]["cause"], "leak")
        self.assertEqual(result["verdict"]["fixes"][0]["text"], "Empty the jar.")

    def test_a_mistake_is_said_and_the_rest_goes_on(self):
        with tempfile.NamedTemporaryFile("w", suffix=".know") as f:
            f.write("framework = mine\n[message m]\ncolour = red\n")
            f.flush()
            done = explain(log="MemoryError\n", WHYOOM_KNOWLEDGE=":" + f.name)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b":3: there is no such key here: 'colour'", done.stderr)
        self.assertIn(b"unknown", done.stdout)

    def test_without_any(self):
        with tempfile.TemporaryDirectory() as d:
            done = explain("--format", "json", log="MemoryError\n", WHYOOM_KNOWLEDGE=d)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(json.loads(done.stdout)["messages"], [])


if __name__ == "__main__":
    unittest.main()
