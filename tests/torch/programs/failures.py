"""failures.py WHICH - programs that run out of a device's memory, each in its own way."""
import sys

import torch

from until_failure import run, said

d = "cuda"
MIB = 1 << 20


def take(size):
    said["asked"] = size
    return torch.empty(size, dtype=torch.uint8, device=d)


def model():
    """Loading alone is too much."""
    layers = []
    said["asked"] = 4096 * 4096 * 4
    for _ in range(1000):
        layers.append(torch.nn.Linear(4096, 4096, bias=False, device=d))


def kv_cache():
    """A cache that is made anew, one longer, at each step."""
    new = torch.zeros(8, 32, 1, 128, device=d, dtype=torch.float16)
    layers = [new.clone() for _ in range(12)]
    for step in range(100000):
        said.update(steps=step, asked=(step + 2) * new.nbytes)
        for i, layer in enumerate(layers):
            layers[i] = torch.cat([layer, new], 2)


def leak():
    """Each request leaves something behind."""
    kept, curve = [], said.setdefault("curve", [])
    while True:
        curve.append(torch.cuda.memory_allocated())
        work = take(32 * MIB)
        said["asked"] = 4 * MIB
        kept.append(work[:1].expand(4 * MIB).contiguous())
        del work


def fragmentation():
    """Half of the memory is free, in holes that a live neighbour pins."""
    large = [take(80 * MIB) for _ in range(30)]
    del large
    small = [take(40 * MIB) for _ in range(60)]
    del small[::2]
    kept = [take(80 * MIB) for _ in range(10)]
    assert len(kept) + len(small) == 40


def half():
    """Takes half of what there is, says so, waits, and then wants more."""
    kept = [take(torch.cuda.mem_get_info()[0] // 2 // (2 * MIB) * 2 * MIB)]
    print("holds", flush=True)
    sys.stdin.read()
    while True:
        kept.append(take(32 * MIB))


def graphs():
    """Part of what is held is a graph's own pool."""
    still = take(64 * MIB)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [torch.empty(100 * MIB, dtype=torch.uint8, device=d) for _ in range(4)]
        del kept[1]
    graph.replay()
    while True:
        kept.append(take(33 * MIB + 1000))
        still.zero_()


run(globals()[sys.argv[1]])
