"""attached.py - a server on a device that has run for a while before it waits for a line of its
input; from then on one in four of its requests leaves a block behind, until the device is full.

Its last line of JSON is what PyTorch counts at the end, and `before`, what it had when it
waited."""
import sys

import torch

from until_failure import run, said

MIB = 1 << 20
weights, kept, notes = [], [], []


def take(size):
    said["asked"] = size
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def work(n):
    some = [take((1 + n % 7) * MIB), take((1 + n % 3) * MIB)]
    del some


def serve(n):
    work(n)
    if n % 4 == 0:
        kept.append(take(2 * MIB))
        notes.append(bytearray(40000))


def program():
    for _ in range(10):
        weights.append(take(20 * MIB))
    for n in range(200):
        work(n)
    said["before"] = torch.cuda.memory_allocated()
    print("ready", flush=True)
    sys.stdin.readline()
    n = 0
    while True:
        serve(n)
        n += 1
        said["kept"] = len(kept)


run(program)
