"""Images of many sizes, kept in no order: what is free lies between what is not."""
import os
import random
import torch

SCALE = int(os.environ.get("SCALE", "1"))
MB = 1 << 20


def encode(megabytes):
    return torch.empty(megabytes * MB // 4 * SCALE, device="cuda")


def main():
    random.seed(3)
    kept = []
    for i in range(6000):
        kept.append(encode(random.randint(5, 15)))
        if len(kept) > 50:
            random.shuffle(kept)
            del kept[25:]
        if i % 300 == 299:
            random.shuffle(kept)
            del kept[12:]
            encode(300)


main()
