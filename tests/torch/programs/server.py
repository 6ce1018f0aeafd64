"""server.py WHICH - a server on a device, whose requests make and give back far more than they
leave behind.

leak: one in four leaves a block behind, until the device is full. grows: what each reads grows with
what was said. holes: between its requests it gives back every other block, and what it then wants
fits into none of the holes. cache: it keeps the last 200 results, and ends well. host: as leak, but
in the host's memory, of which there is less than LIMIT more."""
import os
import resource
import sys

import torch

from until_failure import run, said

d = "cuda"
KIB = 1 << 10
kept = []


def take(size, device=d):
    said["asked"] = size
    return torch.empty(size, dtype=torch.uint8, device=device)


def work(n):
    """What one request makes for itself."""
    passed = take(64 * KIB)
    for i in range(40):
        passed = take((16 + (n * 7 + i * 13) % 48) * KIB)
    return passed


def remember(size, device=d):
    kept.append(take(size, device))


def leak():
    n = 0
    while True:
        work(n)
        if n % 4 == 0:
            remember(512 * KIB)
        n += 1
        said["requests"] = n


def grows():
    dialogue = take(KIB)
    n = 0
    while True:
        work(n)
        said["asked"] = dialogue.nbytes + 64 * KIB
        dialogue = torch.cat([dialogue, torch.empty(64 * KIB, dtype=torch.uint8, device=d)])
        n += 1


def holes():
    small = []
    for n in range(7000):
        work(n)
        if n % 8 == 0 and len(small) < 84:
            small.append(take(8 * KIB * KIB))  # two to a segment
    del small[::2]
    for n in range(3000):
        work(n)
    for _ in range(20):
        remember(15 * KIB * KIB)


def cache():
    for n in range(6000):
        work(n)
        remember(512 * KIB)
        if len(kept) > 200:
            kept.pop(0)


def host():
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + int(os.environ["LIMIT"]), resource.RLIM_INFINITY))
    n = 0
    while True:
        work(n)
        if n % 4 == 0:
            remember(200 * KIB, "cpu")
        n += 1


run(globals()[sys.argv[1]])
