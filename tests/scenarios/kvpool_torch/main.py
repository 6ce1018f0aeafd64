"""A cache for the largest batch, taken before the first request."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))
LAYERS = 12


class Pool:
    def __init__(self, share, width=512):
        blocks = int(torch.cuda.mem_get_info()[0] * share) // (2 * LAYERS * 16 * width * 4)
        self.keys = [torch.zeros(blocks, 16, width, device="cuda") for _ in range(LAYERS)]
        self.values = [torch.zeros(blocks, 16, width, device="cuda") for _ in range(LAYERS)]


@torch.no_grad()
def serve(model, length):
    return model(tokens(8, length)).argmax(-1)


def main():
    model = SmallLM(layers=LAYERS // 2).cuda().eval()
    pool = Pool(0.97)
    for _ in range(200):
        for length in (64, 128, 256, 512):
            serve(model, length * SCALE)
    return pool


main()
