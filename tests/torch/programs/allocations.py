"""allocations.py SEED SEQUENCES [STREAMS] - sequences of random requests and releases, of sizes
from bytes to a good part of the device, near the allocator's thresholds as well as far from them;
many end where there is no more memory.

Prints how many requests were made and how many were refused, as JSON.
"""
import json
import random
import sys

import torch

KIB, MIB = 1 << 10, 1 << 20
EDGES = [512, KIB, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 20 * MIB, 21 * MIB, 64 * MIB]

chance = random.Random(int(sys.argv[1]))
sequences = int(sys.argv[2])
streams = [torch.cuda.current_stream()] + [torch.cuda.Stream()
                                           for _ in range(int((sys.argv + ["1"])[3]) - 1)]
made = refused = 0


def small():
    return chance.randrange(1, MIB + 1)


def tiny():
    return int(2 ** chance.uniform(0, 14))


def middle():
    return chance.randrange(MIB, 10 * MIB)


def large():
    return chance.randrange(10 * MIB, 90 * MIB)


def huge():
    return chance.randrange(90 * MIB, 700 * MIB)


def edge():
    return max(1, chance.choice(EDGES) + chance.randrange(-600, 600))


def repeated(sizes=[]):
    """As programs do: few sizes, many times."""
    if not sizes or chance.random() < 0.02:
        sizes[:] = [chance.choice([small, middle, large])() for _ in range(6)]
    return chance.choice(sizes)


def growing(last=[MIB]):
    """As a cache that grows by concatenation."""
    last[0] = last[0] + chance.randrange(1, MIB) if last[0] < 120 * MIB else chance.randrange(
        1, MIB)
    return last[0]


def request(live, size):
    """Asks for a block; where there is no memory, a program lets go of something."""
    global made, refused
    made += 1
    try:
        with torch.cuda.stream(chance.choice(streams)):
            live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        refused += 1
        release(live, chance.randrange(1, len(live) + 2))


def release(live, count):
    for _ in range(min(count, len(live))):
        at = chance.randrange(len(live))
        live[at] = live[-1]
        live.pop()


def sequence(live):
    kinds = chance.choices([tiny, small, middle, large, huge, edge, repeated, growing],
                           k=chance.randrange(1, 5))
    keep = chance.choice([5, 20, 60, 200])
    for _ in range(chance.randrange(20, 160)):
        if len(live) > keep or (live and chance.random() < 0.4):
            release(live, chance.choice([1, 1, 1, 2, 8]))
        else:
            request(live, chance.choice(kinds)())
        if chance.random() < 0.01:
            torch.cuda.empty_cache()


held = []
for _ in range(sequences):
    sequence(held)
    if chance.random() < 0.8:  # else the next one finds what this one left
        held.clear()
        if chance.random() < 0.6:
            torch.cuda.empty_cache()
print(json.dumps({"requests": made, "refused": refused}))
