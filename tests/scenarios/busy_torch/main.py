"""Texts are classified on the GPU; one is very long: CUDA is out of memory, its client gets 500,
and the service goes on."""
import os
import random
import torch
from torch import nn

SCALE = int(os.environ.get("SCALE", "1"))


@torch.no_grad()
def classify(table, project, length):
    x = table(torch.zeros(1, length, dtype=torch.long, device="cuda"))
    weights = torch.softmax(project(x) @ x.transpose(1, 2), -1)
    return float((weights @ x).sum())


def main():
    random.seed(1)
    table, project = nn.Embedding(30000, 256).cuda().eval(), nn.Linear(256, 256).cuda().eval()
    codes = []
    for n in range(200):
        try:
            classify(table, project, 9000 * SCALE if n == 120 else random.randrange(100, 700))
            codes.append(200)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            codes.append(500)
    print(codes.count(200), codes.count(500))


main()
