"""refused.py - takes all of the device's memory, a fiftieth at a time, until PyTorch is refused."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "torch",
                                "programs"))
from until_failure import run, said  # noqa: E402

kept = []


def all_of_it():
    piece = torch.cuda.mem_get_info()[1] // 50 + 12345
    while True:
        said["asked"] = piece
        kept.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))


run(all_of_it)
