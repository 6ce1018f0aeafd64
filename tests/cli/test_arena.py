"""A limit inside ONNX Runtime: the log has the arena's refusal, the recording its memory. Both
together give the program's limit, to the byte, on the published wheel, without names."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "scenarios"), os.path.join(HERE, "..", "torch")]
import environment  # noqa: E402

WHYOOM = os.environ["WHYOOM_EXE"]
MIB = 1 << 20

# softmax(x xᵀ), rows without a bound: the core of attention.
PROGRAM = """
import base64, sys
import numpy as np
import onnxruntime as ort

MODEL = base64.b64decode(
    "CAg6fwogCgF4EgF0IglUcmFuc3Bvc2UqDQoEcGVybUABQACgAQcKEQoBeAoBdBIBcyIGTWF0TXVsCg8KAXMSAXkiB1NvZnRtYXgS"
    "CWF0dGVudGlvbloVCgF4EhAKDggBEgoKAxIBbgoDEgFkYhUKAXkSEAoOCAESCgoDEgFuCgMSAW5CBAoAEBE=")
limit, strategy, others = (int(a) for a in sys.argv[1:])
memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
config = ort.OrtArenaCfg({"max_mem": limit, "arena_extend_strategy": strategy})
ort.create_and_register_allocator(memory, config)


def serve(session, rows):
    session.run(None, {"x": np.ones((rows, 64), np.float32)})


if others:  # a session with an arena of its own
    other = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    serve(other, 1000)
options = ort.SessionOptions()
options.add_session_config_entry("session.use_env_allocators", "1")
session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
for rows in range(100, 20000, 100):
    serve(session, rows)
"""


def recorded(folder, limit, strategy, others):
    """The report without the log, the one with it, that as text, and the log."""
    try:
        python = environment.interpreter("onnxruntime")
    except environment.wheel.Skip as reason:
        raise unittest.SkipTest(str(reason))
    trace, log = os.path.join(folder, "trace"), os.path.join(folder, "log")
    with open(log, "w") as f:
        done = subprocess.run([WHYOOM, "run", "-o", trace, "--", python, "-c", PROGRAM, str(limit),
                               str(strategy), str(others)], stderr=f, stdout=subprocess.DEVNULL,
                              timeout=200)
    with open(log) as f:
        said = f.read()
    assert done.returncode == 1 and "is smaller than requested bytes of" in said, said[-2000:]

    def report(*more):
        return subprocess.run([WHYOOM, "report", *more, trace], check=True, capture_output=True,
                              text=True, timeout=200).stdout

    return (json.loads(report("--format", "json")),
            json.loads(report("--format", "json", "--log", log)),
            report("--log", log), said)


class Arena(unittest.TestCase):
    def check(self, limit, strategy):
        with tempfile.TemporaryDirectory() as folder:
            without, joined, _, said = recorded(folder, limit, strategy, 0)
        self.assertEqual(without["failure"]["kind"], "none")
        asked = int(said.rsplit("requested bytes of ", 1)[1].split()[0])
        left = int(said.rsplit("Available memory of ", 1)[1].split()[0])
        failure, ledger = joined["failure"], joined["ledger"][0]
        self.assertEqual((failure["kind"], failure["requested_bytes"]), ("host-alloc", asked))
        self.assertEqual(failure["limit_kind"], "ONNX Runtime arena")
        self.assertEqual((ledger["limit_kind"], ledger["at"]), ("ONNX Runtime arena", "failure"))
        self.assertEqual(ledger["limit_bytes"], limit)
        rows = {row["class"]: row["bytes"] for row in ledger["rows"]}
        self.assertEqual(rows.get("free", 0), left)
        self.assertEqual(sum(rows.values()) + ledger["unaccounted_bytes"], limit)
        self.assertEqual(ledger["unaccounted_bytes"], 0)
        self.assertNotEqual(joined["verdict"]["cause"], "healthy")
        self.assertGreater(failure["seconds"], 0)
        self.assertLessEqual(failure["seconds"], joined["processes"][0]["seconds"])

    def test_doubling(self):
        self.check(64 * MIB, 0)

    def test_what_is_left_is_no_power_of_two(self):
        self.check(50 * MIB, 0)

    def test_as_requested(self):
        self.check(64 * MIB, 1)

    def test_of_several_arenas_none_is_taken(self):
        with tempfile.TemporaryDirectory() as folder:
            _, joined, text, _ = recorded(folder, 64 * MIB, 0, 1)
        self.assertEqual(joined["failure"]["kind"], "none")
        self.assertNotEqual(joined["verdict"]["cause"], "healthy")
        self.assertNotEqual(joined["ledger"][0]["limit_kind"], "ONNX Runtime arena")
        self.assertIn("several arenas", " ".join(text.split()))
