"""The outside view of `whyoom run`, kept in run.whyoom."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

from running import WHYOOM, Case


class Watching(Case):
    def check(self):
        r = subprocess.run([WHYOOM, "check", "--format", "json", self.out], capture_output=True,
                           text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def supervisor(self):
        """Events of run.whyoom, read here from the format's description."""
        with open(os.path.join(self.out, "run.whyoom"), "rb") as f:
            data = f.read()
        self.assertEqual(data[:8], b"WHYOOMT\n")
        events, at = [], 65536
        while at + 64 <= len(data):
            head = data[at:at + 64]
            self.assertEqual(head[:4], b"Chnk")
            kind = int.from_bytes(head[4:6], "little")
            size = int.from_bytes(head[8:12], "little")
            committed = int.from_bytes(head[40:44], "little")
            p, end = at + 64, at + 64 + committed
            if kind == 1:
                time_ns = int.from_bytes(head[24:32], "little")
                while p < end:
                    def varint():
                        nonlocal p
                        value = shift = 0
                        while True:
                            value |= (data[p] & 127) << shift
                            shift += 7
                            p += 1
                            if data[p - 1] < 128:
                                return value
                    self.assertEqual(data[p], 15)
                    p += 1
                    number, length = varint(), varint()
                    stop = p + length
                    time_ns += varint()
                    fields = []
                    while p < stop:
                        fields.append(varint())
                    events.append((time_ns, number, fields))
                self.assertEqual(p, end)
            at += size
        return data, events

    def levels(self, events, number):
        for t, n, f in events:
            if n == number:
                yield t, f[0], dict(zip(f[2::2], f[3::2]))

    def test_growth_is_seen_from_outside(self):
        self.run_it(sys.executable, "-c",
                    "import os, time\nkeep = []\nfor i in range(12):\n"
                    "    keep.append(bytearray(b'x') * (8 << 20))\n    "
                    "time.sleep(0.05)\nos._exit(0)")
        data, events = self.supervisor()
        rss = [v[1] for _, _, v in self.levels(events, 23) if 1 in v]
        self.assertGreater(max(rss) - min(rss), 50 << 20)
        self.assertGreaterEqual(len(rss), 4)
        self.assertTrue(any(7 in v for _, _, v in self.levels(events, 23)))   # PSS
        # A slower part follows the quick one in a record of its own.
        virt, whole = [], None
        for _, _, v in self.levels(events, 23):
            whole = v.get(5, whole)
            if 17 in v:
                virt.append({**v, 5: whole})
        self.assertTrue(virt)
        # The parts add up to the whole, except for movement between two readings: within the
        # samples beside it, since it only grows.
        wholes = [v[5] for v in virt]
        for v, before, after in zip(virt, wholes[:1] + wholes,
                                    wholes[1:] + [wholes[0] + (12 * 8 << 20)]):
            parts = sum(v.get(k, 0) for k in (16, 17, 18, 19, 20))
            self.assertGreater(parts, before - (16 << 20))
            self.assertLess(parts, after + (16 << 20))

    def test_the_end_is_recorded(self):
        self.run_it("sh", "-c", "exit 3")
        _, events = self.supervisor()
        self.assertEqual([(f[1], f[2], f[3]) for _, n, f in events if n == 29], [(1, 3, 1)])
        self.run_it("sh", "-c", "kill -9 $$")
        _, events = self.supervisor()
        self.assertEqual([(f[1], f[2], f[3]) for _, n, f in events if n == 29], [(2, 9, 1)])

    def test_the_file_is_sealed_and_says_the_exit(self):
        self.run_it("sh", "-c", "exit 3")
        data, _ = self.supervisor()
        self.assertEqual(int.from_bytes(data[112:116], "little"), 1)
        self.assertEqual(int.from_bytes(data[116:120], "little"), 3)

    def test_sigkill_of_everything_loses_no_sample(self):
        p = self.start(sys.executable, "-c",
                       "import time\nprint('up', flush=True)\nkeep = []\n"
                       "while True:\n    keep.append(bytearray(b'x') * (4 << 20))\n    "
                       "time.sleep(0.02)",
                       start_new_session=True)
        p.stdout.readline()
        time.sleep(1.2)
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        data, events = self.supervisor()
        self.assertEqual(int.from_bytes(data[112:116], "little"), 0)
        last = max(t for t, _, _ in events)
        self.assertLess(killed - last, 1e9)  # a sample each 25 to 100 ms, on a busy machine
        self.assertGreater(len(list(self.levels(events, 23))), 5)
        self.assertEqual(self.check()["processes"][0]["torn_chunks"], 0)

    def test_descendants_are_seen_also_after_their_parent_left(self):
        self.run_it("sh", "-c", "(sleep 1.5 & echo $! > grandchild); sleep 1.2")
        pid = int(self.read("grandchild"))
        _, events = self.supervisor()
        self.assertIn(pid, {who for _, who, _ in self.levels(events, 23)})

    def test_those_that_leave_no_trace_are_named(self):
        r = self.run_it("sh", "-c", "env -u LD_PRELOAD sleep 2.5; exit 0")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for command in ("check", "report"):
            said = subprocess.run([WHYOOM, command, self.out], capture_output=True, text=True)
            self.assertRegex(" ".join(said.stdout.split()),
                             r"1 process left no trace .*: sleep \([0-9]+\)", said.stderr)

    def test_returns_when_the_program_does_not_its_daemons(self):
        start = time.monotonic()
        self.assertEqual(self.run_it("sh", "-c", "setsid sleep 20 >/dev/null 2>&1 </dev/null & "
                                     "exit 6")
                         .returncode, 6)
        self.assertLess(time.monotonic() - start, 5)

    def test_counters_of_the_cgroup_at_start_and_end(self):
        self.run_it("true")
        _, events = self.supervisor()
        groups = [v for _, _, v in self.levels(events, 22)]
        self.assertIn(56, groups[0])  # the machine's memory, everywhere
        if 49 in groups[0]:
            self.assertEqual(groups[0][49], groups[-1][49])
            self.assertIn(32, groups[-1])  # others' memory in the cgroup that it has left

    def test_killed_with_memory_left(self):
        """By a person or a timeout: it was growing, but memory had not run out."""
        with open("/proc/meminfo") as f:
            info = dict(line.split(":") for line in f)
        if int(info["MemAvailable"].split()[0]) < int(info["MemTotal"].split()[0]) / 4:
            self.skipTest("less than a quarter of this machine's memory is left")
        r = self.run_it("timeout", "-s", "KILL", "4", sys.executable, "-c",
                        "import time\nkept = []\ndef remember():\n    kept.append(bytes(64 << "
                        "10))\n"
                        "while True:\n    remember()\n    time.sleep(0.002)")
        said = " ".join(r.stderr.split())
        self.assertEqual(r.returncode, 128 + 9)
        self.assertIn("whyoom: leak", said)
        self.assertRegex(said, r"[\d.]+ MiB leaked in remember.* Memory had not run out")
        self.assertIn("would have been full", said)

    def test_death_by_the_oom_killer(self):
        mine = [line.split(":", 2) for line in open("/proc/self/cgroup").read().splitlines()]
        v1 = [p for _, c, p in mine if "memory" in c.split(",")]
        top = "/sys/fs/cgroup/memory" + v1[0] if v1 else "/sys/fs/cgroup" + mine[0][2]
        group = os.path.join(top, f"whyoom-test-{os.getpid()}")
        try:
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
            with open(os.path.join(group, "memory.limit_in_bytes" if v1 else "memory.max"),
                      "w") as f:
                f.write("100M")
        except OSError as e:
            # without the right to make cgroups: SIGKILL as the OOM killer sends it is tested above
            print(f"note: no cgroup can be made here ({e})")
            return

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))

        # After a while without movement, looks are rare.
        r = self.run_it(sys.executable, "-c",
                        "import time\nx = []\ntime.sleep(4)\nwhile True:\n    x.append(b'x' * (1 "
                        "<< 20))\n"
                        "    time.sleep(0.01)", preexec_fn=enter)
        self.assertEqual(r.returncode, 137)
        self.assertIn("killed by SIGKILL", r.stderr)
        self.assertIn("cgroup", r.stderr)
        _, events = self.supervisor()
        groups = [v for _, _, v in self.levels(events, 22)]
        self.assertEqual(groups[-1][49], groups[0][49] + 1)
        used = [v[32] for v in groups if 32 in v]
        self.assertGreater(max(used), 60 << 20)
        end, pid = next((t, f[0]) for t, n, f in events if n == 29)
        for number, who, key in (22, 0, 32), (23, pid, 1):  # the group's, and the process's own
            last = max(t for t, w, v in self.levels(events, number)
                       if w == who and v.get(key, 0) > 60 << 20 and t <= end)
            self.assertLess(end - last, 1e9)

    def test_costs_little(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run_it("sleep", "3", options=["--off"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertLess(cpu, 0.3)


if __name__ == "__main__":
    unittest.main()
