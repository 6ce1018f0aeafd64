"""An engine with swap space for sequences that have to wait: page-locked memory of the host, taken
before the first request, as many GiB as the settings say."""
import os
import torch
from small_lm import SmallLM, tokens

SCALE = int(os.environ.get("SCALE", "1"))
SWAP_SPACE = float(os.environ["SWAP_SPACE"])  # GiB
LAYERS = 12


class CacheEngine:
    def __init__(self, gib, width=512):
        blocks = int(gib * 2**30) // (LAYERS * 2 * 16 * width * 2)
        self.cpu_cache = [torch.zeros(2, blocks, 16 * width, dtype=torch.half, pin_memory=True)
                          for _ in range(LAYERS)]


@torch.no_grad()
def serve(model, length):
    return model(tokens(8, length)).argmax(-1)


def main():
    model = SmallLM().cuda().eval()
    engine = CacheEngine(SWAP_SPACE)
    for _ in range(60):
        for length in (64, 128, 256):
            serve(model, length * SCALE)
    return engine


main()
