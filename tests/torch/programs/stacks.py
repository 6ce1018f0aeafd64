"""stacks.py - where blocks come from: for each, in each thread's order, its address and the Python
functions that called for it, outermost first, as Python itself has them. In JSON; ends without
freeing anything more."""
import json
import os
import sys
import threading

import torch
from torch import nn

d = "cuda"
asked = {}  # native thread id to [address, frames] each


def frames():
    """Of the caller, as name and line."""
    found, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        found.append(f"{getattr(code, 'co_qualname', code.co_name)} "
                     f"{code.co_filename}:{frame.f_lineno}")
        frame = frame.f_back
    return found[::-1]


def note(block, where):
    asked.setdefault(threading.get_native_id(), []).append([block.data_ptr(), where])
    return block


# Each of these asks for one block, on the line on which frames() is called.

def plain(size):
    return note(torch.empty(size, device=d), frames())


def deep(size, left=40):
    return deep(size, left - 1) if left else note(torch.empty(size, device=d), frames())


class Holder:
    def __init__(self, size):
        self.held = note(torch.zeros(size, device=d), frames())

    @staticmethod
    def of(size):
        return [note(torch.full((s,), 1.0, device=d), frames()) for s in (size, size + 1)][0]


def generated(size):
    def steps():
        for n in range(3):
            yield note(torch.empty(size + n, device=d), frames())
    return list(steps())[-1]


def computed(size):
    ones = plain(size)
    return note(ones + 1, frames())


def joined(size):
    ones = plain(size)
    return note(torch.cat([ones, ones]), frames())


class Layer(nn.Module):
    def forward(self, x):
        return note(x * 2, frames())


def hooked(size):
    """Through PyTorch's own Python code."""
    return nn.Sequential(Layer(), Layer())(plain(size))


def from_lambda(size):
    return (lambda n: note(torch.empty(n, device=d), frames()))(size)


def worker(index):
    ways = (plain, deep, Holder, Holder.of, generated, computed, joined, hooked, from_lambda)
    held = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for step in range(60):
            held.append(ways[(step + index) % len(ways)](1000 * (step + 1) ** (1 + step % 2)))
            if step % 7 == 6:
                del held[::3]


torch.cuda.init()
plain(10)
running = [threading.Thread(target=worker, args=(i,)) for i in range(4)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
print(json.dumps(asked), flush=True)

# The backward pass asks from a thread that runs no Python.
net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).to(d)
net(torch.zeros(8, 64, device=d)).square().mean().backward()
os._exit(0)
