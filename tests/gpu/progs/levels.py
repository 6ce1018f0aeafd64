"""levels.py - what the device and PyTorch say of memory at moments between which nothing is
computed, in JSON: [free on the device, reserved by PyTorch] each. Ends without giving anything
back."""
import json
import os

import torch

MIB = 1 << 20
kept = [torch.zeros(1, device="cuda")]
moments = []


def moment():
    torch.cuda.synchronize()
    moments.append([torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()])


moment()
for size in (100, 2, 1, 37, 512):
    kept += [torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
    moment()
del kept[4:10]
torch.cuda.empty_cache()
moment()
print(json.dumps({"moments": moments, "total": torch.cuda.mem_get_info()[1]}), flush=True)
os._exit(0)
