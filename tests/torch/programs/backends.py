"""backends.py - blocks of known sizes, some given back, on two streams; what PyTorch counts of them
and what was asked for, in JSON. For the settings under which PyTorch does not report its blocks."""
import json
import os

import torch

d = "cuda"
KIB, MIB = 1 << 10, 1 << 20
sizes = [1, 512, 1000, 70 * KIB, 3 * MIB + 1, 20 * MIB, 33 * MIB]
asked, given_back = [], []
kept = []

torch.cuda.init()
side = torch.cuda.Stream()
for turn in range(20):
    with torch.cuda.stream(side if turn % 2 else torch.cuda.default_stream()):
        for size in sizes:
            kept.append(torch.empty(size + turn, dtype=torch.uint8, device=d))
            asked.append(size + turn)
    while len(kept) > 20:
        given_back.append(kept.pop(turn % 5).numel())
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
print(json.dumps({"asked": asked, "given back": given_back, "stats": torch.cuda.memory_stats(),
                  "free": free, "total": total, "backend": torch.cuda.get_allocator_backend()}),
      flush=True)
os._exit(0)
