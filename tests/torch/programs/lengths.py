"""lengths.py LONGEST: answers prompts of different lengths, none longer than that: states that grow
with a prompt, scores that grow with its square, keys that stay. Prints "fits", or "refused"."""
import sys

import torch

longest = int(sys.argv[1])
weights = torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
kept = []


def embed(n):
    return torch.empty(n, 2048, device="cuda")


def attend(n):
    scores = torch.empty(8, n, n, device="cuda")
    return torch.empty_like(scores)


def answer(n):
    states = embed(n)
    kept.append(torch.empty(n, 128, device="cuda"))
    for _ in range(3):
        attend(n)
    return torch.empty(n, 4000, device="cuda")


said = "fits"
try:
    for n in (400, 900, 150, 700, 300, 820, 560, 240, 6000, 500):
        answer(min(n, longest))
except torch.cuda.OutOfMemoryError:
    said = "refused"
print(said)
