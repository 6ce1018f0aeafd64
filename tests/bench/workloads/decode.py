"""decode.py decode|large|repeat - PyTorch programs on a CUDA device whose rounds are timed.

decode   a transformer with a key-value cache, a token at a time: each event's stack differs from
         the one before
large    the same with 6.5 thousand million parameters, which keep a device busy
repeat   one tensor, made and dropped at one call site: always the same stack

For each line of standard input it runs a round, and answers with a line of JSON: `cpu`, the
thread's CPU time, and `wall`, both in ns and until the device is done; `tokens` that were made;
`blocks`, the acquisitions and releases of PyTorch's allocator; and with clocked.c loaded `take`
and `give`, the ns of each report, as percentiles."""
import ctypes
import json
import os
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "pytorch-server"))
from model import Transformer  # noqa: E402

TOKENS = 50
PERCENTILES = (10, 50, 90, 99)


def decode(layers=12, width=512, heads=8):
    """A round is a request: a prompt of 64 tokens, and 50 tokens after it, of 4 sequences."""
    torch.set_default_dtype(torch.half)
    with torch.device("cuda"):
        model = Transformer(layers, width, heads).eval()
    while True:
        logits, cache = model(torch.zeros(4, 64, dtype=torch.long, device="cuda"))
        for _ in range(TOKENS):
            logits, cache = model(logits.argmax(-1).clamp(0, 31999), cache)
        yield 4 * TOKENS


def large():
    return decode(32, 4096, 32)


def repeat():
    while True:
        for _ in range(10000):
            torch.empty(4096, device="cuda")
        yield 0


class Clock:
    """clocked.c's times since the last call."""

    def __init__(self):
        library = ctypes.CDLL(None)
        try:
            self.count = ctypes.c_uint32.in_dll(library, "clocked_count")
            self.reports = (ctypes.c_uint32 * (1 << 20)).in_dll(library, "clocked_reports")
        except ValueError:  # not preloaded
            self.count = None

    def read(self):
        if self.count is None:
            return {}
        seen = self.reports[:self.count.value]
        self.count.value = 0
        return {name: percentiles(sorted(r >> 1 for r in seen if r & 1 == kind))
                for kind, name in enumerate(("take", "give"))}


def percentiles(values):
    return [values[min(len(values) * p // 100, len(values) - 1)] for p in PERCENTILES]


def main():
    rounds = {"decode": decode, "large": large, "repeat": repeat}[sys.argv[1]]()
    clock = Clock()
    with torch.inference_mode():
        for _ in range(3):
            next(rounds)
        clock.read()
        print("ready", flush=True)
        for _ in sys.stdin:
            torch.cuda.synchronize()
            blocks = torch.cuda.memory_stats()["allocation.all.allocated"]
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            tokens = next(rounds)
            torch.cuda.synchronize()
            wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
            blocks = torch.cuda.memory_stats()["allocation.all.allocated"] - blocks
            print(json.dumps({"cpu": cpu, "wall": wall, "tokens": tokens, "blocks": blocks,
                              **clock.read()}),
                  flush=True)


main()
