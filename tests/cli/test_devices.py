"""Devices in `whyoom run` and `whyoom report`: programs that call the driver, on the simulated one,
which answers the management library's questions too."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

WHYOOM = os.environ["WHYOOM_EXE"]
DISK = os.environ.get("WHYOOM_TEST_DIR", "/var/tmp")
REPORT = os.path.join(os.path.dirname(os.environ["WHYOOM_EXE"]), "..", "report")
MIB = 1 << 20
CONTEXT = 64 * MIB

DRIVER = textwrap.dedent("""
    import ctypes, os, subprocess, sys, threading, time
    cuda = ctypes.CDLL("libcuda.so.1")
    MIB = 1 << 20
    SEEN = 1.5  # in that time the supervisor has looked, on a busy machine, too
    def ok(result):
        assert result == 0, result
    def context(device=0):
        c = ctypes.c_void_p()
        ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(c), device))
        ok(cuda.cuCtxSetCurrent(c))
    def alloc(size, call=cuda.cuMemAlloc_v2, *more):
        p = ctypes.c_uint64()
        result = call(ctypes.byref(p), ctypes.c_size_t(size), *more)
        return result or p.value
    ok(cuda.cuInit(0))
    """)


class Devices(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="whyoom-devices-", dir=DISK)
        self.addCleanup(scratch.cleanup)
        self.traces = os.path.join(scratch.name, "traces")

    def run_program(self, simgpu, program, status=1, **env):
        r = subprocess.run([WHYOOM, "run", "--simgpu", simgpu, "-o", self.traces, "--",
                            sys.executable,
                            "-c", DRIVER + textwrap.dedent(program)], capture_output=True,
                           text=True,
                           timeout=120, env={**os.environ, "WHYOOM_SIMGPU_CONTEXT": str(CONTEXT),
                                             **env})
        self.assertEqual(r.returncode, status, r.stderr)
        return r

    def json(self, command, schema, *args):
        r = subprocess.run([WHYOOM, command, "--format", "json", *args, self.traces],
                           capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 0, r.stderr)
        answer = json.loads(r.stdout)
        try:
            import jsonschema
        except ImportError:
            return answer
        with open(os.path.join(REPORT, schema)) as f:
            jsonschema.Draft202012Validator(json.load(f)).validate(answer)
        return answer

    def report(self):
        report = self.json("report", "report-schema.json")
        for ledger in report["ledger"]:
            self.assertEqual(sum(row["bytes"] for row in ledger["rows"])
                             + ledger["unaccounted_bytes"],
                             ledger["limit_bytes"])
        return report

    def rows(self, ledger):
        return {row["class"]: row["bytes"] for row in ledger["rows"]}

    def test_other_processes_and_the_context(self):
        self.run_program("1GiB", """
            if len(sys.argv) > 1:  # the other one
                context()
                alloc(300 * MIB)
                print("ready", flush=True)
                sys.stdin.read()
                sys.exit(0)
            other = subprocess.Popen([sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2],
                                      "other"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            other.stdout.readline()
            time.sleep(SEEN)
            context()
            while alloc(50 * MIB) > 1000:
                time.sleep(0.3)
            other.stdin.close()
            other.wait()
            sys.exit(1)
            """)
        report = self.report()
        device, rows = report["device"], self.rows(report["ledger"][0])
        self.assertEqual(report["failure"]["kind"], "cuda-oom")
        self.assertEqual(report["ledger"][0]["limit_bytes"], 1024 * MIB)
        self.assertEqual(rows["other processes"], 300 * MIB + CONTEXT)
        self.assertEqual(rows["CUDA context and modules"], CONTEXT)
        self.assertEqual(sum(rows.values()) - sum(rows[other] for other in (
            "other processes", "CUDA context and modules", "free")), device["live_bytes"])
        self.assertEqual(report["ledger"][0]["unaccounted_bytes"], 0)
        self.assertEqual(device["others_bytes"], 300 * MIB + CONTEXT)
        self.assertEqual(device["unattributed_bytes"], CONTEXT)
        held = {p["pid"]: {m["space"]: m["held_bytes"] for m in p["memory"]}
                for p in report["processes"]}
        parent = {p["pid"]: p["parent_pid"] for p in report["processes"]}
        failed = report["failure"]["pid"]
        self.assertEqual([x["cuda:0"] for pid, x in held.items() if parent[pid] == failed],
                         [300 * MIB])
        self.assertEqual(held[failed]["cuda:0"], device["live_bytes"])
        # From outside and from inside it is the same, all the time.
        series = [s for s in device["unattributed"] if s["explained_bytes"]]
        seen = [s for s in series if s["own_bytes"]]
        self.assertGreater(len(seen), 3)
        for s in seen:
            self.assertEqual(s["others_bytes"], 300 * MIB + CONTEXT)
            self.assertEqual(s["own_bytes"], s["explained_bytes"] + s["bytes"])
            # A block may come while the question is on its way.
            self.assertIn(s["bytes"], (CONTEXT, CONTEXT + 50 * MIB, CONTEXT + 100 * MIB))
        exact = sum(s["bytes"] == CONTEXT for s in seen)
        self.assertGreater(exact, len(seen) / 2)
        m = self.json("map", "map-schema.json")
        self.assertEqual([s["bytes"] for s in m["unattributed"]],
                         [s["bytes"] for s in device["unattributed"]][:len(m["unattributed"])])

    def test_several_devices(self):
        self.run_program("2x512MiB,1GiB", """
            for device, size in ((0, 100), (2, 40), (1, 30)):
                context(device)
                for i in range(3):
                    assert alloc(size * MIB) > 1000
                time.sleep(2 * SEEN)
            alloc(5 * MIB, cuda.cuMemAllocManaged, 1)
            alloc(7 * MIB, cuda.cuMemHostAlloc, 0)
            assert alloc(450 * MIB) == 2
            sys.exit(1)
            """)
        report = self.report()
        self.assertEqual(report["failure"]["space"], "cuda:1")
        devices = [report["device"], *report["other_devices"]]
        self.assertEqual([(d["space"], d["live_bytes"]) for d in devices],
                         [("cuda:1", 90 * MIB), ("cuda:0", 300 * MIB), ("cuda:2", 120 * MIB)])
        self.assertEqual([d["at"] for d in devices], ["failure"] * 3)
        self.assertEqual([d["sites"][0]["bytes"] for d in devices],
                         [d["live_bytes"] for d in devices])
        self.assertNotIn("attempts", devices[1])
        self.assertEqual([(x["space"], x["limit_bytes"]) for x in report["ledger"]],
                         [("cuda:1", 512 * MIB), ("cuda:0", 512 * MIB), ("cuda:2", 1024 * MIB)])
        for ledger in report["ledger"]:
            self.assertEqual(self.rows(ledger)["CUDA context and modules"], CONTEXT)
            self.assertEqual(ledger["unaccounted_bytes"], 0)
        spaces = {s["space"]: (s["live_bytes"], s["live_blocks"]) for s in report["spaces"]}
        self.assertEqual((spaces["managed"], spaces["pinned"]), ((5 * MIB, 1), (7 * MIB, 1)))
        text = subprocess.run([WHYOOM, "report", self.traces], capture_output=True, text=True,
                              timeout=60).stdout
        told = [text.index(f"What the memory of cuda:{n}") for n in (1, 0, 2)]
        self.assertEqual(told, sorted(told))
        self.assertIn("page-locked host memory, 7.00 MiB in 1 block", " ".join(text.split()))

    def test_another_recorded_process(self):
        """Its own trace says what it holds, whether or not somebody looked from outside in time."""
        self.run_program("1GiB", """
            if len(sys.argv) > 1:  # the other one
                context()
                others = [alloc(100 * MIB) for _ in range(6)]
                print("ready", flush=True)
                sys.stdin.read()
                sys.exit(0)
            other = subprocess.Popen(
                [sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2], "other"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            other.stdout.readline()
            context()
            kept = [alloc(20 * MIB) for _ in range(10)]
            for i in range(50):
                ok(cuda.cuMemFree_v2(ctypes.c_uint64(alloc(40 * MIB))))
            kept += [alloc(20 * MIB) for _ in range(3)]
            assert alloc(48 * MIB) == 2
            sys.exit(1)
            """)
        report = self.report()
        self.assertEqual(report["verdict"]["cause"], "external")
        self.assertGreaterEqual(report["device"]["others_bytes"], 600 * MIB)
        self.assertGreaterEqual(self.rows(report["ledger"][0])["other processes"], 600 * MIB)
        text = subprocess.run([WHYOOM, "report", self.traces], capture_output=True, text=True,
                              timeout=60).stdout
        self.assertNotIn("Run it under `whyoom run`", text)

    def test_check_lists_devices(self):
        self.run_program("1GiB", """
            context()
            kept = [alloc(20 * MIB) for _ in range(5)]
            ok(cuda.cuMemFree_v2(ctypes.c_uint64(kept.pop())))
            """, status=0)
        check = self.json("check", "check-schema.json")
        spaces = {s.pop("space"): s for s in check["processes"][0]["spaces"]}
        self.assertEqual(spaces["cuda:0"], {
            "allocs": 5, "frees": 1, "live_blocks": 4, "live_bytes": 80 * MIB,
            "most_live_blocks": 5, "most_live_bytes": 100 * MIB})
        text = subprocess.run([WHYOOM, "check", self.traces], capture_output=True, text=True,
                              timeout=60).stdout
        self.assertIn("cuda:0 5 acquired, 1 released; 4 still live with 80.0 MiB (83,886,080 "
                      "bytes), at most 100 MiB", " ".join(text.split()))

    def test_phases_are_of_the_device(self):
        self.run_program("1GiB", """
            context()
            kept = [alloc(50 * MIB) for _ in range(4)]
            time.sleep(0.2)
            for i in range(50):
                ok(cuda.cuMemFree_v2(ctypes.c_uint64(alloc(40 * MIB))))
                time.sleep(0.004)
            assert alloc(900 * MIB) == 2
            sys.exit(1)
            """)
        phases = self.report()["phases"]
        self.assertEqual([(p["phase"], p["live_bytes"]) for p in phases][:1],
                         [("loading", 200 * MIB)])

    def test_a_device_that_goes_by_another_number(self):
        self.run_program("512MiB,1GiB", """
            context()
            alloc(60 * MIB)
            time.sleep(SEEN)
            alloc(20 * MIB)
            """, status=0, CUDA_VISIBLE_DEVICES="1")
        device = self.report()["device"]
        self.assertEqual((device["space"], device["total_bytes"]), ("cuda:0", 1024 * MIB))
        self.assertIn(CONTEXT + 60 * MIB, [s["own_bytes"] for s in device["unattributed"]])

    def test_threads_hand_memory_round(self):
        """Another process has a released address within a microsecond: no address is ever there
        twice."""
        self.run_program("512MiB", """
            context()
            def work():
                context()
                for i in range(1500):
                    p = alloc(2 * MIB)
                    ok(cuda.cuMemFree_v2(ctypes.c_uint64(p)))
                assert alloc(2 * MIB) > 1000
            threads = [threading.Thread(target=work) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            """, status=0)
        m = self.json("map", "map-schema.json", "--at", "end", "--space", "cuda:0")
        self.assertEqual((m["live_blocks"], m["live_bytes"]), (4, 8 * MIB))
        spaces = {s["space"]: s for s in self.report()["spaces"]}
        self.assertLessEqual(spaces["cuda:0"]["peak_bytes"], 8 * MIB)
        self.assertEqual(spaces["cuda:0"]["live_bytes"], spaces["cuda:0"]["peak_bytes"])


if __name__ == "__main__":
    unittest.main()
