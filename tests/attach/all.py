#!/usr/bin/env python3
"""all.py [COUNT]: attaches to programs under load so many times in all, detaches again, and prints
for each program how many attaches failed or harmed it, how long its thread was paused, and which
share of what it allocated afterwards, by its allocator's own account, is in the trace."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lib import PROGS, PYTHON, WHYOOM, pause_ms  # noqa: E402

EACH = 5  # attaches to one process
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON_GROW = """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
libc.malloc_usable_size.restype = ctypes.c_size_t
def held(block):
    return libc.malloc_usable_size(ctypes.addressof(ctypes.c_char.from_buffer(block)))
stop = False
def work():
    while not stop:
        some = [bytearray(600 + i) for i in range(1000)]
        if some[7][-1] != 0:
            sys.exit(3)
t = threading.Thread(target=work)
t.start()
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept.append([bytearray(20000 + i) for i in range(1000)])
    print("grew", sum(map(held, kept[-1])), flush=True)
stop = True
t.join()
print("right after", len(kept), "rounds", flush=True)
"""
NODE_GROW = """
const crypto = require('crypto');
let kept = [], rounds = 0, stop = false;
function work() {
  for (let i = 0; i < 50; i++) {
    let digest = crypto.createHash('md5').update('abc').digest('hex');
    if (digest !== '900150983cd24fb0d6963f7d28e17f72') process.exit(3);
  }
  rounds++;
  if (!stop) setImmediate(work);
}
work();
const held = () => process.memoryUsage().arrayBuffers;
console.log('ready');
require('readline').createInterface({input: process.stdin}).on('line', () => {
  let size = 0;
  for (let i = 0; i < 1000; i++) { kept.push(Buffer.alloc(20000 + i, 1)); size += 20000 + i; }
  console.log('grew ' + size);
}).on('close', () => { stop = true; console.log('right after ' + rounds + ' rounds'); });
"""


def newer_python():
    for version in ("3.14", "3.13"):
        found = subprocess.run([os.path.join(HERE, "..", "python", "get-python"), version],
                               capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


class Program:
    """One that speaks over its pipes: a line makes it grow, the end of its input ends it."""

    def __init__(self, command, folder):
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, cwd=folder)
        self.pid = self.p.pid
        assert self.p.stdout.readline() == "ready\n"

    def grow(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        return int(self.p.stdout.readline().split()[1])

    def ends_well(self):
        self.p.stdin.close()
        out = self.p.stdout.read()
        return self.p.wait(60) == 0 and "right after" in out

    def end(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()


class Redis:
    """Under load by redis-benchmark; grows by keys of its own."""

    def __init__(self, command, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = str(s.getsockname()[1])
        self.p = subprocess.Popen([*command, "--port", self.port, "--save", ""],
                                  stdout=subprocess.DEVNULL, cwd=folder)
        self.pid = self.p.pid
        self.keys = 0
        for _ in range(200):
            if self.cli("ping") == "PONG":
                break
            time.sleep(0.05)
        self.load = subprocess.Popen(
            ["redis-benchmark", "-p", self.port, "-q", "-l", "-c", "8", "-d", "500", "-t",
             "set,get,lpush,lpop"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cli(self, *words, **more):
        return subprocess.run(["redis-cli", "-p", self.port, *words], capture_output=True,
                              text=True, **more).stdout.strip()

    def grow(self):
        """Of 1000 values of 20 KB; what jemalloc says of them, less the load's changes, is their
        size in its classes of 20480 bytes."""
        value = "x" * 20000
        text = "".join("\r\n".join(["*3", "$3", "SET", "$12", f"k{self.keys + i:011d}", "$20000",
                                    value, ""]) for i in range(1000))
        self.keys += 1000
        self.cli("--pipe", input=text)
        return 1000 * 20000

    def ends_well(self):
        good = self.cli("ping") == "PONG" and self.cli("strlen", "k00000000001") == "20000"
        self.end()
        return good

    def end(self):
        self.load.kill()
        self.load.wait()
        if self.p.poll() is None:
            self.p.terminate()
            self.p.wait()


def whyoom(*words):
    return subprocess.run([WHYOOM, *map(str, words)], capture_output=True, text=True, timeout=120)


def recorded(trace, least):
    """Bytes that live at the end of the trace, of call sites whose blocks are that large, and not
    twice as large: an arena of CPython's own allocator is a mapping of 1 MiB."""
    done = whyoom("export", "--format", "jsonl", "--at", "end", "--events", "none", trace)
    sums = [e for e in map(json.loads, done.stdout.splitlines())
            if e["type"] == "sum" and e["live_blocks"]]
    return sum(e["live_bytes"] for e in sums
               if least <= e["live_bytes"] / e["live_blocks"] < 2 * least)


def one(name, make, command, count, top):
    failures, pauses, shares, done = [], [], [], 0
    while done < count:
        folder = tempfile.mkdtemp(dir=top)
        program = make(command, folder)
        time.sleep(0.2)
        try:
            for i in range(min(EACH, count - done)):
                done += 1
                trace = os.path.join(folder, f"trace{i}")
                # Large blocks are all recorded, and the load's own hardly: one of a sample would
                # stand for half a MiB that the program does not count.
                said = whyoom("attach", "--mode", "sampled", "--exact-from", "16KiB",
                              "--sample-every", "1TiB", "-o", trace, program.pid)
                if said.returncode:
                    failures.append("attach: " + said.stderr.strip())
                    continue
                pauses.append(pause_ms(said.stdout))
                grown = program.grow() if i == 0 else 0
                said = whyoom("detach", program.pid)
                if said.returncode:
                    failures.append("detach: " + said.stderr.strip())
                if grown:
                    shares.append(recorded(trace, 20000) / grown)
            if not program.ends_well():
                failures.append("the program did not end well")
        except (OSError, IndexError, ValueError) as e:
            failures.append(f"the program: {e!r}, status {program.p.poll()}")
        program.end()
        shutil.rmtree(folder, ignore_errors=True)
    pauses.sort()
    shares.sort()
    print("shown: {}: {} attaches, {} failures; paused for {:.1f} ms at the median, {:.1f} at "
          "most; recorded {:.1f} % at the median, {:.1f} at least".format(
              name, done, len(failures), pauses[len(pauses) // 2] if pauses else -1,
              pauses[-1] if pauses else -1, 100 * shares[len(shares) // 2] if shares else -1,
              100 * shares[0] if shares else -1), flush=True)
    for f in sorted(set(failures)):
        print(f"    {failures.count(f)} x {f}")
    # At the least 95 % of what the allocator says, at the median.
    return len(failures) + (not shares or shares[len(shares) // 2] < 0.95)


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    newer = newer_python()
    programs = [("C, 8 threads", Program, [os.path.join(PROGS, "attach-grow"), "8"]),
                ("C++", Program, [os.path.join(PROGS, "attach-growcxx"), "8"]),
                ("Python 3.11", Program, [PYTHON, "-c", PYTHON_GROW])]
    if newer:
        programs.append(("Python, newer", Program, [newer, "-c", PYTHON_GROW]))
    if shutil.which("node"):
        programs.append(("Node", Program, ["node", "-e", NODE_GROW]))
    if shutil.which("redis-server"):
        programs.append(("Redis", Redis, ["redis-server"]))
    top = tempfile.mkdtemp(prefix="whyoom-attach-all-", dir="/var/tmp")
    bad = 0
    for i, (name, make, command) in enumerate(programs):
        share = total // len(programs) + (i < total % len(programs))
        bad += one(name, make, command, share, top)
    shutil.rmtree(top, ignore_errors=True)
    print(f"{total - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
