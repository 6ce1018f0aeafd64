"""equality.py [MEMORY-IS-SHORT] - what PyTorch counts, in JSON: 4 threads with streams of their
own, blocks that other streams use and other threads free, graphs with private pools, and the cache
emptied in between. Ends without freeing anything more."""
import gc
import json
import os
import random
import sys
import threading

import torch

d = "cuda"
KIB, MIB = 1 << 10, 1 << 20
THREADS, STEPS = 4, 350
shared = []  # what one thread leaves and another frees
lock = threading.Lock()


def some_size(random):
    """Of each of the ways in which the allocator sizes its segments."""
    return random.choice((random.randrange(1, 4 * KIB), random.randrange(1, MIB),
                          random.randrange(1, 9 * MIB), random.randrange(10 * MIB, 30 * MIB)))


def worker(index):
    chance = random.Random(index)
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    held = []
    for step in range(STEPS):
        with torch.cuda.stream(stream if step % 3 else other):
            block = torch.empty(some_size(chance), dtype=torch.uint8, device=d)
        if chance.random() < 0.2:
            block.record_stream(torch.cuda.default_stream())
        if chance.random() < 0.2:
            with lock:
                shared.append(block)
                if len(shared) > 8:
                    shared.pop(chance.randrange(len(shared)))
        held.append(block)
        if len(held) > 12:
            held.pop(chance.randrange(len(held)))
        if step % 100 == 99:
            torch.cuda.empty_cache()
    with lock:
        shared.extend(held[:3])


def threads():
    running = [threading.Thread(target=worker, args=(i,)) for i in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def captured(graph, still):
    with torch.cuda.graph(graph):
        first = still * 2
        second = torch.cat([first, first])
        del first
        return second + 1


def graphs():
    """Two live to the end, one goes, and its pool with it."""
    still = torch.zeros(3 * MIB, device=d)
    live = [torch.cuda.CUDAGraph() for _ in range(3)]
    out = [captured(graph, still) for graph in live]
    for graph in live:
        graph.replay()
    del graph, live[0], out[0]
    gc.collect()
    torch.cuda.empty_cache()
    return still, live, out


def until_refused():
    """The cache has to be given back for a block, and then there is no room for one."""
    refused = 0
    for size in (50 * MIB, 70 * MIB):
        held = []
        try:
            while True:
                held.append(torch.empty(size, dtype=torch.uint8, device=d))
        except torch.cuda.OutOfMemoryError:
            refused += 1
        del held[::2]
    assert refused == 2


torch.cuda.init()
threads()
kept = graphs()
if sys.argv[1:] == ["short"]:
    until_refused()
torch.cuda.synchronize()
last = torch.empty(5 * MIB, device=d)
print(json.dumps(torch.cuda.memory_stats()), flush=True)
os._exit(0)
